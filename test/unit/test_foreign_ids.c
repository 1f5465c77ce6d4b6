/* foreign_ids: which ids come again. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include <cmocka.h>

#include "control/foreign/foreign_ids.h"

static struct bytes number_id(char text[24], int number)
{
    snprintf(text, 24, "id%d", number);
    return bytes_of(text);
}

/* 1,000 ids, each as often as its last digit says, mixed; then once more in another order. */
static void an_id_is_its_last_when_all_others_have_passed(void **state UNUSED)
{
    enum { IDS = 1000 };
    struct foreign_ids ids = {0};
    char text[24];
    int64_t again = 0;
    int left[IDS], lasts = 0;
    for (int round = 0; round < 10; round++)
        for (int i = 0; i < IDS; i++)
            if (i % 10 > round) {
                foreign_ids_add(&ids, number_id(text, i));
                again += round > 0;
            }
    assert_int_equal(foreign_ids_settle(&ids), again);
    for (int i = 0; i < IDS; i++)
        left[i] = i % 10;
    for (int round = 0; round < 10; round++)
        for (int i = IDS - 1; i >= 0; i--)
            if (i % 10 > round) {
                bool is_last = foreign_ids_is_last(&ids, number_id(text, i));
                assert_int_equal(is_last, --left[i] == 0);
                lasts += is_last;
            }
    assert_int_equal(lasts, IDS - IDS / 10);
    foreign_ids_free(&ids);
}

static void no_ids_are_no_trouble(void **state UNUSED)
{
    struct foreign_ids ids = {0};
    assert_int_equal(foreign_ids_settle(&ids), 0);
    assert_true(foreign_ids_is_last(&ids, BYTES("a")));
    foreign_ids_free(&ids);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_id_is_its_last_when_all_others_have_passed),
        cmocka_unit_test(no_ids_are_no_trouble),
    };
    return cmocka_run_group_tests_name("foreign_ids", tests, NULL, NULL);
}
