/* document_pack: a position-independent snapshot for memory that processes share.  The snapshot is one block
 * already; only its pointers become offsets from its start.  Writer and reader are the same program: this is
 * not a file or wire format. */
#ifndef STAMPD_MODEL_DOCUMENT_DOCUMENT_PACK_H
#define STAMPD_MODEL_DOCUMENT_DOCUMENT_PACK_H

#include "model/document/document.h"

/* Writes document->block_bytes bytes to `into`, which is aligned for any type. */
void document_pack(const struct document *document, void *into);
/* Builds a separate snapshot from such bytes, aligned for any type; NULL when they are not valid. */
struct document *document_unpack(const void *packed, size_t size);

#endif
