/* test_spool_position: what is acknowledged, after deaths and losses of power at each step.
 *
 * fsync keeps a copy of each of the two files: what the disk has.  A loss of power leaves of a file that has
 * changed since then what was there, what is there now, the beginning of that, or nothing. */
#include "spool_fixture.h"

#include <limits.h>
#include <sys/syscall.h>

#include "spool/spool_crc.h"
#include "spool/spool_private.h"

enum { PARTS = 4, PART_MOST = 6, FILES = 2, TEXT_MOST = 4096 };
enum leaving { OLD, NEW, TORN, EMPTY, LEAVINGS };

static const char *const names[FILES] = {"acknowledged", "acknowledged.other"};
static int part; /* so many records are acknowledged together */
static int fsync_error;

/* --- the disk --- */

struct text {
    char bytes[TEXT_MOST];
    size_t size;
};

/* The files, and what the disk has of them. */
struct image {
    struct text now[FILES], disk[FILES];
};

static void path_of(const char *suffix, const char *name, char path_r[PATH_MAX])
{
    snprintf(path_r, PATH_MAX, "%s%s/%s", folder, suffix, name);
}

static void load(const char *suffix, const char *name, struct text *text_r)
{
    char path[PATH_MAX];
    memset(text_r, 0, sizeof *text_r);
    path_of(suffix, name, path);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    ssize_t size = fd < 0 ? 0 : read(fd, text_r->bytes, TEXT_MOST);
    text_r->size = size > 0 ? (size_t)size : 0;
    if (fd >= 0)
        close(fd);
}

static void store(const char *suffix, const char *name, const struct text *text)
{
    char path[PATH_MAX];
    path_of(suffix, name, path);
    int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0 || write(fd, text->bytes, text->size) != (ssize_t)text->size)
        abort();
    close(fd);
}

static void load_all(struct image *image_r)
{
    for (int file = 0; file < FILES; file++) {
        load("", names[file], &image_r->now[file]);
        load(".disk", names[file], &image_r->disk[file]);
    }
}

static void store_all(const struct image *image)
{
    for (int file = 0; file < FILES; file++) {
        store("", names[file], &image->now[file]);
        store(".disk", names[file], &image->disk[file]);
    }
}

/* The calls of the library come here. */
int fsync(int fd)
{
    char link[64], path[PATH_MAX] = "";
    snprintf(link, sizeof link, "/proc/self/fd/%d", fd);
    ssize_t length = readlink(link, path, sizeof path - 1);
    const char *name = length > 0 ? strrchr(path, '/') + 1 : "";
    for (int file = 0; file < FILES; file++) {
        size_t size = strlen(names[file]);
        struct text text;
        if (strncmp(name, names[file], size) != 0 || (name[size] && strcmp(name + size, ".new") != 0))
            continue;
        if (fsync_error) {
            errno = fsync_error;
            return -1;
        }
        load("", name, &text);
        store(".disk", names[file], &text);
    }
    return (int)syscall(SYS_fsync, fd);
}

/* What a loss of power leaves of a file; false: the same as another kind. */
static bool leave(struct text *now, struct text *disk, enum leaving kind)
{
    if (now->size == disk->size && !memcmp(now->bytes, disk->bytes, now->size))
        return kind == NEW;
    struct text torn = *disk;
    memcpy(torn.bytes, now->bytes, now->size / 2);
    torn.size = torn.size > now->size / 2 ? torn.size : now->size / 2;
    const struct text kinds[] = {[OLD] = *disk, [NEW] = *now, [TORN] = torn, [EMPTY] = {.size = 0}};
    *now = *disk = kinds[kind];
    return true;
}

/* False: all that it leaves is as after another one. */
static bool lose_power(const struct image *before, int kind)
{
    struct image image = *before;
    char path[PATH_MAX];
    bool is_first = leave(&image.now[0], &image.disk[0], (enum leaving)(kind % LEAVINGS));
    bool is_second = leave(&image.now[1], &image.disk[1], (enum leaving)(kind / LEAVINGS));
    store_all(&image);
    path_of("", "board", path);
    unlink(path);
    return is_first && is_second;
}

/* --- acknowledging --- */

/* A spool with so many records in each part. */
static void begin(int records)
{
    static int number;
    struct stampd_spool *spool;
    const struct stampd_spool_limits limits = {.segment_bytes = SMALL_SEGMENT, .limit_bytes = 64 << 10};
    char path[PATH_MAX];
    part = records;
    snprintf(folder, sizeof folder, "%s/%d", top, number++);
    path_of(".disk", "", path);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_int_equal(stampd_spool_create(folder, &limits), 0);
    assert_int_equal(stampd_spool_open(folder, STAMPD_SPOOL_WRITTEN, &spool), 0);
    for (int i = 1; i <= PARTS * part; i++)
        assert_int_equal(put_long(spool, (uint64_t)i, 60, NULL), 0);
    stampd_spool_close(spool);
}

static int acknowledge(struct stampd_spool *spool, int index)
{
    const struct stampd_spool_range range = {(uint64_t)(index * part + 1), (uint64_t)(index * part + part)};
    return stampd_spool_acknowledge(spool, &range, 1);
}

