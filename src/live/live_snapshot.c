/* live_snapshot: rows to documents.  What cannot be read as it should does not exist. */
#include "live/live_snapshot.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "model/document/expiry.h"
#include "model/document/mutation.h"
#include "model/document/stamp.h"

enum { LOAD_BYTES = 4 << 20 }; /* of documents in one result */
enum { PLACE, VERSION, CTIME, DTIME, ICLASS, KEY, CONTENT, RAW };
enum { NUMBER = VERSION, VOP = CTIME, WRITER = DTIME, BUILDING = CONTENT };
enum { FOLLOWED = CTIME, SINCE = DTIME, GAINED = CTIME, PRINCIPAL = KEY, IS_LOST = RAW };
enum { COLLECTION = KEY, VALUE = CONTENT, HAS_LEFT = RAW };

struct live_snapshot {
    const char *database;
    struct arena *arena;
    struct schema *schema; /* NULL: there is none that can be read, and no document can */
    int64_t number;        /* -1: none was read */
    int64_t followed;      /* rules, at the last result */
};

struct live_snapshot *live_snapshot_create(const char *database)
{
    struct live_snapshot *snapshot = memory_zeroed(1, sizeof *snapshot, "live");
    snapshot->database = database;
    snapshot->arena = arena_create("live schema");
    snapshot->number = -1;
    return snapshot;
}

void live_snapshot_destroy(struct live_snapshot *snapshot)
{
    arena_destroy(snapshot->arena);
    free(snapshot);
}

/* --- the schema --- */

bool live_snapshot_wants_schema(const struct live_snapshot *snapshot)
{
    return snapshot->number < 0;
}

void live_snapshot_take_schema(struct live_snapshot *snapshot, const struct pg_result *result)
{
    struct schema_problem problem;
    struct bytes text = pg_rows(result) ? pg_get_text(result, 0, 1) : NO_BYTES;
    arena_reset(snapshot->arena);
    snapshot->schema = NULL;
    snapshot->number = pg_rows(result) ? pg_get_i64(result, 0, 0) : 0;
    text = (struct bytes){arena_copy(snapshot->arena, text.data ? text.data : "", text.size), text.size};
    if (schema_read(snapshot->arena, text, &snapshot->schema, &problem)) {
        log_often(LOG_LEVEL_ERROR, snapshot->database, "live database=%s: its schema cannot be read",
                  snapshot->database);
        snapshot->schema = NULL;
    }
}

/* Is the class being rewritten in a new release: is "~Class" one of the words? */
static bool is_rewriting(struct bytes building, struct bytes class)
{
    while (building.size) {
        struct bytes word = bytes_cut(&building, ' ');
        if (word.size == class.size + 1 && *word.data == '~' &&
            memcmp(word.data + 1, class.data, class.size) == 0)
            return true;
    }
    return false;
}

/* --- documents --- */

int64_t live_snapshot_followed(const struct live_snapshot *snapshot)
{
    return snapshot->followed;
}

void live_snapshot_query(struct pg_params *params, const struct document_name *names, size_t count,
                         int64_t since, bool with_members)
{
    struct bytes *classes = ARENA_ROOM(params->arena, struct bytes, count);
    struct bytes *ids = ARENA_ROOM(params->arena, struct bytes, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = names[i].class;
        ids[i] = names[i].id;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(ids, count), PG_I64(LOAD_BYTES),
                  PG_TEXT(bytes_of(arena_printf(params->arena, "%" PRId64, since))),
                  PG_I64(LIVE_PRINCIPALS_MOST + 1), PG_TEXT(with_members ? BYTES("t") : BYTES("f")));
}

struct snapshot_loading {
    const struct live_snapshot *snapshot;
    const struct pg_result *result;
    struct arena *arena;
    struct bytes building;
};

struct written_item {
    struct item item;
    uint32_t writer;
};

/* The rows of one document. */
struct rows {
    bool has_header;
    struct header header;
    struct written_item *items;
    size_t count;
    struct live_principal *principals;
    size_t principal_count;
    struct live_member *members;
    size_t member_count;
};

static void live_snapshot_release(void *document)
{
    document_release(document);
}

static int compare_items(const void *a, const void *b)
{
    const struct written_item *one = a, *other = b;
    return item_compare(one->item.iclass, one->item.key, other->item.iclass, other->item.key);
}

