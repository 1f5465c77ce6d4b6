/* schedule: the values of the settings task_retries, task_retries_of, task_queues and queue_concurrency, all
 * lists of words separated by blanks. */
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

/* One delay of at most a year: "90s", "10m", "2h", "1d"; without a unit: minutes. */
MUST_USE bool schedule_delay_ms(struct bytes delay, int64_t *delay_ms_r);

/* A policy of retries: at most SCHEDULE_RETRIES_MAX delays of at most a year, separated by blanks or commas.
 * "1 10 60": minutes; "30s", "2h", "1d"; "10s..1hx20": twenty delays that double from ten seconds up to an
 * hour.  "~20": each is longer by a random part of up to 20 percent. */
bool schedule_is_retries(struct bytes retries);
/* The delay between a task's `failure`th failure (from 1) and its next try; false: no more tries.  `retries`
 * is well formed, `dice` any random number. */
MUST_USE bool schedule_retry_ms(struct bytes retries, int64_t failure, uint32_t dice, int64_t *after_ms_r);
/* "Mail=10s..1hx20,~20 Report=": names of operations with their policies. */
bool schedule_is_retries_of(const char *list);
/* The policy of an operation; false: it is not listed.  `list` is well formed. */
MUST_USE bool schedule_retries_of(const char *list, struct bytes operation, struct bytes *retries_r);

/* "Report=3 Mail=1": names of operations with numbers below SCHEDULE_QUEUES. */
bool schedule_is_queues(const char *queues);
/* The queue of an operation, or `otherwise` when it is not listed.  `queues` is well formed. */
int schedule_queue(const char *queues, struct bytes operation, int otherwise);

/* "4 2 0 1": how many tasks of queue 0, 1, 2, 3 run at once, each at most SCHEDULE_CONCURRENCY_MAX, the first
 * not 0.  Returns their sum; 0: not well formed. */
int schedule_concurrency(const char *numbers, int concurrency_r[SCHEDULE_QUEUES]);

#endif
