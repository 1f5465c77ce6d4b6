/* route: answers a call by its route: a ping, a request of a queue manager, or an operation.  Probes, OPTIONS
 * and questions about a body need no namespace: the worker answers them. */
#ifndef STAMPD_SERVE_ROUTE_H
#define STAMPD_SERVE_ROUTE_H

#include "operation/reply.h"
#include "operation/worker_context.h"

/* Before the body is read: how large it may be (call->body_most), and whether the call is wrong already,
 * which is recorded in the reply. */
MUST_USE enum fault route_admit(struct worker_context *worker_context, struct call *call,
                                struct reply *reply);

/* Never fails as a function: the reply has the outcome.  The body is JSON, or empty when there is a fault. */
void route_run(struct worker_context *worker_context, struct call *call, struct reply *reply);

/* What stampctl top shows of a request, and the name of its span: its operation, or its route. */
struct bytes route_word(const struct call *call);
/* Names of spans and metrics, which no client chooses: the namespace, empty if there is none, and the same
 * word, or "refused" if the request could not be read or its operation does not exist. */
void route_name(const struct call *call, const struct reply *reply, bool is_refused, struct bytes *ns_r,
                struct bytes *what_r);

#endif
