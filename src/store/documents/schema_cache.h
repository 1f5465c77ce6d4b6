/* schema_cache: the schema applied in a namespace, as its session has read it, with its side tables; for
 * src/store only.
 *
 * Commits and searches send the number of the schema under which they were prepared; if the database has
 * another one, it refuses them (ST004), and the schema is read again.  So an old schema is never used. */
#ifndef STAMPD_STORE_DOCUMENTS_SCHEMA_CACHE_H
#define STAMPD_STORE_DOCUMENTS_SCHEMA_CACHE_H

#include "model/schema/schema.h"
#include "store/documents/side_table.h"
#include "store/store.h"

/* Reads the schema in the open session, unless it is cached. */
MUST_USE enum fault schema_cache_read(struct store *store, int ns);
bool schema_cache_is_filled(const struct store *store, int ns);
/* The cached schema, after schema_cache_read. */
const struct schema *schema_cache_get(const struct store *store, int ns);
/* The same, held until the arena's reset. */
const struct schema *schema_cache_hold(struct store *store, int ns, struct arena *arena);
void schema_cache_forget(struct store *store, int ns);
/* On an error that means that the schema has changed, discards it and returns FAULT_STALE; else returns
 * `fault`. */
enum fault schema_cache_judge(struct store *store, int ns, const char *sqlstate, enum fault fault);

/* The side tables of the cached schema. */
struct side_table *schema_cache_side_tables(const struct store *store, int ns, size_t *count_r);
/* Prepares the statements of one of them, on their first use. */
MUST_USE enum fault schema_cache_prepare(struct store *store, int ns, struct arena *arena,
                                         struct side_table *side);

#endif
