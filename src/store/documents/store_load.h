/* store_load: documents from their rows. */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_LOAD_H
#define STAMPD_STORE_DOCUMENTS_STORE_LOAD_H

#include "model/document/document.h"
#include "store/store.h"

/* Loads a document: one statement, one snapshot. `copy` (may be NULL) is a cached copy: if it is of the
 * same incarnation, only newer items are read and merged.  An absent document yields a snapshot that marks
 * it absent. */
struct load {
    struct bytes class, id;
    struct document *copy;     /* borrowed, may be NULL */
    struct document *document; /* out: one reference, the caller's */
};
MUST_USE enum fault store_load(struct store *store, int ns, struct arena *arena, struct load *load);
/* Several in one round trip (each its own snapshot).  All or nothing. */
MUST_USE enum fault store_load_many(struct store *store, int ns, struct arena *arena, struct load *loads,
                                    size_t count);
/* The same in order and in rounds, until the loaded documents take `bytes_most` of memory or more: at least
 * the first, whatever its size.  The others get no document.  The data loaded in excess is bounded too. */
MUST_USE enum fault store_load_part(struct store *store, int ns, struct arena *arena, struct load *loads,
                                    size_t count, size_t bytes_most);

#endif
