/* expiry: documents that end by themselves: a property of their class says in which minute (doc/schema.md,
 * `maxLife`).  From then on they do not exist, for whoever asks, though their rows are there until a purge.
 * Pure: no I/O. */
#ifndef STAMPD_MODEL_EXPIRY_H
#define STAMPD_MODEL_EXPIRY_H

#include "model/document.h"
#include "model/schema.h"

/* The minute since 1970 in which the document ends, by its class in this schema; DOCUMENT_FOREVER: none.
 * stampd.member_write() of the database finds the same. */
int64_t expiry_of(const struct schema *schema, const struct document *document);

#endif
