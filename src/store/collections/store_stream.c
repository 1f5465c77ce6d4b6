/* store_stream: streams a whole collection, row by row as the database sends it.
 *
 * One transaction with one snapshot: first the state of the collection and the horizon for the token, then
 * its rows.  The session is reserved until the last row; stopping earlier closes it. */
#include "store/collections/store_stream.h"

#include <inttypes.h>

#include "base/clock.h"
#include "model/document/mutation.h"
#include "store/statements.h"
#include "store/documents/schema_cache.h"
#include "store/store_private.h"
#include "store/store_sealing.h"
#include "store/documents/store_shown.h"
#include "edge/pg/pg_stream.h"

/* Columns of COLLECTION_ALL. */
enum { ID, MEMBER_VERSION, VERSION, CTIME, DTIME, ICLASS, KEY, ITEM_VERSION, CONTENT, RAW };

struct store_stream {
    struct store *store;
    int ns;
    int64_t deadline_ms;
    const struct data_keys *keys;
    struct bytes class;             /* of the members */
    const struct schema_class *old; /* whose contents must be mutated; NULL: no mutation */
    struct arena *scratch;          /* of a row */
    struct builder id;              /* of the previous member */
    struct store_stream_row row;
    bool is_begun, is_whole;
};

/* --- beginning ----------------------------------------------------------------------------------- */

/* The schema in the snapshot, by which contents are read. */
static enum fault store_stream_read_schema(struct store *store, int ns, struct arena *arena)
{
    struct pg_params params;
    struct pg_result *number;
    pg_params_start(&params, arena);
    enum fault fault =
        FAULT_FIRST(schema_cache_read(store, ns),
                    pg_run(store_pg(store, ns), &statements[STATEMENT_SCHEMA_NUMBER], &params, &number));
    if (fault || pg_get_i64(number, 0, 0) == schema_cache_get(store, ns)->number)
        return fault;
    schema_cache_forget(store, ns);
    return schema_cache_read(store, ns);
}

static enum fault begin_rows(struct store_stream *stream, const struct collection_query *query,
                             bool with_documents, int64_t number)
{
    struct store *store = stream->store;
    int ns = stream->ns;
    struct pg *pg = store_pg(store, ns);
    int64_t left_ms = stream->deadline_ms - clock_monotonic_ms();
    if (left_ms <= 0)
        return FAULT_XTIME;
    enum fault fault = FAULT_FIRST(
        store_stream_read_schema(store, ns, query->arena),
        pg_execute(pg, arena_printf(query->arena, "set local statement_timeout = %" PRId64, left_ms)));
    if (fault)
        return fault;
    const struct schema *schema = schema_cache_get(store, ns);
    const struct schema_class *class = schema->has_old ? schema_find_class(schema, query->class) : NULL;
    stream->old = class && mutation_applies(class) ? class : NULL;
    stream->keys = store_sealing_keys(store, ns);
    stream->class = query->class;
    const struct pg_params *params =
        PG_PARAMS(query->arena, PG_I64(number),
                  PG_TEXT(store_shown_value(stream->keys, query->arena, query->class, query->value,
                                            query->value_count)),
                  PG_I64(query->minute), PG_TEXT(query->class),
                  PG_TEXT(with_documents ? BYTES("true") : BYTES("false")));
    return pg_stream_begin(pg, &statements[STATEMENT_COLLECTION_ALL], params);
}

/* The snapshot writes nothing: if collections need a new life, it is begun before. */
static enum fault begin_snapshot(struct store *store, int ns, const struct collection_query *query,
                                 struct collection_page *page_r)
{
    enum fault fault =
        FAULT_FIRST(store_snapshot_begin(store, ns), store_collection(store, ns, query, page_r));
    if (fault || page_r->life)
        return fault;
    store_snapshot_end(store, ns);
    return FAULT_FIRST(store_collection(store, ns, query, page_r), store_snapshot_begin(store, ns),
                       store_collection(store, ns, query, page_r));
}

static void store_stream_destroy(void *pointer)
{
    struct store_stream *stream = pointer;
    builder_free(&stream->id);
    arena_destroy(stream->scratch);
}

