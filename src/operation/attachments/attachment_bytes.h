/* attachment_bytes: the bytes of an attachment, for an operation that works on them: from the directory or an
 * object store, decrypted where the namespace is encrypted. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_BYTES_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_BYTES_H

#include "model/document/attachment.h"
#include "operation/attempt.h"

/* In pieces that are valid during the call; `take` returns false to end early.  FAULT_BCONTENT: the file is
 * missing or was altered; FAULT_XSTORE: its store cannot be used.  The cause is logged. */
MUST_USE enum fault attachment_bytes_read(struct attempt *attempt, const struct attachment *attachment,
                                          bool (*take)(void *context, struct bytes piece), void *context);

#endif