/* A process acknowledges the part, and dies at the step; 0: at none.  Whether it did not. */
static bool acknowledge_until(int index, int step)
{
    int status;
    fflush(NULL);
    pid_t child = fork();
    if (!child) {
        struct stampd_spool *spool;
        if (stampd_spool_open(folder, STAMPD_SPOOL_DURABLE, &spool))
            _exit(2);
        spool_step_left = step;
        _exit(acknowledge(spool, index) ? 2 : 0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) ? !WEXITSTATUS(status) : WTERMSIG(status) == SIGKILL);
    return WIFEXITED(status);
}

/* A bit for each part: those that were acknowledged are, and no others than those that were to be. */
static void check(unsigned done, unsigned tried)
{
    unsigned char seen[PARTS * PART_MOST + 1];
    int damaged;
    struct stampd_spool *spool = open_spool();
    read_all(spool, seen, sizeof seen, &damaged);
    stampd_spool_close(spool);
    assert_int_equal(damaged, 0);
    for (int i = 0; i < PARTS * part; i++) {
        unsigned bit = 1U << (i / part);
        if (done & bit)
            assert_int_equal(seen[i + 1], 0);
        else if (!(tried & bit))
            assert_int_equal(seen[i + 1], 1);
    }
    cases++;
}

/* Segments are removed by then, and their records could not be sent again. */
static void deaths_and_a_loss_of_power_lose_nothing(void **state)
{
    bool is_whole = false, is_other_whole;
    (void)state;
    for (int step = 1; !is_whole; step++) {
        is_other_whole = false;
        for (int other = 1; !is_other_whole; other++) {
            struct image before;
            begin(PART_MOST);
            assert_true(acknowledge_until(0, 0));
            is_whole = acknowledge_until(1, step);
            is_other_whole = acknowledge_until(2, other);
            load_all(&before);
            for (int kind = 0; kind < LEAVINGS * LEAVINGS; kind++)
                if (lose_power(&before, kind))
                    check(1U | (unsigned)is_whole << 1 | (unsigned)is_other_whole << 2, 7);
        }
    }
    assert_true(cases > 100);
}

/* What the first loss has left of the one file is not to be lost with the other. */
static void two_losses_of_power_lose_nothing(void **state)
{
    bool is_whole = false, is_other_whole;
    (void)state;
    for (int step = 1; !is_whole; step++) {
        struct image before, between, after;
        begin(1);
        assert_true(acknowledge_until(0, 0));
        is_whole = acknowledge_until(1, step);
        load_all(&before);
        for (int kind = 0; kind < LEAVINGS * LEAVINGS; kind++) {
            if (!lose_power(&before, kind))
                continue;
            load_all(&between);
            is_other_whole = false;
            for (int other = 1; !is_other_whole; other++) {
                store_all(&between);
                is_other_whole = acknowledge_until(2, other);
                load_all(&after);
                for (int next = 0; next < LEAVINGS * LEAVINGS; next++)
                    if (lose_power(&after, next))
                        check(1U | (unsigned)is_whole << 1 | (unsigned)is_other_whole << 2, 7);
            }
        }
    }
}

/* The kernel reports a failure once, and shows what the disk does not have: it does not count. */
static void what_cannot_be_synchronised_is_not_acknowledged(void **state)
{
    struct image before;
    (void)state;
    begin(1);
    struct stampd_spool *spool = open_spool();
    assert_int_equal(acknowledge(spool, 0), 0);
    for (int i = 0; i < 3; i++) {
        fsync_error = EIO;
        assert_int_equal(acknowledge(spool, 1), EIO);
        fsync_error = 0;
        load_all(&before);
        for (int kind = 0; kind < LEAVINGS * LEAVINGS; kind++)
            if (lose_power(&before, kind))
                check(1, 1);
        store_all(&before);
    }
    assert_int_equal(acknowledge(spool, 1), 0);
    check(3, 3);
    stampd_spool_close(spool);
}

/* As earlier versions have written it, of the first two parts. */
static void a_text_without_an_edition_counts(void **state)
{
    struct text text = {0};
    (void)state;
    begin(1);
    text.size = (size_t)snprintf(text.bytes, TEXT_MOST, "stampd spool acknowledged 1\n1 2\n");
    text.size += (size_t)snprintf(text.bytes + text.size, TEXT_MOST - text.size, "%08" PRIx32 "\n",
                                  spool_crc(0, text.bytes, text.size));
    store("", names[0], &text);
    run_shell("rm %s/%s", folder, names[1]);
    check(3, 3);
    assert_true(acknowledge_until(2, 0));
    check(7, 7);
    assert_true(acknowledge_until(3, 0));
    check(15, 15);
}

int main(void)
{
    if (!mkdtemp(top))
        return 1;
    spool_step_lock_ms = PATIENCE_MS;
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(deaths_and_a_loss_of_power_lose_nothing),
        cmocka_unit_test(two_losses_of_power_lose_nothing),
        cmocka_unit_test(what_cannot_be_synchronised_is_not_acknowledged),
        cmocka_unit_test(a_text_without_an_edition_counts),
    };
    return cmocka_run_group_tests_name("spool position", tests, NULL, end);
}
