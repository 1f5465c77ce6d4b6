/* taking: which tasks an external worker wants, and how an answer gives them (workers.md): of `take`, and of
 * an end with the member take. */
#ifndef STAMPD_OPERATION_BUILTIN_TAKING_H
#define STAMPD_OPERATION_BUILTIN_TAKING_H

#include "operation/attempt.h"
#include "operation/reader.h"
#include "store/store_take.h"

#define TAKING_MEMBERS "qn domain n claim worker"

/* These members of `param`, whose others the caller checks; not the stamps.  FAULT_SCLOSED: the caller does
 * not serve the queue. */
MUST_USE enum fault taking_read(struct attempt *attempt, const struct reader *reader,
                                const struct json *param, struct task_take *take_r, int64_t *claim_ms_r);
/* Before each try: the stamp of the claims, and their end. */
void taking_stamp(struct task_take *take, int64_t claim_ms);

/* "tasks":[…], by priority and start. */
void taking_write(const struct attempt *attempt, const struct task_taken *taken);
/* Counts what was claimed just now for the metrics of the queue. */
void taking_note(const struct attempt *attempt, int queue, const struct task_taken *taken);

#endif
