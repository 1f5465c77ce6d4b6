/* streams: the streamed collections that are being sent, in the shared segment, for their quotas
 * (operation/quota.h): by address, by account, by namespace.
 *
 * A worker sends one at a time.  Those that begin while as many as allowed are being sent are refused, and
 * none waits; the stream of a dead worker does not count (tickets.h). */
#ifndef STAMPD_SEGMENT_COUNTS_STREAMS_H
#define STAMPD_SEGMENT_COUNTS_STREAMS_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"
#include "segment/counts/tickets.h"

enum { STREAMS_SUBJECTS = 3 };
struct streams_subject {
    uint64_t key; /* of limiter_key; 0: there is no subject */
    int64_t most; /* 0: no limit */
};

/* Enters the process of this handle, which has an index; otherwise false: as many others of its instance as
 * one of the subjects may have are sending, `full_r` is its place, and it has not entered. */
MUST_USE bool streams_enter(struct segment *segment, const struct streams_subject subjects[STREAMS_SUBJECTS],
                            int *full_r);
void streams_leave(struct segment *segment);
/* Workers of this process's instance that send streams. */
int64_t streams_count(const struct segment *segment);

/* --- layout in the segment --- */
struct streams_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct streams_slot {
        struct tickets_slot ticket;
        _Atomic uint64_t keys[STREAMS_SUBJECTS];
    } slots[PROCESSES_MOST];
};

/* For board.c. */
size_t streams_size(const struct board_sizes *sizes);
void streams_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
