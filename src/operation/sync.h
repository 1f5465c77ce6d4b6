/* sync: the synchronisation that follows an operation: what changed, since the caller's copies, in the
 * documents it cites (doc/protocol.md; seed 000, "Opérations de mise à jour et synchronisations"). */
#ifndef STAMPD_OPERATION_SYNC_H
#define STAMPD_OPERATION_SYNC_H

#include "operation/holdings.h"
#include "operation/operation.h"

/* Checks `call->syncs`, or `call->holdings`, before the operation runs, so that a malformed one stores
 * nothing.  NULL when there are none. */
MUST_USE enum fault sync_read(struct workshop *workshop, struct call *call, struct reply *reply,
                              const struct holdings **holdings_r);
/* Appends the JSON array of answers, in the order of the request. */
MUST_USE enum fault sync_write(struct workshop *workshop, struct call *call, int space,
                               const struct holdings *request, struct builder *body);

#endif
