/* store_load: converts rows to snapshots of documents, whole or merged into a cached copy (commit.md
 * section 5). */
#include "store/documents/store_load.h"

#include <stdlib.h>

#include "base/log.h"
#include "model/document/expiry.h"
#include "model/document/mutation.h"
#include "store/statements.h"
#include "model/document/stamp.h"
#include "store/documents/schema_cache.h"
#include "store/store_long.h"
#include "store/store_sealing.h"
#include "edge/pg/pg_pipeline.h"

/* Loads per round trip: enough to hide its latency, few enough to bound the memory of the results.  With a
 * bound in bytes, the first round is short, and queries the sizes of the documents of the next. */
enum { LOADS_A_ROUND = 256, LOADS_OF_UNKNOWN_SIZE = 8, ROUND_BYTES = 4 << 20 };

/* Columns of LOAD and LOAD_NEWER; SCHEMA of the header only. */
enum { SCHEMA = 9 };
enum { FLOOR, VERSION, CTIME, DTIME, V1, V2, ICLASS, KEY, ITEM_VERSION, VOP, CONTENT, RAW };

/* How often a load may find another schema than the cached one. */
enum { SCHEMAS_MOST = 4 };

/* The class, if its contents must be mutated when read. */
static const struct schema_class *old_class(const struct store *store, int ns, struct bytes name)
{
    const struct schema *schema = schema_cache_get(store, ns);
    const struct schema_class *class = schema->has_old ? schema_find_class(schema, name) : NULL;
    return class && mutation_applies(class) ? class : NULL;
}

/* A copy may have been read under another schema: it is unusable until all contents are rewritten.  Then
 * everything changed has a newer version. */
static struct document *copy_of(const struct store *store, int ns, const struct load *load)
{
    const struct schema_class *class = old_class(store, ns, load->class);
    return class && class->is_old ? NULL : load->copy;
}

static const struct pg_statement *statement_of(const struct store *store, int ns, const struct load *load,
                                               struct pg_params *params, struct arena *arena)
{
    const struct document *copy = copy_of(store, ns, load);
    pg_params_start(params, arena);
    PG_PARAMS_ADD(params, PG_TEXT(load->class), PG_TEXT(load->id));
    if (!copy || !document_exists(copy))
        return &statements[STATEMENT_LOAD];
    PG_PARAMS_ADD(params, PG_I64(copy->header.version), PG_I64(copy->header.ctime));
    return &statements[STATEMENT_LOAD_NEWER];
}

static int compare_items(const void *a, const void *b)
{
    const struct item *one = a, *other = b;
    return item_compare(one->iclass, one->key, other->iclass, other->key);
}

/* Of a row that was altered by hand: 0 for what no document can have, so that sums do not overflow. */
static int64_t read_volume(const struct pg_result *result, int row, int column)
{
    int64_t volume = pg_get_i64(result, row, column);
    return volume < 0 || volume > INT64_MAX / 4 ? 0 : volume;
}

static void store_load_read_header(const struct pg_result *result, int row, struct header *header_r)
{
    header_r->floor = pg_get_i64(result, row, FLOOR);
    header_r->version = pg_get_i64(result, row, VERSION);
    header_r->ctime = pg_get_i64(result, row, CTIME);
    header_r->dtime = pg_get_i64(result, row, DTIME);
    header_r->v1 = read_volume(result, row, V1);
    header_r->v2 = read_volume(result, row, V2);
}

/* Whether the server could have written the row, and can write it again.  Rows may be altered by hand. */
static bool is_sound(const struct header *header)
{
    bool is_row = header->version || !header->ctime;
    return is_row && header->version >= 0 && header->version < STAMP_MAX && header->ctime >= 0 &&
           header->ctime <= header->version && header->dtime >= 0 && header->dtime <= header->version &&
           header->floor >= 0 && header->floor < STAMP_MAX;
}

static void store_load_read_item(const struct pg_result *result, int row, struct item *item_r)
{
    *item_r = (struct item){
        .iclass = pg_get_text(result, row, ICLASS),
        .key = pg_get_text(result, row, KEY),
        .version = pg_get_i64(result, row, ITEM_VERSION),
        .vop = pg_get_i64(result, row, VOP),
        .content = pg_get_text(result, row, CONTENT),
        .raw = pg_get_bool(result, row, RAW),
    };
}

/* Whether the copy is of the same incarnation, with all removals since then known.  The statement decides
 * the same. */
static bool goes_on(const struct document *copy, const struct header *now)
{
    return copy && document_exists(copy) && copy->header.ctime == now->ctime &&
           now->dtime <= copy->header.version && copy->header.version <= now->version;
}

static void mutate_items(const struct schema_class *class, struct arena *arena, struct item *items,
                         size_t count)
{
    for (struct item *item = items; item < items + count; item++)
        if (!item_is_tombstone(item) && !item->raw)
            item->content = mutation_apply(arena, class, item->iclass, item->content);
}

