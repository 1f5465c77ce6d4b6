/* schedule: the values of the settings task_retries, task_queues and queue_concurrency, all lists of words
 * separated by blanks. */
#ifndef STAMPD_BASE_SCHEDULE_H
#define STAMPD_BASE_SCHEDULE_H

#include "base/base.h"
#include "base/bytes.h"

enum {
    SCHEDULE_RETRIES_MAX = 32,
    SCHEDULE_QUEUES = 16,
    SCHEDULE_MINUTES_MAX = 525600,
    SCHEDULE_CONCURRENCY_MAX = 100
};

/* "1 10 60": at most SCHEDULE_RETRIES_MAX numbers of minutes, each at most a year. */
bool schedule_is_retries(const char *retries);
/* The delay between a task's `failure`th failure (from 1) and its next try; false: no more tries.  `retries`
 * is well formed. */
MUST_USE bool schedule_retry_ms(const char *retries, int64_t failure, int64_t *after_ms_r);

/* "Report=3 Mail=1": names of operations with numbers below SCHEDULE_QUEUES. */
bool schedule_is_queues(const char *queues);
/* The queue of an operation, or `otherwise` when it is not listed.  `queues` is well formed. */
int schedule_queue(const char *queues, struct bytes operation, int otherwise);

/* "4 2 0 1": how many tasks of queue 0, 1, 2, 3 run at once, each at most SCHEDULE_CONCURRENCY_MAX, the first
 * not 0.  Returns their sum; 0: not well formed. */
int schedule_concurrency(const char *numbers, int concurrency_r[SCHEDULE_QUEUES]);

#endif
