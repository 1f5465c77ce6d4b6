/* spool_read: the backlog in order, its size and age, and what wakes a reader. */
#include "spool/stampd_spool.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/inotify.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "spool/spool_private.h"

/* EBADMSG of a reading function is for records, which the caller then removes. */
static int read_board(const struct stampd_spool *spool, struct spool_board *board_r)
{
    int error = spool_board_read(spool, board_r);
    return error == EBADMSG ? EIO : error;
}

static int is_covering(const struct spool_segment *reading, uint64_t sequence)
{
    return reading->fd >= 0 && reading->expected <= sequence && (!reading->last || sequence <= reading->last);
}

/* The place that is nearest before the record, else the one that was not used for longest, at the front. */
static struct spool_segment *choose_reading(struct stampd_spool *spool, uint64_t sequence)
{
    struct spool_segment *readings = spool->readings, chosen;
    size_t best = SPOOL_READINGS;
    for (size_t i = 0; i < SPOOL_READINGS; i++)
        if (is_covering(&readings[i], sequence) &&
            (best == SPOOL_READINGS || readings[i].expected > readings[best].expected))
            best = i;
    best = best < SPOOL_READINGS ? best : SPOOL_READINGS - 1;
    chosen = readings[best];
    memmove(readings + 1, readings, best * sizeof *readings);
    readings[0] = chosen;
    return readings;
}

/* Opens the segment with this number.  Those behind it may be removed: their records are acknowledged.
 * EBADMSG: it is gone; *first_r is the number of the first that is there. */
static int open_at(const struct stampd_spool *spool, struct spool_segment *reading,
                   const struct spool_board *board, uint64_t sequence, uint64_t *first_r)
{
    uint64_t *bases, bytes;
    size_t count, found = 0;
    int error = spool_segment_list(spool->folder, NULL, &bases, &count, &bytes);
    while (!error && count && bases[count - 1] > board->base)
        count--;
    while (!error && found < count && bases[found] <= sequence)
        found++;
    if (!error && !found) {
        *first_r = count ? bases[0] : board->written + 1;
        error = EBADMSG;
    }
    if (!error)
        error = spool_segment_open(spool, bases[found - 1], reading);
    if (!error)
        reading->last = found < count ? spool_position_trim(&spool->position, bases[found] - 1) : 0;
    free(bases);
    return error;
}

/* The end and the last number of the segment that is read. */
static int find_end(const struct spool_segment *reading, const struct spool_board *board, uint64_t *end_r,
                    uint64_t *last_r)
{
    struct stat stat;
    if (reading->base == board->base) {
        *end_r = board->end;
        *last_r = board->written;
        return 0;
    }
    *end_r = fstat(reading->fd, &stat) ? 0 : (uint64_t)stat.st_size;
    *last_r = reading->last;
    return *last_r ? 0 : ESTALE; /* it grew when it was opened */
}

/* The first record from `wanted` on, or damage. */
static int read_from(struct stampd_spool *spool, const struct spool_board *board, uint64_t wanted,
                     struct stampd_spool_record *record_r)
{
    struct spool_segment *reading = choose_reading(spool, wanted);
    uint64_t end, last, first = wanted;
    if (!is_covering(reading, wanted) || find_end(reading, board, &end, &last)) {
        int error = open_at(spool, reading, board, wanted, &first);
        if (error == EBADMSG)
            *record_r = (struct stampd_spool_record){.first = wanted, .sequence = first - 1};
        if (!error)
            error = find_end(reading, board, &end, &last);
        if (error)
            return error;
    }
    for (;;) {
        int error = spool_segment_read(spool, reading, end, last, record_r);
        if ((error && error != EBADMSG) || record_r->sequence >= wanted)
            return error;
    }
}

