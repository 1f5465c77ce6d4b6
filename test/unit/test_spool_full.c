/* test_spool_full: a spool on a file system that is full, of memory and of a disk image.
 *
 * Each test has mounts of its own, in a child, so nothing is left of them.  They need root, or user
 * namespaces; what cannot be mounted is skipped. */
#include "spool_fixture.h"

#include <sched.h>
#include <sys/mount.h>

#include "spool/spool_private.h"

enum { CANNOT_MOUNT = 77, PARAM_BYTES = 1000, EXPECTED_MOST = 2000 };

/* In the child an assertion of cmocka would run the parent's tests. */
#define DEMAND(is_true)                                                                                      \
    do {                                                                                                     \
        if (!(is_true)) {                                                                                    \
            fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #is_true, strerror(errno));              \
            _exit(1);                                                                                        \
        }                                                                                                    \
    } while (0)

static bool run_quietly(const char *format, const char *path, const char *other)
{
    char line[512];
    snprintf(line, sizeof line, format, path, other);
    return system(line) == 0;
}

/* --- file systems --- */

static bool note(const char *path, const char *format, unsigned id)
{
    int fd = open(path, O_WRONLY | O_CLOEXEC);
    bool is_noted = fd >= 0 && dprintf(fd, format, id, id) > 0;
    close(fd);
    return is_noted;
}

/* In a user namespace a user without a number there could create no file. */
static bool enter_namespace(void)
{
    uid_t user = geteuid();
    gid_t group = getegid();
    if (unshare(CLONE_NEWNS | (user ? CLONE_NEWUSER : 0)))
        return false;
    if (user && (!note("/proc/self/setgroups", "deny", 0) || !note("/proc/self/uid_map", "%u %u 1", user) ||
                 !note("/proc/self/gid_map", "%u %u 1", group)))
        return false;
    return mount(NULL, "/", NULL, MS_REC | MS_PRIVATE, NULL) == 0;
}

static bool mount_memory(const char *place)
{
    return mount("tmpfs", place, "tmpfs", 0, "size=1m") == 0;
}

/* Without a place for root alone, which would hide that the disk is full. */
static bool mount_image(const char *place)
{
    char image[160];
    snprintf(image, sizeof image, "%s.image", place);
    return geteuid() == 0 && run_quietly("truncate -s 1M %s >/dev/null 2>&1", image, "") &&
           run_quietly("mke2fs -q -t ext4 -O ^has_journal -m 0 -F %s >/dev/null 2>&1", image, "") &&
           run_quietly("mount -o loop %s %s >/dev/null 2>&1", image, place);
}

/* --- what is done on them --- */

static void fill(int fd)
{
    static const char zeros[4096];
    for (size_t size = sizeof zeros; size; size /= 2)
        while (write(fd, zeros, size) > 0)
            ;
    DEMAND(errno == ENOSPC);
}

static int put_one(struct stampd_spool *spool, uint64_t number, uint64_t *sequence_r)
{
    char param[PARAM_BYTES];
    struct stampd_spool_request request = STAMPD_SPOOL_REQUEST;
    int used = snprintf(param, sizeof param, "{\"n\":%" PRIu64, number);
    memset(param + used, ' ', sizeof param - (size_t)used);
    param[sizeof param - 1] = '}';
    request.ns = "demo";
    request.operation = "put";
    request.param = param;
    request.param_size = sizeof param;
    return stampd_spool_put(spool, &request, sequence_r);
}

/* Makes a spool whose records and a ballast fill the disk; the number of its last record. */
static uint64_t make_full(struct stampd_spool **spool_r)
{
    const struct stampd_spool_limits limits = {.segment_bytes = 32 << 10, .limit_bytes = 1 << 30};
    char path[160];
    uint64_t last = 0, sequence;
    int error;
    DEMAND(stampd_spool_create(folder, &limits) == 0);
    DEMAND(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, spool_r) == 0);
    while (!(error = put_one(*spool_r, last + 1, &sequence)))
        DEMAND(sequence == ++last);
    DEMAND(error == ENOSPC && last > 200 && last < EXPECTED_MOST);
    snprintf(path, sizeof path, "%s/../ballast", folder);
    fill(open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600));
    DEMAND(put_one(*spool_r, last + 1, &sequence) == ENOSPC);
    return last;
}

