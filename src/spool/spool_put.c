/* spool_put: appends under a lock; spool_wait makes it durable. */
#include "spool/stampd_spool.h"

#include <fcntl.h>
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

/* Cuts what a writer that died has left behind the end: it begins with a head, other than the zeros that were
 * allocated in advance. */
static int clean(int fd, uint64_t end, uint64_t *size)
{
    static const unsigned char zeros[SPOOL_ALIGN];
    unsigned char bytes[SPOOL_ALIGN] = {0};
    size_t count;
    int error = *size > end ? spool_files_read(fd, bytes, sizeof bytes, end, &count) : 0;
    if (error || !memcmp(bytes, zeros, sizeof bytes))
        return error;
    error = spool_tail_cut(fd, *size, end);
    *size = end;
    return error;
}

/* The size of the written segment; ESTALE: it has no name any more. */
static int measure(const struct stampd_spool *spool, uint64_t *size_r)
{
    struct statx stat;
    *size_r = 0;
    if (spool->writing.fd < 0)
        return 0;
    if (statx(spool->writing.fd, "", AT_EMPTY_PATH, STATX_SIZE | STATX_NLINK, &stat))
        return errno;
    *size_r = stat.stx_size;
    return stat.stx_nlink ? 0 : ESTALE;
}

/* The segment of the board, with nothing but zeros behind its end, and its size.  *size is what it was before
 * the lock was taken, which suffices as long as a record of so many bytes fits in: others make it longer. */
static int open_written(struct stampd_spool *spool, struct spool_board *board, uint64_t bytes, uint64_t *size)
{
    for (int tries = 0; tries < 2; tries++) {
        int error = spool_board_read(spool, board);
        int is_open = spool->writing.fd >= 0 && spool->writing.base == board->base;
        if (!error && !is_open)
            error = spool_segment_open(spool, board->base, &spool->writing);
        if (!error && (!is_open || tries || *size < board->end + bytes))
            error = measure(spool, size);
        if (!error)
            error = clean(spool->writing.fd, board->end, size);
        if (!error && *size >= board->end && !spool->writing.is_damaged)
            return 0;
        if (error && error != EBADMSG && error != ENOENT && error != ESTALE)
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
    spool_shared_read(spool, &synced);
    return synced.broken.last >= board->base;
}

/* `size`: of the written segment, before the lock was taken. */
static int append(struct stampd_spool *spool, size_t body, uint64_t size, uint64_t *sequence_r)
{
    struct spool_board board;
    uint64_t bytes = spool_record_bytes(body);
    int error = open_written(spool, &board, bytes, &size);
    if (error)
        return error;
    int is_full = board.end > SPOOL_SEGMENT_HEAD && board.end + bytes > spool->limits.segment_bytes;
    if (is_full || is_broken(spool, &board)) {
        error = spool_recovery_roll(spool, &board, 0);
        size = SPOOL_SEGMENT_HEAD;
    }
    if (error)
        return error;
    spool_tail_allocate(spool, size, board.end, bytes);
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

int stampd_spool_put(struct stampd_spool *spool, const struct stampd_spool_request *request,
                     uint64_t *sequence_r)
{
    uint64_t sequence, size;
    if (spool->owner != getpid())
        return ECHILD;
    int error = spool_record_check(request);
    if (error)
        return error;
    size_t body = spool_record_measure(request), bytes = spool_record_bytes(body);
    error = spool_files_reserve(&spool->buffer, &spool->buffer_bytes, bytes);
    if (error)
        return error;
    spool_record_write_body(request, spool->buffer + SPOOL_HEAD_BYTES);
    spool_record_write_end(spool->buffer, body);
    if (measure(spool, &size))
        size = 0; /* with the lock it is tried again */
    error = spool_files_lock_soon(spool->lock);
    if (error)
        return error;
    error = append(spool, body, size, &sequence);
    spool_files_unlock(spool->lock);
    if (!error)
        spool_shared_arrive(spool, sequence);
    if (!error && spool->mode == STAMPD_SPOOL_DURABLE && spool_wait_durable(spool, sequence))
        error = EIO; /* whatever it was: the record is there, and may be read */
    if (!error && sequence_r)
        *sequence_r = sequence;
    return error;
}

int stampd_spool_renew(struct stampd_spool *spool)
{
    struct spool_board board;
    uint64_t size = 0;
    if (spool->owner != getpid())
        return ECHILD;
    int error = spool_files_lock(spool->lock);
    if (error)
        return error;
    error = open_written(spool, &board, 0, &size);
    if (!error && board.end > SPOOL_SEGMENT_HEAD)
        error = spool_recovery_roll(spool, &board, 1);
    spool_files_unlock(spool->lock);
    return error;
}