/* Rows may be altered by hand. */
static bool is_sound(const struct header *header)
{
    return header->ctime > 0 && header->ctime <= header->version && header->version < STAMP_MAX &&
           header->dtime >= 0 && header->dtime <= header->version;
}

static bool is_readable(const struct snapshot_loading *loading, const struct rows *rows, bool is_old)
{
    const struct schema *schema = loading->snapshot->schema;
    const struct schema_class *class = schema ? schema_find_class(schema, rows->header.class) : NULL;
    return schema && is_sound(&rows->header) && !(is_old && class && mutation_has_function(class));
}

static void upgrade(const struct snapshot_loading *loading, struct rows *rows)
{
    const struct schema_class *class = schema_find_class(loading->snapshot->schema, rows->header.class);
    for (size_t i = 0; class && i < rows->count; i++) {
        struct item *item = &rows->items[i].item;
        if (!item->raw && !item_is_tombstone(item))
            item->content = mutation_apply(loading->arena, class, item->iclass, item->content);
    }
}

static struct document *build_whole(const struct snapshot_loading *loading, struct rows *rows,
                                    const uint32_t **writers_r)
{
    struct item *items = ARENA_ROOM(loading->arena, struct item, rows->count + 1);
    uint32_t *writers = ARENA_ROOM(loading->arena, uint32_t, rows->count + 1);
    qsort(rows->items, rows->count, sizeof *rows->items, compare_items);
    for (size_t i = 0; i < rows->count; i++) {
        items[i] = rows->items[i].item;
        writers[i] = rows->items[i].writer;
    }
    struct document *document = document_build(&rows->header, items, rows->count);
    arena_defer(loading->arena, live_snapshot_release, document);
    *writers_r = writers;
    return document;
}

static struct live_loaded build(const struct snapshot_loading *loading, struct rows *rows)
{
    bool is_old = is_rewriting(loading->building, rows->header.class);
    struct live_loaded loaded = {.principals = rows->principals,
                                 .principal_count = rows->principal_count,
                                 .members = rows->members,
                                 .member_count = rows->member_count};
    if (!is_readable(loading, rows, is_old)) {
        bool is_deleted = !rows->header.ctime && rows->header.version > 0 && rows->header.version < STAMP_MAX;
        rows->header = (struct header){.class = rows->header.class,
                                       .id = rows->header.id,
                                       .version = is_deleted ? rows->header.version : 0};
        rows->count = 0;
    }
    if (is_old && rows->count)
        upgrade(loading, rows);
    struct document *document = build_whole(loading, rows, &loaded.writers);
    loaded.document = document;
    if (!document_exists(document))
        return loaded;
    document->until = expiry_of(loading->snapshot->schema, document);
    if (document->until == DOCUMENT_FOREVER || document->until > clock_present_minute())
        return loaded;
    document = document_end(document);
    arena_defer(loading->arena, live_snapshot_release, document);
    loaded.document = document;
    return loaded;
}

static void live_snapshot_read_item(const struct pg_result *result, int row, struct written_item *written_r)
{
    written_r->item = (struct item){.iclass = pg_get_text(result, row, ICLASS),
                                    .key = pg_get_text(result, row, KEY),
                                    .version = pg_get_i64(result, row, VERSION),
                                    .vop = pg_get_i64(result, row, VOP),
                                    .content = pg_get_text(result, row, CONTENT),
                                    .raw = pg_get_bool(result, row, RAW)};
    written_r->writer = (uint32_t)pg_get_i64(result, row, WRITER);
}

enum row_kind { ROW_OF_SCHEMA, ROW_OF_HEADER, ROW_OF_PRINCIPAL, ROW_OF_MEMBER, ROW_OF_ITEM };

static enum row_kind kind_of(const struct pg_result *result, int row)
{
    if (!pg_get_i64(result, row, PLACE))
        return ROW_OF_SCHEMA;
    if (!pg_is_null(result, row, ICLASS))
        return ROW_OF_ITEM;
    if (pg_is_null(result, row, KEY))
        return ROW_OF_HEADER;
    return pg_is_null(result, row, CONTENT) ? ROW_OF_PRINCIPAL : ROW_OF_MEMBER;
}

