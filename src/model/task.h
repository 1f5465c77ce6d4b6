/* task: an operation to be run later, as a value (doc/tasks.md).  Texts live as the request.  Pure. */
#ifndef STAMPD_MODEL_TASK_H
#define STAMPD_MODEL_TASK_H

#include "base/arena.h"
#include "base/bytes.h"
#include "model/stamp.h"

/* A start at the end of the century: the task is parked. */
#define TASK_PARKED STAMP_MAX

enum {
    TASK_ID_BYTES = 24,
    TASK_ID_LEAST = 8,
    TASK_ID_MOST = 64,
    TASK_PRIORITY = 20, /* unless told */
    TASK_PRIORITY_MOST = 255,
    TASK_BATCH_MOST = 1000,
    TASK_EARLY_MS = 1000, /* a claim that comes this much too early is taken for in time */
};

struct task {
    struct bytes id;
    struct bytes operation;
    struct bytes param; /* JSON object */
    struct bytes info;
    struct bytes resource, domain; /* NO_BYTES: none */
    struct bytes checkpoint;       /* JSON; NO_BYTES: none */
    struct bytes period;           /* of the rule whose turn it is; NO_BYTES: it is not periodic */
    int64_t start;                 /* not before; TASK_PARKED */
    int64_t claim;                 /* stamp of the present attempt; 0: it waits */
    int64_t attempt;               /* retry: attempts that failed before */
    int64_t step;                  /* commits made so far */
    int64_t created;
    int queue, priority, batch;
    bool is_strict; /* in its domain it starts after all that were created before it so */
    int64_t asker;  /* the client that has asked for it and is limited; 0: none has */
    int64_t latest; /* behind which no later request for its resource moves it; 0: no bound */
};

/* An attempt's hold on its task: the commit happens only while the row is still this attempt's. */
struct task_fence {
    struct bytes id;
    int64_t claim, attempt;
    struct bytes domain; /* NO_BYTES: none */
    struct bytes period; /* NO_BYTES: it is not periodic */
    int64_t start;       /* periodic: before which it was not to start */
    bool is_lost;        /* out: it is not */
};

/* A new name, from the system's random source. */
struct bytes task_draw_id(struct arena *arena);
/* Has it the form of one? */
bool task_is_id(struct bytes id);
/* A stamp for a claim: the present, but above all claims that this process has made. */
int64_t task_claim_stamp(void);

/* Two requests for the same resource before either is committed: `waiting` takes what the rule says. */
void task_join(struct task *waiting, const struct task *newer);

#endif
