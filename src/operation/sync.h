/* sync: the synchronisation that follows an operation: what changed, since the caller's copies, in the
 * documents it cites (doc/protocol.md; seed 000, "Opérations de mise à jour et synchronisations"). */
#ifndef STAMPD_OPERATION_SYNC_H
#define STAMPD_OPERATION_SYNC_H

#include "operation/operation.h"

struct sync_request; /* the checked `syncs` of a call, in its arena */

/* Checks `call->syncs` before the operation runs, so that a malformed one stores nothing.  NULL when there
 * are none. */
MUST_USE enum fault sync_read(struct workshop *workshop, struct call *call, struct reply *reply,
                              struct sync_request **request_r);
/* Appends the JSON array of answers, in the order of the request. */
MUST_USE enum fault sync_write(struct workshop *workshop, struct call *call, int space,
                               const struct sync_request *request, struct builder *body);

#endif
