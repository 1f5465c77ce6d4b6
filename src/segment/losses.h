/* losses: why attempts at tasks were lost, as far as their host knows (doc/tasks.md, "Lost attempts").
 *
 * Shared memory, a place for each process that may work at tasks.  The worker writes which task of its claim
 * is at work, and what it could not record in the database; when it has died, the master writes how.  A scan
 * reads.  Memory that is zero knows nothing.  The notes of a place outlive its process, the last few of
 * them. */
#ifndef STAMPD_SEGMENT_LOSSES_H
#define STAMPD_SEGMENT_LOSSES_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "segment/board.h"

enum loss_cause {
    LOSS_UNKNOWN,    /* nothing is known */
    LOSS_CRASH,      /* a signal of its own making; detail: which */
    LOSS_KILLED,     /* SIGKILL from outside: an administrator, or the kernel for want of memory */
    LOSS_TIME,       /* the master ended its worker: over its time limit */
    LOSS_STOP,       /* the master ended its worker: the server was stopped */
    LOSS_EXIT,       /* its worker ended by itself; detail: the status */
    LOSS_OUTCOME,    /* of its commit it is not known whether it happened */
    LOSS_UNRECORDED, /* the attempt is over, the database could not be reached to record it */
};

enum { LOSSES_KEPT = 4 };
/* No task of the claim, or more than one of them: every one may have been begun. */
#define LOSSES_ANY 0

struct loss {
    enum loss_cause cause;
    uint32_t detail;
    bool is_final;    /* the attempt said that it must not be repeated */
    bool is_failure;  /* UNRECORDED: it counts */
    uint64_t at_work; /* hash of the task that was at work; LOSSES_ANY */
};

/* Of one process; for losses.c and the layout of the segment only. */
struct losses {
    _Alignas(64) _Atomic uint64_t at_work;
    _Atomic uint64_t next;
    struct loss_note {
        _Atomic int64_t claim; /* 0: none; written last */
        _Atomic uint64_t at_work, words;
    } notes[LOSSES_KEPT];
};

/* By which a task is known here; never LOSSES_ANY. */
uint64_t losses_hash(struct bytes task);
/* The worker begins this one of its claim; LOSSES_ANY: none yet, or several together. */
void losses_show(struct losses *losses, uint64_t task);
uint64_t losses_shown(const struct losses *losses);
/* Notes why what was claimed then is lost: for the process of the place, or for the master when that is dead.
 * A second note of a claim is joined with the first. */
void losses_note(struct losses *losses, int64_t claim, const struct loss *loss);
/* What is known of a claim. */
struct loss losses_find(const struct losses *losses, int64_t claim);

/* Why attempts of the process of this index were lost. */
struct losses *losses_of(const struct segment *segment, int index);

/* For board.c. */
size_t losses_size(const struct board_sizes *sizes);
void losses_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
