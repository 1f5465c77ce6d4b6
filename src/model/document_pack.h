/* document_pack: a snapshot as one piece of bytes that may lie anywhere, for memory that processes share.
 * The snapshot is one block already; only its pointers become distances from its beginning.  Both ends are
 * the same program: this is no format for files or wires. */
#ifndef STAMPD_MODEL_DOCUMENT_PACK_H
#define STAMPD_MODEL_DOCUMENT_PACK_H

#include "model/document.h"

/* Writes document->block_bytes bytes to `into`, which is aligned for any type. */
void document_pack(const struct document *document, void *into);
/* A snapshot of its own from a copy of such bytes, aligned for any type; NULL when they are none. */
struct document *document_unpack(const void *packed, size_t size);

#endif
