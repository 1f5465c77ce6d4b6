/* claim: what the operations of external workers share (workers.md): which claim a request is about, and
 * whether its caller may speak for it. */
#ifndef STAMPD_OPERATION_WORKERS_CLAIM_H
#define STAMPD_OPERATION_WORKERS_CLAIM_H

#include "model/task/task.h"
#include "segment/counts/task_counts.h"
#include "operation/attempt.h"
#include "operation/reader.h"
#include "store/tasks/store_tasks.h"

#define CLAIM_MEMBERS "id starttime retry"

/* FAULT_SCLOSED: the caller serves no queue at all, or not this one.  Recorded in the reply. */
MUST_USE enum fault claim_check_queue(struct attempt *attempt, int queue);

/* The members id, starttime, retry of an object, the call's param as a rule. */
MUST_USE enum fault claim_read(const struct reader *reader, const struct json *object,
                               struct task_fence *fence_r);
/* The same, and the task under that claim, or how its attempt has ended.  FAULT_SCLOSED: the caller does not
 * serve its queue.  Recorded in the reply. */
MUST_USE enum fault claim_find(struct attempt *attempt, const struct reader *reader,
                               const struct json *object, struct task_fence *fence_r,
                               struct task_hold *hold_r);
/* The members, for a commit that judges the claim by the queues that the caller serves. */
MUST_USE enum fault claim_name(struct attempt *attempt, const struct reader *reader,
                               struct task_fence *fence_r);
/* Records FAULT_ACLAIM. */
enum fault claim_refuse(struct attempt *attempt, struct bytes id);

/* Counts for the metrics of the queue. */
void claim_count(const struct attempt *attempt, int queue, enum external_count count, uint64_t more);
/* A claim on a task has ended: wakes who waits for the next of its domain. */
void claim_wake_next(const struct attempt *attempt, const struct task *next);
/* How long a claim on a task of the queue lasts that a request extends by the member claim of `param`: in
 * `until_r` its end. */
MUST_USE enum fault claim_read_until(struct attempt *attempt, const struct reader *reader,
                                     const struct json *param, int queue, int64_t *until_r);

#endif
