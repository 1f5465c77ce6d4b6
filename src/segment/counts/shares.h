/* shares: what only so many workers may do at once, in the shared segment: send streamed collections, and
 * receive files of attachments; of one subject (an address, an account, a namespace, or all together).
 *
 * A worker does one at a time.  Those that begin while as many as allowed are busy are refused, and none
 * waits; what a dead worker did does not count (tickets.h). */
#ifndef STAMPD_SEGMENT_COUNTS_SHARES_H
#define STAMPD_SEGMENT_COUNTS_SHARES_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"
#include "segment/counts/tickets.h"

enum shares_kind { SHARES_STREAMS, SHARES_UPLOADS, SHARES_KINDS };
enum { SHARES_SUBJECTS = 3 };
struct shares_subject {
    uint64_t key; /* 0: there is no subject */
    int64_t most; /* 0: no limit */
};

/* Enters the process of this handle, which has an index; otherwise false: as many others of its instance as
 * one of the subjects may have are busy, `full_r` is its place, and it has not entered. */
MUST_USE bool shares_enter(struct segment *segment, enum shares_kind kind,
                           const struct shares_subject subjects[SHARES_SUBJECTS], int *full_r);
void shares_leave(struct segment *segment, enum shares_kind kind);
/* Workers of this process's instance that do it now. */
int64_t shares_count(const struct segment *segment, enum shares_kind kind);

/* --- layout in the segment --- */
struct shares_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct shares_slot {
        struct tickets_slot ticket;
        _Atomic uint64_t keys[SHARES_SUBJECTS];
    } slots[PROCESSES_MOST];
};

/* For board.c. */
size_t shares_size(const struct board_sizes *sizes);
void shares_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
