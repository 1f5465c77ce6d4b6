/* store_members: collections of documents that share the value of a property: their update by a commit, and
 * pages of them (collections.md). */
#include "store/collections/store_collection.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "store/documents/commit_part.h"
#include "store/store_long.h"
#include "store/store_private.h"
#include "store/store_sealing.h"
#include "store/documents/store_shown.h"
#include "store/documents/store_commit.h"

/* Columns of COLLECTION. */
enum { LIFE, NUMBER, IS_READY, FLOOR, XID, XID_NEXT, ID, VERSION, HAS_LEFT };

/* --- a part of a commit --------------------------------------------------------------------------- */

static bool is_followed(const struct schema *schema, const struct commit_document *document)
{
    if (document->act == DRAFT_READ)
        return false;
    const struct schema_class *class = schema_find_class(schema, document->base->header.class);
    return class && (class->collection_count || class->unique_count || class->max_life.item);
}

static bool is_planned(const struct commit *commit, const struct schema *schema, size_t before,
                       struct bytes class)
{
    for (size_t i = 0; i < before; i++)
        if (bytes_equal(commit->documents[i].base->header.class, class) &&
            is_followed(schema, &commit->documents[i]))
            return true;
    return false;
}

static void add_members(struct commit_run *run, struct bytes class, const struct bytes *ids, size_t count)
{
    struct pg_params *params = commit_part_add(run, &statements[STATEMENT_MEMBERS]);
    PG_PARAMS_ADD(params, PG_TEXT(class), PG_TEXTS(ids, count), PG_I64(clock_present_minute()));
}

/* The documents that copies are written to, in the order of their classes. */
static void add_copied(struct commit_run *run, const struct copy_batch *batch)
{
    for (size_t i = 0, end; i < batch->target_count; i = end) {
        struct bytes name = batch->targets[i].class;
        const struct schema_class *class = schema_find_class(run->schema, name);
        struct bytes *ids = ARENA_ARRAY(run->arena, struct bytes, batch->target_count - i);
        size_t count = 0;
        for (end = i; end < batch->target_count && bytes_equal(batch->targets[end].class, name); end++)
            if (copies_is_first(batch, end))
                ids[count++] = batch->targets[end].id;
        if (class && class->collection_count)
            add_members(run, name, ids, count);
    }
}

/* After all statements that write items. */
static enum fault plan_members(struct commit_run *run)
{
    const struct schema *schema = run->schema;
    const struct commit *commit = run->commit;
    if (!schema || !schema->class_count)
        return FAULT_NONE;
    if (commit->copies)
        add_copied(run, commit->copies);
    for (size_t i = 0; i < commit->count; i++) {
        struct bytes class = commit->documents[i].base->header.class;
        if (!is_followed(schema, &commit->documents[i]) || is_planned(commit, schema, i, class))
            continue;
        struct bytes *ids = ARENA_ARRAY(run->arena, struct bytes, commit->count - i);
        size_t count = 0;
        for (size_t k = i; k < commit->count; k++)
            if (bytes_equal(commit->documents[k].base->header.class, class) &&
                is_followed(schema, &commit->documents[k]))
                ids[count++] = commit->documents[k].base->header.id;
        add_members(run, class, ids, count);
    }
    return FAULT_NONE;
}

const struct commit_part commit_part_members = {.plan = plan_members};

/* --- pages --------------------------------------------------------------------------------------- */

static struct bytes number_text(struct arena *arena, int64_t number)
{
    return bytes_of(arena_printf(arena, "%" PRId64, number));
}

static void store_members_read_page(const struct pg_result *result, const struct collection_query *query,
                                    struct collection_page *page)
{
    page->members = ARENA_ARRAY(query->arena, struct collection_member, (size_t)pg_rows(result));
    page->ended = ARENA_ARRAY(query->arena, struct collection_member, (size_t)pg_rows(result));
    for (int row = 0; row < pg_rows(result); row++) {
        if (pg_is_null(result, row, ID)) {
            page->life = pg_get_i64(result, row, LIFE);
            page->number = pg_get_i64(result, row, NUMBER);
            page->is_ready = pg_get_bool(result, row, IS_READY);
            page->floor = pg_get_i64(result, row, FLOOR);
            page->horizon = pg_get_i64(result, row, XID);
            page->next = pg_get_i64(result, row, XID_NEXT);
        } else if (pg_is_null(result, row, XID)) {
            page->has_ended_more = page->ended_count == COLLECTION_ENDED_MOST;
            if (!page->has_ended_more)
                page->ended[page->ended_count++] = (struct collection_member){
                    .id = pg_get_text(result, row, ID),
                    .version = pg_get_i64(result, row, VERSION),
                    .has_left = true,
                };
        } else if (page->count == (size_t)query->limit) { /* requested only to learn that there are more */
            page->has_more = true;
        } else {
            page->members[page->count++] = (struct collection_member){
                .id = pg_get_text(result, row, ID),
                .version = pg_get_i64(result, row, VERSION),
                .transaction = pg_get_i64(result, row, XID),
                .has_left = pg_get_bool(result, row, HAS_LEFT),
            };
        }
    }
}

static void add_query(struct pg_params *params, const struct data_keys *keys,
                      const struct collection_query *query)
{
    pg_params_start(params, query->arena);
    PG_PARAMS_ADD(
        params, PG_TEXT(query->class), PG_TEXT(query->name),
        PG_TEXT(store_shown_value(keys, query->arena, query->class, query->value, query->value_count)),
        PG_TEXT(number_text(query->arena, query->transaction)),
        PG_TEXT(query->id.data ? query->id : BYTES("")),
        PG_TEXT(query->with_departures ? BYTES("true") : BYTES("false")), PG_I64((int64_t)query->limit + 1),
        PG_I64(query->since), PG_I64(query->minute), PG_I64(COLLECTION_ENDED_MOST + INT64_C(1)));
}

enum fault store_collection(struct store *store, int ns, const struct collection_query *query,
                            struct collection_page *page_r)
{
    struct pg_params params, none;
    struct pg_result *result;
    struct pg *pg;
    *page_r = (struct collection_page){0};
    enum fault fault = store_sealing_use(store, ns, &pg); /* which has the keys of an encrypted namespace */
    if (fault)
        return fault;
    add_query(&params, store_sealing_keys(store, ns), query);
    pg_params_start(&none, query->arena);
    for (int turn = 0; turn < 2; turn++) {
        fault = store_long_run_statement(store, ns, STATEMENT_COLLECTION, &params, &result);
        if (fault)
            return fault;
        *page_r = (struct collection_page){0};
        store_members_read_page(result, query, page_r);
        if (page_r->life || store_in_snapshot(store, ns))
            return FAULT_NONE;
        fault = store_run_statement(store, ns, STATEMENT_COLLECTION_EPOCH, &none, NULL);
        if (fault)
            return fault;
    }
    log_error("cannot start a new epoch of collections");
    return FAULT_XDATABASE;
}
