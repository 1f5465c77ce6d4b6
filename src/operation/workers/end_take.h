/* end_take: the member take of `done` and `fail`: the next tasks for the worker, claimed by the commit that
 * ends one, or after it, when none was due and the worker waits (workers.md). */
#ifndef STAMPD_OPERATION_WORKERS_END_TAKE_H
#define STAMPD_OPERATION_WORKERS_END_TAKE_H

#include "operation/attempt.h"
#include "operation/reader.h"

/* In work: the commit that ends the attempt of the fence claims what the member asks for. */
MUST_USE enum fault end_take_read(struct attempt *attempt, const struct reader *reader,
                                  struct task_fence *fence);
/* In afterwork, of an answer that is one object with members: adds "tasks", if they were requested, and waits
 * for some.  is_new false: the attempt had ended before, by the same request or another: what that has
 * claimed and what still lasts, nothing new, and no wait.  A wait that is left to another request is in the
 * answer, as "wait".  A failure hides no end: a fault is returned only
 * when the caller may have lost the rights by which the rest of the answer would be judged. */
MUST_USE enum fault end_take_afterwork(struct attempt *attempt, bool is_new);

#endif
