/* sync: the synchronisation that follows an operation: what changed, since the caller's copies, in the
 * documents it cites (doc/protocol.md; seed 000, "Opérations de mise à jour et synchronisations"). */
#ifndef STAMPD_OPERATION_SYNC_H
#define STAMPD_OPERATION_SYNC_H

#include "operation/holdings.h"
#include "operation/operation.h"
#include "operation/registry.h"

/* Checks `call->syncs`, or `call->holdings`, before the operation runs, so that a malformed one stores
 * nothing.  NULL when there are none. */
MUST_USE enum fault sync_read(struct worker_context *worker_context, struct call *call, struct reply *reply,
                              const struct holdings **holdings_r);
/* Appends the JSON array of answers to the reply's body, in the order of the request.  Where the caller may
 * not read the namespace, only documents that the operation has granted are looked at; each other one is
 * answered by {"c","id","closed":true}, whether it exists or not.  An answer that is replayed grants nothing:
 * what was granted once may not be any more.  When the answer is full, and for a document that is named
 * again, it is {"c","id","later":true}. */
MUST_USE enum fault sync_write(struct attempt *attempt, const struct holdings *request);

/* Documents that the work of an operation lets the caller synchronise in this request, newest first. */
struct grant {
    const struct grant *next;
    struct name name;
};
/* Adds one; the texts live as long as the request. */
void sync_grant(struct attempt *attempt, struct name name);

#endif
