/* upload: resumable uploads by the tus protocol (doc/reference/attachments.md).
 *
 * An upload is created for an attachment of a document and judged as the PUT of that attachment; so is each
 * request that continues it, and the commit that ends it, which attaches the file.  The account that has
 * created it, or the administrator, continues it. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_UPLOAD_H
#define STAMPD_OPERATION_ATTACHMENTS_UPLOAD_H

#include "operation/attempt.h"

/* `prepare` of the operations. */
MUST_USE enum fault upload_create(struct attempt *attempt);
MUST_USE enum fault upload_append(struct attempt *attempt);
MUST_USE enum fault upload_show(struct attempt *attempt);
MUST_USE enum fault upload_drop(struct attempt *attempt);

/* For a request whose body has not come yet: `size` bytes of the upload that its path names, or the first
 * bytes of one that it creates.  FAULT_XBUSY: the limit that the reply names leaves no room for them;
 * FAULT_ALIMIT: a quota of bytes leaves none for the file.  What else is wrong is said when the body is
 * there. */
MUST_USE enum fault upload_may(struct worker_context *worker_context, struct call *call, struct reply *reply);

/* Attaches the file of an upload that has all its bytes, else changes nothing. */
MUST_USE enum fault upload_work(struct attempt *attempt);
MUST_USE enum fault upload_afterwork(struct attempt *attempt);

#endif
