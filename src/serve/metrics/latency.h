/* latency: a histogram of request durations in Prometheus format, counted in the pulse of each worker. */
#ifndef STAMPD_SERVE_METRICS_LATENCY_H
#define STAMPD_SERVE_METRICS_LATENCY_H

#include "base/builder.h"
#include "segment/counts/metrics.h"
#include "serve/instance.h"

/* Counts one request, from its arrival to the end of its answer. */
void latency_count(struct pulse *pulse, int64_t us);
/* The bound of a bucket in seconds, as Prometheus writes it. */
const char *latency_bound(size_t bucket);
/* Writes the histogram of all workers of the instance. */
void latency_write(struct segment *segment, const struct instance *instance, struct builder *out);

#endif
