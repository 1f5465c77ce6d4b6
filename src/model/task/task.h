/* task: an operation to run later, as a value (tasks.md).  Texts live as long as the request.  Pure. */
#ifndef STAMPD_MODEL_TASK_TASK_H
#define STAMPD_MODEL_TASK_TASK_H

#include "base/arena.h"
#include "base/bytes.h"
#include "base/settings.h"
#include "model/document/stamp.h"

/* A start at the end of the century: the task is parked. */
#define TASK_PARKED STAMP_MAX

enum {
    TASK_ID_BYTES = 24,
    TASK_ID_LEAST = 8,
    TASK_ID_MOST = 64,
    TASK_PROGRESS_MOST = 500, /* bytes */
    TASK_PRIORITY = 20,       /* default */
    TASK_PRIORITY_MOST = 255,
    TASK_BATCH_MOST = 1000,
    TASK_EARLY_MS = 1000, /* a claim that is early by at most this much is accepted */
};

/* Credentials; that of a token of a provider is a text of operation/access/stored_caller.h. */
#define TASK_SESSION "session"
#define TASK_KEY     "key" /* a service key */

struct task {
    struct bytes id;
    struct bytes operation;
    struct bytes param; /* JSON object; NO_BYTES: the stored row was altered */
    struct bytes info;
    struct bytes resource, domain; /* NO_BYTES: none */
    struct bytes checkpoint;       /* JSON; NO_BYTES: none */
    struct bytes period;           /* of the current rule; NO_BYTES: not periodic */
    int64_t start;                 /* not before; TASK_PARKED */
    int64_t claim;                 /* stamp of the present attempt; 0: waiting */
    int64_t attempt;               /* retry: attempts that failed before */
    int64_t step;                  /* commits made so far */
    int64_t created;
    int queue, priority, batch;
    bool is_strict;          /* starts after all strict tasks created before it in its domain */
    int64_t requester;       /* the client that requested it and is limited; 0: none */
    struct bytes account;    /* on whose behalf it was requested; NO_BYTES: nobody had signed in */
    struct bytes credential; /* what the account had signed in with: TASK_SESSION…; NO_BYTES: no account */
    bool is_of_client;       /* it runs with the rights of the account, or of anybody; false: with all */
    int64_t unique_until; /* with a resource: no other is created while it waits or runs, or until this stamp;
                             0: it is not unique */
    bool is_limited;      /* of one that is claimed: a limit counts how many run (tasks.md) */
    struct bytes key;     /* by which limits count it; NO_BYTES: none */
    struct bytes trace;   /* of the request that created it (model/trace.h); NO_BYTES: none */
    int64_t latest;       /* no later request for its resource moves it past this; 0: no limit */
};

/* Tasks to be cancelled: those of the operation that wait or run for the resource. */
struct task_cancel {
    struct bytes operation, resource;
};

struct task_take;
struct task_taken;

/* An attempt's fence for its task: the commit succeeds only while the row still belongs to this attempt. */
struct task_fence {
    struct bytes id;
    int64_t claim, attempt;
    struct bytes domain;   /* NO_BYTES: none */
    struct bytes period;   /* NO_BYTES: not periodic */
    int64_t start;         /* periodic: the earliest time at which it may start */
    struct bytes result;   /* JSON for the history; NO_BYTES: none */
    struct bytes progress; /* stored with a checkpoint; NO_BYTES: as it was */
    int queue;             /* of an external worker's claim; with `queues`: out, of the task that was ended */
    uint32_t queues;   /* the row was not read before: its task is ended if it is of one of these queues of
                          external workers, its claim lasts, and it is not periodic; 0: it was read */
    bool is_lost;      /* out: the row no longer belongs to this attempt */
    struct bytes left; /* out, with `queues`: the domain of the task that was ended */
    const struct task_end *end;   /* without success: it waits again (store_tasks.h); NULL: it is done */
    int64_t again;                /* out, with `end`: start of the waiting task, as of store_tasks_put_back */
    const struct task_take *take; /* what the commit claims besides (store_take.h); NULL: nothing */
    struct task_taken *taken;     /* with `take`: out, what it has claimed; set by the caller */
};

/* A new id, from the system's random source. */
struct bytes task_draw_id(struct arena *arena);
/* Has it the form of a task's id? */
bool task_is_id(struct bytes id);
/* A stamp for a claim: the present, but above all earlier claims of this process. */
int64_t task_claim_stamp(void);

/* The server's own task for a document, `c` and `id` of its argument; class and `stored_id`, the id as the
 * database has it, are its info and its resource, so at most one of the operation waits for it.
 * `queue`: that of the operation, unless task_queues sets another. */
struct task task_of_document(struct arena *arena, const struct settings *settings, struct bytes operation,
                             int queue, struct bytes class, struct bytes id, struct bytes stored_id);

/* Merges two requests for the same resource before either is committed: `waiting` takes the values of `newer`
 * that the rule requires: param and account together. */
void task_join(struct task *waiting, const struct task *newer);

#endif
