/* taking_wait: claims what is due, and waits while nothing is (workers.md): `take`, and an end with `take`
 * after its commit.
 *
 * The process serves every other request that comes first, so a wait costs nobody anything (long_poll.h).
 * The wait of a client that has gone ends too, before it claims anything. */
#ifndef STAMPD_OPERATION_WORKERS_TAKING_WAIT_H
#define STAMPD_OPERATION_WORKERS_TAKING_WAIT_H

#include "operation/workers/taking.h"

/* What was claimed is in taking->taken, and counted; pause_r: milliseconds after which it makes sense to come
 * again.  The rights of the caller are judged again whenever it has waited. */
MUST_USE enum fault taking_wait(struct attempt *attempt, struct task_taking *taking, int64_t *pause_r);
/* ,"next":stamp,"pause":milliseconds */
void taking_wait_write(const struct attempt *attempt, const struct task_taking *taking, int64_t pause);

#endif