/* What seems to be damaged may have been acknowledged meanwhile, and removed. */
int stampd_spool_next(struct stampd_spool *spool, uint64_t after, struct stampd_spool_record *record_r)
{
    struct spool_board board;
    uint64_t wanted, present;
    if (spool->owner != getpid())
        return ECHILD;
    int error = spool_position_read(spool), failure;
    if (error)
        return error;
    present = spool_position_skip(&spool->position, after);
    do {
        wanted = present;
        error = read_board(spool, &board);
        if (error)
            return error;
        if (wanted > board.written)
            return EAGAIN;
        error = read_from(spool, &board, wanted, record_r);
        if (error != EBADMSG && error != ENOENT)
            return error;
        failure = spool_position_read_again(spool);
        if (failure)
            return failure;
        present = spool_position_skip(&spool->position, after);
    } while (present != wanted);
    return error;
}

/* --- state --- */

static uint64_t age_of(int64_t time_ms)
{
    struct timespec now;
    clock_gettime(CLOCK_REALTIME, &now);
    int64_t age = (int64_t)now.tv_sec * 1000 + now.tv_nsec / 1000000 - time_ms;
    return age > 0 ? (uint64_t)age : 0;
}

static int read_counts(struct stampd_spool *spool, struct stampd_spool_state *state)
{
    struct spool_board board;
    struct stampd_spool_record record;
    uint64_t *bases;
    size_t count;
    int error = read_board(spool, &board);
    if (!error)
        error = spool_position_read(spool);
    if (!error) {
        error = spool_segment_list(spool->folder, &board, &bases, &count, &state->bytes);
        free(bases);
    }
    if (error)
        return error;
    state->last = board.written;
    state->waiting = board.written - spool_position_count(&spool->position, board.written);
    error = stampd_spool_next(spool, 0, &record);
    if (!error)
        state->oldest_ms = (int64_t)age_of(record.time_ms);
    return error == EAGAIN || error == EBADMSG ? 0 : error;
}

int stampd_spool_read_state(struct stampd_spool *spool, struct stampd_spool_state *state_r)
{
    struct flock probe = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    struct stampd_spool_record record;
    const char *reason;
    if (spool->owner != getpid())
        return ECHILD;
    *state_r = (struct stampd_spool_state){.limit_bytes = spool->limits.limit_bytes};
    memcpy(state_r->id, spool->id, sizeof state_r->id);
    int error = read_counts(spool, state_r);
    for (uint64_t after = 0; !error || error == EBADMSG; state_r->dead++, after = record.sequence)
        if ((error = stampd_spool_next_dead(spool, after, &record, &reason)) == EAGAIN)
            break;
    if (!fcntl(spool->hold, F_OFD_GETLK, &probe))
        state_r->is_forwarded = probe.l_type != F_UNLCK;
    return error == EAGAIN ? 0 : error;
}

int stampd_spool_hold(struct stampd_spool *spool)
{
    struct flock whole = {.l_type = F_WRLCK, .l_whence = SEEK_SET};
    if (spool->owner != getpid())
        return ECHILD;
    if (!fcntl(spool->hold, F_OFD_SETLK, &whole))
        return 0;
    return errno == EAGAIN || errno == EACCES ? EBUSY : errno;
}

/* --- waking --- */

/* Writers write the board last. */
int stampd_spool_descriptor(struct stampd_spool *spool)
{
    char path[32];
    if (spool->watch >= 0)
        return spool->watch;
    snprintf(path, sizeof path, "/proc/self/fd/%d", spool->board);
    spool->watch = inotify_init1(IN_NONBLOCK | IN_CLOEXEC);
    if (spool->watch >= 0 && inotify_add_watch(spool->watch, path, IN_MODIFY) < 0) {
        int error = errno;
        close(spool->watch);
        spool->watch = -1;
        errno = error;
    }
    return spool->watch;
}

void stampd_spool_clear(struct stampd_spool *spool)
{
    char events[4096];
    while (spool->watch >= 0 && read(spool->watch, events, sizeof events) > 0)
        ;
}
