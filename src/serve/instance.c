/* instance: numbers, lock files, takeovers, and the schedule of repairs.
 *
 * An entry is ours if it has our number, or that of a takeover: a lock on the file of an instance that is
 * gone, held until the last of its entries is released.  If this process dies, the kernel releases its
 * takeovers; the next instance that takes over finds the remaining entries.  If the lock file of an instance
 * was removed by hand, whether it is alive cannot be determined: its entries are left alone until a new
 * generation. */
#include "serve/instance.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/memory.h"
#include "segment/counts/metrics.h"
#include "segment/processes.h"

enum {
    NUMBER_MAX = PROCESSES_MOST, /* every instance has at least one entry */
    CLAIMS_MAX = 32,             /* more wait for the next second */
    RECOVERY_DELAY_LEAST_MS = 100,
    RECOVERY_DELAY_MOST_MS = 10000,
};

struct claim {
    uint32_t number; /* 0: none */
    int fd;
};

struct recovery {
    bool is_running;
    int64_t delay_ms, not_before_ms;
};

struct instance {
    struct segment *segment;
    char prefix[PATH_MAX]; /* of lock files */
    uint32_t number;
    int fd; /* holds the exclusive lock */
    int count, indexes[PROCESSES_MOST];
    struct claim claims[CLAIMS_MAX];
    struct recovery recoveries[PROCESSES_MOST];
    bool is_logged[NUMBER_MAX + 1]; /* it was logged that the file of this number is missing */
};

/* --- lock files --- */

/* Opens and locks the file of a number. -1 with errno: EWOULDBLOCK if a process of that instance is alive. */
static int lock_file(const struct instance *instance, uint32_t number, int flags, struct stat *status_r)
{
    char path[PATH_MAX + 16];
    struct stat named;
    snprintf(path, sizeof path, "%s%u", instance->prefix, number);
    int fd = open(path, O_RDWR | O_CLOEXEC | flags, 0600);
    if (fd < 0)
        return -1;
    if (flock(fd, LOCK_EX | LOCK_NB) == 0 && fstat(fd, status_r) == 0 && stat(path, &named) == 0) {
        if (named.st_ino == status_r->st_ino && named.st_dev == status_r->st_dev)
            return fd;
        errno = ENOENT; /* removed meanwhile */
    }
    int error = errno;
    close(fd);
    errno = error;
    return -1;
}

static bool has_entries(const struct segment *segment, uint32_t number)
{
    for (int i = 0; i < PROCESSES_MOST; i++)
        if (processes_instance(segment, i) == number)
            return true;
    return false;
}

/* Takes a number that no entry has, in use or to be repaired, and whose file is not locked.  Only the holder
 * of its file takes entries with a number, so the second check is final. */
static bool instance_take_number(struct instance *instance, struct stat *status_r)
{
    for (uint32_t number = 1; number <= NUMBER_MAX; number++) {
        if (has_entries(instance->segment, number))
            continue;
        int fd = lock_file(instance, number, O_CREAT, status_r);
        if (fd >= 0 && !has_entries(instance->segment, number)) {
            instance->number = number;
            instance->fd = fd;
            return true;
        }
        if (fd >= 0)
            close(fd);
        else if (errno != EWOULDBLOCK && errno != ENOENT)
            return false;
    }
    errno = EUSERS;
    return false;
}

