/* losses: why task attempts were lost, as far as it is known on their host (tasks.md, "Lost attempts").
 *
 * Shared memory, with a slot for each process that may run tasks.  The worker writes which task of its
 * claim it is running, and what it could not record in the database; when the worker has died, the master
 * writes how.  A scan reads the notes.  Zeroed memory contains no notes.  The last few notes of a slot
 * outlive its process. */
#ifndef STAMPD_SEGMENT_COUNTS_LOSSES_H
#define STAMPD_SEGMENT_COUNTS_LOSSES_H

#include <stdatomic.h>

#include "base/base.h"
#include "base/bytes.h"
#include "segment/segment.h"

enum loss_cause {
    LOSS_UNKNOWN,    /* nothing is known */
    LOSS_CRASH,      /* a signal that the worker caused itself; detail: which */
    LOSS_KILLED,     /* SIGKILL from outside: an administrator, or the kernel's out-of-memory killer */
    LOSS_TIME,       /* the master ended the worker: time limit exceeded */
    LOSS_STOP,       /* the master ended the worker: the server was stopped */
    LOSS_EXIT,       /* the worker exited by itself; detail: the status */
    LOSS_OUTCOME,    /* the outcome of its commit is unknown */
    LOSS_UNRECORDED, /* the attempt is over, but the database could not be reached to record it */
};

enum { LOSSES_KEPT = 4 };
/* No task of the claim, or several of them: any of them may have been started. */
#define LOSSES_ANY 0

struct loss {
    enum loss_cause cause;
    uint32_t detail;
    bool is_final;    /* the attempt declared that it must not be repeated */
    bool is_failure;  /* UNRECORDED: it counts as a failure */
    uint64_t at_work; /* hash of the task that was running; LOSSES_ANY */
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

/* The hash by which notes identify a task; never LOSSES_ANY. */
uint64_t losses_hash(struct bytes task);
/* The worker starts this task of its claim; LOSSES_ANY: none yet, or several together. */
void losses_show(struct losses *losses, uint64_t task);
uint64_t losses_shown(const struct losses *losses);
/* Notes why the tasks of a claim are lost: for the process of the slot, or for the master when that
 * process is dead.  A second note of a claim is merged with the first. */
void losses_note(struct losses *losses, int64_t claim, const struct loss *loss);
/* What is known about a claim. */
struct loss losses_find(const struct losses *losses, int64_t claim);

/* The notes of the process with this index. */
struct losses *losses_of(const struct segment *segment, int index);

/* For board.c. */
size_t losses_size(const struct board_sizes *sizes);
void losses_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
