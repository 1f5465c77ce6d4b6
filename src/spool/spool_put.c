/* spool_put: appends under a lock; then one of the writers synchronises for all that wrote before. */
#include "spool/stampd_spool.h"

#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool_private.h"

static int64_t now_ms(void)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    return (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000;
}

/* The segment of the board, with nothing behind its end: that would be of a writer that died. */
static int open_written(struct stampd_spool *spool, struct spool_board *board)
{
    struct stat stat;
    for (int tries = 0; tries < 2; tries++) {
        int error = spool_board_read(spool, board);
        if (!error && (spool->writing.fd < 0 || spool->writing.base != board->base))
            error = spool_segment_open(spool, board->base, &spool->writing);
        if (!error && fstat(spool->writing.fd, &stat))
            error = errno;
        if (!error && (uint64_t)stat.st_size > board->end) {
            error = ftruncate(spool->writing.fd, (off_t)board->end) ? errno : 0;
            spool_step();
        }
        if (!error && (uint64_t)stat.st_size >= board->end && !spool->writing.is_damaged && stat.st_nlink)
            return 0;
        if (error && error != EBADMSG && error != ENOENT)
            return error;
        error = spool_recovery_run(spool);
        if (error)
            return error;
    }
    return EIO;
}

static int is_broken(const struct stampd_spool *spool, const struct spool_board *board)
{
    struct spool_synced synced;
    return !spool_board_read_synced(spool, &synced) && synced.broken.last >= board->base;
}

static int append(struct stampd_spool *spool, size_t body, uint64_t *sequence_r)
{
    struct spool_board board;
    size_t bytes = spool_record_bytes(body);
    int error = open_written(spool, &board);
    if (error)
        return error;
    int is_full = board.end > SPOOL_SEGMENT_HEAD && board.end + bytes > spool->limits.segment_bytes;
    if (is_full || is_broken(spool, &board))
        error = spool_recovery_roll(spool, &board, 0);
    if (error)
        return error;
    *sequence_r = board.written + 1;
    spool_record_write_head(spool->buffer, spool->writing.series, body, *sequence_r, now_ms());
    uint64_t end = board.end;
    error = spool_files_write(spool->writing.fd, spool->buffer, bytes, end);
    board.end += bytes;
    board.written++;
    if (!error)
        error = spool_board_write(spool, &board);
    if (error && ftruncate(spool->writing.fd, (off_t)end))
        return EIO; /* the next writer cuts it */
    return error;
}

/* What was written by anybody up to now becomes durable. */
static int synchronise(struct stampd_spool *spool, struct spool_synced *synced, uint64_t sequence)
{
    struct spool_board board;
    int error = spool_board_read(spool, &board);
    if (!error && (spool->writing.fd < 0 || spool->writing.base != board.base))
        error = spool_segment_open(spool, board.base, &spool->writing);
    if (error)
        return error;
    spool_step();
    if (fdatasync(spool->writing.fd)) {
        error = errno;
        synced->broken = (struct stampd_spool_range){synced->durable + 1, board.written};
        return spool_board_write_synced(spool, synced) ? EIO : error;
    }
    spool_step();
    synced->durable = board.written > sequence ? board.written : sequence;
    return spool_board_write_synced(spool, synced);
}

static int wait_durable(struct stampd_spool *spool, uint64_t sequence)
{
    struct spool_synced synced;
    int error = spool_files_lock(spool->synced);
    if (error)
        return error;
    error = spool_board_read_synced(spool, &synced);
    if (!error && synced.broken.first <= sequence && sequence <= synced.broken.last)
        error = EIO;
    else if (!error && synced.durable < sequence)
        error = synchronise(spool, &synced, sequence);
    spool_files_unlock(spool->synced);
    return error;
}

int stampd_spool_put(struct stampd_spool *spool, const struct stampd_spool_request *request,
                     uint64_t *sequence_r)
{
    uint64_t sequence;
    if (spool->owner != getpid())
        return ECHILD;
    int error = spool_record_check(request);
    if (error)
        return error;
    size_t body = spool_record_measure(request), bytes = spool_record_bytes(body);
    error = spool_files_reserve(&spool->buffer, &spool->buffer_bytes, bytes);
    if (error)
        return error;
    memset(spool->buffer + bytes - SPOOL_ALIGN, 0, SPOOL_ALIGN);
    spool_record_write_body(request, spool->buffer + SPOOL_HEAD_BYTES);
    error = spool_files_lock(spool->lock);
    if (error)
        return error;
    error = append(spool, body, &sequence);
    spool_files_unlock(spool->lock);
    if (!error && spool->mode == STAMPD_SPOOL_DURABLE)
        error = wait_durable(spool, sequence);
    if (!error && sequence_r)
        *sequence_r = sequence;
    return error;
}

int stampd_spool_renew(struct stampd_spool *spool)
{
    struct spool_board board;
    if (spool->owner != getpid())
        return ECHILD;
    int error = spool_files_lock(spool->lock);
    if (error)
        return error;
    error = open_written(spool, &board);
    if (!error && board.end > SPOOL_SEGMENT_HEAD)
        error = spool_recovery_roll(spool, &board, 1);
    spool_files_unlock(spool->lock);
    return error;
}
