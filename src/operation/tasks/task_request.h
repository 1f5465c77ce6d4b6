/* task_request: the task that an operation requests, checked and completed.  The operation's commit writes
 * it. */
#ifndef STAMPD_OPERATION_TASKS_TASK_REQUEST_H
#define STAMPD_OPERATION_TASKS_TASK_REQUEST_H

#include "operation/attempt.h"

struct task_request {
    const struct operation *operation;
    struct bytes param;                       /* JSON object; NO_BYTES: an empty one */
    struct bytes info, resource, domain, key; /* NO_BYTES: none */
    int64_t start;                            /* stamp; 0: `delay_ms` from now */
    int64_t delay_ms;
    int64_t longest_ms; /* later requests for the resource move the start at most so far; 0: any */
    int64_t within_ms;  /* and, unless this one asks for a later start, so far from now; 0: any */
    int priority;
    bool is_unique;    /* with a resource: if there is one, none is created */
    int64_t unique_ms; /* also so long after its creation */
    bool is_strict;    /* order in the domain */
    int64_t requester; /* the limited client that requests it; 0: none */
    bool is_of_batch;  /* its operation has a limit of its own in place of limit_tasks */
    bool is_of_server; /* it is not on behalf of the call's account, which is not recorded */
    bool is_of_client; /* it runs with the rights of the call's account, or of anybody; false: with all */
};

/* The limit that is exceeded: the setting's name, its value, the actual value. */
struct task_excess {
    const char *limit;
    int64_t most, value;
};

/* For scans: what `add` schedules, in a commit of its own; wakes the managers.  Nothing is written unless
 * `add` sets is_any_r. */
MUST_USE enum fault task_request_commit(struct attempt *attempt,
                                        enum fault (*add)(struct attempt *attempt, bool *is_any_r));

/* For scans: the server's own task of this operation, without an argument, soon; one at most waits. */
MUST_USE enum fault task_request_own(struct worker_context *worker_context, struct call *call, int ns,
                                     struct bytes operation);

/* Schedules it in the attempt's transaction.  FAULT_ALIMIT: over the limit in `excess_r`. */
MUST_USE enum fault task_request_add(struct attempt *attempt, const struct task_request *request,
                                     struct task_excess *excess_r);

/* The attempt's commit cancels the tasks of the operation for the resource.  FAULT_ALIMIT as above. */
MUST_USE enum fault task_request_cancel(struct attempt *attempt, const struct operation *operation,
                                        struct bytes resource, struct task_excess *excess_r);

#endif