enum fault store_stream_begin(struct store *store, int ns, const struct collection_query *query,
                              bool with_documents, int64_t deadline_ms, struct collection_page *page_r,
                              struct store_stream **stream_r)
{
    struct collection_query of_page = *query;
    of_page.transaction = 0;
    of_page.id = NO_BYTES;
    of_page.with_departures = false;
    of_page.since = INT64_MAX;
    of_page.limit = 0;
    *stream_r = NULL;
    enum fault fault = begin_snapshot(store, ns, &of_page, page_r);
    if (fault || !page_r->number || !page_r->is_ready) {
        store_snapshot_end(store, ns);
        return fault;
    }
    struct store_stream *stream = ARENA_NEW(query->arena, struct store_stream);
    *stream = (struct store_stream){
        .store = store, .ns = ns, .deadline_ms = deadline_ms, .scratch = arena_create("stream")};
    arena_defer(query->arena, store_stream_destroy, stream);
    fault = begin_rows(stream, query, with_documents, page_r->number);
    if (fault) {
        store_snapshot_end(store, ns);
        return fault;
    }
    stream->is_begun = true;
    *stream_r = stream;
    return FAULT_NONE;
}

/* --- rows ---------------------------------------------------------------------------------------- */

/* The keys are those of the snapshot: one that was added since has another number of the schema. */
static enum fault open_item(struct store_stream *stream)
{
    struct item *item = &stream->row.item;
    struct item_place place = {stream->class, stream->row.id, item->iclass, item->key, item->raw, BYTES("")};
    if (!stream->keys->count)
        return FAULT_NONE;
    arena_reset(stream->scratch);
    if (!data_keys_open_item(stream->keys, stream->scratch, &place, &item->content)) {
        store_sealing_report(stream->scratch, stream->class);
        return FAULT_BCONTENT;
    }
    item->key = place.key;
    return FAULT_NONE;
}

static enum fault read_row(struct store_stream *stream, const struct pg_result *result)
{
    struct store_stream_row *row = &stream->row;
    struct bytes id = pg_get_text(result, 0, ID);
    row->is_first = !stream->id.size || !bytes_equal(id, builder_bytes(&stream->id));
    if (row->is_first) {
        bool has_document = !pg_is_null(result, 0, VERSION);
        stream->id.size = 0;
        builder_add_bytes(&stream->id, id);
        row->version = pg_get_i64(result, 0, has_document ? VERSION : MEMBER_VERSION);
        row->ctime = pg_get_i64(result, 0, CTIME);
        row->dtime = pg_get_i64(result, 0, DTIME);
    }
    row->id = builder_bytes(&stream->id);
    row->item = (struct item){0};
    if (pg_is_null(result, 0, ICLASS))
        return FAULT_NONE;
    row->item = (struct item){.iclass = pg_get_text(result, 0, ICLASS),
                              .key = pg_get_text(result, 0, KEY),
                              .version = pg_get_i64(result, 0, ITEM_VERSION),
                              .content = pg_get_text(result, 0, CONTENT),
                              .raw = pg_get_bool(result, 0, RAW)};
    enum fault fault = open_item(stream);
    if (!fault && stream->old && !row->item.raw) {
        if (!stream->keys->count)
            arena_reset(stream->scratch);
        row->item.content = mutation_apply(stream->scratch, stream->old, row->item.iclass, row->item.content);
    }
    return fault;
}

enum fault store_stream_next(struct store_stream *stream, const struct store_stream_row **row_r)
{
    const struct pg_result *result;
    *row_r = NULL;
    if (clock_monotonic_ms() >= stream->deadline_ms)
        return FAULT_XTIME;
    enum fault fault = pg_stream_next(store_pg(stream->store, stream->ns), stream->deadline_ms, &result);
    if (fault)
        return fault;
    if (!result) {
        stream->is_whole = true;
        return FAULT_NONE;
    }
    fault = read_row(stream, result);
    *row_r = fault ? NULL : &stream->row;
    return fault;
}

void store_stream_end(struct store_stream *stream)
{
    assert(stream->is_begun);
    stream->is_begun = false;
    if (stream->is_whole)
        store_snapshot_end(stream->store, stream->ns);
    else
        store_close(stream->store, stream->ns);
}
