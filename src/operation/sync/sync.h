/* sync: the synchronisation that follows an operation: the changes, since the client's copies, of the
 * documents that it names (protocol.md, "Keeping copies: synchronisation"). */
#ifndef STAMPD_OPERATION_SYNC_SYNC_H
#define STAMPD_OPERATION_SYNC_SYNC_H

#include "operation/sync/client_copies.h"
#include "operation/reply.h"
#include "operation/worker_context.h"
#include "operation/attempt.h"

/* Checks `call->syncs`, or `call->client_copies`, before the operation runs, so that a malformed one stores
 * nothing.  NULL when there are none. */
MUST_USE enum fault sync_read(struct worker_context *worker_context, struct call *call, struct reply *reply,
                              const struct client_copies **client_copies_r);
/* Appends the JSON array of answers to the reply's body, in the order of the request.  Where rules decide,
 * each document is judged, and one that may not be read is answered as one that does not exist.  Elsewhere a
 * caller that may not read the namespace gets only documents that the operation has granted; every other one
 * is answered by
 * {"c","id","closed":true}, whether it exists or not.  A replayed answer grants nothing: an earlier grant may
 * no longer hold.  When the answer is full, and for a document that is named again, it is
 * {"c","id","later":true}. */
MUST_USE enum fault sync_write(struct attempt *attempt, const struct client_copies *request);

/* Documents that the work of an operation permits the caller to synchronise in this request, newest first. */
struct grant {
    const struct grant *next;
    struct document_name name;
};
/* Adds one; the texts must live as long as the request. */
void sync_grant(struct attempt *attempt, struct document_name name);

#endif
