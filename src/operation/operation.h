/* operation: runs a call: finds the operation, checks access, and goes through the cycle work → validation →
 * afterwork → sync with its retries (architecture.md). */
#ifndef STAMPD_OPERATION_OPERATION_H
#define STAMPD_OPERATION_OPERATION_H

#include "base/settings.h"
#include "document/documents.h"
#include "operation/call.h"
#include "segment/segment.h"

/* The resources of a worker for its operations. */
struct worker_context {
    const struct settings *settings;
    struct segment *segment;
    struct documents *documents;
    struct access_memory *access; /* the configurations that operation/access.c has read */
};

/* Most tries of an operation when others were faster, or when the failure may be transient. */
enum { OPERATION_TRIES = 3 };
/* Pauses before a try (from 0): first not at all, then longer each time, with random lengths. */
void operation_pause_before(int try);
/* After a validation: the names in a refusal of the database become the arguments of the fault. */
void operation_explain(struct call *call, struct reply *reply, const struct transaction *transaction,
                       enum fault fault);

/* Checks a call before its body is read, by its address and the key in its header: how large its body may be
 * (call->body_most), and whether it is wrong already, which is recorded in the reply. */
MUST_USE enum fault operation_admit(struct worker_context *worker_context, struct call *call,
                                    struct reply *reply);

/* Never fails as a function: the reply has the outcome.  The body is JSON, or empty when there is a fault. */
void operation_run(struct worker_context *worker_context, struct call *call, struct reply *reply);

#endif
