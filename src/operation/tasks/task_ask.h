/* task_ask: an operation asks for a task: what is asked for, checked and completed.  The commit of the
 * operation writes it. */
#ifndef STAMPD_OPERATION_TASKS_TASK_ASK_H
#define STAMPD_OPERATION_TASKS_TASK_ASK_H

#include "operation/registry.h"

struct task_request {
    const struct operation *operation;
    struct bytes param;                  /* JSON object; NO_BYTES: an empty one */
    struct bytes info, resource, domain; /* NO_BYTES: none */
    int64_t start;                       /* stamp; 0: `delay_ms` from now */
    int64_t delay_ms;
    int64_t longest_ms; /* later requests for the resource move the start at most so far; 0: any */
    int priority;
    bool is_strict; /* order in the domain */
    int64_t asker;  /* a limited client; 0: none */
};

/* What is over a limit: the setting's name, its value, what came. */
struct task_excess {
    const char *limit;
    int64_t most, value;
};

/* Schedules it in the attempt's transaction.  FAULT_ALIMIT: over a limit, which is told. */
MUST_USE enum fault task_ask(struct attempt *attempt, const struct task_request *request,
                             struct task_excess *excess_r);

#endif
