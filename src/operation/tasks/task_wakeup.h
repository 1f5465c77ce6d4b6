/* task_wakeup: wakes the queue manager for tasks that start soon (tasks.md, "Wake-ups"): datagrams to its
 * socket.  Never waits and never fails.  Datagrams that the socket does not accept are recorded in shared
 * memory: the relay sends them again, and wakes the managers of other hosts. */
#ifndef STAMPD_OPERATION_TASKS_TASK_WAKEUP_H
#define STAMPD_OPERATION_TASKS_TASK_WAKEUP_H

#include "model/task/task.h"
#include "store/tasks/store_tasks.h"
#include "operation/worker_context.h"
#include "segment/segment.h"
#include "document/transaction.h"

/* Sends wake-ups for those of `tasks` that may start within task_wakeup_s; `number` is that of their
 * namespace in the segment, `space` its code. */
void task_wakeup_tasks(const struct worker_context *worker_context, int number, struct bytes ns,
                       const struct task *tasks, size_t count);
/* The same for all tasks that a commit has created. */
void task_wakeup_commit(const struct worker_context *worker_context, int number, struct bytes ns,
                        const struct transaction *transaction);
/* Something of the namespace may start at `start`: requests a scan when that is soon. */
void task_wakeup_ns(const struct settings *settings, struct bytes ns, int64_t start);
/* After the attempts at claimed tasks: others may begin that a limit has made wait. */
void task_wakeup_limited(const struct worker_context *worker_context, int number, struct bytes ns,
                         const struct task_claim *claims, size_t count);
/* For the relay: sends what was not accepted before. */
void task_wakeup_again(const struct settings *settings, struct segment *segment);

/* Appends a task as it appears in wake-ups and in lists of due tasks: the members of an object, without
 * braces. */
void task_wakeup_add_members(struct builder *out, const struct task *task);

#endif
