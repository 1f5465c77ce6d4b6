/* backlog: what was written is read, by queue; queues that never had a task stay out; ages. */
#include "segment/backlog.h"
#include "model/stamp.h"

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

static void nobody_has_looked(void **state UNUSED)
{
    const struct backlog *backlog = fresh();
    struct backlog_numbers numbers;
    assert_true(backlog_age_ms(backlog, 5) == -1);
    assert_false(backlog_read(backlog, 0, &numbers));
}

static void a_look_is_read_back(void **state UNUSED)
{
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

static void a_queue_that_is_empty_again_is_told(void **state UNUSED)
{
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

static void what_is_begun_is_due_no_more(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    int64_t now = stamp_now(), early = stamp_add_ms(now, -3600000), late = stamp_add_ms(now, 3600000);
    struct backlog_numbers numbers[BACKLOG_QUEUES] = {[2] = {.due = 2, .oldest = early}}, found;
    backlog_begin_task(backlog, 2, early, early, 1000); /* nobody has looked */
    backlog_write(backlog, BYTES("lab"), numbers, 1000);
    backlog_begin_task(backlog, 2, late, early, 1000); /* the look did not count these */
    backlog_begin_task(backlog, 2, early, late, 1000);
    backlog_begin_task(backlog, 1, early, early, 1000);
    backlog_begin_task(backlog, 99, early, early, 1000);
    assert_true(backlog_read(backlog, 2, &found) && found.due == 2 && found.oldest == early);
    backlog_begin_task(backlog, 2, early, early, 1000);
    assert_true(backlog_read(backlog, 2, &found) && found.due == 1 && found.oldest == early);
    backlog_begin_task(backlog, 2, early, early, 1000);
    assert_true(backlog_read(backlog, 2, &found) && found.due == 0 && found.oldest == 0);
    backlog_begin_task(backlog, 2, early, early, 1000);
    assert_true(backlog_read(backlog, 2, &found) && found.due == 0 && found.oldest == 0);
}

static void a_scan_looks_from_where_something_may_wait(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    int64_t now = stamp_now(), early = stamp_add_ms(now, -3600000);
    assert_true(backlog_begin_scan(backlog, 1000) == 0); /* nothing is known */
    backlog_end_scan(backlog, STAMP_MAX);
    int64_t since = backlog_begin_scan(backlog, 2000);
    assert_true(since > early && since < now); /* what is being committed has time */
    backlog_lower(backlog, early);             /* meanwhile */
    backlog_end_scan(backlog, STAMP_MAX);
    assert_true(backlog_begin_scan(backlog, 3000) == early);
    assert_true(backlog_begin_scan(backlog, 3000) == 0); /* two at once */
    backlog_end_scan(backlog, early);
    assert_true(backlog_begin_scan(backlog, 4000) == early);
    backlog_end_scan(backlog, 0); /* it has failed */
    assert_true(backlog_begin_scan(backlog, 5000) == 0);
    backlog_end_scan(backlog, now);
    assert_true(backlog_begin_scan(backlog, 5000 + 599999) != 0);
    backlog_end_scan(backlog, now);
    assert_true(backlog_begin_scan(backlog, 5000 + 600000) == 0); /* now and then from the beginning */
}

static void a_wish_to_wake_is_taken_once(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    char code[BACKLOG_CODE_BYTES + 1];
    assert_false(backlog_take(backlog, BACKLOG_LOCAL, code));
    backlog_want(backlog, BYTES("lab"), BACKLOG_LOCAL);
    backlog_want(backlog, BYTES("lab"), BACKLOG_REMOTE);
    assert_true(backlog_take(backlog, BACKLOG_LOCAL, code));
    assert_string_equal(code, "lab");
    assert_false(backlog_take(backlog, BACKLOG_LOCAL, code));
    assert_true(backlog_take(backlog, BACKLOG_REMOTE, code));
    assert_true(atomic_load(&backlog->lost) == 1);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nobody_has_looked),
        cmocka_unit_test(a_look_is_read_back),
        cmocka_unit_test(a_queue_that_is_empty_again_is_told),
        cmocka_unit_test(what_is_begun_is_due_no_more),
        cmocka_unit_test(a_scan_looks_from_where_something_may_wait),
        cmocka_unit_test(a_wish_to_wake_is_taken_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
