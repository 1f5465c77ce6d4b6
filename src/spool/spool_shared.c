/* spool_shared: the files `synced` and `board` in memory, and the first's content.
 *
 * Processes map them to be read only, so that a full disk is an error of a write and no signal.  They are not
 * synchronised: `synced` is right while the machine runs.  At ROUND_AT and WORD_AT are words on which
 * processes sleep (futex(2)). */
#include "spool/spool_private.h"

#include <fcntl.h>
#include <limits.h>
#include <linux/futex.h>
#include <sched.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool_crc.h"

enum {
    FIRST_AT = 8,
    LAST_AT = 16,
    ARRIVED_AT = 24,
    WRITERS_AT = 32,
    SYNC_AT = 36,
    ROUND_AT = 40,
    CRC_AT = 44,
    SYNCED_BYTES = 48,
    WORD_AT = 64, /* apart from the rest: written without the lock */
    TARGET_AT = 72,
    FILE_BYTES = 4096,
    TRIES = 100,
    SHORT_TRIES = 50,
    TRY_MS = 1,
    SLEEP_US = 1000000,
    PAUSE_US = 4000
};

static int lengthen(int fd)
{
    while (fallocate(fd, 0, 0, FILE_BYTES))
        if (errno == EOPNOTSUPP || errno == ENOSYS)
            return ftruncate(fd, FILE_BYTES);
        else if (errno != EINTR)
            return -1;
    return 0;
}

/* Makes the file long enough, and changes nothing that another has written meanwhile.  NULL: errno says why.
 */
