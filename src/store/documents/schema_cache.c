/* schema_cache: reads the row of the schema; counts who holds what was made of it. */
#include "store/documents/schema_cache.h"

#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "base/memory.h"
#include "model/document/mutation.h"
#include "model/schema/schema.h"
#include "store/refusal.h"
#include "store/statements.h"
#include "store/store_cache.h"
#include "store/store_private.h"
#include "store/store_sealing.h"

/* Columns of SCHEMA. */
enum { NUMBER, CONTENT, BUILDING, WAKES, SECRET, OWNERS };

struct applied_schema {
    int references;
    struct arena *arena;
    struct schema *schema;
    struct side_table *sides;
    size_t side_count;
};

struct schema_cache {
    struct applied_schema *applied; /* NULL: read before the next use */
    uint64_t turn;                  /* number of schemas that the session has read */
    struct builder left;            /* names of prepared statements of discarded schemas: side_table.h */
};

static void schema_cache_release(void *pointer)
{
    struct applied_schema *applied = pointer;
    if (applied && --applied->references == 0)
        arena_destroy(applied->arena);
}

static struct schema_cache *cache_of(const struct store *store, int ns)
{
    return store_cache_of(store, ns, STORE_CACHE_schema);
}

static void forget_schema_cache(struct schema_cache *cache)
{
    if (cache->applied)
        side_table_leave(cache->applied->sides, cache->applied->side_count, &cache->left);
    schema_cache_release(cache->applied);
    cache->applied = NULL;
}

/* --- reading ------------------------------------------------------------------------------------- */

/* Classes not rewritten yet: words "~Class". */
static bool is_rewriting(struct bytes building, struct bytes class)
{
    for (const char *at = building.data; at && building.size;) {
        const char *blank = memchr(at, ' ', building.size);
        struct bytes word = {at, blank ? (size_t)(blank - at) : building.size};
        if (word.size == class.size + 1 && *at == '~' && memcmp(at + 1, class.data, class.size) == 0)
            return true;
        building.size -= word.size + (blank != NULL);
        at += word.size + (blank != NULL);
    }
    return false;
}

/* Fields still being built: words "Class.Item.field". */
static bool is_building(struct bytes building, struct bytes class, struct bytes item, struct bytes field)
{
    while (building.size) {
        const char *blank = memchr(building.data, ' ', building.size);
        size_t size = blank ? (size_t)(blank - building.data) : building.size;
        const char *at = building.data;
        if (size == class.size + item.size + field.size + 2 && memcmp(at, class.data, class.size) == 0 &&
            at[class.size] == '.' && memcmp(at + class.size + 1, item.data, item.size) == 0 &&
            at[class.size + 1 + item.size] == '.' &&
            memcmp(at + class.size + 2 + item.size, field.data, field.size) == 0)
            return true;
        size += blank != NULL;
        building.data += size;
        building.size -= size;
    }
    return false;
}

/* Whether a mutation changes the member.  If so, its column differs from what is read until all is
 * rewritten. */
static bool is_mutated(const struct schema_class *class, const struct schema_item *item, struct bytes member)
{
    for (size_t m = 0; m < class->mutation_count; m++)
        for (size_t c = 0; class->mutations[m].item == item && c < class->mutations[m].change_count; c++) {
            const struct schema_change *change = &class->mutations[m].changes[c];
            if (bytes_equal(change->member, member) ||
                (change->kind == CHANGE_RENAME && bytes_equal(change->value, member)))
                return true;
        }
    return false;
}

/* Marks the indexes that are ready. */
static void complete_indexes(struct arena *arena, const struct schema_class *class,
                             const struct schema_item *item, struct bytes building)
{
    for (size_t i = 0; i < item->index_count; i++) {
        struct schema_index *index = (struct schema_index *)&item->indexes[i];
        index->is_ready = !is_building(building, class->name, item->name, schema_index_word(arena, index));
    }
}

static bool is_field_mutated(const struct schema_class *class, const struct schema_item *item,
                             const struct schema_field *field)
{
    size_t count;
    const struct bytes *members = schema_field_members(field, &count);
    for (size_t i = 0; i < count; i++)
        if (is_mutated(class, item, members[i]))
            return true;
    return false;
}

/* Marks the fields and indexes that are ready. */
static void schema_cache_complete(struct arena *arena, struct schema *schema, struct bytes building)
{
    for (size_t c = 0; c < schema->class_count; c++) {
        struct schema_class *class = (struct schema_class *)&schema->classes[c];
        class->is_old = is_rewriting(building, class->name);
        schema->has_old |= class->is_old || mutation_applies(class);
        for (size_t i = 0; i < class->item_count; i++) {
            const struct schema_item *item = &class->items[i];
            complete_indexes(arena, class, item, building);
            for (size_t f = 0; f < item->field_count; f++) {
                struct schema_field *field = (struct schema_field *)&item->fields[f];
                field->is_ready = !is_building(building, class->name, item->name, field->name) &&
                                  !(class->is_old &&
                                    (mutation_has_function(class) || is_field_mutated(class, item, field)));
            }
        }
    }
}

