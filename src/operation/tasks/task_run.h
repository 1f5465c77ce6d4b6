/* task_run: attempts at tasks: claim, cycles of work and commit, end (tasks.md, "Running").
 *
 * A commit ends its tasks under a guard, so the effects of a task happen once, whatever happens here.  A task
 * that does not end in order is put back, or found by a scan. */
#ifndef STAMPD_OPERATION_TASKS_TASK_RUN_H
#define STAMPD_OPERATION_TASKS_TASK_RUN_H

#include "operation/attempt.h"
#include "operation/reply.h"

/* The outcome of one task of a request. */
struct task_outcome {
    struct bytes id;
    const char *result; /* a word of the answer */
    const char *code;   /* failed: of the exception */
    int64_t start;      /* waiting, more, failed: when it may start; 0: unknown */
    int64_t attempt;    /* failed: failed attempts so far */
    struct task next;   /* another due task of its domain; no id: none */
    struct reply reply; /* failed: the fault, for the answer to a request for one */
};

/* Runs the tasks named in `outcomes`, all different, in the call's namespace, and fills in the rest.  A fault
 * other than FAULT_NONE: no attempt was made. */
MUST_USE enum fault task_run(struct worker_context *worker_context, struct call *call, struct reply *reply,
                             int ns, struct task_outcome *outcomes, size_t count);

#endif
