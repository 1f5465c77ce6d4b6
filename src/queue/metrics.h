/* metrics: the state of a queue manager in Prometheus format (tasks.md). */
#ifndef STAMPD_QUEUE_METRICS_H
#define STAMPD_QUEUE_METRICS_H

#include "base/builder.h"

struct manager;

void metrics_write(const struct manager *manager, struct builder *out);

#endif
