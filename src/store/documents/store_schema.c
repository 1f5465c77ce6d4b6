/* store_schema: the cached schema, and how a caller confirms it. */
#include "store/documents/store_schema.h"

#include "model/document/expiry.h"
#include "store/documents/schema_cache.h"
#include "store/store.h"
#include "store/store_run.h"

static enum fault store_schema_read_schema(struct store *store, int ns, void *context UNUSED)
{
    return schema_cache_read(store, ns);
}

enum fault store_schema(struct store *store, int ns, struct arena *arena, const struct schema **schema_r)
{
    enum fault fault = store_run(store, ns, store_schema_read_schema, NULL);
    if (!fault)
        *schema_r = schema_cache_hold(store, ns, arena);
    return fault;
}

bool store_schema_judge_expiry(struct store *store, int ns, struct document *document)
{
    if (!schema_cache_is_filled(store, ns))
        return false;
    document->until = expiry_of(schema_cache_get(store, ns), document);
    return true;
}

enum fault store_schema_confirm(struct store *store, int ns, struct arena *arena, const struct schema *schema)
{
    struct pg_result *row;
    enum fault fault = store_run_statement(store, ns, STATEMENT_SCHEMA_NUMBER, PG_NO_PARAMS(arena), &row);
    if (fault || (pg_rows(row) && pg_get_i64(row, 0, 0) == schema->number))
        return fault;
    schema_cache_forget(store, ns);
    return FAULT_STALE;
}

enum fault store_schema_progress(struct store *store, int ns, struct arena *arena, struct bytes *text_r)
{
    struct pg_result *row;
    enum fault fault = store_run_statement(store, ns, STATEMENT_SCHEMA_PROGRESS, PG_NO_PARAMS(arena), &row);
    if (!fault)
        *text_r = pg_get_text(row, 0, 0);
    return fault;
}

/* --- store snapshot --- */

static enum fault begin_snapshot(struct store *store, int ns, void *context UNUSED)
{
    return pg_execute(store_pg(store, ns), "begin isolation level repeatable read read only");
}

enum fault store_snapshot_begin(struct store *store, int ns)
{
    enum fault fault = store_run(store, ns, begin_snapshot, NULL);
    if (!fault)
        store_set_snapshot(store, ns, true);
    return fault;
}

void store_snapshot_end(struct store *store, int ns)
{
    if (!store_in_snapshot(store, ns))
        return;
    store_set_snapshot(store, ns, false);
    if (pg_execute(store_pg(store, ns), "rollback") || !pg_is_usable(store_pg(store, ns)))
        store_close(store, ns);
}