bool instance_start(const struct settings *settings, struct segment *segment, const char *segment_path,
                    struct instance **instance_r, char *problem, size_t problem_size)
{
    struct instance *instance = memory_zeroed(1, sizeof *instance, "starting an instance");
    instance->segment = segment;
    int size = snprintf(instance->prefix, sizeof instance->prefix, "%s.instance-", segment_path);
    struct stat status;
    if (size < 0 || (size_t)size >= sizeof instance->prefix) {
        snprintf(problem, problem_size, "segment: the path is too long");
    } else if (!instance_take_number(instance, &status)) {
        snprintf(problem, problem_size, "%s…: %s", instance->prefix, strerror(errno));
    } else {
        crash_at(CRASH_INSTANCE_NUMBERED);
        int wanted = 2 * (int)settings->workers + 8;
        instance->count =
            processes_take(segment, instance->number, (uint64_t)status.st_ino,
                           wanted < PROCESSES_MOST ? wanted : PROCESSES_MOST, instance->indexes);
        if (instance->count > settings->workers) { /* one is the thumbnail process */
            log_info("instance number=%u generation=%llu entries=%d", instance->number,
                     (unsigned long long)segment_generation(segment), instance->count);
            *instance_r = instance;
            return true;
        }
        snprintf(problem, problem_size,
                 "segment %s: only %d free entries for %lld workers and the thumbnail process", segment_path,
                 instance->count, (long long)settings->workers);
        instance_stop(instance);
        return false;
    }
    free(instance);
    return false;
}

void instance_stop(struct instance *instance)
{
    for (int i = 0; i < instance->count; i++)
        if (processes_state(instance->segment, instance->indexes[i]) == PROCESS_FREE)
            processes_release(instance->segment, instance->indexes[i]);
    instance_drop_takeovers(instance);
    close(instance->fd);
    free(instance);
}

uint32_t instance_number(const struct instance *instance)
{
    return instance->number;
}

int instance_entry_count(const struct instance *instance)
{
    return instance->count;
}

int instance_entry(const struct instance *instance, int number)
{
    assert(number >= 0 && number < instance->count);
    return instance->indexes[number];
}

/* --- workers --- */

int instance_take_index(struct instance *instance)
{
    for (int i = 0; i < instance->count; i++) {
        int index = instance->indexes[i];
        if (processes_state(instance->segment, index) != PROCESS_FREE)
            continue;
        processes_set(instance->segment, index, PROCESS_HELD, 0);
        return index;
    }
    return SEGMENT_NO_INDEX;
}

void instance_worker_forked(struct instance *instance, int index, pid_t pid)
{
    processes_set(instance->segment, index, PROCESS_HELD, (uint32_t)pid);
}

/* The process of an entry is dead: was a commit in flight? */
static void instance_settle(struct instance *instance, int index)
{
    crash_at(CRASH_MASTER_REAPED);
    bool in_doubt = processes_namespace(instance->segment, index) >= 0;
    atomic_store(&metrics_pulse(instance->segment, index)->request_since_ms, 0);
    atomic_store(&metrics_pulse(instance->segment, index)->deadline_ms, 0);
    processes_set(instance->segment, index, in_doubt ? PROCESS_DIRTY : PROCESS_FREE, 0);
    if (in_doubt)
        crash_at(CRASH_MASTER_DIRTY);
    if (in_doubt)
        log_info("entry in doubt index=%d instance=%u", index, processes_instance(instance->segment, index));
}

void instance_worker_gone(struct instance *instance, int index)
{
    assert(processes_instance(instance->segment, index) == instance->number);
    assert(processes_state(instance->segment, index) == PROCESS_HELD);
    instance_settle(instance, index);
}

/* --- takeovers --- */

static struct claim *find_claim(struct instance *instance, uint32_t number)
{
    for (int i = 0; i < CLAIMS_MAX; i++)
        if (instance->claims[i].number == number)
            return &instance->claims[i];
    return NULL;
}

/* Logs once that the state of an instance's entries is unknown because its lock file was removed. */
static void log_missing(struct instance *instance, uint32_t number)
{
    if (!instance->is_logged[number])
        log_warning(
            "%s%u is missing or was replaced: its entries stay in doubt until all instances have stopped",
            instance->prefix, number);
    instance->is_logged[number] = true;
}

/* Did the instance lock this very file, not one made later in its place? */
static bool is_its_file(const struct segment *segment, uint32_t number, const struct stat *status)
{
    for (int i = 0; i < PROCESSES_MOST; i++) {
        uint64_t inode = processes_lock_file(segment, i);
        if (processes_instance(segment, i) == number && inode && inode != (uint64_t)status->st_ino)
            return false;
    }
    return true;
}

