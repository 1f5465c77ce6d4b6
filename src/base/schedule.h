/* schedule: what the settings task_retries and task_queues say.  Both are lists of words between blanks. */
#ifndef STAMPD_BASE_SCHEDULE_H
#define STAMPD_BASE_SCHEDULE_H

#include "base/base.h"
#include "base/bytes.h"

enum { SCHEDULE_RETRIES_MAX = 32, SCHEDULE_QUEUES = 16, SCHEDULE_MINUTES_MAX = 525600 };

/* "1 10 60": at most SCHEDULE_RETRIES_MAX numbers of minutes, each at most a year. */
bool schedule_is_retries(const char *retries);
/* How long after its `failure`th failure (from 1) a task is tried again; false: it is not.  `retries` is
 * well formed. */
MUST_USE bool schedule_retry_ms(const char *retries, int64_t failure, int64_t *after_ms_r);

/* "Report=3 Mail=1": names of operations with numbers below SCHEDULE_QUEUES. */
bool schedule_is_queues(const char *queues);
/* The queue of an operation, `otherwise` when it is not listed.  `queues` is well formed. */
int schedule_queue(const char *queues, struct bytes operation, int otherwise);

#endif
