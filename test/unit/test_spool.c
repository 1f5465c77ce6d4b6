/* test_spool: the library of the spool: order, groups, damage, deaths at every step, disks that are full. */
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "spool/spool_crc.h"
#include "spool/stampd_spool.h"

/* In memory: deaths of processes lose nothing of it, and no fsync waits. */
static char top[] = "/dev/shm/test-spool-XXXXXX";
static char folder[128];
static int cases; /* of the matrix in doc/explanation/reliability.md */

enum { SMALL_SEGMENT = 1024, TAIL_RECORDS = 5 };

static void run_shell(const char *format, ...)
{
    char line[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(line, sizeof line, format, arguments);
    va_end(arguments);
    pid_t child = fork();
    if (!child) {
        execl("/bin/sh", "sh", "-c", line, (char *)NULL);
        _exit(127);
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static int fresh(void **state)
{
    static int number;
    (void)state;
    snprintf(folder, sizeof folder, "%s/%d", top, number++);
    const struct stampd_spool_limits limits = {.segment_bytes = SMALL_SEGMENT, .limit_bytes = 64 << 10};
    assert_int_equal(stampd_spool_create(folder, &limits), 0);
    return 0;
}

static struct stampd_spool *open_spool(void)
{
    struct stampd_spool *spool;
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), 0);
    return spool;
}

/* The param of this number, longer by as many spaces. */
static size_t write_param(uint64_t number, int spaces, char param_r[128])
{
    return (size_t)snprintf(param_r, 128, "{\"n\":%" PRIu64 "%*s}", number, spaces, "");
}

static int put_long(struct stampd_spool *spool, uint64_t number, int spaces, uint64_t *sequence_r)
{
    char param[128];
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    request.ns = "demo";
    request.operation = "put";
    request.domain = "d";
    request.param = param;
    request.param_size = write_param(number, spaces, param);
    return stampd_spool_put(spool, &request, sequence_r);
}

static int put_number(struct stampd_spool *spool, uint64_t number, uint64_t *sequence_r)
{
    return put_long(spool, number, 0, sequence_r);
}

static uint64_t number_of(const struct stampd_spool_record *record)
{
    return strtoull(record->request.param + strlen("{\"n\":"), NULL, 10);
}

/* It is as it was put. */
static void check_record(const struct stampd_spool_record *record)
{
    char param[128];
    const struct stampd_spool_request *request = &record->request;
    write_param(number_of(record), (int)strspn(strpbrk(request->param, " }"), " "), param);
    assert_string_equal(request->ns, "demo");
    assert_string_equal(request->operation, "put");
    assert_string_equal(request->domain, "d");
    assert_string_equal(request->param, param);
    assert_int_equal(request->param_size, strlen(param));
}

static void put_many(struct stampd_spool *spool, uint64_t first, uint64_t last)
{
    for (uint64_t number = first; number <= last; number++) {
        uint64_t sequence;
        assert_int_equal(put_number(spool, number, &sequence), 0);
        assert_int_equal(sequence, number);
    }
}

/* Reads all; a bit for each number that is there; returns how many, and how many are reported as damaged. */
static int read_all(struct stampd_spool *spool, unsigned char *seen, size_t most, int *damaged_r)
{
    struct stampd_spool_record record;
    uint64_t after = 0;
    int count = 0;
    memset(seen, 0, most);
    *damaged_r = 0;
    for (int error; (error = stampd_spool_next(spool, after, &record)) != EAGAIN; after = record.sequence) {
        assert_true(record.sequence > after);
        if (error == EBADMSG) {
            *damaged_r += (int)(record.sequence - record.first + 1);
            continue;
        }
        assert_int_equal(error, 0);
        check_record(&record);
        assert_true(number_of(&record) < most);
        assert_int_equal(seen[number_of(&record)], 0);
        seen[number_of(&record)] = 1;
        count++;
    }
    return count;
}

/* As after the start of the machine. */
static void forget_board(void)
{
    run_shell("rm -f %s/board", folder);
}

static void last_segment(char *path, size_t size)
{
    char line[256];
    snprintf(line, sizeof line, "ls %s/*.segment | tail -1", folder);
    FILE *pipe_file = popen(line, "r");
    assert_non_null(pipe_file);
    assert_non_null(fgets(path, (int)size, pipe_file));
    path[strcspn(path, "\n")] = 0;
    pclose(pipe_file);
}

/* --- */

static void the_crc_is_castagnolis(void **state)
{
    (void)state;
    assert_int_equal(spool_crc(0, "123456789", 9), 0xe3069283);
    assert_int_equal(spool_crc(spool_crc(0, "1234", 4), "56789", 5), 0xe3069283);
}

static void records_come_back_in_order(void **state)
{
    struct stampd_spool *spool = open_spool(), *reader = open_spool();
    struct stampd_spool_record record;
    struct stampd_spool_state now;
    (void)state;
    put_many(spool, 1, 100);
    for (uint64_t number = 1; number <= 100; number++) {
        assert_int_equal(stampd_spool_next(reader, number - 1, &record), 0);
        assert_int_equal(record.sequence, number);
        assert_int_equal(number_of(&record), number);
        assert_string_equal(record.request.ns, "demo");
        assert_string_equal(record.request.domain, "d");
        assert_int_equal(record.request.priority, STAMPD_SPOOL_PRIORITY);
        assert_null(record.request.resource);
    }
    assert_int_equal(stampd_spool_next(reader, 100, &record), EAGAIN);
    put_many(spool, 101, 101);
    assert_int_equal(stampd_spool_next(reader, 100, &record), 0);
    assert_int_equal(stampd_spool_read_state(reader, &now), 0);
    assert_int_equal(now.waiting, 101);
    assert_true(now.oldest_ms >= 0 && now.bytes > 101 * 32);
    stampd_spool_close(spool);
    stampd_spool_close(reader);
}

static void bad_requests_are_refused(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    struct stampd_spool_record record;
    char *large = calloc(1, STAMPD_SPOOL_PARAM_MOST + 2);
    (void)state;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EINVAL);
    request.ns = "demo";
    request.operation = "put";
    request.param = "[1]";
    request.param_size = 3;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EINVAL);
    request.param = large;
    request.param_size = STAMPD_SPOOL_PARAM_MOST + 1;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EMSGSIZE);
    request.param = NULL;
    request.param_size = 0;
    request.is_strict = 1;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EINVAL);
    request.is_strict = 0;
    request.priority = 256;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EINVAL);
    assert_int_equal(stampd_spool_next(spool, 0, &record), EAGAIN);
    free(large);
    stampd_spool_close(spool);
}

