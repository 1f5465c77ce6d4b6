/* task_metrics: the backlog of tasks, by namespace and queue, as Prometheus reads it. */
#ifndef STAMPD_SERVE_TASK_METRICS_H
#define STAMPD_SERVE_TASK_METRICS_H

#include "base/bytes.h"
#include "segment/segment.h"

/* Of every namespace that was scanned within a day; out of shared memory, no database is asked. */
/* The moment from which on somebody should look for tasks; called once, before the workers are forked. */
void task_metrics_start(void);
void task_metrics_write(const struct segment *segment, struct builder *out);

#endif
