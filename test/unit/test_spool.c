/* test_spool: the library of the spool: order, groups, disks and spools that are full, copies, dead letters.
 */
#include "spool_fixture.h"

#include <sys/mount.h>
#include <sys/syscall.h>
#include <time.h>

#include "spool/spool_crc.h"
#include "spool/spool_private.h"

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

static void a_request_keeps_its_trace(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    struct stampd_spool_record record;
    (void)state;
    request.ns = "demo";
    request.operation = "put";
    request.domain = "d";
    request.is_strict = 1;
    request.traceparent = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    request.tracestate = "shop=1";
    assert_int_equal(stampd_spool_put(spool, &request, NULL), 0);
    assert_int_equal(stampd_spool_next(spool, 0, &record), 0);
    assert_string_equal(record.request.traceparent, request.traceparent);
    assert_string_equal(record.request.tracestate, "shop=1");
    assert_true(record.request.is_strict);
    request.tracestate = NULL;
    assert_int_equal(stampd_spool_put(spool, &request, NULL), 0);
    assert_int_equal(stampd_spool_next(spool, 1, &record), 0);
    assert_null(record.request.tracestate);
    request.tracestate = "";
    assert_int_equal(stampd_spool_put(spool, &request, NULL), EINVAL);
    stampd_spool_close(spool);
}

/* As a forwarder does: ahead, and back to what it sends. */
static void reading_goes_back_and_forth(void **state)
{
    static const uint64_t places[] = {90, 3, 91, 4, 50, 92, 5, 1, 100, 2, 51, 6, 99, 77, 10, 3};
    struct stampd_spool *spool = open_spool(), *reader = open_spool();
    struct stampd_spool_record record;
    (void)state;
    put_many(spool, 1, 100);
    for (size_t i = 0; i < COUNT_OF(places); i++) {
        assert_int_equal(stampd_spool_next(reader, places[i] - 1, &record), 0);
        assert_int_equal(record.sequence, places[i]);
        assert_int_equal(number_of(&record), places[i]);
    }
    put_many(spool, 101, 130);
    for (uint64_t number = 1; number <= 65; number++) {
        assert_int_equal(stampd_spool_next(reader, number + 64, &record), 0);
        assert_int_equal(number_of(&record), number + 65);
        assert_int_equal(stampd_spool_next(reader, number - 1, &record), 0);
        assert_int_equal(number_of(&record), number);
    }
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

static void a_former_format_is_refused(void **state)
{
    struct stampd_spool *spool;
    (void)state;
    run_shell("sed -i 's/^stampd spool 2$/stampd spool 1/' %s/spool", folder);
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), ENOTSUP);
    run_shell("sed -i 's/^stampd spool 1$/stampd spool 3/' %s/spool", folder);
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool), EBADMSG);
}

/* Not as damaged records, which a forwarder would remove; a put repairs it. */
static void a_damaged_board_removes_nothing(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    struct stampd_spool_state now;
    unsigned char seen[64];
    int damaged;
    (void)state;
    put_many(spool, 1, 3);
    run_shell("printf x | dd of=%s/board bs=1 seek=60 conv=notrunc 2>/dev/null", folder);
    assert_int_equal(stampd_spool_next(spool, 0, &record), EIO);
    assert_int_equal(stampd_spool_read_state(spool, &now), EIO);
    put_many(spool, 4, 4);
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), 4);
    assert_int_equal(damaged, 0);
    stampd_spool_close(spool);
}

