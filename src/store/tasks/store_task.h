/* store_task: the tasks of a commit: their ends, their quota, the new ones. */
#ifndef STAMPD_STORE_TASKS_STORE_TASK_H
#define STAMPD_STORE_TASKS_STORE_TASK_H

#include "edge/pg/pg.h"
#include "seal/sealing.h"
#include "model/task/task.h"

/* What the argument, the checkpoint and the result of a task are sealed for in an encrypted namespace
 * (data_keys.h).  A task for a resource that takes the place of a waiting one gets its id when it is stored,
 * so the argument belongs to the resource then. */
struct sealing_place store_task_param_place(struct arena *arena, const struct task *task);
struct sealing_place store_task_checkpoint_place(struct arena *arena, struct bytes id);
struct sealing_place store_task_result_place(struct arena *arena, struct bytes id);

/* The parameters of task_put_back.  The report may have words of contents: none in an encrypted namespace. */
struct task_end;
void store_task_add_put_back(struct pg_params *params, const struct task_fence *fence,
                             const struct task_end *end, bool is_encrypted, int64_t stop);

/* A row with the columns of TASK_DUE. */
struct task store_task_read_due(const struct pg_result *rows, int row);

#endif
