/* life: documents that end by themselves: a property of their class says in which minute (doc/schema.md,
 * `maxLife`).  From then on they do not exist, for whoever asks, though their rows are there until a purge.
 * Pure: no I/O. */
#ifndef STAMPD_DOCUMENT_LIFE_H
#define STAMPD_DOCUMENT_LIFE_H

#include "document/document.h"
#include "document/schema.h"

/* The minute since 1970 in which the document ends, by its class in this schema; DOCUMENT_FOREVER: none.
 * stampd.member_write() of the database finds the same. */
int64_t life_until(const struct schema *schema, const struct document *document);

#endif