/* Releases the entries of a takeover that need no repair; when all are released, ends the takeover. */
static void settle_claim(struct instance *instance, struct claim *claim)
{
    struct segment *segment = instance->segment;
    int left = 0;
    for (int i = 0; i < PROCESSES_MOST; i++) {
        if (processes_instance(segment, i) != claim->number)
            continue;
        if (processes_namespace(segment, i) >= 0) {
            left++;
            if (processes_state(segment, i) != PROCESS_DIRTY)
                instance_settle(instance, i);
        } else if (!instance->recoveries[i].is_running) {
            processes_release(segment, i);
        } else {
            left++; /* repaired, its recovery process is about to end */
        }
    }
    if (left)
        return;
    log_info("former instance settled number=%u", claim->number);
    close(claim->fd);
    claim->number = 0;
}

static void try_claim(struct instance *instance, uint32_t number, struct claim *claim)
{
    struct stat status;
    int fd = lock_file(instance, number, 0, &status);
    if (fd < 0) {
        if (errno == ENOENT)
            log_missing(instance, number);
        else if (errno != EWOULDBLOCK)
            log_warning("%s%u: %s", instance->prefix, number, strerror(errno));
        return;
    }
    if (!is_its_file(instance->segment, number, &status)) {
        log_missing(instance, number);
        close(fd);
        return;
    }
    *claim = (struct claim){.number = number, .fd = fd};
    crash_at(CRASH_MASTER_CLAIMED);
    settle_claim(instance, claim);
}

void instance_take_over(struct instance *instance)
{
    bool is_known[NUMBER_MAX + 1] = {[0] = true};
    is_known[instance->number] = true;
    for (int i = 0; i < CLAIMS_MAX; i++)
        is_known[instance->claims[i].number] = true;
    for (int i = 0; i < PROCESSES_MOST; i++) {
        uint32_t number = processes_instance(instance->segment, i);
        struct claim *unused = find_claim(instance, 0);
        if (number > NUMBER_MAX || is_known[number] || !unused)
            continue;
        is_known[number] = true;
        try_claim(instance, number, unused);
    }
}

void instance_drop_takeovers(struct instance *instance)
{
    for (int i = 0; i < CLAIMS_MAX; i++) {
        if (instance->claims[i].number)
            close(instance->claims[i].fd);
        instance->claims[i].number = 0;
    }
}

/* --- recovery processes --- */

int instance_next_orphan(struct instance *instance)
{
    int64_t now_ms = clock_monotonic_ms();
    for (int i = 0; i < PROCESSES_MOST; i++) {
        struct recovery *recovery = &instance->recoveries[i];
        if (processes_state(instance->segment, i) != PROCESS_DIRTY || recovery->is_running ||
            now_ms < recovery->not_before_ms)
            continue;
        uint32_t number = processes_instance(instance->segment, i);
        if (number != instance->number && (number == 0 || !find_claim(instance, number)))
            continue;
        recovery->is_running = true;
        return i;
    }
    return SEGMENT_NO_INDEX;
}

void instance_recovery_gone(struct instance *instance, int index)
{
    struct recovery *recovery = &instance->recoveries[index];
    crash_at(CRASH_MASTER_RECOVERY_GONE);
    assert(recovery->is_running && processes_state(instance->segment, index) == PROCESS_DIRTY);
    recovery->is_running = false;
    if (processes_namespace(instance->segment, index) >= 0) { /* it died: the next one starts over */
        recovery->delay_ms = recovery->delay_ms ? recovery->delay_ms * 2 : RECOVERY_DELAY_LEAST_MS;
        if (recovery->delay_ms > RECOVERY_DELAY_MOST_MS)
            recovery->delay_ms = RECOVERY_DELAY_MOST_MS;
        recovery->not_before_ms = clock_monotonic_ms() + recovery->delay_ms;
        return;
    }
    *recovery = (struct recovery){0};
    uint32_t number = processes_instance(instance->segment, index);
    if (number == instance->number)
        processes_set(instance->segment, index, PROCESS_FREE, 0);
    else
        settle_claim(instance, find_claim(instance, number));
}
