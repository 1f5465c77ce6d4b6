/* disk_log: a change is part of the log when its head and body have the right sums, epoch and number. */
#include "log/disk_log.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/crash.h"
#include "base/coding/crc32c.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/mapping.h"

/* Of the file. */
#define LOG_MAGIC UINT64_C(0x31474f4c44504d53) /* "SMPDLOG1" */
enum { LAYOUT = 1, FIRST = 4096, ALIGN = 16, BYTES_MOST = 1 << 30, PATH_BYTES = PATH_MAX + 16 };

struct log_block {
    uint64_t magic;
    uint32_t layout, sum; /* of what stands before */
};

/* Of a change; in the order of the host, as the table beside the log. */
struct log_head {
    uint32_t sum, kind; /* of the head behind it */
    struct disk_epoch epoch;
    uint64_t number;
    uint32_t size, body_sum;
};
enum kind { KIND_CHANGE = 0x4c44504d, KIND_BROKEN = 0x5844504d };

_Static_assert(sizeof(struct log_head) == 40, "the head is part of the layout");

struct disk_log {
    int fd;
    struct bytes view;
    struct disk_epoch epoch;
    uint64_t number;  /* of the last change that was read */
    size_t last, end; /* where it begins, 0: there is none; and what is behind it */
    struct log_head last_head;
    bool is_broken;
    char *scratch;
    size_t scratch_size;
};

static int sync_data(int fd)
{
    return fdatasync(fd);
}

struct disk_log_system disk_log_system = {.write = pwrite, .sync = sync_data};

/* --- the file --- */

static bool disk_log_path_of(const char *folder, const char *name, char path_r[PATH_BYTES])
{
    int size = snprintf(path_r, PATH_BYTES, "%s/%s", folder, name);
    if (size < PATH_BYTES)
        return true;
    errno = ENAMETOOLONG;
    return false;
}

static uint32_t block_sum(const struct log_block *block)
{
    return crc32c(0, (struct bytes){(const char *)block, offsetof(struct log_block, sum)});
}

static const char *check_block(struct bytes view)
{
    struct log_block block;
    memcpy(&block, view.data, sizeof block);
    if (block.magic != LOG_MAGIC || block.sum != block_sum(&block))
        return "its log is damaged, or is none";
    return block.layout == LAYOUT ? NULL : "its log has another layout: of another version of stampd";
}

enum disk_log_opened disk_log_open(struct disk_log **log_r, const char *folder, char *problem,
                                   size_t problem_size)
{
    char path[PATH_BYTES];
    struct stat stat;
    struct disk_log *log = memory_zeroed(1, sizeof *log, "opening a log");
    log->fd = disk_log_path_of(folder, "log", path) ? open(path, O_RDWR | O_CLOEXEC) : -1;
    bool is_absent = log->fd < 0 && errno == ENOENT;
    const char *wrong = NULL;
    if (log->fd < 0 || fstat(log->fd, &stat))
        wrong = strerror(errno);
    else if (stat.st_size <= FIRST || stat.st_size > BYTES_MOST)
        wrong = "its log is cut";
    if (!wrong) {
        log->view = (struct bytes){mapping_view(log->fd, (size_t)stat.st_size), (size_t)stat.st_size};
        wrong = log->view.data ? check_block(log->view) : strerror(errno);
    }
    if (!wrong) {
        disk_log_begin(log, (struct disk_epoch){0, 0});
        *log_r = log;
        return DISK_LOG_OPENED;
    }
    snprintf(problem, problem_size, "%s", wrong);
    disk_log_close(log);
    return is_absent ? DISK_LOG_ABSENT : DISK_LOG_REFUSED;
}

void disk_log_close(struct disk_log *log)
{
    if (!log)
        return;
    mapping_view_end(log->view.data, log->view.size);
    if (log->fd >= 0)
        close(log->fd);
    free(log->scratch);
    free(log);
}

