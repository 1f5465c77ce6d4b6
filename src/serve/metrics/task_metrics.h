/* task_metrics: the backlog of tasks by namespace and queue, in Prometheus format. */
#ifndef STAMPD_SERVE_METRICS_TASK_METRICS_H
#define STAMPD_SERVE_METRICS_TASK_METRICS_H

#include "base/builder.h"
#include "segment/counts/backlog.h"
#include "segment/segment.h"

/* The metrics cover every namespace scanned within the last day; they are read from shared memory, without
 * the database. */
/* Records the moment from which managers should scan; called once, before the workers are forked. */
void task_metrics_start(void);
int64_t task_metrics_started_ms(void); /* that moment, monotonic */
/* The numbers of all these namespaces and their queues together; without the oldest. */
void task_metrics_sum(const struct segment *segment, struct backlog_numbers *sum_r);
void task_metrics_write(const struct segment *segment, struct builder *out);

#endif
