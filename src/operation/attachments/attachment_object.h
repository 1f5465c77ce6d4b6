/* attachment_object: the file of an attachment that nginx requests elsewhere: from the object store that has
 * it, by a request that the worker signs; in an encrypted namespace from the decrypter (serve/decrypter.h),
 * by a ticket. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_OBJECT_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_OBJECT_H

#include "blob/blob_store.h"
#include "blob/object_store.h"
#include "model/document/attachment.h"
#include "operation/attempt.h"
#include "operation/reply.h"

struct attachment_object {
    const struct object_store_place *place;
    const char *store, *name;
    const char *ticket; /* NULL: nginx requests it from the object store */
};

/* object_r NULL: no object store has the file.  FAULT_XSTORE: the settings do not name its store.  In
 * an encrypted namespace it gets a ticket. */
MUST_USE enum fault attachment_object_find(struct attempt *attempt, bool is_sealed,
                                           const struct attachment *attachment,
                                           struct attachment_object **object_r);
/* The file of an encrypted namespace in the directory: whoever has its ticket may read it for a time.
 * FAULT_BCONTENT: it is not what was stored. */
MUST_USE enum fault attachment_object_seal(struct attempt *attempt, const struct blob_digest *name,
                                           struct attachment_object **object_r);
/* Sets the location and the signed request.  A range is passed on if it is one, and if If-Range, when there
 * is one, names the file. */
void attachment_object_set(struct call *call, const struct attachment_object *object, int64_t size,
                           struct reply_attachment *head);

#endif
