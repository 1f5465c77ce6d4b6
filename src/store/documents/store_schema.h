/* store_schema: the schema applied in a namespace. */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_SCHEMA_H
#define STAMPD_STORE_DOCUMENTS_STORE_SCHEMA_H

#include "model/document/document.h"
#include "model/schema/schema.h"
#include "store/store.h"

/* The schema applied in the namespace, as cached by this process; held until the arena's reset.  A commit
 * or a search prepared under a schema that has changed since returns FAULT_STALE. */
MUST_USE enum fault store_schema(struct store *store, int ns, struct arena *arena,
                                 const struct schema **schema_r);

/* Sets the document's `until` by the schema under which the last commit was prepared; false: it is
 * unknown. */
MUST_USE bool store_schema_judge_expiry(struct store *store, int ns, struct document *document);

/* Called before a refusal because of this schema: FAULT_STALE if the namespace has another one now. */
MUST_USE enum fault store_schema_confirm(struct store *store, int ns, struct arena *arena,
                                         const struct schema *schema);
/* What is applied, and how far that is, as JSON (operation `schema`), newer than the cache. */
MUST_USE enum fault store_schema_progress(struct store *store, int ns, struct arena *arena,
                                          struct bytes *text_r);

#endif
