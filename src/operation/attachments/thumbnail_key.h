/* thumbnail_key: the keys of attachments that a class reserves for thumbnails (model/document/thumbnails.h).
 */
#ifndef STAMPD_OPERATION_ATTACHMENTS_THUMBNAIL_KEY_H
#define STAMPD_OPERATION_ATTACHMENTS_THUMBNAIL_KEY_H

#include "operation/attempt.h"

/* Why a client cannot give an attachment of such a document this key, in one sentence; NULL: it can. */
MUST_USE enum fault thumbnail_key_judge(struct attempt *attempt, struct bytes document_class,
                                        struct bytes key, const char **refusal_r);

#endif