/* The index returns items in order, but no statement guarantees it: checked here, and sorted if necessary. */
static enum fault read_document(struct store *store, int ns, const struct pg_result *result,
                                struct arena *arena, struct load *load)
{
    const struct schema_class *old = old_class(store, ns, load->class);
    struct document *copy = copy_of(store, ns, load);
    int64_t schema = 0;
    int rows = pg_rows(result);
    struct header header = {.class = load->class, .id = load->id};
    struct item *items = arena_alloc(arena, (size_t)rows * sizeof *items);
    size_t count = 0;
    bool has_header = false, is_sorted = true;
    for (int row = 0; row < rows; row++) {
        if (!pg_is_null(result, row, FLOOR)) {
            store_load_read_header(result, row, &header);
            schema = pg_get_i64(result, row, SCHEMA);
            has_header = true;
            continue;
        }
        store_load_read_item(result, row, &items[count++]);
    }
    if (!has_header) {
        log_often(LOG_LEVEL_ERROR, "", "table namespace has no row");
        return FAULT_XDATABASE;
    }
    if (schema != schema_cache_get(store, ns)->number) {
        schema_cache_forget(store, ns);
        return FAULT_STALE;
    }
    for (size_t i = 0; i < count; i++) { /* by the keys of this schema */
        enum fault fault = store_sealing_open_item(store, ns, arena, &header, &items[i]);
        if (fault)
            return fault;
        if (i && compare_items(&items[i - 1], &items[i]) > 0)
            is_sorted = false;
    }
    if (!is_sound(&header)) {
        log_often(LOG_LEVEL_ERROR, arena_copy(arena, header.class.data, header.class.size),
                  "a row of the table doc is corrupt class=%.*s", (int)header.class.size, header.class.data);
        return FAULT_BCONTENT;
    }
    if (header.ctime == 0 && count) {
        log_often(LOG_LEVEL_WARNING, arena_copy(arena, header.class.data, header.class.size),
                  "items without a document class=%.*s items=%zu", (int)header.class.size, header.class.data,
                  count);
        count = 0;
    }
    if (!is_sorted)
        qsort(items, count, sizeof *items, compare_items);
    if (old)
        mutate_items(old, arena, items, count);
    if (!goes_on(copy, &header))
        load->document = document_build(&header, items, count);
    else if (header.version == copy->header.version)
        load->document = document_hold(copy);
    else
        load->document = document_merge(copy, &header, items, count);
    load->document->until = expiry_of(schema_cache_get(store, ns), load->document);
    return FAULT_NONE;
}

static enum fault load_one(struct store *store, int ns, struct arena *arena, struct load *load)
{
    struct pg_params params;
    const struct pg_statement *statement = statement_of(store, ns, load, &params, arena);
    struct pg_result *result;
    return FAULT_FIRST(pg_run(store_pg(store, ns), statement, &params, &result),
                       read_document(store, ns, result, arena, load));
}

static void add_sizes(struct store *store, int ns, struct arena *arena, const struct load *loads,
                      size_t count)
{
    struct bytes *classes = ARENA_ROOM(arena, struct bytes, count);
    struct bytes *ids = ARENA_ROOM(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = loads[i].class;
        ids[i] = loads[i].id;
    }
    pg_pipeline_add(store_pg(store, ns), &statements[STATEMENT_SIZES],
                    PG_PARAMS(arena, PG_TEXTS(classes, count), PG_TEXTS(ids, count)));
}

/* How many of the next are loaded together: as many as fit into the size of a round, and at least one. */
static size_t next_round(const struct pg_result *sizes, size_t asked)
{
    size_t count = 0;
    int64_t bytes = 0;
    while (count < asked && (int)count < pg_rows(sizes)) {
        bytes += pg_get_i64(sizes, (int)count, 0);
        if (bytes > ROUND_BYTES && count)
            break;
        count++;
    }
    return count ? count : 1;
}

/* Documents that are loaded together. */
struct round {
    struct load *loads;
    size_t count;
    size_t ahead; /* of the loads that follow: how many sizes are queried */
    bool is_long;
};

/* The results of a round, without those of its limits, which precede each. */
static struct pg_result **without_limits(struct arena *arena, struct pg_result **results, size_t count)
{
    struct pg_result **kept = ARENA_ARRAY(arena, struct pg_result *, count);
    for (size_t i = 0; i < count; i++)
        kept[i] = results[2 + 2 * i];
    return kept;
}