static bool disk_log_write_all(int fd, const char *data, size_t size, size_t at)
{
    while (size) {
        ssize_t written = disk_log_system.write(fd, data, size, (off_t)at);
        if (written < 0 && errno == EINTR)
            continue;
        if (written <= 0) {
            errno = written ? errno : EIO;
            return false;
        }
        data += written;
        at += (size_t)written;
        size -= (size_t)written;
    }
    return true;
}

/* With zeros: blocks that are only reserved would be noted as written at their first sync. */
static bool disk_log_fill(int fd, size_t size)
{
    static const char zeros[1 << 16];
    struct log_block block = {.magic = LOG_MAGIC, .layout = LAYOUT};
    block.sum = block_sum(&block);
    for (size_t at = 0; at < size; at += sizeof zeros)
        if (!disk_log_write_all(fd, zeros, sizeof zeros, at))
            return false;
    return disk_log_write_all(fd, (const char *)&block, sizeof block, 0) && disk_log_system.sync(fd) == 0;
}

/* Makes names in the folder durable, of other files there too.  False: errno. */
static bool disk_log_sync_folder(const char *folder)
{
    int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    bool is_done = fd >= 0 && fsync(fd) == 0;
    if (fd >= 0)
        close(fd);
    return is_done;
}

bool disk_log_create(const char *folder, size_t bytes)
{
    char path[PATH_BYTES], temporary[PATH_BYTES];
    if (!disk_log_path_of(folder, "log", path) || !disk_log_path_of(folder, "log.new", temporary))
        return false;
    int fd = open(temporary, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    if (fd < 0)
        return false;
    size_t size = bytes < BYTES_MOST / 2 ? FIRST + bytes : BYTES_MOST / 2;
    bool is_done = disk_log_fill(fd, size);
    close(fd);
    crash_at(CRASH_DISK_LOG_FILLED);
    is_done = is_done && rename(temporary, path) == 0 && disk_log_sync_folder(folder);
    int error = errno;
    if (!is_done)
        unlink(temporary);
    errno = error;
    return is_done;
}

struct bytes disk_log_view(const struct disk_log *log)
{
    return log->view;
}

/* --- reading --- */

static uint32_t head_sum(const struct log_head *head)
{
    return crc32c(0, (struct bytes){(const char *)head + sizeof head->sum, sizeof *head - sizeof head->sum});
}

static size_t places(size_t body)
{
    return (sizeof(struct log_head) + body + ALIGN - 1) / ALIGN * ALIGN;
}

/* A head of any epoch whose body is within the file. */
static bool disk_log_read_head(const struct disk_log *log, size_t at, struct log_head *head_r)
{
    if (at > log->view.size || log->view.size - at < sizeof *head_r)
        return false;
    memcpy(head_r, log->view.data + at, sizeof *head_r);
    return (head_r->kind == KIND_CHANGE || head_r->kind == KIND_BROKEN) && head_r->sum == head_sum(head_r) &&
           head_r->size <= log->view.size - at - sizeof *head_r;
}

static struct bytes body_at(const struct disk_log *log, size_t at, const struct log_head *head)
{
    return (struct bytes){log->view.data + at + sizeof *head, head->size};
}

static bool is_of_epoch(const struct disk_log *log, const struct log_head *head)
{
    return head->epoch.number == log->epoch.number && head->epoch.salt == log->epoch.salt;
}

static bool disk_log_is_change(const struct disk_log *log, size_t at, struct log_head *head_r)
{
    return disk_log_read_head(log, at, head_r) && is_of_epoch(log, head_r) &&
           crc32c(0, body_at(log, at, head_r)) == head_r->body_sum;
}

void disk_log_begin(struct disk_log *log, struct disk_epoch epoch)
{
    log->epoch = epoch;
    log->number = 0;
    log->is_broken = false;
    log->last = 0;
    log->end = FIRST;
}

bool disk_log_is_same(const struct disk_log *log)
{
    return !log->last || memcmp(log->view.data + log->last, &log->last_head, sizeof log->last_head) == 0;
}

static void disk_log_pass(struct disk_log *log, size_t at, const struct log_head *head)
{
    log->number = head->number;
    log->last = at;
    log->last_head = *head;
    log->end = at + places(head->size);
}

enum disk_log_next disk_log_next(struct disk_log *log, struct bytes *change_r)
{
    struct log_head head;
    if (log->is_broken)
        return DISK_LOG_BROKEN;
    if (!disk_log_is_change(log, log->end, &head) || head.number != log->number + 1)
        return DISK_LOG_END;
    if (head.kind == KIND_BROKEN)
        return DISK_LOG_BROKEN;
    *change_r = body_at(log, log->end, &head);
    disk_log_pass(log, log->end, &head);
    return DISK_LOG_CHANGE;
}

bool disk_log_skip_damage(struct disk_log *log, uint64_t *changes_r)
{
    for (size_t at = log->end + ALIGN; at < log->view.size; at += ALIGN) {
        struct log_head head;
        if (disk_log_is_change(log, at, &head) && head.kind == KIND_CHANGE && head.number > log->number) {
            *changes_r = head.number - log->number - 1;
            log->number = head.number - 1;
            log->end = at;
            return true;
        }
    }
    return false;
}

bool disk_log_is_foreign(const struct disk_log *log, struct disk_epoch epoch)
{
    struct log_head head;
    return disk_log_read_head(log, FIRST, &head) &&
           (head.epoch.number > epoch.number ||
            (head.epoch.number == epoch.number && head.epoch.salt != epoch.salt));
}

/* --- writing --- */

bool disk_log_has_room(const struct disk_log *log, size_t size)
{
    /* also for what says that it is broken */
    return size < log->view.size && log->end + places(size) + places(0) <= log->view.size;
}

static struct log_head make_head(const struct disk_log *log, enum kind kind, struct bytes body)
{
    struct log_head head = {.kind = kind,
                            .epoch = log->epoch,
                            .number = log->number + 1,
                            .size = (uint32_t)body.size,
                            .body_sum = crc32c(0, body)};
    head.sum = head_sum(&head);
    return head;
}

void disk_log_break(struct disk_log *log)
{
    log->is_broken = true;
    struct log_head head = make_head(log, KIND_BROKEN, BYTES(""));
    if (!disk_log_write_all(log->fd, (const char *)&head, sizeof head, log->end))
        log_error("a log whose sync has failed cannot be marked: %m");
}

/* Head and body in one write. */
static const char *disk_log_compose(struct disk_log *log, struct bytes body, const struct log_head *head)
{
    size_t size = sizeof *head + body.size;
    if (size > log->scratch_size) {
        free(log->scratch);
        log->scratch = malloc(size);
        log->scratch_size = log->scratch ? size : 0;
        if (!log->scratch)
            log_fatal("out of memory writing to a log");
    }
    memcpy(log->scratch, head, sizeof *head);
    memcpy(log->scratch + sizeof *head, body.data, body.size);
    return log->scratch;
}

const char *disk_log_append(struct disk_log *log, struct bytes body, struct bytes *change_r)
{
    struct log_head head = make_head(log, KIND_CHANGE, body);
    if (!disk_log_write_all(log->fd, disk_log_compose(log, body, &head), sizeof head + body.size, log->end))
        return strerror(errno);
    crash_at(CRASH_DISK_LOG_WRITTEN);
    if (disk_log_system.sync(log->fd)) {
        const char *error = strerror(errno);
        disk_log_break(log);
        return error;
    }
    crash_at(CRASH_DISK_LOG_SYNCED);
    *change_r = body_at(log, log->end, &head);
    disk_log_pass(log, log->end, &head);
    return NULL;
}
