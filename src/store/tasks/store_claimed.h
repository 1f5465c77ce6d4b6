/* store_claimed: tasks that were claimed, as the statements TASK_CLAIM, TASK_TAKE and their like return them;
 * for the files of src/store that claim. */
#ifndef STAMPD_STORE_TASKS_STORE_CLAIMED_H
#define STAMPD_STORE_TASKS_STORE_CLAIMED_H

#include "edge/pg/pg.h"
#include "model/task/task.h"
#include "store/store.h"

/* The columns that all of these statements begin with; those of one alone follow. */
enum { STORE_CLAIMED_COLUMNS = 20 };

/* A row, as it is stored.  `claim` is its stamp. */
struct task store_claimed_read(const struct pg_result *rows, int row, int64_t claim);
/* Decrypts it.  One that was altered has no argument. */
MUST_USE enum fault store_claimed_open(struct store *store, int ns, struct arena *arena, struct task *task);

#endif