static enum fault read_row(const struct pg_result *row, struct applied_schema *applied, uint64_t turn)
{
    struct schema_problem problem;
    struct bytes content = pg_rows(row) ? pg_get_text(row, 0, CONTENT) : NO_BYTES;
    const char *text = arena_copy(applied->arena, content.data ? content.data : "", content.size);
    if (schema_read(applied->arena, (struct bytes){text, content.size}, &applied->schema, &problem)) {
        log_error("table schema has an unknown member at %s: %s", problem.path, problem.expected);
        return FAULT_ODATABASE;
    }
    applied->schema->number = pg_get_i64(row, 0, NUMBER);
    applied->schema->wakes = pg_get_bool(row, 0, WAKES);
    struct bytes secret = pg_get_text(row, 0, SECRET);
    applied->schema->secret = arena_keep(applied->arena, secret);
    struct bytes owners = pg_get_text(row, 0, OWNERS);
    applied->schema->owners = arena_keep(applied->arena, owners);
    schema_cache_complete(applied->arena, applied->schema, pg_get_text(row, 0, BUILDING));
    applied->sides = side_table_list(applied->arena, applied->schema, turn, &applied->side_count);
    return FAULT_NONE;
}

static enum fault schema_cache_read_schema(struct schema_cache *cache, struct pg *pg)
{
    if (cache->applied)
        return FAULT_NONE;
    struct applied_schema *applied = memory_zeroed(1, sizeof *applied, "schema");
    applied->references = 1;
    applied->arena = arena_create("schema");
    arena_defer(applied->arena, free, applied);
    struct pg_params params;
    struct pg_result *row;
    struct arena *arena = arena_create("schema row");
    pg_params_start(&params, arena);
    cache->turn++;
    enum fault fault = FAULT_FIRST(pg_run(pg, &statements[STATEMENT_SCHEMA], &params, &row),
                                   read_row(row, applied, cache->turn));
    arena_destroy(arena);
    if (fault)
        schema_cache_release(applied);
    else
        cache->applied = applied;
    return fault;
}

static enum fault open_cache(void *cache, struct pg *pg)
{
    return schema_cache_read_schema(cache, pg);
}

static void close_cache(void *pointer)
{
    struct schema_cache *cache = pointer;
    schema_cache_release(cache->applied);
    builder_free(&cache->left);
}

const struct store_cache store_cache_schema = {
    .size = sizeof(struct schema_cache), .open = open_cache, .close = close_cache};

/* --- use ----------------------------------------------------------------------------------------- */

enum fault schema_cache_read(struct store *store, int ns)
{
    bool is_known = schema_cache_is_filled(store, ns);
    enum fault fault = schema_cache_read_schema(cache_of(store, ns), store_pg(store, ns));
    return fault || is_known ? fault : store_sealing_renew(store, ns); /* a new data key is a new number */
}

bool schema_cache_is_filled(const struct store *store, int ns)
{
    const struct schema_cache *cache = cache_of(store, ns);
    return cache && cache->applied;
}

const struct schema *schema_cache_get(const struct store *store, int ns)
{
    return cache_of(store, ns)->applied->schema;
}

const struct schema *schema_cache_hold(struct store *store, int ns, struct arena *arena)
{
    struct applied_schema *applied = cache_of(store, ns)->applied;
    applied->references++;
    arena_defer(arena, schema_cache_release, applied);
    return applied->schema;
}

void schema_cache_forget(struct store *store, int ns)
{
    struct schema_cache *cache = cache_of(store, ns);
    if (cache)
        forget_schema_cache(cache);
}

enum fault schema_cache_judge(struct store *store, int ns, const char *sqlstate, enum fault fault)
{
    /* The last one: a prepared statement would return a column with another collation. */
    static const char *const moved[] = {"42P01", "42703", "42883", "0A000"};
    bool has_moved = refusal_of(sqlstate) == REFUSAL_SCHEMA;
    for (size_t i = 0; i < COUNT_OF(moved); i++)
        has_moved = has_moved || strcmp(sqlstate, moved[i]) == 0;
    if (!has_moved)
        return fault;
    schema_cache_forget(store, ns);
    return FAULT_STALE;
}

struct side_table *schema_cache_side_tables(const struct store *store, int ns, size_t *count_r)
{
    const struct applied_schema *applied = cache_of(store, ns)->applied;
    *count_r = applied->side_count;
    return applied->sides;
}

/* Refused: if the error is not a changed schema, both statements are prepared again. */
enum fault schema_cache_prepare(struct store *store, int ns, struct arena *arena, struct side_table *side)
{
    struct schema_cache *cache = cache_of(store, ns);
    struct pg *pg = store_pg(store, ns);
    enum fault fault = side_table_prepare(side, pg, arena, &cache->left);
    if (!fault)
        return FAULT_NONE;
    fault = schema_cache_judge(store, ns, pg_sqlstate(pg), fault);
    if (cache->applied)
        side_table_leave(side, 1, &cache->left);
    return fault;
}
