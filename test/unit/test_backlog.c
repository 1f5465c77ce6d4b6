/* backlog: what was written is read, by queue; queues that never had a task stay out; ages. */
#include "segment/counts/backlog.h"
#include "segment/counts/task_counts.h"
#include "model/document/stamp.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>

#include <cmocka.h>

static struct backlog *fresh(void)
{
    static struct backlog backlog;
    memset(&backlog, 0, sizeof backlog);
    return &backlog;
}

/* More operations than there is room for share an entry; a name that a dead process has not written is
 * written by the next. */
static void operations_are_counted_and_bounded(void **state UNUSED)
{
    static struct task_counts_board board;
    struct segment segment = {.task_counts = &board};
    const struct named_counts *table = task_counts_operations(&segment);
    uint64_t counts[NAMED_COUNTS_MOST];
    char name[24], found[NAMED_COUNTS_BYTES + 1];
    for (int i = 0; i < 100; i++) {
        snprintf(name, sizeof name, "Operation%d", i);
        for (int k = 0; k <= i; k++)
            task_counts_add(&segment, bytes_of(name), true, false, 2);
        task_counts_add(&segment, bytes_of(name), false, true, 3);
        task_counts_add(&segment, bytes_of(name), false, false, -1);
    }
    uint64_t done = 0, failed = 0;
    bool is_seen[100] = {false};
    for (size_t place = 0; place < NAMED_COUNTS_NAMES; place++) {
        assert_true(named_counts_read(table, place, found, counts));
        int number;
        assert_int_equal(sscanf(found, "Operation%d", &number), 1);
        assert_true(number < NAMED_COUNTS_NAMES && !is_seen[number]);
        is_seen[number] = true;
        assert_int_equal(counts[TASK_COUNT_DONE], number + 1);
        assert_int_equal(counts[TASK_COUNT_US], 2 * (number + 1) + 3);
        done += counts[TASK_COUNT_DONE];
        failed += counts[TASK_COUNT_FAILED];
    }
    assert_true(named_counts_read(table, NAMED_COUNTS_NAMES, found, counts));
    assert_string_equal(found, "");
    assert_int_equal(done + counts[TASK_COUNT_DONE], 100 * 101 / 2);
    assert_int_equal(failed + counts[TASK_COUNT_FAILED], 100);
    atomic_store(&board.operations.entries[5].is_named, 0);
    memset(&board.operations.entries[5].name, 0, sizeof board.operations.entries[5].name);
    assert_false(named_counts_read(table, 5, found, counts));
    for (int i = 0; i < NAMED_COUNTS_NAMES; i++) {
        snprintf(name, sizeof name, "Operation%d", i);
        task_counts_add(&segment, bytes_of(name), true, false, 0);
    }
    assert_true(named_counts_read(table, 5, found, counts) && found[0] == 'O' && counts[TASK_COUNT_DONE] > 1);
    task_counts_add(&segment, BYTES("a name that no operation can have"), true, false, 0);
}

