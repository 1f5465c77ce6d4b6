/* spool_recovery: after the start of the machine, and in a folder that is a copy.
 *
 * What follows the last good record is a torn tail and is cut, with the zeros behind it; what looks like a
 * whole record there is kept, to be reported as damaged.  Numbers continue in a new segment of a new series,
 * so that no two records have the same name, even if both the folder and its copy go on. */
#include "spool/spool_private.h"

#include <stdlib.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

/* How many records the bytes behind the last good one may have been; 0: they are a torn tail. */
static uint64_t count_damaged(const unsigned char *bytes, size_t size, const unsigned char *series)
{
    static const unsigned char magic[] = {'S', 'P', 'R', '1'};
    struct spool_head head;
    uint64_t count = 0;
    size_t zeros = 0;
    while (zeros < size && !bytes[zeros])
        zeros++;
    if (size < SPOOL_HEAD_BYTES)
        return 0;
    if (!spool_record_read_head(bytes, series, &head) && spool_record_bytes(head.size) > size)
        return 0;
    for (size_t at = 0; at + SPOOL_HEAD_BYTES <= size; at += SPOOL_ALIGN)
        count += !memcmp(bytes + at, magic, sizeof magic);
    return count ? count : zeros < SPOOL_HEAD_BYTES; /* no head at all: none was written */
}

/* Reads the segment to its end: its last number, and its size without a torn tail. */
static int scan(struct stampd_spool *spool, struct spool_segment *segment, uint64_t size, uint64_t *last_r,
                uint64_t *end_r)
{
    uint64_t most = segment->base + size / SPOOL_HEAD_BYTES;
    struct stampd_spool_record record;
    for (;;) {
        uint64_t before = segment->offset, expected = segment->expected;
        int error = before < size ? spool_segment_read(spool, segment, size, most, &record) : EAGAIN;
        *last_r = segment->expected - 1;
        *end_r = segment->offset;
        if (error == EAGAIN)
            return 0;
        if (error && error != EBADMSG)
            return error;
        if (!error || record.sequence < most)
            continue;
        uint64_t damaged = count_damaged(record.body, record.body_size, segment->series);
        *last_r = expected - 1 + damaged;
        *end_r = damaged ? size : before;
        return 0;
    }
}

/* The last number of the last segment; its torn tail is cut and the rest is on disk. */
static int repair_last(struct stampd_spool *spool, uint64_t base, uint64_t *last_r)
{
    struct spool_segment segment = {.fd = -1};
    struct stat stat;
    uint64_t end = 0, size = 0;
    int error = spool_segment_open(spool, base, &segment);
    if (!error && fstat(segment.fd, &stat))
        error = errno;
    if (!error)
        error = spool_tail_measure(segment.fd, (uint64_t)stat.st_size, &size);
    if (!error)
        error = scan(spool, &segment, size, last_r, &end);
    if (!error && end >= SPOOL_SEGMENT_HEAD)
        error = spool_tail_cut(segment.fd, (uint64_t)stat.st_size, end);
    if (!error)
        error = spool_files_sync(segment.fd);
    spool_segment_close(&segment);
    return error;
}

static int remove_segment(const struct stampd_spool *spool, uint64_t base)
{
    char name[SPOOL_NAME_BYTES];
    spool_segment_name(base, name);
    int error = unlinkat(spool->folder, name, 0) ? errno : 0;
    spool_step();
    return error;
}

/* The last number of all segments.  Empty ones at the end are removed: one may be of a writer that died while
 * it began it, after which others went on in the segment before. */
static int repair_segments(struct stampd_spool *spool, const uint64_t *bases, size_t count, uint64_t *last_r)
{
    int error = 0;
    *last_r = 0;
    for (int is_empty = 1; !error && is_empty && count; count--) {
        uint64_t base = bases[count - 1], last;
        error = repair_last(spool, base, &last);
        if (!error && last > *last_r)
            *last_r = last;
        is_empty = !error && last < base;
        if (is_empty && count > 1)
            error = remove_segment(spool, base);
    }
    return error;
}

