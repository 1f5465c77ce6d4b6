/* spool_put: appends under a lock, as many requests as there are at once; spool_wait makes them durable. */
#include "spool/stampd_spool.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool_private.h"

enum { BATCH_BYTES = 64 << 10 }; /* of records that are written at once */
/* A lock that was held for long is left alone for a part of that. */
enum { LONG_US = 100, REST_PART = 4, REST_MOST_US = 20000 };

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
static int spool_put_measure(const struct stampd_spool *spool, uint64_t *size_r)
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
            error = spool_put_measure(spool, size);
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

/* Records that are appended together. */
struct batch {
    const struct stampd_spool_request *requests; /* those that are not encoded */
    size_t left;
    unsigned char *records; /* those that are, and are not written: in the buffer of the handle */
    size_t count, bytes;
    int error;        /* of the first request that is left */
    uint64_t arrival; /* 0: it was not counted */
    struct stampd_spool_range stored;
};

/* As many as are written at once; at least one, if it is well formed. */
static void encode(struct stampd_spool *spool, struct batch *batch)
{
    batch->bytes = batch->count = 0;
    for (; batch->left && !batch->error; batch->requests++, batch->left--) {
        batch->error = spool_record_check(batch->requests);
        size_t body = batch->error ? 0 : spool_record_measure(batch->requests),
               bytes = batch->bytes + spool_record_bytes(body);
        if (batch->count && bytes > BATCH_BYTES)
            break;
        if (!batch->error)
            batch->error = spool_files_reserve(&spool->buffer, &spool->buffer_bytes, bytes);
        if (batch->error)
            break;
        spool_record_write(batch->requests, spool->buffer + batch->bytes, body);
        batch->bytes = bytes;
        batch->count++;
    }
    batch->records = spool->buffer;
}

/* Gives numbers to the records that the segment has room for; how many bytes they have. */
static size_t place(struct stampd_spool *spool, const struct spool_board *board, const struct batch *batch,
                    size_t *count_r)
{
    size_t bytes = 0, count = 0;
    int64_t time_ms = now_ms();
    for (; count < batch->count; count++) {
        unsigned char *record = batch->records + bytes;
        size_t size = spool_record_length(record);
        if (count && board->end + bytes + size > spool->limits.segment_bytes)
            break;
        spool_record_place(record, spool->writing.series, board->written + count + 1, time_ms);
        bytes += size;
    }
    *count_r = count;
    return bytes;
}

/* Writes some of the records at the end of the segment: whoever dies before the board is written has stored
 * none of them. */
static int write_some(struct stampd_spool *spool, struct spool_board *board, uint64_t size,
                      struct batch *batch)
{
    size_t count, bytes = place(spool, board, batch, &count);
    uint64_t end = board->end;
    spool_tail_allocate(spool, size, end, bytes);
    int error = spool_files_write(spool->writing.fd, batch->records, bytes, end);
    board->end += bytes;
    board->written += count;
    if (!error)
        error = spool_board_write(spool, board);
    if (error)
        return ftruncate(spool->writing.fd, (off_t)end) ? EIO : error; /* EIO: the next writer cuts it */
    batch->records += bytes;
    batch->bytes -= bytes;
    batch->count -= count;
    batch->stored.last = spool->last = board->written;
    return 0;
}

/* Writes what is encoded.  Before a segment is closed the board has all of it. */
static int spool_put_write_all(struct stampd_spool *spool, struct spool_board *board, uint64_t size,
                               struct batch *batch)
{
    int error = 0;
    while (!error && batch->count) {
        struct spool_synced synced;
        spool_shared_read(spool, &synced);
        if (synced.broken.last >= board->base ||
            (board->end > SPOOL_SEGMENT_HEAD &&
             board->end + spool_record_length(batch->records) > spool->limits.segment_bytes)) {
            error = spool_recovery_roll(spool, board, 0);
            size = SPOOL_SEGMENT_HEAD;
        }
        if (error)
            break;
        if (spool->has_waited)
            batch->arrival = spool->arrival = ++board->arrived;
        spool->has_waited = 0;
        error = write_some(spool, board, size, batch);
    }
    return error;
}

/* With the lock, which is kept for all of them, so that their numbers follow each other.  `size`: of the
 * written segment, before the lock was taken. */
static int append_batch(struct stampd_spool *spool, uint64_t size, struct batch *batch)
{
    struct spool_board board;
    while (batch->count) {
        int error = open_written(spool, &board, batch->bytes, &size);
        if (error)
            return error;
        if (batch->stored.last && batch->stored.last != board.written)
            return EIO; /* files of the spool were removed, or changed by somebody else */
        if (!batch->stored.last)
            batch->stored.first = board.written + 1;
        error = spool_put_write_all(spool, &board, size, batch);
        if (error)
            return error;
        encode(spool, batch);
        size = 0;
    }
    return batch->error;
}

/* Those that wait for the lock try it after pauses: a writer that took it again at once, batch after batch,
 * would leave them no time in which it is free, until they give up. */
static int lock_fairly(const struct stampd_spool *spool)
{
    int64_t left_us = spool->rest_until_us ? spool->rest_until_us - spool_files_now_us() : 0;
    if (left_us > 0)
        nanosleep(&(struct timespec){.tv_nsec = left_us * 1000}, NULL);
    return spool_files_lock_soon(spool->lock);
}

static void unlock_fairly(struct stampd_spool *spool, int64_t begin_us)
{
    spool_files_unlock(spool->lock);
    int64_t now_us = spool_files_now_us(), held_us = now_us - begin_us,
            rest_us = held_us / REST_PART < REST_MOST_US ? held_us / REST_PART : REST_MOST_US;
    spool->rest_until_us = held_us < LONG_US ? 0 : now_us + rest_us;
}

int stampd_spool_append(struct stampd_spool *spool, const struct stampd_spool_request *requests, size_t count,
                        struct stampd_spool_range *stored_r)
{
    struct batch batch = {.requests = requests, .left = count};
    uint64_t size;
    *stored_r = (struct stampd_spool_range){1, 0};
    if (spool->owner != getpid())
        return ECHILD;
    encode(spool, &batch);
    if (!batch.count)
        return batch.error;
    if (spool_put_measure(spool, &size))
        size = 0; /* with the lock it is tried again */
    int error = lock_fairly(spool);
    if (error)
        return error;
    int64_t begin_us = spool_files_now_us();
    error = append_batch(spool, size, &batch);
    unlock_fairly(spool, begin_us);
    if (batch.arrival)
        spool_shared_arrive(spool, batch.arrival);
    if (batch.stored.last)
        *stored_r = batch.stored;
    return error;
}

int stampd_spool_put(struct stampd_spool *spool, const struct stampd_spool_request *request,
                     uint64_t *sequence_r)
{
    struct stampd_spool_range stored;
    int error = stampd_spool_append(spool, request, 1, &stored);
    if (!error && spool->mode == STAMPD_SPOOL_DURABLE && spool_wait_durable(spool, &stored))
        error = EIO; /* whatever it was: the record is there, and may be read */
    if (!error && sequence_r)
        *sequence_r = stored.last;
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
