/* store_copies: items whose copies in other documents are due. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_COPIES_H
#define STAMPD_STORE_COLLECTIONS_STORE_COPIES_H

#include "model/document/copies.h"
#include "model/schema/schema.h"
#include "store/store.h"

/* The first items of the document whose copies are due, with their present states: class and id of the
 * batch are input, its sources are filled in.  At most `limit`. */
MUST_USE enum fault store_copies_read(struct store *store, int ns, struct arena *arena,
                                      const struct schema *schema, struct copy_batch *batch, size_t limit);
/* Fills in the targets after `after`, at most `limit`, and flags the sources that have no others. `last_r`:
 * the last target; no class: these are all. */
MUST_USE enum fault store_copies_find(struct store *store, int ns, struct arena *arena,
                                      struct copy_batch *batch, const struct copy_position *after,
                                      size_t limit, struct copy_position *last_r);

#endif
