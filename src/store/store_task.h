/* store_task: the tasks of a commit: their ends, their quota, the new ones. */
#ifndef STAMPD_STORE_STORE_TASK_H
#define STAMPD_STORE_STORE_TASK_H

#include "edge/pg.h"
#include "model/task.h"

/* What a task is sealed as in an encrypted namespace (data_keys.h): its argument under the name of its
 * operation, its checkpoint under its id. */
#define STORE_TASK_PARAM      "task"
#define STORE_TASK_CHECKPOINT "checkpoint"

/* A row with the columns of TASK_DUE. */
struct task store_task_read_due(const struct pg_result *rows, int row);

#endif
