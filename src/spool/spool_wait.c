/* spool_wait: one fdatasync for all that wrote before it.
 *
 * The writer that has the lock of `synced` synchronises.  The one that has the lock of `next` waits for the
 * first, and synchronises after it, also when the first dies.  All others sleep until the round ends, and
 * wake together.  Each waits as long as rounds end: the one that synchronises may be stopped.
 *
 * A sync takes as long for eight records as for one.  So the one that synchronises first waits for the
 * writers that the sync before has answered, if they come back soon: for half the time of a sync at most.
 * Writers that come back are counted, not records: one that appends many is there with the first of them.  A
 * writer that is not one of them waits for nobody. */
#include "spool/spool_private.h"

#include <unistd.h>

enum { WRITERS_MOST = 64, GATHER_MOST_US = 2000 };

static int gather(const struct stampd_spool *spool, struct spool_synced *synced, struct spool_board *board)
{
    uint32_t seen, limit_us = synced->sync_us / 2 < GATHER_MOST_US ? synced->sync_us / 2 : GATHER_MOST_US;
    uint64_t target = synced->arrived + synced->writers;
    int error = spool_board_read(spool, board);
    int is_one_of_them = spool->arrival > synced->arrived;
    if (error || !limit_us || !is_one_of_them || board->arrived >= target)
        return error;
    error = spool_shared_expect(spool, target, &seen);
    if (!error)
        error = spool_board_read(spool, board);
    if (error || board->arrived >= target)
        return error;
    spool_shared_gather(spool, seen, limit_us);
    spool_step();
    return spool_board_read(spool, board);
}

/* Those that are answered now, and those that wrote meanwhile. */
static uint32_t count_writers(const struct stampd_spool *spool, const struct spool_board *answered,
                              uint64_t before)
{
    struct spool_board now;
    uint64_t arrived = spool_board_read(spool, &now) ? answered->arrived : now.arrived;
    uint64_t writers = arrived > before ? arrived - before : 0;
    return writers < WRITERS_MOST ? (uint32_t)writers : WRITERS_MOST;
}

/* What was written by anybody up to now becomes durable.  EINVAL: `sequence` was not.  After a failure no
 * other sync of the segment is tried: it would succeed, as the kernel reports a failure once. */
static int synchronise(struct stampd_spool *spool, struct spool_synced *synced, uint64_t sequence)
{
    struct spool_board board;
    int error = gather(spool, synced, &board);
    if (!error && board.written < sequence)
        error = EINVAL;
    if (!error && (spool->writing.fd < 0 || spool->writing.base != board.base))
        error = spool_segment_open(spool, board.base, &spool->writing);
    if (error)
        return error;
    int64_t begin = spool_files_now_us();
    spool_step();
    if (synced->broken.last >= board.base || fdatasync(spool->writing.fd)) {
        spool_shared_break(synced, board.written);
        error = spool_shared_end_round(spool, synced);
        return error ? error : EIO;
    }
    spool_step();
    uint64_t before = synced->arrived;
    synced->sync_us = (uint32_t)(spool_files_now_us() - begin);
    synced->durable = board.written;
    synced->arrived = board.arrived;
    synced->writers = count_writers(spool, &board, before);
    return spool_shared_end_round(spool, synced);
}

/* EIO: some of them are not on disk, and will not be; EAGAIN: they are not yet. */
static int read_verdict(const struct stampd_spool *spool, const struct stampd_spool_range *range,
                        struct spool_synced *synced_r)
{
    const struct stampd_spool_range *broken = &synced_r->broken;
    spool_shared_read(spool, synced_r);
    if (range->first > range->last)
        return 0;
    if (broken->last && broken->first <= range->last && range->first <= broken->last)
        return EIO;
    return synced_r->durable >= range->last ? 0 : EAGAIN;
}

/* With the lock of `synced`.  Those that came while this writer was the next sleep, and rely on it: when it
 * has nothing to do itself, or fails, the round ends all the same, so that one of them leads. */
static int lead(struct stampd_spool *spool, const struct stampd_spool_range *range)
{
    struct spool_synced synced;
    struct spool_board board;
    int error = read_verdict(spool, range, &synced);
    if (error == EAGAIN) {
        error = synchronise(spool, &synced, range->last);
        if (!error)
            return 0;
    }
    if (!spool_board_read(spool, &board) && board.written > synced.durable &&
        spool_shared_end_round(spool, &synced))
        return EIO;
    return error;
}

/* EWOULDBLOCK: another is the next. */
static int try_lead(struct stampd_spool *spool, const struct stampd_spool_range *range, int64_t limit_us)
{
    int error = spool_files_try_lock(spool->next);
    if (error)
        return error;
    error = spool_shared_lock(spool, limit_us);
    spool_files_unlock(spool->next);
    if (error)
        return error;
    error = lead(spool, range);
    spool_files_unlock(spool->synced);
    spool_shared_wake(spool);
    return error;
}

/* What can be answered at once.  EINVAL: not all of them were appended. */
static int spool_wait_answer(const struct stampd_spool *spool, const struct stampd_spool_range *range,
                             struct spool_synced *synced_r)
{
    struct spool_board board;
    int error = read_verdict(spool, range, synced_r);
    if (error != EAGAIN)
        return error;
    error = spool_board_read(spool, &board);
    if (error)
        return EIO;
    return board.written < range->last ? EINVAL : EAGAIN;
}

int spool_wait_durable(struct stampd_spool *spool, const struct stampd_spool_range *range)
{
    struct spool_synced synced;
    uint32_t round = 0;
    int error;
    for (int64_t limit_us = 0, now_us; (error = spool_wait_answer(spool, range, &synced)) == EAGAIN;) {
        now_us = spool_files_now_us();
        if (!limit_us || round != synced.round)
            limit_us = spool_files_limit_us();
        round = synced.round;
        error = now_us < limit_us ? try_lead(spool, range, limit_us) : ETIMEDOUT;
        if (error == EWOULDBLOCK)
            spool_shared_sleep(spool, round, limit_us - now_us);
        else if (error != ETIMEDOUT || now_us >= limit_us)
            break; /* else rounds may have ended, which others have led */
    }
    if (!error && spool->last && range->last >= spool->last)
        spool->has_waited = 1;
    return error;
}

int stampd_spool_wait(struct stampd_spool *spool, const struct stampd_spool_range *stored)
{
    return spool->owner == getpid() ? spool_wait_durable(spool, stored) : ECHILD;
}

int stampd_spool_try_wait(struct stampd_spool *spool, const struct stampd_spool_range *stored)
{
    struct spool_synced synced;
    return spool->owner == getpid() ? spool_wait_answer(spool, stored, &synced) : ECHILD;
}