static int reset_synced(const struct stampd_spool *spool, uint64_t durable)
{
    struct spool_synced synced = {.durable = durable};
    int error = spool_shared_lock(spool, spool_files_limit_us());
    if (error)
        return error;
    error = spool_shared_end_round(spool, &synced);
    spool_files_unlock(spool->synced);
    spool_shared_wake(spool);
    return error;
}

int spool_recovery_run(struct stampd_spool *spool)
{
    unsigned char series[STAMPD_SPOOL_ID_BYTES];
    uint64_t *bases, bytes, last = 0;
    size_t count;
    int error = spool_segment_list(spool->folder, NULL, &bases, &count, &bytes);
    if (!error)
        error = repair_segments(spool, bases, count, &last);
    free(bases);
    if (!error)
        error = spool_position_read(spool);
    if (error)
        return error;
    const struct spool_position *position = &spool->position;
    if (position->count && position->ranges[position->count - 1].last > last)
        last = position->ranges[position->count - 1].last;
    memcpy(series, spool->id, sizeof series);
    if (count && getrandom(series, sizeof series, 0) != sizeof series)
        return EIO;
    spool_segment_close(&spool->writing);
    error = spool_segment_create(spool, last + 1, series);
    if (!error)
        error = reset_synced(spool, last);
    struct spool_board board = {.base = last + 1, .end = SPOOL_SEGMENT_HEAD, .written = last};
    return error ? error : spool_board_write(spool, &board);
}

/* Of all segments.  An empty one ahead of the board is of a writer that died while it began it. */
static int check_segments(const struct stampd_spool *spool, const struct spool_board *board)
{
    uint64_t *bases, bytes;
    size_t count;
    int error = spool_segment_list(spool->folder, board, &bases, &count, &bytes);
    if (!error && count && bases[count - 1] > board->base)
        error = remove_segment(spool, bases[count - 1]);
    free(bases);
    return error ? error : bytes + spool->limits.segment_bytes > spool->limits.limit_bytes ? EDQUOT : 0;
}

/* The records of the written segment are on disk, or noted as broken.  After a failure no other sync is
 * tried: it would succeed, as the kernel reports a failure once. */
static int end_segment(const struct stampd_spool *spool, const struct spool_board *board,
                       struct spool_synced *synced)
{
    struct stat stat;
    int is_broken = synced->broken.last >= board->base;
    int error = fstat(spool->writing.fd, &stat) ? errno : 0;
    if (!error)
        error = spool_tail_cut(spool->writing.fd, (uint64_t)stat.st_size, board->end);
    if (error)
        return error;
    error = is_broken ? 0 : spool_files_sync(spool->writing.fd);
    if ((is_broken || error) && synced->durable < board->written)
        spool_shared_break(synced, board->written);
    return error;
}

int spool_recovery_roll(struct stampd_spool *spool, struct spool_board *board, int is_new_series)
{
    unsigned char series[STAMPD_SPOOL_ID_BYTES];
    struct spool_synced synced;
    int error = check_segments(spool, board);
    if (!error)
        error = spool_shared_lock(spool, spool_files_limit_us());
    if (error)
        return error;
    spool_shared_read(spool, &synced);
    error = end_segment(spool, board, &synced);
    memcpy(series, spool->writing.series, sizeof series);
    if (!error && is_new_series && getrandom(series, sizeof series, 0) != sizeof series)
        error = EIO;
    if (!error)
        error = spool_segment_create(spool, board->written + 1, series);
    if (!error) {
        synced.durable = board->written;
        synced.arrived = board->arrived;
    }
    int failure = spool_shared_end_round(spool, &synced);
    error = error ? error : failure;
    spool_files_unlock(spool->synced);
    spool_shared_wake(spool);
    if (error)
        return error;
    board->base = board->written + 1;
    board->end = SPOOL_SEGMENT_HEAD;
    error = spool_board_write(spool, board);
    return error ? error : spool_segment_open(spool, board->base, &spool->writing);
}