static enum fault send_round(struct store *store, int ns, struct arena *arena, const struct round *round,
                             int64_t limit_ms, struct pg_result ***results_r)
{
    struct pg_verdict verdict;
    struct pg *pg = store_pg(store, ns);
    size_t wanted = round->count + (round->ahead != 0);
    enum fault fault = pg_pipeline_begin(pg, arena);
    if (fault)
        return fault;
    if (limit_ms)
        store_long_add_limit_of_all(pg, arena, limit_ms);
    for (size_t i = 0; i < round->count; i++) {
        struct pg_params params;
        if (limit_ms)
            store_long_add_left(pg, arena);
        const struct pg_statement *statement = statement_of(store, ns, &round->loads[i], &params, arena);
        pg_pipeline_add(pg, statement, &params);
    }
    if (round->ahead && limit_ms)
        store_long_add_left(pg, arena);
    if (round->ahead)
        add_sizes(store, ns, arena, round->loads + round->count, round->ahead);
    pg_pipeline_run(pg, store_pipeline_ms(store), &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return verdict.fault;
    *results_r = limit_ms ? without_limits(arena, verdict.results, wanted) : verdict.results;
    return FAULT_NONE;
}

/* `next_r`: how many of those ahead to load next. */
static enum fault load_round(struct store *store, int ns, struct arena *arena, const struct round *round,
                             size_t *next_r)
{
    struct pg_result **results = NULL;
    struct long_read read = {0};
    enum fault fault;
    bool again;
    do {
        fault = FAULT_FIRST(round->is_long ? store_long_begin(store, ns, 0, &read) : FAULT_NONE,
                            send_round(store, ns, arena, round, read.limit_ms, &results));
        again = round->is_long && store_long_end(store, ns, &read, &fault);
    } while (again);
    for (size_t i = 0; i < round->count && !fault; i++)
        fault = read_document(store, ns, results[i], arena, &round->loads[i]);
    if (round->ahead && !fault)
        *next_r = next_round(results[round->count], round->ahead);
    return fault;
}

static size_t min_size(size_t a, size_t b)
{
    return a < b ? a : b;
}

static enum fault load_rounds(struct store *store, int ns, struct arena *arena, struct load *loads,
                              size_t count, bool is_long)
{
    enum fault fault = FAULT_NONE;
    for (size_t done = 0; done < count && !fault; done += LOADS_A_ROUND) {
        const struct round round = {
            .loads = loads + done, .count = min_size(count - done, LOADS_A_ROUND), .is_long = is_long};
        fault = load_round(store, ns, arena, &round, NULL);
    }
    return fault;
}

/* Each round has an arena of its own, so that the rows are freed once their documents are built. */
static enum fault load_bounded(struct store *store, int ns, struct load *loads, size_t count, bool is_long,
                               size_t bytes_most)
{
    enum fault fault = FAULT_NONE;
    size_t bytes = 0, size = min_size(count, LOADS_OF_UNKNOWN_SIZE), next = 0;
    for (size_t done = 0; done < count && bytes < bytes_most && !fault; done += size, size = next) {
        const struct round round = {.loads = loads + done,
                                    .count = size,
                                    .ahead = min_size(count - done - size, LOADS_A_ROUND),
                                    .is_long = is_long};
        struct arena *arena = arena_create("round of loads");
        fault = load_round(store, ns, arena, &round, &next);
        arena_destroy(arena);
        for (size_t i = done; i < done + size && !fault; i++)
            bytes += loads[i].document->block_bytes;
    }
    return fault;
}

static enum fault load_all(struct store *store, int ns, struct arena *arena, struct load *loads, size_t count,
                           bool is_long, size_t bytes_most)
{
    enum fault fault = count == 1 && !is_long ? load_one(store, ns, arena, loads)
                       : count == 1 || bytes_most == SIZE_MAX
                           ? load_rounds(store, ns, arena, loads, count, is_long)
                           : load_bounded(store, ns, loads, count, is_long, bytes_most);
    for (size_t i = 0; i < count && fault; i++) {
        document_release(loads[i].document);
        loads[i].document = NULL;
    }
    return fault;
}

struct loading {
    struct arena *arena;
    struct load *loads;
    size_t count;
    bool is_long;
    size_t bytes_most;
};

/* Again, if another schema was found than the cached one. */
static enum fault load_under_schema(struct store *store, int ns, void *context)
{
    const struct loading *loading = context;
    for (int schemas = 1;; schemas++) {
        enum fault fault = FAULT_FIRST(schema_cache_read(store, ns),
                                       load_all(store, ns, loading->arena, loading->loads, loading->count,
                                                loading->is_long, loading->bytes_most));
        if (fault != FAULT_STALE || schema_cache_is_filled(store, ns) || schemas == SCHEMAS_MOST)
            return fault;
    }
}

enum fault store_load_part(struct store *store, int ns, struct arena *arena, struct load *loads, size_t count,
                           size_t bytes_most)
{
    for (size_t i = 0; i < count; i++)
        loads[i].document = NULL;
    return store_run(
        store, ns, load_under_schema,
        &(struct loading){arena, loads, count, store_long_count_loads(store, count), bytes_most});
}

enum fault store_load_many(struct store *store, int ns, struct arena *arena, struct load *loads, size_t count)
{
    return store_load_part(store, ns, arena, loads, count, SIZE_MAX);
}

enum fault store_load(struct store *store, int ns, struct arena *arena, struct load *load)
{
    return store_load_many(store, ns, arena, load, 1);
}
