/* store_owners: declares owners; the part of a commit that counts. */
#include "store/documents/store_owners.h"

#include "store/documents/commit_part.h"
#include "store/documents/schema_cache.h"
#include "store/store_private.h"
#include "store/store_run.h"

static enum fault store_owners_read_schema(struct store *store, int ns, void *context UNUSED)
{
    return schema_cache_read(store, ns);
}

enum fault store_owners_declare(struct store *store, int ns, struct arena *arena, struct bytes owners)
{
    struct pg_result *row;
    if (store_in_snapshot(store, ns))
        return FAULT_NONE;
    enum fault fault = store_run(store, ns, store_owners_read_schema, NULL);
    if (fault || bytes_equal(schema_cache_get(store, ns)->owners, owners))
        return fault;
    fault = store_run_statement(store, ns, STATEMENT_OWNERS_DECLARE, PG_PARAMS(arena, PG_TEXT(owners)), &row);
    schema_cache_forget(store, ns);
    return fault;
}

enum fault store_owners_find(struct store *store, int ns, struct arena *arena, struct bytes class,
                             struct bytes id, struct bytes *account_r, int64_t *bytes_r)
{
    struct pg_params params;
    struct pg_result *row;
    *account_r = NO_BYTES;
    *bytes_r = 0;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, class);
    pg_params_add_text(&params, id);
    enum fault fault = store_run_statement(store, ns, STATEMENT_OWNED_ROOM, &params, &row);
    if (fault || !pg_rows(row))
        return fault;
    struct bytes account = pg_get_text(row, 0, 0);
    *account_r = arena_keep(arena, account);
    *bytes_r = pg_get_i64(row, 0, 1);
    return FAULT_NONE;
}

/* After all statements that write items. */
static enum fault plan_owners(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    const struct copy_batch *copies = commit->copies;
    if (!run->schema || bytes_equal(run->schema->owners, STORE_OWNERS_NONE))
        return FAULT_NONE;
    size_t most = commit->count + (copies ? copies->target_count : 0), count = 0;
    struct bytes *classes = ARENA_ARRAY(run->arena, struct bytes, most);
    struct bytes *ids = ARENA_ARRAY(run->arena, struct bytes, most);
    for (size_t i = 0; i < commit->count; i++) {
        if (commit->documents[i].act == DRAFT_READ)
            continue;
        classes[count] = commit->documents[i].base->header.class;
        ids[count++] = commit->documents[i].base->header.id;
    }
    for (size_t i = 0; copies && i < copies->target_count; i++) {
        classes[count] = copies->targets[i].class;
        ids[count++] = copies->targets[i].id;
    }
    if (!count)
        return FAULT_NONE;
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_OWNED_WRITE]);
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(ids, count), PG_I64(commit->account_bytes_most),
                  PG_TEXT(commit->account.data ? commit->account : BYTES("")));
    return FAULT_NONE;
}

const struct commit_part commit_part_owners = {.plan = plan_owners};
