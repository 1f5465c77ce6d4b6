/* probe: liveness, readiness and metrics. */
#ifndef STAMPD_SERVE_METRICS_PROBE_H
#define STAMPD_SERVE_METRICS_PROBE_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* Answers CALL_LIVE, CALL_READY or CALL_METRICS; returns the HTTP status. */
int probe_answer(struct worker_context *worker_context, struct call *call, struct reply *reply);
/* For worker_context->write_metrics. */
void probe_write_metrics(const struct worker_context *worker_context, struct builder *out);

#endif