/* Namespaces and queues apart; those beyond the table, and names that do not fit, share an entry. */
static void queues_of_external_workers_are_counted(void **state UNUSED)
{
    static struct task_counts_board board;
    struct segment segment = {.task_counts = &board};
    uint64_t counts[NAMED_COUNTS_MOST];
    char found[NAMED_COUNTS_BYTES + 1], code[24];
    size_t first = task_counts_queue(&segment, BYTES("lab"), 16);
    task_counts_add_external(&segment, BYTES("lab"), 16, EXTERNAL_COUNT_TAKEN, 3);
    task_counts_add_external(&segment, BYTES("lab"), 17, EXTERNAL_COUNT_TAKEN, 1);
    task_counts_add_external(&segment, BYTES("den"), 16, EXTERNAL_COUNT_EXPIRED, 1);
    assert_true(named_counts_read(task_counts_queues(&segment), first, found, counts));
    assert_string_equal(found, "16 lab");
    assert_int_equal(counts[EXTERNAL_COUNT_TAKEN], 3);
    assert_int_equal(counts[EXTERNAL_COUNT_EXPIRED], 0);
    assert_true(task_counts_queue(&segment, BYTES("lab"), 17) != first);
    assert_int_equal(task_counts_queue(&segment, BYTES("a code that is longer than there is room"), 16),
                     NAMED_COUNTS_NAMES);
    for (int i = 0; i < 100; i++) {
        snprintf(code, sizeof code, "n%d", i);
        task_counts_add_external(&segment, bytes_of(code), 20, EXTERNAL_COUNT_DONE, 1);
    }
    assert_true(named_counts_read(task_counts_queues(&segment), NAMED_COUNTS_NAMES, found, counts));
    assert_string_equal(found, "");
    assert_int_equal(counts[EXTERNAL_COUNT_DONE], 100 - (NAMED_COUNTS_NAMES - 3));
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

/* Scans whose snapshots see the transactions `running` and later as unfinished. */
static int64_t scan(struct backlog *backlog, int64_t now_ms, const struct backlog_bound *bound)
{
    const struct backlog_scan begun = backlog_begin_scan(backlog, now_ms);
    if (bound)
        backlog_end_scan(backlog, &begun, bound);
    return begun.since;
}

static void a_scan_looks_from_where_something_may_wait(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    const struct backlog_bound first = {STAMP_MAX, 7, 100, 1000, 105}, open = {STAMP_MAX, 7, 105, 2000, 110},
                               ended = {STAMP_MAX, 7, 106, 3000, 115}, waits = {500, 7, 120, 4000, 120},
                               none = {STAMP_MAX, 7, 130, 5000, 130};
    assert_true(scan(backlog, 1000, &first) == 0); /* nothing is known */
    assert_true(scan(backlog, 1000, &open) == 0);  /* what was under way at the first scan may still be */
    assert_true(scan(backlog, 1000, &ended) == 0); /* all that was under way then has ended */
    assert_true(scan(backlog, 1000, &waits) == 1000);
    assert_true(scan(backlog, 1000, &none) == 500);
    assert_true(scan(backlog, 1000, &none) == 4000);
    const struct backlog_scan next = backlog_begin_scan(backlog, 1000);
    assert_true(next.since == 5000 || next.since == 4000);
    assert_true(next.mark == 7);
}

static void a_scan_that_fails_or_is_overtaken_leaves_nothing_known(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    const struct backlog_bound bounds[] = {
        {STAMP_MAX, 1, 10, 1000, 10}, {STAMP_MAX, 1, 20, 2000, 20}, {STAMP_MAX, 1, 30, 3000, 30}};
    for (int i = 0; i < 3; i++)
        scan(backlog, 1, &bounds[i]);
    assert_true(scan(backlog, 1, NULL) == 2000);
    assert_true(scan(backlog, 1, &bounds[2]) == 0); /* the one before has failed, or goes on */
    for (int i = 0; i < 3; i++)
        scan(backlog, 1, &bounds[i]);
    const struct backlog_scan one = backlog_begin_scan(backlog, 1), other = backlog_begin_scan(backlog, 1);
    assert_true(one.since != 0 && other.since == 0);
    backlog_end_scan(backlog, &other, &(struct backlog_bound){STAMP_MAX, 2, 40, 4000, 40});
    backlog_end_scan(backlog, &one, &(struct backlog_bound){STAMP_MAX, 1, 40, 9000, 40}); /* too late */
    assert_true(backlog_begin_scan(backlog, 1).mark == 2);
    for (int i = 1; i <= 2 * BACKLOG_SCANS; i++) /* what each place holds is of an earlier scan now */
        scan(backlog, 1, &(struct backlog_bound){STAMP_MAX, 1, 50 + 10 * i, 1000 * i, 50 + 10 * i});
    assert_true(scan(backlog, 1, NULL) != 0);
    assert_true(scan(backlog, 1, NULL) == 0);
}

static void now_and_then_a_scan_begins_at_the_beginning(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    for (int i = 1; i < 5; i++)
        scan(backlog, 5000, &(struct backlog_bound){STAMP_MAX, 1, 10 * i, 1000 * i, 10 * i});
    assert_true(scan(backlog, 5000 + 599999, &(struct backlog_bound){STAMP_MAX, 1, 60, 6000, 60}) != 0);
    assert_true(scan(backlog, 5000 + 600000, &(struct backlog_bound){STAMP_MAX, 1, 70, 7000, 70}) == 0);
    assert_true(scan(backlog, 5000 + 600000, &(struct backlog_bound){STAMP_MAX, 1, 80, 8000, 80}) == 0);
    assert_true(scan(backlog, 5000 + 600000, &(struct backlog_bound){STAMP_MAX, 1, 90, 900, 90}) == 7000);
    assert_true(scan(backlog, 5000 + 600000, &(struct backlog_bound){STAMP_MAX, 1, 95, 950, 95}) ==
                0); /* a clock */
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

static void a_wish_of_an_unknown_code_waits(void **state UNUSED)
{
    struct backlog *backlog = fresh();
    char code[BACKLOG_CODE_BYTES + 1];
    atomic_fetch_or(&backlog->wanted, BACKLOG_LOCAL);
    assert_false(backlog_take(backlog, BACKLOG_LOCAL, code));
    backlog_write(backlog, BYTES("lab"), (struct backlog_numbers[BACKLOG_QUEUES]){{0}}, 1);
    assert_true(backlog_take(backlog, BACKLOG_LOCAL, code));
    assert_string_equal(code, "lab");
    assert_false(backlog_take(backlog, BACKLOG_LOCAL, code));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(operations_are_counted_and_bounded),
        cmocka_unit_test(queues_of_external_workers_are_counted),
        cmocka_unit_test(nobody_has_looked),
        cmocka_unit_test(a_look_is_read_back),
        cmocka_unit_test(a_queue_that_is_empty_again_is_told),
        cmocka_unit_test(what_is_begun_is_due_no_more),
        cmocka_unit_test(a_scan_looks_from_where_something_may_wait),
        cmocka_unit_test(a_scan_that_fails_or_is_overtaken_leaves_nothing_known),
        cmocka_unit_test(now_and_then_a_scan_begins_at_the_beginning),
        cmocka_unit_test(a_wish_to_wake_is_taken_once),
        cmocka_unit_test(a_wish_of_an_unknown_code_waits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
