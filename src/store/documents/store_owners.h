/* store_owners: the bytes that each account stores, for its quota: counted by the commit of the documents
 * that it owns (sql/0016_owners.sql). */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_OWNERS_H
#define STAMPD_STORE_DOCUMENTS_STORE_OWNERS_H

#include "base/arena.h"
#include "base/bytes.h"
#include "store/store.h"

#define STORE_OWNERS_NONE BYTES("{}")

/* From now on the owners are counted by these members: JSON {class: "Item.member"}; STORE_OWNERS_NONE: they
 * are not counted.  Costs a query only if it was otherwise.  Without effect in a snapshot. */
MUST_USE enum fault store_owners_declare(struct store *store, int ns, struct arena *arena,
                                         struct bytes owners);
/* For whom the document counts at present, in the arena, and how many bytes the account has; NO_BYTES: for
 * nobody, or it was not counted yet. */
MUST_USE enum fault store_owners_find(struct store *store, int ns, struct arena *arena, struct bytes class,
                                      struct bytes id, struct bytes *account_r, int64_t *bytes_r);

#endif
