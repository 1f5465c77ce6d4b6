/* lineage: which history of the databases this host knows: of each cell the highest timeline of PostgreSQL
 * that it has met, and how far the commits that were acknowledged reach.
 *
 * A standby that takes over begins a timeline.  What it did not have of the former one is lost.  A session
 * reports what it has met (lineage_meet); then copies of the former history are dropped by all processes
 * (lineage_drops), its sessions are used no more (lineage_timeline), and a namespace that has lost commits is
 * refused until its epoch changes, which `stampctl ns restored` does. */
#ifndef STAMPD_SEGMENT_LINEAGE_H
#define STAMPD_SEGMENT_LINEAGE_H

#include <stdatomic.h>

#include "segment/namespaces.h"
#include "segment/segment.h"

/* All zeros: nothing is known. */
struct lineage {
    struct lineage_cell {                     /* namespaces_cell */
        _Alignas(64) _Atomic uint64_t system; /* identifier of the cluster */
        _Atomic uint32_t timeline;            /* sessions of another one are not used */
        _Atomic uint32_t settled; /* the one that all has been done for: judged, and copies dropped */
    } cells[CELLS_MOST];
    _Alignas(64) _Atomic uint64_t drops;
    struct lineage_record {
        _Alignas(64) _Atomic uint64_t mark; /* timeline and position of the highest acknowledged commit */
        _Atomic int64_t epoch;              /* of the namespace, + 1; 0: unknown */
        _Atomic uint32_t has_lost;
    } records[NAMESPACES_MOST];
};

/* What a session has met: positions in the log are bytes. */
struct lineage_met {
    uint64_t system;
    uint32_t timeline;
    uint64_t start;    /* where the timeline begins; 0: the server does not know any more */
    uint64_t position; /* the end of the log */
    uint64_t mark;     /* lineage_mark before the server was asked */
};

enum lineage_verdict {
    LINEAGE_SAME,
    LINEAGE_NEW,    /* all copies are dropped */
    LINEAGE_FORMER, /* a server that is no primary any more */
};
/* Each process that meets the new history before one has done all of it does all of it: that one may die. */
MUST_USE enum lineage_verdict lineage_meet(struct segment *segment, int ns, const struct lineage_met *met);
uint64_t lineage_mark(const struct segment *segment, int ns);
/* Whether the namespace, which has this epoch, has lost acknowledged commits. */
MUST_USE bool lineage_has_lost(struct segment *segment, int ns, int64_t epoch);
/* The same as a session has found it last. */
MUST_USE bool lineage_is_lost(const struct segment *segment, int ns);
/* A commit was acknowledged whose record begins at this position or behind it. */
void lineage_note(struct segment *segment, int ns, uint32_t timeline, uint64_t position);
/* Drops all copies: of a history that is over, or on request. */
void lineage_drop(struct segment *segment);

/* Sessions of another timeline are not to be used for this namespace. */
static inline uint32_t lineage_timeline(const struct segment *segment, int ns)
{
    return atomic_load(&segment->lineage->cells[namespaces_cell(segment, ns)].timeline);
}

/* A process whose copies are of another count drops them. */
static inline uint64_t lineage_drops(const struct segment *segment)
{
    return atomic_load(&segment->lineage->drops);
}

/* For board.c. */
size_t lineage_size(const struct board_sizes *sizes);
void lineage_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
