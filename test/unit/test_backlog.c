/* backlog: what was written is read, by queue; queues that never had a task stay out; ages. */
#include "document/backlog.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

static struct backlog *fresh(void)
{
    static struct backlog backlog;
    memset(&backlog, 0, sizeof backlog);
    return &backlog;
}

static void nobody_has_looked(void **state)
{
    (void)state;
    const struct backlog *backlog = fresh();
    struct backlog_numbers numbers;
    assert_true(backlog_age_ms(backlog, 5) == -1);
    assert_false(backlog_read(backlog, 0, &numbers));
}

static void a_look_is_read_back(void **state)
{
    (void)state;
    struct backlog *backlog = fresh();
    struct backlog_numbers numbers[BACKLOG_QUEUES] =
        {[0] = {1, 2, 3, 4, 5, 261121000000000}, [15] = {.later = INT64_MAX}},
                           found;
    char code[BACKLOG_CODE_BYTES + 1];
    backlog_write(backlog, BYTES("abcdefghijklmnop"), numbers, 100);
    backlog_read_code(backlog, code);
    assert_string_equal(code, "abcdefghijklmnop");
    for (int queue = 0; queue < BACKLOG_QUEUES; queue++) {
        assert_true(backlog_read(backlog, queue, &found) == (queue == 0 || queue == 15));
        assert_memory_equal(&found, &numbers[queue], sizeof found);
    }
    assert_true(backlog_age_ms(backlog, 130) == 30);
    assert_true(backlog_age_ms(backlog, 90) == 0); /* another processor's clock */
}

static void a_queue_that_is_empty_again_is_told(void **state)
{
    (void)state;
    struct backlog *backlog = fresh();
    struct backlog_numbers numbers[BACKLOG_QUEUES] = {[3] = {.due = 1}}, found;
    char code[BACKLOG_CODE_BYTES + 1];
    backlog_write(backlog, BYTES("longer"), numbers, 0);
    numbers[3].due = 0;
    backlog_write(backlog, BYTES("z"), numbers, 0);
    assert_true(backlog_read(backlog, 3, &found) && found.due == 0);
    assert_false(backlog_read(backlog, 4, &found));
    backlog_read_code(backlog, code);
    assert_string_equal(code, "z");
    assert_true(backlog_age_ms(backlog, 1) == 0); /* a clock at 0 is no absence */
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_looked),
        cmocka_unit_test(a_look_is_read_back),
        cmocka_unit_test(a_queue_that_is_empty_again_is_told),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
