/* test_spool_damage: a spool whose writers die at every step, whose tails are cut, whose bits are flipped. */
#include "spool_fixture.h"

#include "spool/spool_private.h"

/* As after a sync that answered three writers: the next one waits for them. */
static void expect_writers(struct stampd_spool *spool)
{
    struct spool_synced synced;
    spool_shared_read(spool, &synced);
    synced.writers = 3;
    synced.sync_us = 100;
    if (spool_shared_write(spool, &synced))
        _exit(2);
}

/* What a writer does until it dies: it notes each number that was acknowledged to it. */
static void scenario(int note, bool is_gathering)
{
    struct stampd_spool *spool;
    const struct stampd_spool_range range = {1, 6};
    struct stampd_spool_record record;
    if (stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
        _exit(2);
    for (uint64_t number = 1; number <= 12; number++) {
        uint64_t sequence;
        if (is_gathering)
            expect_writers(spool);
        if (put_long(spool, number, 60, &sequence) || write(note, &number, sizeof number) != sizeof number)
            _exit(2);
    }
    if (stampd_spool_next(spool, 6, &record) || stampd_spool_bury(spool, &record, "because"))
        _exit(2);
    if (stampd_spool_acknowledge(spool, &range, 1) || stampd_spool_drop_dead(spool, 7))
        _exit(2);
    uint64_t done = 0;
    if (write(note, &done, sizeof done) != sizeof done)
        _exit(2);
    _exit(0);
}

static void check_after_death(const unsigned char *acknowledged, int is_restarted, int *cases_r)
{
    unsigned char seen[64];
    int damaged;
    if (is_restarted)
        forget_board();
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    read_all(spool, seen, sizeof seen, &damaged);
    assert_int_equal(damaged, 0);
    int first = 0;
    for (int number = 1; number <= 12 && !first; number++)
        first = seen[number] ? number : 0;
    assert_true(!first || first == 1 || first == 7); /* all of an acknowledgement, or nothing */
    for (int number = 1; number <= 12; number++)
        if (acknowledged[number] && !(number <= 6 && first != 1))
            assert_int_equal(seen[number], 1);
    /* and it goes on, under numbers that were never used */
    uint64_t sequence;
    assert_int_equal(put_number(spool, 50, &sequence), 0);
    for (int number = 1; number <= 12; number++)
        assert_true(!acknowledged[number] || sequence > (uint64_t)number);
    assert_int_equal(stampd_spool_next(spool, sequence - 1, &record), 0);
    assert_int_equal(number_of(&record), 50);
    /* also behind what the dead one left, which was longer */
    int count = read_all(spool, seen, sizeof seen, &damaged);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
    forget_board();
    spool = open_spool();
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), count);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
    (*cases_r)++;
}

/* Returns whether it lived to the end. */
static bool die_at(int step, bool is_restarted, bool is_gathering)
{
    unsigned char acknowledged[64] = {0};
    int ends[2], status;
    uint64_t number;
    fresh(NULL);
    assert_int_equal(pipe(ends), 0);
    pid_t child = fork();
    if (!child) {
        spool_step_left = step;
        scenario(ends[1], is_gathering);
    }
    close(ends[1]);
    while (read(ends[0], &number, sizeof number) == sizeof number)
        acknowledged[number] = 1;
    close(ends[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
    check_after_death(acknowledged, is_restarted, &cases);
    return WIFEXITED(status);
}

static void deaths_at_every_step_lose_nothing(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++)
        for (int step = 1; !die_at(step, kind == 1, kind == 2); step++)
            ;
    assert_true(cases > 300);
}

/* From this byte on: the file ends, or zeros follow as where nothing was written. */
static void cut(const char *path, off_t size, bool is_zeroed)
{
    struct stat before;
    assert_int_equal(stat(path, &before), 0);
    assert_int_equal(truncate(path, size), 0);
    if (is_zeroed)
        assert_int_equal(truncate(path, before.st_size), 0);
}

/* The last record is cut after each of its bytes: the records before it stay, and no half one is read. */
static void check_cut(const char *whole, off_t size, bool is_whole, bool is_zeroed)
{
    unsigned char seen[64];
    char path[256];
    int damaged;
    uint64_t sequence;
    snprintf(folder, sizeof folder, "%s/cut%d%d", top, (int)size, is_zeroed);
    copy_folder(whole, folder);
    last_segment(path, sizeof path);
    cut(path, size, is_zeroed);
    struct stampd_spool *spool = open_spool(); /* a copy: its board is not used */
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), TAIL_RECORDS - !is_whole);
    assert_int_equal(damaged, 0);
    assert_int_equal(put_number(spool, 60, &sequence), 0);
    assert_int_equal(sequence, is_whole ? TAIL_RECORDS + 1 : TAIL_RECORDS);
    stampd_spool_close(spool);
    cases++;
}

