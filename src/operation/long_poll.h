/* long_poll: a request that waits until there is something to answer.
 *
 * It holds a process, so its wait is bounded and costs nobody anything: it ends when its time is over, and as
 * soon as another request arrives for the process.  Only so many processes of the host wait at once; of those
 * that do not wait for tasks to do, one namespace, and one client, may have half.  A request that may not
 * wait is answered at once, and its client comes again after a pause.
 *
 * What the caller may do may change meanwhile: `look` judges it again (access_renew) before it returns
 * anything. */
#ifndef STAMPD_OPERATION_LONG_POLL_H
#define STAMPD_OPERATION_LONG_POLL_H

#include "operation/attempt.h"
#include "segment/counts/metrics.h"

/* More than that no client needs to ask for. */
enum { LONG_POLL_MOST_S = 3600 };

struct long_poll {
    enum pulse_wait kind;
    uint64_t queue;    /* of tasks: 1 + its place (task_counts.h), for metrics */
    int64_t wait_ms;   /* as long as the client wants, at most as the settings allow; 0: not at all */
    int64_t processes; /* that may wait at once */
    int64_t pauses_ms; /* out: when to come again; 0: it has waited to the end, or has found something */
    void *context;
    /* Called every hundredth of a second: could there be something?  Looks at shared memory only. */
    bool (*is_worth_a_look)(void *context);
    /* is_over_r: there is something to answer. */
    enum fault (*look)(void *context, bool *is_over_r);
};

/* Waits; after a first look that has found nothing. */
MUST_USE enum fault long_poll_wait(struct attempt *attempt, struct long_poll *poll);

#endif
