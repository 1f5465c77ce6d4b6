/* expiry: documents that expire: a property of their class holds the minute (schema.md, `maxLife`).  From
 * then on they do not exist for any reader, though their rows remain until a purge.  Pure: no I/O. */
#ifndef STAMPD_MODEL_DOCUMENT_EXPIRY_H
#define STAMPD_MODEL_DOCUMENT_EXPIRY_H

#include "model/document/document.h"
#include "model/schema/schema.h"

/* The minute since 1970 in which the document expires, by its class in this schema; DOCUMENT_FOREVER: never.
 * The SQL function stampd.member_write() computes the same. */
int64_t expiry_of(const struct schema *schema, const struct document *document);

#endif
