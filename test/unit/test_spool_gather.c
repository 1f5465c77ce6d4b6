/* test_spool_gather: which writers the one that synchronises waits for. */
#include "spool_fixture.h"

#include "spool/spool_private.h"

enum { TARGET_AT = 72 };

static uint64_t target_of(const struct stampd_spool *spool)
{
    return spool_record_read_u64(spool->shared + TARGET_AT);
}

static void check_alone(const struct stampd_spool *spool)
{
    struct spool_synced synced;
    spool_shared_read(spool, &synced);
    assert_true(synced.writers <= 1);
    assert_int_equal(target_of(spool), 0);
}

/* However many records it appends, in whatever parts. */
static void a_writer_that_is_alone_waits_for_nobody(void **state)
{
    static const size_t parts[] = {16, 1, 40, 3, 1, 1, 100, 2};
    uint64_t number = 1;
    struct stampd_spool *other, *spool = open_spool();
    (void)state;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &other), 0);
    for (size_t i = 0; i < 2 * COUNT_OF(parts); i++) {
        size_t count = parts[i / 2];
        struct stampd_spool_range stored = {number, 0};
        if (i % 2)
            stored = append_all(spool, number, count);
        for (size_t part = 0; part < count && i % 2 == 0; part++)
            stored.last = append_all(spool, number + part, 1).last;
        number += count;
        put_many(other, number, number); /* it waits for no disk: nobody waits for it */
        number++;
        assert_int_equal(stampd_spool_wait(spool, &stored), 0);
        check_alone(spool);
    }
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* It waits for what it appended before the last one, now and then for all; or another handle waits for it. */
static void a_writer_that_goes_on_waits_for_nobody(void **state)
{
    struct stampd_spool *spool = open_spool(), *other = open_spool();
    struct stampd_spool_range before = append_all(spool, 1, 3), stored;
    (void)state;
    for (int i = 0; i < 60; i++, before = stored) {
        stored = append_all(spool, before.last + 1, 1 + (size_t)i % 4);
        assert_int_equal(stampd_spool_wait(i < 20 ? other : spool, &before), 0);
        check_alone(spool);
        if (i % 3 == 0)
            assert_int_equal(stampd_spool_wait(i % 2 ? spool : other, &stored), 0);
        check_alone(spool);
    }
    stampd_spool_close(other);
    stampd_spool_close(spool);
}

/* One of them with many records.  They are expected back when they have waited. */
static void writers_are_counted_and_not_records(void **state)
{
    use_large_segments();
    struct stampd_spool *one = open_spool(), *other = open_spool(), *third = open_spool();
    struct spool_synced synced;
    struct spool_board board;
    (void)state;
    put_many(one, 1, 1);
    put_many(other, 2, 2);
    append_all(third, 3, 1); /* has just come */
    append_all(one, 4, 50);
    append_all(one, 54, 20);
    struct stampd_spool_range stored = append_all(other, 74, 1);
    assert_int_equal(stampd_spool_wait(other, &stored), 0);
    spool_shared_read(one, &synced);
    assert_int_equal(synced.writers, 2);
    assert_int_equal(synced.durable, 74);
    assert_int_equal(target_of(one), 0);
    /* the next sync waits for both, if it is of one of them */
    synced.sync_us = 100;
    assert_int_equal(spool_shared_write(one, &synced), 0);
    stored = append_all(third, 75, 1);
    assert_int_equal(stampd_spool_wait(third, &stored), 0);
    assert_int_equal(target_of(one), 0);
    synced.durable = 75;
    assert_int_equal(spool_shared_write(one, &synced), 0);
    stored = append_all(other, 76, 30);
    assert_int_equal(stampd_spool_wait(other, &stored), 0);
    assert_int_equal(spool_board_read(one, &board), 0);
    assert_int_equal(target_of(one), synced.arrived + 2);
    assert_int_equal(board.arrived, synced.arrived + 1);
    stampd_spool_close(third);
    stampd_spool_close(one);
    stampd_spool_close(other);
}

/* To wait for nothing, or once more for what was before, changes nothing. */
static void a_writer_that_waits_for_less_is_counted_once(void **state)
{
    use_large_segments();
    struct stampd_spool *spool = open_spool();
    const struct stampd_spool_range nothing = {1, 0};
    struct spool_board board;
    (void)state;
    assert_int_equal(stampd_spool_wait(spool, &nothing), 0);
    struct stampd_spool_range first = append_all(spool, 1, 3), all = first;
    assert_int_equal(spool_board_read(spool, &board), 0);
    assert_int_equal(board.arrived, 0); /* it has just come */
    all.last = append_all(spool, 4, 3).last;
    assert_int_equal(stampd_spool_wait(spool, &all), 0);
    assert_int_equal(stampd_spool_wait(spool, &first), 0);
    assert_int_equal(stampd_spool_wait(spool, &nothing), 0);
    append_all(spool, 7, 3);
    append_all(spool, 10, 3);
    assert_int_equal(spool_board_read(spool, &board), 0);
    assert_int_equal(board.arrived, 1);
    stampd_spool_close(spool);
}

/* The last one wakes the one that gathers, and no other does. */
static void the_last_one_ends_the_gathering(void **state)
{
    use_large_segments();
    struct stampd_spool *one = open_spool(), *other = open_spool();
    struct spool_board board;
    uint32_t seen, now;
    (void)state;
    put_many(one, 1, 1);
    put_many(other, 2, 2);
    assert_int_equal(spool_board_read(one, &board), 0);
    assert_int_equal(spool_shared_expect(one, board.arrived + 2, &seen), 0);
    append_all(one, 3, 4);
    append_all(one, 7, 5);
    assert_int_equal(spool_shared_expect(one, board.arrived + 2, &now), 0);
    assert_int_equal(now, seen);
    append_all(other, 12, 5);
    assert_int_equal(spool_shared_expect(one, board.arrived + 2, &now), 0);
    assert_int_equal(now, seen + 1);
    append_all(other, 17, 5);
    assert_int_equal(spool_shared_expect(one, board.arrived + 2, &now), 0);
    assert_int_equal(now, seen + 1);
    stampd_spool_close(one);
    stampd_spool_close(other);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(a_writer_that_is_alone_waits_for_nobody, fresh),
        cmocka_unit_test_setup(a_writer_that_goes_on_waits_for_nobody, fresh),
        cmocka_unit_test_setup(writers_are_counted_and_not_records, fresh),
        cmocka_unit_test_setup(a_writer_that_waits_for_less_is_counted_once, fresh),
        cmocka_unit_test_setup(the_last_one_ends_the_gathering, fresh),
    };
    return cmocka_run_group_tests_name("spool gather", tests, NULL, end);
}