/* What is allocated in advance is neither counted nor kept. */
static void only_records_are_counted(void **state)
{
    struct stampd_spool *spool = open_spool();
    uint64_t each = 0, before = real_bytes(spool);
    (void)state;
    assert_true(before < SMALL_SEGMENT / 2);
    for (uint64_t number = 1; number <= 4; number++, before += each) {
        put_many(spool, number, number);
        each = real_bytes(spool) - before;
        assert_true(each > 32 && each < SMALL_SEGMENT / 4);
    }
    put_many(spool, 5, 40);
    run_shell(
        "ls %s/*.segment | head -n -1 | while read -r name; do test $(tail -c 1 $name | od -An -tx1) = ff || "
        "exit 1; done",
        folder);
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

static void check_segments(int least, int most)
{
    run_shell("count=$(ls %s/*.segment | wc -l); test $count -ge %d && test $count -le %d", folder, least,
              most);
}

/* What waits keeps its own segment, and not those behind it; they are damaged neither now nor after a start
 * of the machine. */
static void acknowledged_ones_behind_one_that_waits_are_gone(void **state)
{
    struct stampd_spool *spool = open_spool(), *reader = open_spool();
    struct stampd_spool_record record;
    const struct stampd_spool_range behind[] = {{2, 40}, {42, 99}}, middle = {41, 41}, all = {1, 101};
    unsigned char seen[128];
    int damaged;
    (void)state;
    put_many(spool, 1, 100);
    check_segments(9, 100);
    assert_int_equal(stampd_spool_next(reader, 0, &record), 0);
    assert_int_equal(stampd_spool_acknowledge(spool, behind, 2), 0);
    check_segments(3, 3);
    for (int is_restarted = 0; is_restarted < 2; is_restarted++) {
        assert_int_equal(read_all(reader, seen, sizeof seen, &damaged), 3);
        assert_int_equal(damaged, 0);
        assert_true(seen[1] && seen[41] && seen[100]);
        stampd_spool_close(reader);
        if (is_restarted)
            forget_board();
        reader = open_spool();
    }
    assert_int_equal(stampd_spool_acknowledge(spool, &middle, 1), 0);
    assert_int_equal(read_all(reader, seen, sizeof seen, &damaged), 2);
    put_many(spool, 101, 101);
    assert_int_equal(stampd_spool_acknowledge(spool, &all, 1), 0);
    check_segments(1, 1);
    stampd_spool_close(spool);
    stampd_spool_close(reader);
}

/* The last record before segments that are gone: only that one is damaged. */
static void damage_ends_where_a_segment_is_gone(void **state)
{
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_record record;
    const struct stampd_spool_range behind = {2, 99};
    char path[160];
    (void)state;
    put_many(spool, 1, 100);
    assert_int_equal(stampd_spool_acknowledge(spool, &behind, 1), 0);
    snprintf(path, sizeof path, "%s/%020d.segment", folder, 1);
    assert_int_equal(truncate(path, 130), 0);
    assert_int_equal(stampd_spool_next(spool, 0, &record), EBADMSG);
    assert_int_equal(record.first, 1);
    assert_int_equal(record.sequence, 1);
    assert_int_equal(stampd_spool_next(spool, 1, &record), 0);
    assert_int_equal(record.sequence, 100);
    stampd_spool_close(spool);
}

/* As when the file has changed within a tick of the clock: the reader takes it for the one that it has read.
 */
static void take_for_present(struct stampd_spool *spool)
{
    struct stat stat_;
    const char *const names[] = {"acknowledged", "acknowledged.other"};
    char path[160];
    snprintf(path, sizeof path, "%s/%s", folder, names[!spool->position.newest]);
    assert_int_equal(stat(path, &stat_), 0);
    spool->position.inode = stat_.st_ino;
    spool->position.changed = stat_.st_ctim;
}

static void what_is_removed_meanwhile_is_not_damaged(void **state)
{
    struct stampd_spool *spool = open_spool(), *reader = open_spool();
    struct stampd_spool_record record;
    const struct stampd_spool_range first = {1, 30}, behind = {35, 90};
    (void)state;
    put_many(spool, 1, 100);
    assert_int_equal(stampd_spool_next(reader, 0, &record), 0);
    assert_int_equal(stampd_spool_acknowledge(spool, &first, 1), 0);
    take_for_present(reader);
    assert_int_equal(stampd_spool_next(reader, 15, &record), 0);
    assert_int_equal(record.sequence, 31);
    assert_int_equal(stampd_spool_acknowledge(spool, &behind, 1), 0);
    take_for_present(reader);
    assert_int_equal(stampd_spool_next(reader, 59, &record), 0);
    assert_int_equal(record.sequence, 91);
    stampd_spool_close(spool);
    stampd_spool_close(reader);
}

static ino_t inode_of(const char *name)
{
    char path[160];
    struct stat stat_;
    snprintf(path, sizeof path, "%s/%s", folder, name);
    assert_int_equal(stat(path, &stat_), 0);
    return stat_.st_ino;
}

/* Two files that are written in turn: none is created, for which a full disk would have no room. */
static void what_is_acknowledged_has_its_room(void **state)
{
    ino_t first = inode_of("acknowledged"), second = inode_of("acknowledged.other");
    struct stampd_spool *spool = open_spool();
    (void)state;
    put_many(spool, 1, 3);
    for (uint64_t number = 1; number <= 3; number++) {
        const struct stampd_spool_range range = {number, number};
        assert_int_equal(stampd_spool_acknowledge(spool, &range, 1), 0);
        assert_int_equal(inode_of("acknowledged"), first);
        assert_int_equal(inode_of("acknowledged.other"), second);
    }
    stampd_spool_close(spool);
}

/* The same file again, within one tick of the clock of the file system. */
static void handles_that_acknowledge_lose_nothing(void **state)
{
    enum { ROUNDS = 50, EACH_ROUND = 6 }; /* with gaps between them */
    struct stampd_spool *one = open_spool(), *other = open_spool();
    struct stampd_spool_state now;
    (void)state;
    put_many(one, 1, ROUNDS * EACH_ROUND);
    for (uint64_t number = 1; number < ROUNDS * EACH_ROUND; number += 2) {
        const struct stampd_spool_range range = {number, number};
        struct stampd_spool *handle = number % EACH_ROUND == 1 ? one : other;
        assert_int_equal(stampd_spool_acknowledge(handle, &range, 1), 0);
    }
    stampd_spool_close(one);
    stampd_spool_close(other);
    one = open_spool();
    assert_int_equal(stampd_spool_read_state(one, &now), 0);
    assert_int_equal(now.waiting, ROUNDS * EACH_ROUND / 2);
    stampd_spool_close(one);
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
    copy_folder(original, folder);
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

/* --- clock steps --- */

static int64_t step_s; /* of the clock that the library reads, from that of the host */

/* In place of that of the C library, for the whole program. */
int clock_gettime(clockid_t id, struct timespec *now)
{
    int status = (int)syscall(SYS_clock_gettime, id, now);
    if (!status && id == CLOCK_REALTIME)
        now->tv_sec += step_s;
    return status;
}

/* The clock of the host goes back ten years, forward twenty, and is right again, between records. */
static void steps_of_the_clock_change_nothing(void **state)
{
    enum { YEAR_S = 31556952, COUNT = 40 };
    static const int64_t steps_s[] = {0, -10 * YEAR_S, 20 * YEAR_S, 0};
    struct stampd_spool *spool = open_spool();
    struct stampd_spool_state now;
    unsigned char seen[64];
    int damaged;
    (void)state;
    for (uint64_t number = 1; number <= COUNT; number++) {
        step_s = steps_s[number / 3 % COUNT_OF(steps_s)];
        put_many(spool, number, number);
        if (number % 7 == 0) { /* and the writer starts again, with the host or without */
            stampd_spool_close(spool);
            if (number % 14 == 0)
                forget_board();
            spool = open_spool();
        }
    }
    for (size_t i = 0; i < COUNT_OF(steps_s); i++) {
        step_s = steps_s[i];
        assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), COUNT);
        assert_int_equal(damaged, 0);
        assert_int_equal(stampd_spool_read_state(spool, &now), 0);
        assert_int_equal(now.waiting, COUNT);
        assert_true(now.oldest_ms >= 0 && now.oldest_ms <= INT64_C(31) * YEAR_S * 1000);
        cases++;
    }
    step_s = -10 * YEAR_S;
    const struct stampd_spool_range half = {1, COUNT / 2};
    assert_int_equal(stampd_spool_acknowledge(spool, &half, 1), 0);
    step_s = 0;
    assert_int_equal(read_all(spool, seen, sizeof seen, &damaged), COUNT / 2);
    stampd_spool_close(spool);
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

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_crc_is_castagnolis),
        cmocka_unit_test_setup(records_come_back_in_order, fresh),
        cmocka_unit_test_setup(a_request_keeps_its_trace, fresh),
        cmocka_unit_test_setup(reading_goes_back_and_forth, fresh),
        cmocka_unit_test_setup(bad_requests_are_refused, fresh),
        cmocka_unit_test_setup(a_former_format_is_refused, fresh),
        cmocka_unit_test_setup(a_damaged_board_removes_nothing, fresh),
        cmocka_unit_test_setup(only_records_are_counted, fresh),
        cmocka_unit_test_setup(nobody_else_reads_it, fresh),
        cmocka_unit_test_setup(acknowledged_ones_are_gone, fresh),
        cmocka_unit_test_setup(acknowledged_ones_behind_one_that_waits_are_gone, fresh),
        cmocka_unit_test_setup(damage_ends_where_a_segment_is_gone, fresh),
        cmocka_unit_test_setup(what_is_removed_meanwhile_is_not_damaged, fresh),
        cmocka_unit_test_setup(what_is_acknowledged_has_its_room, fresh),
        cmocka_unit_test_setup(handles_that_acknowledge_lose_nothing, fresh),
        cmocka_unit_test_setup(only_one_forwards, fresh),
        cmocka_unit_test_setup(writers_of_many_processes_share, fresh),
        cmocka_unit_test_setup(a_put_wakes_a_reader, fresh),
        cmocka_unit_test(a_full_disk_is_an_error_at_once),
        cmocka_unit_test_setup(a_full_spool_is_an_error, fresh),
        cmocka_unit_test_setup(a_copy_goes_on_under_other_names, fresh),
        cmocka_unit_test_setup(steps_of_the_clock_change_nothing, fresh),
        cmocka_unit_test_setup(dead_letters_are_kept, fresh),
    };
    return cmocka_run_group_tests_name("spool", tests, NULL, end);
}