static uint64_t count(struct stampd_spool *spool)
{
    struct stampd_spool_record record;
    uint64_t after = 0, sum = 0;
    int error;
    while (!(error = stampd_spool_next(spool, after, &record))) {
        DEMAND(record.sequence == number_of(&record));
        after = record.sequence;
        sum++;
    }
    DEMAND(error == EAGAIN);
    return sum;
}

/* The server has all: a part after the other is acknowledged while there is no room, until there is. */
static void check_full(void)
{
    struct stampd_spool *spool;
    struct stampd_spool_record record;
    uint64_t last = make_full(&spool);
    DEMAND(count(spool) == last);
    DEMAND(stampd_spool_next(spool, 1, &record) == 0 && record.sequence == 2);
    DEMAND(stampd_spool_bury(spool, &record, "a reason") == ENOSPC); /* it waits */
    for (uint64_t number = 1; number <= last; number += 50) {
        const struct stampd_spool_range range = {number, number + 49 < last ? number + 49 : last};
        DEMAND(stampd_spool_acknowledge(spool, &range, 1) == 0);
        DEMAND(count(spool) == last - range.last);
    }
    stampd_spool_close(spool);
    DEMAND(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool) == 0);
    DEMAND(put_one(spool, last + 1, NULL) == 0);
    DEMAND(count(spool) == 1);
    stampd_spool_close(spool);
}

/* A process acknowledges this, and dies at the step; whether it did not. */
static bool acknowledge_until(const struct stampd_spool_range *range, int step)
{
    int status;
    pid_t child = fork();
    if (!child) {
        struct stampd_spool *spool;
        DEMAND(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool) == 0);
        spool_step_left = step;
        DEMAND(stampd_spool_acknowledge(spool, range, 1) == 0);
        _exit(0);
    }
    DEMAND(waitpid(child, &status, 0) == child);
    DEMAND(WIFEXITED(status) ? !WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status);
}

/* A record cannot become a dead letter: what is behind it is removed all the same, whoever dies, until there
 * is room for the letter. */
static void check_waiting(void)
{
    struct stampd_spool *spool;
    struct stampd_spool_record record;
    uint64_t last = make_full(&spool), number = 2, left;
    int error;
    DEMAND(stampd_spool_next(spool, 0, &record) == 0 && record.sequence == 1);
    DEMAND(stampd_spool_bury(spool, &record, "a reason") == ENOSPC);
    for (int step = 1; number + 50 < last; step++) {
        const struct stampd_spool_range range = {number, number + 49};
        bool is_whole = acknowledge_until(&range, step);
        left = count(spool);
        DEMAND(left == last - range.last + 1 || (!is_whole && left == last - number + 2));
        DEMAND(stampd_spool_acknowledge(spool, &range, 1) == 0);
        DEMAND(count(spool) == last - range.last + 1);
        number += 50;
    }
    DEMAND(stampd_spool_next(spool, 0, &record) == 0 && record.sequence == 1);
    DEMAND(stampd_spool_bury(spool, &record, "a reason") == 0);
    for (uint64_t next = last + 1; next < last + 20; next++)
        DEMAND(put_one(spool, next, NULL) == 0);
    const struct stampd_spool_range all = {1, last};
    DEMAND(stampd_spool_acknowledge(spool, &all, 1) == 0);
    error = stampd_spool_next(spool, 0, &record);
    DEMAND(!error && record.sequence == last + 1);
    stampd_spool_close(spool);
}

