/* spool_wait: one fdatasync for all that wrote before it.
 *
 * The writer that has the lock of `synced` synchronises.  The one that has the lock of `next` waits for the
 * first, and synchronises after it, also when the first dies.  All others sleep until the round ends, and
 * wake together.  Each waits as long as rounds end: the one that synchronises may be stopped.
 *
 * A sync takes as long for eight records as for one.  So the one that synchronises first waits for the
 * writers that the sync before has answered, if they come back soon: for half the time of a sync at most. */
#include "spool/spool_private.h"

#include <unistd.h>

enum { WRITERS_MOST = 64, GATHER_MOST_US = 2000 };

static int gather(const struct stampd_spool *spool, struct spool_synced *synced, struct spool_board *board)
{
    uint32_t limit_us = synced->sync_us / 2 < GATHER_MOST_US ? synced->sync_us / 2 : GATHER_MOST_US;
    int error = spool_board_read(spool, board);
    synced->target = synced->durable + synced->writers;
    if (error || !limit_us || board->written >= synced->target)
        return error;
    uint32_t arrived = spool_shared_arrived(spool);
    error = spool_shared_write(spool, synced);
    if (!error)
        error = spool_board_read(spool, board);
    if (error || board->written >= synced->target)
        return error;
    spool_shared_gather(spool, arrived, limit_us);
    spool_step();
    return spool_board_read(spool, board);
}

/* What was written by anybody up to now becomes durable. */
static int synchronise(struct stampd_spool *spool, struct spool_synced *synced, uint64_t sequence)
{
    struct spool_board board;
    int error = gather(spool, synced, &board);
    if (!error && (spool->writing.fd < 0 || spool->writing.base != board.base))
        error = spool_segment_open(spool, board.base, &spool->writing);
    if (error)
        return error;
    int64_t begin = spool_files_now_us();
    spool_step();
    if (fdatasync(spool->writing.fd)) {
        spool_shared_break(synced, board.written);
        error = spool_shared_end_round(spool, synced);
        return error ? error : EIO;
    }
    spool_step();
    uint64_t before = synced->durable, durable = board.written > sequence ? board.written : sequence;
    synced->sync_us = (uint32_t)(spool_files_now_us() - begin);
    synced->durable = durable;
    error = spool_board_read(spool, &board);
    /* those that are answered now, and those that wrote meanwhile */
    uint64_t writers = (!error && board.written > durable ? board.written : durable) - before;
    synced->writers = writers < WRITERS_MOST ? (uint32_t)writers : WRITERS_MOST;
    return spool_shared_end_round(spool, synced);
}

/* With the lock of `synced`.  Those that came while this writer was the next sleep, and rely on it: when it
 * has nothing to do itself, or fails, the round ends all the same, so that one of them leads. */
static int lead(struct stampd_spool *spool, uint64_t sequence)
{
    struct spool_synced synced;
    struct spool_board board;
    spool_shared_read(spool, &synced);
    int is_broken = synced.broken.first <= sequence && sequence <= synced.broken.last,
        error = is_broken ? EIO : 0;
    if (!is_broken && synced.durable < sequence) {
        error = synchronise(spool, &synced, sequence);
        if (!error)
            return 0;
    }
    if (!spool_board_read(spool, &board) && board.written > synced.durable &&
        spool_shared_end_round(spool, &synced))
        return EIO;
    return error;
}

/* EWOULDBLOCK: another is the next. */
static int try_lead(struct stampd_spool *spool, uint64_t sequence, int64_t limit_us)
{
    int error = spool_files_try_lock(spool->next);
    if (error)
        return error;
    error = spool_shared_lock(spool, limit_us);
    spool_files_unlock(spool->next);
    if (error)
        return error;
    error = lead(spool, sequence);
    spool_files_unlock(spool->synced);
    spool_shared_wake(spool);
    return error;
}

int spool_wait_durable(struct stampd_spool *spool, uint64_t sequence)
{
    struct spool_synced synced;
    uint32_t round = 0;
    for (int64_t limit_us = 0, now_us;;) {
        spool_shared_read(spool, &synced);
        if (synced.broken.first <= sequence && sequence <= synced.broken.last)
            return EIO;
        if (synced.durable >= sequence)
            return 0;
        now_us = spool_files_now_us();
        if (!limit_us || round != synced.round)
            limit_us = spool_files_limit_us();
        round = synced.round;
        if (now_us >= limit_us)
            return ETIMEDOUT;
        int error = try_lead(spool, sequence, limit_us);
        if (error != EWOULDBLOCK)
            return error;
        spool_shared_sleep(spool, round, limit_us - now_us);
    }
}