/* Headers, and how many others each document has; -1: which row is that of the schema is not known. */
static int read_headers(struct snapshot_loading *loading, struct rows *rows)
{
    const struct pg_result *result = loading->result;
    int schema = -1;
    for (int row = 0; row < pg_rows(result); row++) {
        int64_t place = pg_get_i64(result, row, PLACE);
        struct rows *of = place ? &rows[place - 1] : NULL;
        switch (kind_of(result, row)) {
        case ROW_OF_SCHEMA:
            schema = row;
            break;
        case ROW_OF_HEADER:
            of->has_header = true;
            of->header.version = pg_get_i64(result, row, VERSION);
            of->header.ctime = pg_get_i64(result, row, CTIME);
            of->header.dtime = pg_get_i64(result, row, DTIME);
            break;
        case ROW_OF_PRINCIPAL:
            of->principal_count++;
            break;
        case ROW_OF_MEMBER:
            of->member_count++;
            break;
        case ROW_OF_ITEM:
            of->count++;
            break;
        }
    }
    return schema;
}

static struct live_principal read_principal(const struct pg_result *result, int row)
{
    return (struct live_principal){.name = pg_get_text(result, row, PRINCIPAL),
                                   .version = pg_get_i64(result, row, VERSION),
                                   .gained = pg_get_i64(result, row, GAINED),
                                   .writer = (uint32_t)pg_get_i64(result, row, WRITER),
                                   .is_lost = pg_get_bool(result, row, IS_LOST)};
}

static struct live_member live_snapshot_read_member(const struct pg_result *result, int row)
{
    return (struct live_member){.collection = pg_get_text(result, row, COLLECTION),
                                .value = pg_get_text(result, row, VALUE),
                                .version = pg_get_i64(result, row, VERSION),
                                .writer = (uint32_t)pg_get_i64(result, row, WRITER),
                                .has_left = pg_get_bool(result, row, HAS_LEFT)};
}

static void read_items(const struct snapshot_loading *loading, struct rows *rows, size_t count)
{
    const struct pg_result *result = loading->result;
    for (size_t i = 0; i < count; i++) {
        rows[i].items = ARENA_ROOM(loading->arena, struct written_item, rows[i].count + 1);
        rows[i].principals = ARENA_ROOM(loading->arena, struct live_principal, rows[i].principal_count + 1);
        rows[i].members = ARENA_ROOM(loading->arena, struct live_member, rows[i].member_count + 1);
        rows[i].count = rows[i].principal_count = rows[i].member_count = 0;
    }
    for (int row = 0; row < pg_rows(result); row++) {
        int64_t place = pg_get_i64(result, row, PLACE);
        struct rows *of = place ? &rows[place - 1] : NULL;
        enum row_kind kind = kind_of(result, row);
        if (kind == ROW_OF_ITEM)
            live_snapshot_read_item(result, row, &of->items[of->count++]);
        else if (kind == ROW_OF_PRINCIPAL)
            of->principals[of->principal_count++] = read_principal(result, row);
        else if (kind == ROW_OF_MEMBER)
            of->members[of->member_count++] = live_snapshot_read_member(result, row);
    }
}

const struct schema_collection *live_snapshot_collection(const struct live_snapshot *snapshot,
                                                         struct bytes class, struct bytes name)
{
    return snapshot->schema ? schema_find_collection(schema_find_class(snapshot->schema, class), name) : NULL;
}

bool live_snapshot_take(struct live_snapshot *snapshot, const struct pg_result *result, struct arena *arena,
                        const struct document_name *names, size_t count, struct live_loaded *loaded_r)
{
    struct snapshot_loading loading = {.snapshot = snapshot, .result = result, .arena = arena};
    struct rows *rows = ARENA_ARRAY(arena, struct rows, count);
    int schema = read_headers(&loading, rows);
    if (schema < 0 || pg_get_i64(result, schema, NUMBER) != snapshot->number) {
        snapshot->number = -1;
        return false;
    }
    loading.building = pg_get_text(result, schema, BUILDING);
    snapshot->followed = pg_get_i64(result, schema, SINCE) ? pg_get_i64(result, schema, FOLLOWED) : 0;
    read_items(&loading, rows, count);
    for (size_t i = 0; i < count; i++) {
        rows[i].header.class = names[i].class;
        rows[i].header.id = names[i].id;
        loaded_r[i] = rows[i].has_header ? build(&loading, &rows[i]) : (struct live_loaded){0};
    }
    return true;
}