static const unsigned char *map(int fd)
{
    struct stat stat;
    if (fstat(fd, &stat))
        return NULL;
    spool_step();
    if (stat.st_size < FILE_BYTES && lengthen(fd))
        return NULL;
    spool_step();
    void *memory = mmap(NULL, FILE_BYTES, PROT_READ, MAP_SHARED, fd, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

int spool_shared_map(struct stampd_spool *spool)
{
    spool->shared = map(spool->synced);
    spool->shared_board = spool->shared ? map(spool->board) : NULL;
    return spool->shared_board ? 0 : errno;
}

void spool_shared_unmap(struct stampd_spool *spool)
{
    if (spool->shared)
        munmap((void *)(uintptr_t)spool->shared, FILE_BYTES);
    if (spool->shared_board)
        munmap((void *)(uintptr_t)spool->shared_board, FILE_BYTES);
    spool->shared = spool->shared_board = NULL;
}

int spool_shared_copy(const unsigned char *memory, unsigned char *bytes_r, size_t size)
{
    for (int tries = 0; tries < TRIES; tries++) {
        memcpy(bytes_r, memory, size);
        uint32_t sum = spool_record_read_u32(bytes_r + size - 4);
        if (sum == spool_crc(0, bytes_r, size - 4))
            return 0;
        if (!sum && !spool_record_read_u64(bytes_r))
            break; /* never written */
        if (tries < SHORT_TRIES)
            sched_yield();
        else /* the one that writes is not running */
            nanosleep(&(struct timespec){.tv_nsec = TRY_MS * 1000000L}, NULL);
    }
    return EBADMSG;
}

/* --- words to sleep on --- */

static const _Atomic uint32_t *word_at(const struct stampd_spool *spool, size_t at)
{
    return (const _Atomic uint32_t *)(const void *)(spool->shared + at);
}

static void wake(const struct stampd_spool *spool, size_t at, int most)
{
    syscall(SYS_futex, word_at(spool, at), FUTEX_WAKE, most, NULL, NULL, 0);
}

static void sleep_on(const struct stampd_spool *spool, size_t at, uint32_t seen, int64_t us)
{
    const struct timespec limit = {.tv_sec = us / 1000000, .tv_nsec = us % 1000000 * 1000};
    syscall(SYS_futex, word_at(spool, at), FUTEX_WAIT, seen, &limit, NULL, 0);
}

/* The round as it is in memory, in the order of bytes of the host. */
static uint32_t spool_shared_load(const struct stampd_spool *spool, size_t at)
{
    return atomic_load(word_at(spool, at));
}

/* --- reading and writing --- */

void spool_shared_read(const struct stampd_spool *spool, struct spool_synced *synced_r)
{
    unsigned char bytes[SYNCED_BYTES];
    uint32_t round = spool_shared_load(spool, ROUND_AT);
    *synced_r = (struct spool_synced){.round = round};
    if (spool_shared_copy(spool->shared, bytes, sizeof bytes))
        return;
    synced_r->durable = spool_record_read_u64(bytes);
    synced_r->broken = (struct stampd_spool_range){spool_record_read_u64(bytes + FIRST_AT),
                                                   spool_record_read_u64(bytes + LAST_AT)};
    synced_r->arrived = spool_record_read_u64(bytes + ARRIVED_AT);
    synced_r->writers = spool_record_read_u32(bytes + WRITERS_AT);
    synced_r->sync_us = spool_record_read_u32(bytes + SYNC_AT);
}

int spool_shared_write(const struct stampd_spool *spool, const struct spool_synced *synced)
{
    unsigned char bytes[SYNCED_BYTES];
    spool_record_write_u64(bytes, synced->durable);
    spool_record_write_u64(bytes + FIRST_AT, synced->broken.first);
    spool_record_write_u64(bytes + LAST_AT, synced->broken.last);
    spool_record_write_u64(bytes + ARRIVED_AT, synced->arrived);
    spool_record_write_u32(bytes + WRITERS_AT, synced->writers);
    spool_record_write_u32(bytes + SYNC_AT, synced->sync_us);
    memcpy(bytes + ROUND_AT, &synced->round, sizeof synced->round);
    spool_record_write_u32(bytes + CRC_AT, spool_crc(0, bytes, CRC_AT));
    return spool_files_write(spool->synced, bytes, sizeof bytes, 0);
}

/* The range of an earlier failure stays: a writer may not have read it yet. */
void spool_shared_break(struct spool_synced *synced, uint64_t last)
{
    if (!synced->broken.last)
        synced->broken.first = synced->durable + 1;
    if (last > synced->broken.last)
        synced->broken.last = last;
}

int spool_shared_end_round(const struct stampd_spool *spool, struct spool_synced *synced)
{
    synced->round = spool_shared_load(spool, ROUND_AT) + 1;
    return spool_shared_write(spool, synced);
}

void spool_shared_wake(const struct stampd_spool *spool)
{
    wake(spool, ROUND_AT, INT_MAX);
    spool_step();
}

/* --- sleeping --- */

/* At most a second: both the one that synchronises and the one that is next may have died. */
void spool_shared_sleep(const struct stampd_spool *spool, uint32_t round, int64_t us)
{
    sleep_on(spool, ROUND_AT, round, us < SLEEP_US ? us : SLEEP_US);
}

/* A holder ends the round before it releases the lock, and wakes after that; one that dies wakes nobody. */
int spool_shared_lock(const struct stampd_spool *spool, int64_t limit_us)
{
    uint32_t round = spool_shared_load(spool, ROUND_AT);
    int error = spool_files_try_lock(spool->synced);
    for (int64_t pause_us = PAUSE_US; error == EWOULDBLOCK; pause_us += pause_us < SLEEP_US ? pause_us : 0) {
        int64_t left_us = limit_us - spool_files_now_us();
        uint32_t before = round;
        if (left_us <= 0)
            return ETIMEDOUT;
        spool_shared_sleep(spool, round, pause_us < left_us ? pause_us : left_us);
        round = spool_shared_load(spool, ROUND_AT);
        error = round == before ? spool_files_try_lock(spool->synced) : spool_files_try_often(spool->synced);
    }
    return error;
}

int spool_shared_expect(const struct stampd_spool *spool, uint64_t target, uint32_t *seen_r)
{
    unsigned char bytes[8];
    *seen_r = spool_shared_load(spool, WORD_AT);
    spool_record_write_u64(bytes, target);
    return spool_files_write(spool->synced, bytes, sizeof bytes, TARGET_AT);
}

void spool_shared_gather(const struct stampd_spool *spool, uint32_t seen, uint32_t us)
{
    sleep_on(spool, WORD_AT, seen, us);
}

/* The target has no CRC, and stays when nobody gathers any more: a wrong one wakes nobody, or in vain. */
void spool_shared_arrive(const struct stampd_spool *spool, uint64_t arrival)
{
    if (spool_record_read_u64(spool->shared + TARGET_AT) != arrival)
        return;
    uint32_t next = spool_shared_load(spool, WORD_AT) + 1;
    if (!spool_files_write(spool->synced, &next, sizeof next, WORD_AT))
        wake(spool, WORD_AT, 1);
}
