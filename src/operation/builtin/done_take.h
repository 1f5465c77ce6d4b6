/* done_take: the member take of `done`: the next tasks for the worker, claimed by the commit that ends one
 * (workers.md). */
#ifndef STAMPD_OPERATION_BUILTIN_DONE_TAKE_H
#define STAMPD_OPERATION_BUILTIN_DONE_TAKE_H

#include "operation/attempt.h"
#include "operation/reader.h"

/* In work: the commit that ends the task of the fence claims what the member asks for. */
MUST_USE enum fault done_take_read(struct attempt *attempt, const struct reader *reader,
                                   struct task_fence *fence);
/* In afterwork: adds "tasks" to the answer, if they were requested.  is_new false: the task had ended before,
 * by the same request or another: what that has claimed and what still lasts, and nothing new.  A failure
 * hides the end of no task. */
MUST_USE enum fault done_take_afterwork(struct attempt *attempt, bool is_new);

#endif
