/* put_files: the files of a multipart form that items P of a `put`, PUT or PATCH name
 * (doc/reference/attachments.md): stored once, before the tries, when the request has been judged. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_PUT_FILES_H
#define STAMPD_OPERATION_ATTACHMENTS_PUT_FILES_H

#include "model/document/attachment.h"
#include "operation/attempt.h"

/* FAULT_XBUSY, XFULL, XSTORE; and what the judgement refuses.  A file that no item names is not
 * stored. */
MUST_USE enum fault put_files_store(struct attempt *attempt);
/* An item names this file of the form: sets its digest and size. */
void put_files_take(struct attempt *attempt, size_t place, struct attachment *attachment);

#endif
