/* taking: which tasks an external worker wants, and how an answer gives them (workers.md): of `take`, and of
 * an end with the member take. */
#ifndef STAMPD_OPERATION_WORKERS_TAKING_H
#define STAMPD_OPERATION_WORKERS_TAKING_H

#include "operation/attempt.h"
#include "operation/reader.h"
#include "store/tasks/store_take.h"

struct task_taking {
    struct task_take take;
    struct task_taken taken;
    int64_t claim_ms;
    int64_t wait_ms; /* as long as the worker wants, at most as the settings allow; 0: not at all */
    bool is_apart;   /* the wait is left to another request */
};

/* `param` has the members of `take`, or, with `after`, those of the member take of an end, and no others.
 * FAULT_SCLOSED: the caller does not serve the queue.  `after`: the attempt whose end claims, borrowed. */
MUST_USE enum fault taking_read(struct attempt *attempt, const struct reader *reader,
                                const struct json *param, const struct task_fence *after,
                                struct task_taking *taking_r);
/* Before each try: the stamp of the claims, and their end. */
void taking_stamp(struct task_taking *taking);

/* "tasks":[…], by priority and start. */
void taking_write(const struct attempt *attempt, const struct task_taken *taken);
/* Puts back tasks of the queue whose claims have ended, if there are any.  When tasks were taken, which are
 * given in any case, a failure is only logged. */
MUST_USE enum fault taking_put_back(const struct attempt *attempt, const struct task_taking *taking);
/* Counts what was claimed just now for the metrics of the queue. */
void taking_note(const struct attempt *attempt, int queue, const struct task_taken *taken);

/* What the end of this attempt, or a take after it, has claimed and what still lasts. */
MUST_USE enum fault taking_find_following(const struct attempt *attempt, const struct task_fence *fence,
                                          struct task_taking *taking);

/* Claims what is due, and waits while nothing is (workers.md): `take`, and an end with `take`
 * after its commit.
 *
 * The process serves every other request that comes first, so a wait costs nobody anything (long_poll.h).
 * The wait of a client that has gone ends too, before it claims anything. */

/* What was claimed is in taking->taken, and counted; pause_r: milliseconds after which it makes sense to come
 * again.  The rights of the caller are judged again whenever it has waited. */
MUST_USE enum fault taking_wait(struct attempt *attempt, struct task_taking *taking, int64_t *pause_r);
/* ,"next":stamp,"pause":milliseconds */
void taking_wait_write(const struct attempt *attempt, const struct task_taking *taking, int64_t pause);

#endif
