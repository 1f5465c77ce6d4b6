/* reads: the number of workers that run long reads (searches, lists, pages of collections), in the shared
 * segment (architecture.md, "Long reads").
 *
 * Each process that may read has a slot.  A process that begins a long read writes its slot, then counts
 * the earlier reads of the same namespace and of the same client: no process waits, and no more than the
 * share get in.  A slot counts while its process lives: no repair is needed when the process dies.  A read
 * beyond a share is admitted on trial, for a short time, unless a trial of the same client or namespace has
 * failed recently: a quick read is never refused, and a slow one costs one trial. */
#ifndef STAMPD_SEGMENT_READS_H
#define STAMPD_SEGMENT_READS_H

#include "base/base.h"
#include "segment/segment.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/tickets.h"

struct read_shares {
    int ns;
    uint64_t client;              /* 0: the limit per client does not apply */
    int64_t ns_most, client_most; /* concurrent workers; 0: no limit */
};

enum reads_entry {
    READS_ENTERED,
    READS_ON_TRIAL,
    READS_NAMESPACE_FULL, /* refused: the namespace has used its share */
    READS_CLIENT_FULL,    /* refused: the client has used its share */
};

/* Enters the process of this handle, which has an index and is in no long read.  A refused process has not
 * entered. */
enum reads_entry reads_enter(struct segment *segment, const struct read_shares *shares);
/* The trial was too short: READS_ENTERED if there is room now; otherwise the process has left. `is_slow`:
 * the trial ran to its end, and the client, or the namespace, gets no other trial for a while. */
enum reads_entry reads_extend(struct segment *segment, const struct read_shares *shares, bool is_slow);
void reads_leave(struct segment *segment);
/* Workers of this process's instance that run long reads. */
int64_t reads_count(const struct segment *segment);

/* --- layout in the segment --- */
enum { READS_SUSPECTS = 256 };
struct reads_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct reads_slot {
        struct tickets_slot ticket;
        _Atomic uint64_t client;
        _Atomic uint32_t ns, reserved;
    } slots[PROCESSES_MOST];
    struct reads_suspect {
        _Atomic uint64_t client;
        _Atomic int64_t until_ms; /* monotonic */
    } suspects[READS_SUSPECTS];
    _Atomic int64_t namespaces_until_ms[NAMESPACES_MOST];
};

/* For board.c. */
size_t reads_size(const struct board_sizes *sizes);
void reads_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
