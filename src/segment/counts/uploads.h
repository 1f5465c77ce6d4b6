/* uploads: the number of workers that receive files of attachments, in the shared segment: of one client, and
 * of all.
 *
 * A worker receives one at a time.  Those that begin while as many as allowed are busy are refused, and none
 * waits; the upload of a dead worker does not count (tickets.h). */
#ifndef STAMPD_SEGMENT_COUNTS_UPLOADS_H
#define STAMPD_SEGMENT_COUNTS_UPLOADS_H

#include "base/base.h"
#include "segment/processes.h"
#include "segment/segment.h"
#include "segment/counts/tickets.h"

struct uploads_shares {
    uint64_t client; /* 0: the limit per client does not apply */
    int64_t client_most, most;
};
enum uploads_entry { UPLOADS_ENTERED, UPLOADS_FULL, UPLOADS_CLIENT_FULL };

/* Enters the process of this handle, which has an index.  A refused process has not entered. */
enum uploads_entry uploads_enter(struct segment *segment, const struct uploads_shares *shares);
void uploads_leave(struct segment *segment);
/* Workers of this process's instance that receive files. */
int64_t uploads_count(const struct segment *segment);

/* --- layout in the segment --- */
struct uploads_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct uploads_slot {
        struct tickets_slot ticket;
        _Atomic uint64_t client;
    } slots[PROCESSES_MOST];
};

/* For board.c. */
size_t uploads_size(const struct board_sizes *sizes);
void uploads_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
