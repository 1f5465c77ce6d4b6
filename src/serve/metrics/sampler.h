/* sampler: what this host has done, as a sample of its counters: of all instances that share the segment. */
#ifndef STAMPD_SERVE_METRICS_SAMPLER_H
#define STAMPD_SERVE_METRICS_SAMPLER_H

#include "operation/worker_context.h"

/* For masters, called often: adds a sample to the last hour when one is due (segment/counts/activity.h). */
void sampler_tend(struct segment *segment);
/* For worker_context->write_activity. */
void sampler_write(const struct worker_context *context, uint64_t after, struct builder *out);

#endif