/* Gaps make the text longer than a block: what has no room is refused whole, and the former state stays. */
static void check_gaps(void)
{
    struct stampd_spool *spool;
    uint64_t last = make_full(&spool), gone = 0, number = 2;
    int error = 0;
    for (; !error && number < last; number += 2) {
        const struct stampd_spool_range range = {number, number};
        error = stampd_spool_acknowledge(spool, &range, 1);
        gone += !error;
    }
    DEMAND(error == ENOSPC || (!error && number >= last));
    DEMAND(gone > 100 && count(spool) == last - gone);
    const struct stampd_spool_range all = {1, last};
    DEMAND(stampd_spool_acknowledge(spool, &all, 1) == 0);
    DEMAND(count(spool) == 0);
    stampd_spool_close(spool);
}

static void run_on(bool (*mount_it)(const char *place), void (*check)(void))
{
    static int places;
    char place[64];
    int status;
    snprintf(place, sizeof place, "%s/place%d", top, places++);
    assert_int_equal(mkdir(place, 0700), 0);
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        if (!enter_namespace() || !mount_it(place))
            _exit(CANNOT_MOUNT);
        snprintf(folder, sizeof folder, "%s/spool", place);
        check();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == CANNOT_MOUNT)
        skip();
    assert_int_equal(status, 0);
    cases++;
}

#define TEST(mount_it, check)                                                                                \
    static void check##_##mount_it(void **state)                                                             \
    {                                                                                                        \
        (void)state;                                                                                         \
        run_on(mount_it, check);                                                                             \
    }
TEST(mount_memory, check_full)
TEST(mount_image, check_full)
TEST(mount_memory, check_waiting)
TEST(mount_image, check_waiting)
TEST(mount_memory, check_gaps)
TEST(mount_image, check_gaps)

/* --- a group that shares the folder --- */

static void as_user(uid_t user, gid_t group, void (*work)(void))
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        DEMAND(setgid(group) == 0 && setuid(user) == 0);
        work();
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void create_it(void)
{
    umask(077);
    DEMAND(stampd_spool_create(folder, NULL) == 0);
}

static void put_and_acknowledge(void)
{
    struct stampd_spool *spool;
    uint64_t sequence;
    DEMAND(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool) == 0);
    DEMAND(put_number(spool, 1, &sequence) == 0);
    const struct stampd_spool_range range = {sequence, sequence};
    DEMAND(stampd_spool_acknowledge(spool, &range, 1) == 0);
    stampd_spool_close(spool);
}

static void be_refused(void)
{
    struct stampd_spool *spool;
    DEMAND(stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool) == EACCES);
}

/* As the page on handing over requests has it. */
static void users_of_a_group_share_it(void **state)
{
    enum { OWNER = 60001, OTHER, THIRD, STRANGER, GROUP = 60010, STRANGERS };
    (void)state;
    if (geteuid())
        skip();
    snprintf(folder, sizeof folder, "%s/shared", top);
    assert_int_equal(chmod(top, 0755), 0);
    assert_int_equal(mkdir(folder, 0700), 0);
    assert_int_equal(chown(folder, OWNER, GROUP), 0);
    assert_int_equal(chmod(folder, 02770), 0);
    as_user(OWNER, GROUP, create_it);
    as_user(OTHER, GROUP, put_and_acknowledge);
    as_user(THIRD, GROUP, put_and_acknowledge);
    as_user(OWNER, GROUP, put_and_acknowledge);
    as_user(OTHER, GROUP, put_and_acknowledge);
    as_user(STRANGER, STRANGERS, be_refused);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(check_full_mount_memory),    cmocka_unit_test(check_full_mount_image),
        cmocka_unit_test(check_waiting_mount_memory), cmocka_unit_test(check_waiting_mount_image),
        cmocka_unit_test(check_gaps_mount_memory),    cmocka_unit_test(check_gaps_mount_image),
        cmocka_unit_test(users_of_a_group_share_it),
    };
    return cmocka_run_group_tests_name("spool_full", tests, NULL, end);
}
