/* probe: liveness, readiness and metrics. */
#ifndef STAMPD_SERVE_PROBE_H
#define STAMPD_SERVE_PROBE_H

#include "operation/reply.h"
#include "operation/worker_context.h"
#include "serve/instance.h"

/* Answers CALL_LIVE, CALL_READY or CALL_METRICS; returns the HTTP status. */
int probe_answer(struct worker_context *worker_context, const struct instance *instance, struct call *call,
                 struct reply *reply);

#endif