static void tails_are_cut_at_every_byte(void **state)
{
    char whole[128];
    struct stampd_spool *spool = open_spool();
    put_many(spool, 1, TAIL_RECORDS - 1);
    off_t before = (off_t)real_bytes(spool);
    put_many(spool, TAIL_RECORDS, TAIL_RECORDS);
    off_t after = (off_t)real_bytes(spool);
    run_shell("test $(ls %s/*.segment | wc -l) = 1 && test $(stat -c %%s %s/*.segment) = %d", folder, folder,
              SMALL_SEGMENT);
    stampd_spool_close(spool);
    assert_true(before < after && after < SMALL_SEGMENT);
    snprintf(whole, sizeof whole, "%s", folder);
    for (off_t size = before; size <= after; size++)
        for (int is_zeroed = 0; is_zeroed < 2; is_zeroed++)
            check_cut(whole, size, size == after, is_zeroed);
    snprintf(folder, sizeof folder, "%s", whole);
    (void)state;
}

static void flip(const char *path, off_t at, int bit)
{
    unsigned char byte;
    int fd = open(path, O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(pread(fd, &byte, 1, at), 1);
    byte ^= (unsigned char)(1 << bit);
    assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    close(fd);
}

/* Each byte of a whole segment, in the middle of other segments and at the end. */
static void a_flipped_bit_costs_one_record(void **state)
{
    struct stampd_spool *spool = open_spool();
    char path[256];
    struct stat stat_;
    (void)state;
    put_many(spool, 1, 4);
    stampd_spool_close(spool);
    last_segment(path, sizeof path);
    assert_int_equal(stat(path, &stat_), 0);
    for (int is_restarted = 0; is_restarted < 2; is_restarted++)
        for (off_t at = 0; at < stat_.st_size; at += is_restarted ? 5 : 1) {
            unsigned char seen[64];
            int damaged;
            if (is_restarted) {
                char whole[128];
                snprintf(whole, sizeof whole, "%s", folder);
                snprintf(folder, sizeof folder, "%s/flip%d", top, (int)at);
                copy_folder(whole, folder);
                last_segment(path, sizeof path);
                flip(path, at, (int)at % 8);
                spool = open_spool();
                int count = read_all(spool, seen, sizeof seen, &damaged);
                assert_true(count >= 3 && count + damaged == 4);
                stampd_spool_close(spool);
                remove_folder(folder);
                snprintf(folder, sizeof folder, "%s", whole);
            } else {
                flip(path, at, (int)at % 8);
                spool = open_spool();
                int count = read_all(spool, seen, sizeof seen, &damaged);
                assert_true(count >= 3 && count + damaged == 4);
                stampd_spool_close(spool);
                flip(path, at, (int)at % 8);
            }
            cases++;
        }
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deaths_at_every_step_lose_nothing),
        cmocka_unit_test_setup(tails_are_cut_at_every_byte, fresh),
        cmocka_unit_test_setup(a_flipped_bit_costs_one_record, fresh),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, end);
}