static void nobody_else_reads_it(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stat stat_;
    (void)state;
    put_many(spool, 1, 1);
    stampd_spool_close(spool);
    assert_int_equal(stat(folder, &stat_), 0);
    assert_int_equal(stat_.st_mode & 0777, 0700);
    run_shell("test -z \"$(find %s -type f -perm /077)\"", folder);
    assert_int_equal(chmod(folder, 0777), 0);
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), EPERM);
    assert_int_equal(chmod(folder, 0700), 0);
}

static void acknowledged_ones_are_gone(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    const struct stampd_spool_range some[] = {{3, 3}, {1, 1}}, rest[] = {{2, 2}, {4, 90}};
    (void)state;
    put_many(spool, 1, 100);
    assert_int_equal(stampd_spool_acknowledge(spool, some, 2), 0);
    assert_int_equal(stampd_spool_next(spool, 0, &record), 0);
    assert_int_equal(record.sequence, 2);
    assert_int_equal(stampd_spool_next(spool, 2, &record), 0);
    assert_int_equal(record.sequence, 4);
    assert_int_equal(stampd_spool_acknowledge(spool, rest, 2), 0);
    stampd_spool_close(spool);
    spool = open_spool();
    assert_int_equal(stampd_spool_next(spool, 0, &record), 0);
    assert_int_equal(record.sequence, 91);
    run_shell("test $(ls %s/*.segment | wc -l) -le 3", folder);
    stampd_spool_close(spool);
}

static void only_one_forwards(void **state)
{
    struct stampd_spool *one = open_spool(), *other = open_spool();
    struct stampd_spool_state now;
    (void)state;
    assert_int_equal(stampd_spool_hold(one), 0);
    assert_int_equal(stampd_spool_hold(other), EBUSY);
    assert_int_equal(stampd_spool_read_state(other, &now), 0);
    assert_int_equal(now.is_forwarded, 1);
    stampd_spool_close(one);
    assert_int_equal(stampd_spool_hold(other), 0);
    stampd_spool_close(other);
    cases++;
}

static void writers_of_many_processes_share(void **state)
{
    enum { WRITERS = 8, EACH = 50 };
    pid_t children[WRITERS];
    unsigned char seen[WRITERS * EACH + 1];
    int damaged, status;
    (void)state;
    for (int i = 0; i < WRITERS; i++) {
        children[i] = fork();
        if (children[i])
            continue;
        struct stampd_spool *spool;
        int error = stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool);
        for (int number = 0; !error && number < EACH; number++)
            error = put_number(spool, (uint64_t)(i * EACH + number + 1), NULL);
        _exit(error != 0);
    }
    for (int i = 0; i < WRITERS; i++) {
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
    }
    struct stampd_spool *spool = open_spool();
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), WRITERS * EACH);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
}

