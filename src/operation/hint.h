/* hint: tells the queue manager of tasks that start soon (doc/tasks.md, "Hints"): datagrams to the setting
 * queue_socket.  Never waits and never fails: what is lost, a scan finds. */
#ifndef STAMPD_OPERATION_HINT_H
#define STAMPD_OPERATION_HINT_H

#include "document/task.h"
#include "operation/operation.h"

/* Those of `tasks` that may start within task_hint_s; `space` is the code of their namespace. */
void hint_tasks(const struct workshop *workshop, struct bytes space, const struct task *tasks, size_t count);
/* The same of all tasks that a commit has made. */
void hint_commit(const struct workshop *workshop, struct bytes space, const struct transaction *transaction);
/* Something of the namespace may start at `start`: it is to be scanned when that is soon. */
void hint_space(const struct settings *settings, struct bytes space, int64_t start);

/* Appends a task as it stands in hints and in lists of due tasks: the members of an object, without braces.
 */
void hint_add_members(struct builder *out, const struct task *task);

#endif
