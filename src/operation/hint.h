/* hint: wakes the queue manager for tasks that start soon (doc/tasks.md, "Wake-ups"): datagrams to its
 * socket. Never waits and never fails.  What the socket does not take is noted in shared memory: the herald
 * sends it again, and wakes the managers of other hosts. */
#ifndef STAMPD_OPERATION_HINT_H
#define STAMPD_OPERATION_HINT_H

#include "document/task.h"
#include "operation/operation.h"

/* Those of `tasks` that may start within task_hint_s; `number` is that of their namespace
 * in the segment, `space` its code. */
void hint_tasks(const struct workshop *workshop, int number, struct bytes space, const struct task *tasks,
                size_t count);
/* The same of all tasks that a commit has made. */
void hint_commit(const struct workshop *workshop, int number, struct bytes space,
                 const struct transaction *transaction);
/* Something of the namespace may start at `start`: it is to be scanned when that is soon. */
void hint_space(const struct settings *settings, struct bytes space, int64_t start);
/* For the herald: sends what was not taken. */
void hint_again(const struct settings *settings, struct stamps *stamps);

/* Appends a task as it stands in hints and in lists of due tasks: the members of an object, without braces.
 */
void hint_add_members(struct builder *out, const struct task *task);

#endif