static void a_put_wakes_a_reader(void **state)
{
    struct stampd_spool *spool = open_spool(), *reader = open_spool();
    struct stampd_spool_record record;
    (void)state;
    int fd = stampd_spool_descriptor(reader);
    assert_true(fd >= 0);
    char byte[4096];
    stampd_spool_clear(reader);
    assert_int_equal(stampd_spool_next(reader, 0, &record), EAGAIN);
    assert_true(read(fd, byte, sizeof byte) < 0);
    put_many(spool, 1, 1);
    assert_true(read(fd, byte, sizeof byte) > 0);
    assert_int_equal(stampd_spool_next(reader, 0, &record), 0);
    stampd_spool_close(spool);
    stampd_spool_close(reader);
}

/* --- the matrix --- */

/* What a writer does until it dies: it notes each number that was acknowledged to it. */
static void scenario(int note)
{
    struct stampd_spool *spool;
    const struct stampd_spool_range range = {1, 6};
    struct stampd_spool_record record;
    if (stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
        _exit(2);
    for (uint64_t number = 1; number <= 12; number++) {
        uint64_t sequence;
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

static void deaths_at_every_step_lose_nothing(void **state)
{
    for (int is_restarted = 0; is_restarted < 2; is_restarted++)
        for (int step = 1, is_over = 0; !is_over; step++) {
            unsigned char acknowledged[64] = {0};
            int ends[2], status;
            uint64_t number;
            fresh(state);
            assert_int_equal(pipe(ends), 0);
            pid_t child = fork();
            if (!child) {
                char text[16];
                snprintf(text, sizeof text, "%d", step);
                setenv("STAMPD_SPOOL_DIE_AT", text, 1);
                extern long spool_step_left;
                spool_step_left = step; /* the parent has read the environment already */
                scenario(ends[1]);
            }
            close(ends[1]);
            while (read(ends[0], &number, sizeof number) == sizeof number)
                acknowledged[number] = 1;
            close(ends[0]);
            assert_int_equal(waitpid(child, &status, 0), child);
            is_over = WIFEXITED(status);
            assert_true(is_over ? WEXITSTATUS(status) == 0 : WTERMSIG(status) == SIGKILL);
            check_after_death(acknowledged, is_restarted, &cases);
        }
    assert_true(cases > 100);
}

/* The last record is cut after each of its bytes: the records before it stay, and no half one is read. */
static void tails_are_cut_at_every_byte(void **state)
{
    struct stat before, after;
    char path[256];
    struct stampd_spool *spool = open_spool();
    put_many(spool, 1, TAIL_RECORDS - 1);
    last_segment(path, sizeof path);
    assert_int_equal(stat(path, &before), 0);
    put_many(spool, TAIL_RECORDS, TAIL_RECORDS);
    assert_int_equal(stat(path, &after), 0);
    stampd_spool_close(spool);
    char whole[128];
    snprintf(whole, sizeof whole, "%s", folder);
    for (off_t size = before.st_size; size <= after.st_size; size++) {
        unsigned char seen[64];
        int damaged;
        snprintf(folder, sizeof folder, "%s/cut%d", top, (int)size);
        run_shell("cp -a %s %s", whole, folder);
        last_segment(path, sizeof path);
        assert_int_equal(truncate(path, size), 0);
        spool = open_spool(); /* a copy: it is not believed */
        bool is_whole = size == after.st_size;
        assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), TAIL_RECORDS - !is_whole);
        assert_int_equal(damaged, 0);
        uint64_t sequence;
        assert_int_equal(put_number(spool, 60, &sequence), 0);
        assert_int_equal(sequence, is_whole ? TAIL_RECORDS + 1 : TAIL_RECORDS);
        stampd_spool_close(spool);
        run_shell("rm -r %s", folder);
        cases++;
    }
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
                run_shell("cp -a %s %s", whole, folder);
                last_segment(path, sizeof path);
                flip(path, at, (int)at % 8);
                spool = open_spool();
                int count = read_all(spool, seen, sizeof seen, &damaged);
                assert_true(count >= 3 && count + damaged == 4);
                stampd_spool_close(spool);
                run_shell("rm -r %s", folder);
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

static void a_full_disk_is_an_error_at_once(void **state)
{
    char mount_point[64];
    unsigned char *seen = calloc(1, 100000);
    int damaged, error = 0;
    uint64_t number = 0, sequence;
    snprintf(mount_point, sizeof mount_point, "%s/small", top);
    assert_int_equal(mkdir(mount_point, 0700), 0);
    if (mount("tmpfs", mount_point, "tmpfs", 0, "size=256k")) {
        free(seen);
        skip();
    }
    (void)state;
    snprintf(folder, sizeof folder, "%s/spool", mount_point);
    assert_int_equal(stampd_spool_create(folder, NULL), 0);
    struct stampd_spool *spool = open_spool();
    while (!(error = put_number(spool, number + 1, &sequence)))
        number++;
    assert_int_equal(error, ENOSPC);
    assert_int_equal(read_all(spool, seen, 100000, &damaged), number);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
    /* and it goes on when there is room */
    run_shell("rm -f %s/*.segment; true", mount_point);
    assert_int_equal(mount("tmpfs", mount_point, "tmpfs", MS_REMOUNT, "size=512k"), 0);
    spool = open_spool();
    assert_int_equal(put_number(spool, number + 1, &sequence), 0);
    assert_int_equal(sequence, number + 1);
    assert_int_equal(read_all(spool, seen, 100000, &damaged), number + 1);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
    assert_int_equal(umount(mount_point), 0);
    free(seen);
    cases++;
}

static void a_full_spool_is_an_error(void **state)
{
    struct stampd_spool *spool = open_spool();
    uint64_t number = 0, sequence;
    int error;
    (void)state;
    while (!(error = put_number(spool, number + 1, &sequence)))
        number++;
    assert_int_equal(error, EDQUOT);
    assert_true(number > 100);
    const struct stampd_spool_range half = {1, number / 2};
    assert_int_equal(stampd_spool_acknowledge(spool, &half, 1), 0);
    assert_int_equal(put_number(spool, number + 1, &sequence), 0);
    stampd_spool_close(spool);
    cases++;
}

/* A copy has the same records under the same names, and new ones under other names. */
static void a_copy_goes_on_under_other_names(void **state)
{
    struct stampd_spool *spool = open_spool(), *copy;
    struct stampd_spool_record one, other;
    char original[128];
    (void)state;
    put_many(spool, 1, 3);
    snprintf(original, sizeof original, "%s", folder);
    snprintf(folder, sizeof folder, "%s/copy", top);
    run_shell("cp -a %s %s", original, folder);
    copy = open_spool();
    put_many(spool, 4, 5);
    put_many(copy, 4, 5);
    for (uint64_t number = 1; number <= 5; number++) {
        assert_int_equal(stampd_spool_next(spool, number - 1, &one), 0);
        assert_int_equal(stampd_spool_next(copy, number - 1, &other), 0);
        assert_int_equal(memcmp(one.series, other.series, sizeof one.series) == 0, number <= 3);
        cases++;
    }
    assert_int_equal(stampd_spool_renew(spool), 0);
    put_many(spool, 6, 6);
    struct stampd_spool_record renewed;
    assert_int_equal(stampd_spool_next(spool, 5, &renewed), 0);
    assert_memory_not_equal(renewed.series, one.series, sizeof one.series);
    stampd_spool_close(spool);
    stampd_spool_close(copy);
}

static void dead_letters_are_kept(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    struct stampd_spool_state now;
    const char *reason;
    (void)state;
    put_many(spool, 1, 2);
    assert_int_equal(stampd_spool_next(spool, 1, &record), 0);
    assert_int_equal(stampd_spool_bury(spool, &record, "SCLOSED no"), 0);
    assert_int_equal(stampd_spool_next_dead(spool, 0, &record, &reason), 0);
    assert_int_equal(record.sequence, 2);
    assert_int_equal(number_of(&record), 2);
    assert_string_equal(reason, "SCLOSED no");
    assert_int_equal(stampd_spool_read_state(spool, &now), 0);
    assert_int_equal(now.dead, 1);
    assert_int_equal(stampd_spool_drop_dead(spool, 2), 0);
    assert_int_equal(stampd_spool_next_dead(spool, 0, &record, &reason), EAGAIN);
    stampd_spool_close(spool);
}

static int end(void **state)
{
    (void)state;
    printf("spool: %d cases of the matrix\n", cases);
    run_shell("rm -rf %s", top);
    return 0;
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crc_is_castagnolis),
        cmocka_unit_test_setup(records_come_back_in_order, fresh),
        cmocka_unit_test_setup(bad_requests_are_refused, fresh),
        cmocka_unit_test_setup(nobody_else_reads_it, fresh),
        cmocka_unit_test_setup(acknowledged_ones_are_gone, fresh),
        cmocka_unit_test_setup(only_one_forwards, fresh),
        cmocka_unit_test_setup(writers_of_many_processes_share, fresh),
        cmocka_unit_test_setup(a_put_wakes_a_reader, fresh),
        cmocka_unit_test(deaths_at_every_step_lose_nothing),
        cmocka_unit_test_setup(tails_are_cut_at_every_byte, fresh),
        cmocka_unit_test_setup(a_flipped_bit_costs_one_record, fresh),
        cmocka_unit_test(a_full_disk_is_an_error_at_once),
        cmocka_unit_test_setup(a_full_spool_is_an_error, fresh),
        cmocka_unit_test_setup(a_copy_goes_on_under_other_names, fresh),
        cmocka_unit_test_setup(dead_letters_are_kept, fresh),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, end);
}
