/* attempt: tries of operations, for requests and tasks alike: begin, work, validate, settle, retry.
 *
 * A commit contains the work of one operation, or of several tasks.  A try begins a transaction, does all
 * work in it, and validates it, which is the commit.  The caller then settles what the try has led to, and
 * decides what follows.  Conflicts with others and failures that may be transient are tried again, after a
 * pause. */
#ifndef STAMPD_OPERATION_ATTEMPT_H
#define STAMPD_OPERATION_ATTEMPT_H

#include "document/transaction.h"
#include "operation/reply.h"
#include "operation/operation.h"
#include "operation/worker_context.h"

/* One try of one operation. */
struct attempt {
    const struct operation *operation;
    struct worker_context *worker_context;
    struct call *call;
    struct reply *reply;
    struct transaction *transaction;
    bool is_open; /* the transaction has not ended: documents can be fetched */
    int ns;
    const struct schema *schema;          /* of this try, see classes_schema; NULL: not loaded */
    int64_t version;                      /* in afterwork: of the commit; 0: nothing was written */
    struct version_after *versions_after; /* in afterwork: its documents' versions (versions_after.h) */
    size_t versions_after_count;
    size_t out;                                 /* where the operation's own part of reply->body begins */
    bool is_final;                              /* the task has requested no further try */
    const struct grant *grants;                 /* of this try: sync.h */
    const struct stand_in *stand_ins;           /* of this try: judge.h */
    const struct filtered_base *filtered_bases; /* of this try: judge.c */
    struct document_name *written;              /* of this try, as far as matches are judged: matches.h */
    size_t written_count;
    bool has_acted; /* outside the commit, and as a whole: it was done, whatever becomes of the request */
    uint64_t changes_before;  /* of the pulse: those that are not of this operation */
    int64_t hosts_until_ms;   /* so long it waits for other hosts, monotonic; 0: it has not begun */
    int64_t retry_after_s;    /* a failed task is not retried sooner; 0: as in the settings */
    void *kept;               /* what work keeps for the next try, in the arena; NULL at the first */
    struct task_fence *fence; /* the task that the commit ends; NULL: a request */
};

/* Most tries that end in a conflict or a failure. */
enum { ATTEMPT_TRIES = 3 };

enum attempt_next {
    ATTEMPT_END,
    ATTEMPT_AGAIN,   /* another try, if any are left, and time */
    ATTEMPT_CHANGED, /* the same, with other attempts, so that this one does not count */
};

/* The attempts of one commit: of one worker context, namespace and arena. */
struct attempt_commit {
    struct attempt **attempts; /* settle may remove some */
    size_t count;
    bool may_read_snapshot; /* the last try, after a conflict, reads at one instant */
    void *context;          /* of the caller */
    /* Before the work of an attempt, in its transaction.  May be NULL. */
    enum fault (*enter)(struct attempt_commit *commit, struct attempt *attempt);
    /* The work of an attempt has succeeded: adds to the transaction what belongs to it.  May be NULL. */
    enum fault (*complete)(struct attempt_commit *commit, struct attempt *attempt);
    /* A try has ended with this fault, which settle may replace. */
    enum attempt_next (*settle)(struct attempt_commit *commit, enum fault *fault);
    /* Out, for settle: */
    size_t failed; /* the attempt whose work has failed; `count`: none */
};

/* Returns the fault of the last try as attempt_answer, or what settle has made of it. */
enum fault attempt_run(struct attempt_commit *commit);

/* Outside its commit, and outside the database, the operation is about to change something that another try,
 * or another worker, must not change again: the request stays here (store_set_visitor), and a fault, or the
 * end of its worker, does not mean that nothing was changed.  A change by store_run_change is noted there. */
void attempt_note_change(const struct attempt *attempt);
/* How many changes of the present request are noted. */
uint64_t attempt_count_changes(const struct worker_context *worker_context);
/* The last one is known not to have happened. */
void attempt_undo_change(const struct attempt *attempt);
/* The operation has ended with a fault: its phase becomes "afterwork" if it was done nevertheless, and
 * unknown if it has, or may have, changed something. */
void attempt_note_fault(struct attempt *attempt);

/* The fault for the caller when `fault` is not tried again: the only place where a conflict becomes an
 * answer. */
enum fault attempt_answer(enum fault fault);

#endif
