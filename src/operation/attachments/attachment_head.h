/* attachment_head: the head of an answer whose body is the file of an attachment: what a browser may do with
 * it, and under which name it is saved.
 *
 * Nothing that users store may run as a page of this origin, which has the cookies of accounts: a type is
 * shown only if it is in the list blob_inline_types, everything else is saved; no type is guessed, and
 * whatever a browser opens is sandboxed. */
#ifndef STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_HEAD_H
#define STAMPD_OPERATION_ATTACHMENTS_ATTACHMENT_HEAD_H

#include "model/document/attachment.h"
#include "operation/attempt.h"
#include "operation/attachments/attachment_object.h"

/* Sets reply->attachment and the type; `is_held`: the client has the file already.  `object`, of
 * attachment_object.h: NULL: the directory has the file. */
void attachment_head_set(struct attempt *attempt, const struct attachment *attachment, struct bytes key,
                         bool is_held, const struct attachment_object *object);

/* Content-Disposition (RFC 6266, 8187).  What could mislead, separators of paths, control characters and
 * marks of direction, is replaced in the name. */
const char *attachment_head_disposition(struct arena *arena, bool is_inline, struct bytes name);
/* Does the list have the type, without its parameters, or its group, the part before the slash and a star? */
bool attachment_head_is_inline(const char *types, struct bytes mime);

#endif
