/* store_reservations: a commit that takes or gives up values that are unique in all namespaces.  It is a
 * transaction of its own, begun before the pipeline and ended after it. */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_RESERVATIONS_H
#define STAMPD_STORE_DOCUMENTS_STORE_RESERVATIONS_H

#include "edge/pg/pg.h"
#include "edge/pg/pg_pipeline.h"
#include "store/documents/store_commit.h"

/* Whether the commit may take or give up such values. */
bool store_reservations_has(const struct schema *schema, const struct commit *commit);
MUST_USE enum fault store_reservations_begin(struct store *store, int ns);
/* `verdict` is that of the pipeline, and becomes that of the whole. */
void store_reservations_end(struct store *store, int ns, struct arena *arena, struct pg_verdict *verdict,
                            struct commit *commit);

#endif
