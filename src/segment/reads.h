/* reads: how many workers are at long reads, in the shared segment: searches, lists, pages of collections
 * (doc/architecture.md, "Long reads").
 *
 * A place for each process that may read.  Who begins a long read writes its place, then counts the others of
 * the same namespace and of the same client that came before: nobody waits, and no more than the share get
 * in.  A place counts for as long as its process lives: nothing has to be repaired when it dies.  What is
 * beyond a share is let in on trial, for a short time, unless a trial of the same client or namespace has
 * failed lately: what is quick is never refused, and what is slow costs one trial. */
#ifndef STAMPD_SEGMENT_READS_H
#define STAMPD_SEGMENT_READS_H

#include "base/base.h"
#include "segment/board.h"
#include "segment/namespaces.h"
#include "segment/processes.h"

struct read_shares {
    int ns;
    uint64_t client;              /* 0: no limit of clients holds */
    int64_t ns_most, client_most; /* workers at the same time; 0: no limit */
};

enum reads_entry {
    READS_ENTERED,
    READS_ON_TRIAL,
    READS_SPACE_FULL,  /* refused: the namespace has its share */
    READS_CLIENT_FULL, /* refused: the client has its share */
};

/* Of the process of this handle, which has an index and is in no long read.  When it is refused, it has not
 * entered. */
enum reads_entry reads_enter(struct segment *segment, const struct read_shares *shares);
/* A trial is not enough: READS_ENTERED when there is room by now; else it has left.  `is_slow`: it has been
 * tried, and the client, or the namespace, gets no other trial for a while. */
enum reads_entry reads_extend(struct segment *segment, const struct read_shares *shares, bool is_slow);
void reads_leave(struct segment *segment);
/* Workers of this process's instance at long reads. */
int64_t reads_count(const struct segment *segment);

/* --- what lies in the segment --- */
enum { READS_SUSPECTS = 256 };
struct reads_board {
    _Alignas(64) _Atomic uint64_t next; /* ticket */
    struct reads_place {
        _Atomic uint64_t ticket; /* 0: free; written last */
        _Atomic uint64_t client;
        _Atomic uint32_t ns, pid;
    } places[PROCESSES_MOST];
    struct reads_suspect {
        _Atomic uint64_t client;
        _Atomic int64_t until_ms; /* monotonic */
    } suspects[READS_SUSPECTS];
    _Atomic int64_t manager_namespaces_until_ms[NAMESPACES_MOST];
};

/* For board.c. */
size_t reads_size(const struct board_sizes *sizes);
void reads_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
