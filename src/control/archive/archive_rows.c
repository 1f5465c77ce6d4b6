/* archive_rows: two COPY, of documents and of items, ordered by their keys and merged. */
#include "control/archive/archive_rows.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "control/archive/archive_line.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "edge/pg/pg_copy.h"

/* --- the order of rows --- */

/* The parts in which documents are read, one after the other, so that they come in the order
 * of class and id also where ids are encrypted, whose order in the database is another one.
 *
 * Of a class whose ids are encrypted all ids are in memory meanwhile.  Ids are read, decrypted and sorted,
 * class by class. */

struct archive_part {
    struct archive_filter filter; /* with ids as they are stored */
    bool is_listed; /* all its documents are of one class, in the order of the ids of the filter */
};

enum { PART_DOCUMENTS = 1000 };

struct archive_ordering {
    struct control *control;
    struct pg *pg;
    const struct data_keys *keys;
    const struct archive_filter *filter;
    struct archive_part *parts;
    size_t count, room;
};

struct listed_id {
    struct bytes id;
    const char *stored;
};

static bool has_class(const struct archive_filter *filter, struct bytes class)
{
    size_t i = 0;
    while (i < filter->class_count && !bytes_equal(bytes_of(filter->classes[i]), class))
        i++;
    return !filter->class_count || i < filter->class_count;
}

/* --- parts --- */

/* The documents of the filter that are of the class. */
static struct archive_part *add_part(struct archive_ordering *ordering, const char *class)
{
    ARENA_GROW(ordering->control->arena, ordering->parts, ordering->count, ordering->room);
    struct archive_part *part = &ordering->parts[ordering->count++];
    const char **classes = ARENA_ARRAY(ordering->control->arena, const char *, 1);
    classes[0] = class;
    *part = (struct archive_part){.filter = *ordering->filter};
    part->filter.classes = classes;
    part->filter.class_count = 1;
    return part;
}

static int by_id(const void *a, const void *b)
{
    return bytes_compare(((const struct listed_id *)a)->id, ((const struct listed_id *)b)->id);
}

static bool read_ids(struct archive_ordering *ordering, const char *class, struct listed_id **list_r,
                     size_t *count_r)
{
    static const char start[] = "copy (select d.id from stampd.doc d where true";
    struct arena *arena = ordering->control->arena;
    const char *classes[] = {class};
    struct archive_filter one = *ordering->filter, stored;
    struct listed_id *list = NULL;
    struct pg_copy_row row;
    size_t count = 0, room = 0;
    one.classes = classes;
    one.class_count = 1;
    if (!archive_filter_store(ordering->control, ordering->keys, &one, &stored) ||
        !archive_filter_copy(ordering->control, ordering->pg, &stored, start, "1"))
        return false;
    enum fault fault;
    while (!(fault = pg_copy_next(ordering->pg, &row)) && row.count) {
        struct bytes id = arena_keep(arena, row.fields[0]);
        ARENA_GROW(arena, list, count, room);
        list[count].stored = id.data;
        if (!data_keys_open_id(ordering->keys, arena, bytes_of(class), &id))
            return message_refuse("%s: an id cannot be decrypted: it was altered, or is of another class",
                                  class);
        list[count++].id = id;
    }
    if (fault)
        message_print("reading the ids of %s: %s", class, pg_message(ordering->pg));
    *list_r = list;
    *count_r = count;
    return !fault;
}

static bool add_listed(struct archive_ordering *ordering, const char *class)
{
    struct listed_id *list;
    size_t count;
    if (!read_ids(ordering, class, &list, &count))
        return false;
    if (count)
        qsort(list, count, sizeof *list, by_id);
    const char **ids = ARENA_ARRAY(ordering->control->arena, const char *, count);
    for (size_t i = 0; i < count; i++)
        ids[i] = list[i].stored;
    for (size_t done = 0; done < count; done += PART_DOCUMENTS) {
        struct archive_part *part = add_part(ordering, class);
        part->is_listed = true;
        part->filter.ids = ids + done;
        part->filter.id_count = count - done < PART_DOCUMENTS ? count - done : PART_DOCUMENTS;
    }
    return true;
}

/* The parts, in the arena of the command; `pg` is in the snapshot.  On failure reports why. */
static bool archive_order_find(struct control *control, struct pg *pg, const struct data_keys *keys,
                               const struct archive_filter *filter, struct archive_part **parts_r,
                               size_t *count_r)
{
    struct archive_ordering ordering = {.control = control, .pg = pg, .keys = keys, .filter = filter};
    struct archive_filter stored; /* only whether it can be made */
    struct pg_result *rows;
    if (!data_keys_has_ids(keys)) {
        *parts_r = ARENA_NEW(control->arena, struct archive_part);
        (*parts_r)->filter = *filter;
        *count_r = 1;
        return true;
    }
    if (!archive_filter_store(control, keys, filter, &stored) ||
        !control_query(control, pg, "reading the classes",
                       "select distinct class from stampd.doc order by class", NULL, &rows))
        return false;
    bool is_done = true;
    for (int row = 0; row < pg_rows(rows) && is_done; row++) {
        struct bytes name = pg_get_text(rows, row, 0);
        const char *class = arena_copy(control->arena, name.data, name.size);
        if (!has_class(filter, name))
            continue;
        if (data_keys_encrypts_ids(keys, name))
            is_done = add_listed(&ordering, class);
        else
            add_part(&ordering, class);
    }
    *parts_r = ordering.parts;
    *count_r = ordering.count;
    return is_done;
}

/* --- rows --- */

/* One of the two copies. */
struct side {
    struct pg *pg;
    struct pg_copy_row row; /* the next one, already taken */
};

struct archive_rows {
    struct control *control;
    struct side documents, items;
    struct archive_part *parts; /* what is read, in this order */
    size_t part_count, part;    /* the next one */
    bool is_listed;             /* the present one */
    struct digest *digest;
    struct data_keys *keys;
    struct arena *arena;       /* of the line */
    struct archive_item *list; /* of an encrypted namespace: the items of the line */
    size_t count, room;
    int64_t v1, v2; /* of the document of the line */
};

enum { CLASS, ID };                                                       /* of both */
enum { VERSION = ID + 1, CTIME, DTIME, V1, V2, HEADER_COLUMNS };          /* of documents */
enum { ICLASS = ID + 1, KEY, IVERSION, VOP, CONTENT, RAW, ITEM_COLUMNS }; /* of items */

/* --- the snapshot --- */

/* The planner must not sort a large table when an index has the order. */
static const char begin[] =
    "set jit = off; set enable_hashjoin = off; begin transaction isolation level repeatable read read only";

/* Lets another session have the same snapshot. */
static bool share(struct control *control, struct pg *pg, const char *database, struct pg **items_r)
{
    struct pg_result *row;
    enum fault fault = control_connect(control, database, items_r);
    if (fault == FAULT_ODATABASE)
        message_print("the database %s does not exist", database);
    if (fault ||
        !control_query(control, pg, "sharing the snapshot", "select pg_export_snapshot()", NULL, &row) ||
        !control_execute(*items_r, "sharing the snapshot", begin))
        return false;
    struct bytes name = pg_get_text(row, 0, 0); /* hexadecimal digits and hyphens */
    return control_execute(
        *items_r, "sharing the snapshot",
        arena_printf(control->arena, "set transaction snapshot '%.*s'", (int)name.size, name.data));
}

bool archive_rows_begin_snapshot(struct control *control, struct pg *pg, const char *database,
                                 struct archive_snapshot *snapshot_r)
{
    static const char sql[] =
        "select stampd.stamp_now(), n.floor, pg_current_snapshot()::text,"
        " (select system_identifier::text from pg_control_system()) || ' ' ||"
        " (select oid::text from pg_database where datname = current_database()) || ' ' || n.epoch,"
        " (select greatest(reltuples, 0)::bigint from pg_class where oid = 'stampd.doc'::regclass)"
        " from stampd.namespace n where n.one";
    struct pg_result *row;
    struct pg *items;
    if (!control_execute(pg, "beginning the snapshot", begin) ||
        !control_query(control, pg, "taking the snapshot", sql, NULL, &row) ||
        !share(control, pg, database, &items))
        return false;
    struct bytes snapshot = pg_get_text(row, 0, 2), identity = pg_get_text(row, 0, 3);
    *snapshot_r = (struct archive_snapshot){
        .documents = pg,
        .items = items,
        .at = pg_get_i64(row, 0, 0),
        .floor = pg_get_i64(row, 0, 1),
        .snapshot = arena_copy(control->arena, snapshot.data, snapshot.size),
        .database = arena_copy(control->arena, identity.data, identity.size),
        .document_rows = pg_get_i64(row, 0, 4),
    };
    return true;
}

bool archive_rows_end_snapshot(const struct archive_snapshot *snapshot)
{
    return control_execute(snapshot->documents, "ending the snapshot", "commit") &&
           control_execute(snapshot->items, "ending the snapshot", "commit");
}

/* --- the rows --- */

static const char of_documents[] =
    "copy (select d.class, d.id, d.version, d.ctime, d.dtime, d.v1, d.v2 from stampd.doc d where true";
static const char of_items[] =
    "copy (select d.class, d.id, d.iclass, d.key, d.version, d.vop, d.content, d.raw from stampd.item d"
    " where true";
/* Items do not show when their document was changed last. */
static const char of_changed_items[] =
    "copy (select i.class, i.id, i.iclass, i.key, i.version, i.vop, i.content, i.raw from stampd.doc d"
    " join stampd.item i on i.class = d.class and i.id = d.id where true";
/* In the order of the ids that are listed. */
#define LISTED                                                                                               \
    " from unnest(current_setting('stampd.archive_ids')::text[]) with ordinality u(id, n) join stampd.doc d" \
    " on d.class = (current_setting('stampd.archive_classes')::text[])[1] and d.id = u.id"
static const char of_listed[] =
    "copy (select d.class, d.id, d.version, d.ctime, d.dtime, d.v1, d.v2" LISTED " where true";
static const char of_listed_items[] =
    "copy (select i.class, i.id, i.iclass, i.key, i.version, i.vop, i.content, i.raw" LISTED
    " join stampd.item i on i.class = d.class and i.id = d.id where true";

static bool next_row(struct side *side, int columns)
{
    if (pg_copy_next(side->pg, &side->row) == FAULT_NONE &&
        (side->row.count == 0 || side->row.count == columns))
        return true;
    return message_refuse("reading the documents: %s", pg_message(side->pg));
}

bool archive_rows_open(struct control *control, const struct archive_snapshot *snapshot,
                       const struct archive_filter *filter, struct archive_rows **rows_r)
{
    struct data_keys *keys;
    struct archive_part *parts;
    size_t count;
    *rows_r = NULL;
    if (!ns_keys_read(control, snapshot->documents, &keys) ||
        !archive_order_find(control, snapshot->documents, keys, filter, &parts, &count))
        return false;
    struct archive_rows *rows = memory_zeroed(1, sizeof *rows, "archive");
    rows->control = control;
    rows->parts = parts;
    rows->part_count = count;
    rows->documents.pg = snapshot->documents;
    rows->items.pg = snapshot->items;
    rows->digest = digest_create();
    rows->keys = keys;
    rows->arena = arena_create("archive line");
    *rows_r = rows;
    return true;
}

static bool copy_part(struct archive_rows *rows, const struct archive_part *part)
{
    struct control *control = rows->control;
    const struct archive_filter *filter = &part->filter;
    struct pg *documents = rows->documents.pg, *items = rows->items.pg;
    bool is_joined = filter->since_version || filter->since_snapshot;
    rows->is_listed = part->is_listed;
    if (part->is_listed)
        return archive_filter_copy(control, documents, filter, of_listed, "u.n") &&
               archive_filter_copy(control, items, filter, of_listed_items, "u.n, i.iclass, i.key");
    return archive_filter_copy(control, documents, filter, of_documents, "d.class, d.id") &&
           archive_filter_copy(control, items, filter, is_joined ? of_changed_items : of_items,
                               is_joined ? "i.class, i.id, i.iclass, i.key"
                                         : "d.class, d.id, d.iclass, d.key");
}

/* The next part that has a document; ARCHIVE_ROWS_LINE: it has begun. */
static enum archive_rows_event begin_part(struct archive_rows *rows)
{
    while (!rows->documents.row.count) {
        while (rows->items.row.count)
            if (!next_row(&rows->items, ITEM_COLUMNS))
                return ARCHIVE_ROWS_FAILED;
        if (rows->part == rows->part_count)
            return ARCHIVE_ROWS_END;
        if (!copy_part(rows, &rows->parts[rows->part++]) || !next_row(&rows->documents, HEADER_COLUMNS) ||
            !next_row(&rows->items, ITEM_COLUMNS))
            return ARCHIVE_ROWS_FAILED;
    }
    return ARCHIVE_ROWS_LINE;
}

/* Below 0: the item is of an earlier document, which there is no row of; 0: of this one. */
static int archive_rows_compare(const struct archive_rows *rows)
{
    const struct bytes *header = rows->documents.row.fields, *item = rows->items.row.fields;
    if (!rows->items.row.count)
        return 1;
    int order = bytes_compare(item[CLASS], header[CLASS]);
    if (!order)
        order = bytes_compare(item[ID], header[ID]);
    return order && rows->is_listed ? 1 : order; /* those of a list have documents */
}

static struct bytes archive_rows_copy(struct arena *arena, struct bytes text)
{
    return text.data ? arena_keep(arena, text) : NO_BYTES;
}

/* Rows are ordered by the keys that are stored: of an encrypted namespace the items are kept, with copies of
 * their texts, until they can be ordered by their own. */
static void keep_item(struct archive_rows *rows, const struct archive_item *item)
{
    ARENA_GROW(rows->arena, rows->list, rows->count, rows->room);
    rows->list[rows->count++] = (struct archive_item){archive_rows_copy(rows->arena, item->class),
                                                      archive_rows_copy(rows->arena, item->key),
                                                      item->version,
                                                      item->vop,
                                                      archive_rows_copy(rows->arena, item->content),
                                                      item->is_raw};
}

/* Adds the item of the row to the line, or keeps it for add_kept(). */
static bool take_item(struct archive_rows *rows, const struct archive_header *header, struct builder *text,
                      bool is_first)
{
    const struct bytes *fields = rows->items.row.fields;
    struct bytes content = fields[CONTENT];
    struct item_place place = {
        fields[CLASS], header->id, fields[ICLASS], fields[KEY], pg_copy_bool(fields[RAW]), BYTES("")};
    if (!data_keys_open_item(rows->keys, rows->arena, &place, &content))
        return message_refuse(
            "%.*s/%.*s: an item cannot be decrypted: it was altered, or is of another place",
            (int)place.class.size, place.class.data, (int)place.id.size, place.id.data);
    const struct archive_item item = {fields[ICLASS],           place.key, pg_copy_i64(fields[IVERSION]),
                                      pg_copy_i64(fields[VOP]), content,   place.is_raw};
    if (rows->keys->count)
        keep_item(rows, &item);
    else
        archive_line_add_item(text, &item, is_first);
    return true;
}

static int by_class_and_key(const void *a, const void *b)
{
    const struct archive_item *one = a, *other = b;
    int order = bytes_compare(one->class, other->class);
    return order ? order : bytes_compare(one->key, other->key);
}

static void add_kept(struct archive_rows *rows, struct builder *text)
{
    if (rows->count)
        qsort(rows->list, rows->count, sizeof *rows->list, by_class_and_key);
    for (size_t i = 0; i < rows->count; i++)
        archive_line_add_item(text, &rows->list[i], i == 0);
}

enum archive_rows_event archive_rows_next(struct archive_rows *rows, struct builder *text,
                                          struct archive_sum *sum)
{
    size_t began = text->size;
    bool is_first = true;
    arena_reset(rows->arena);
    rows->list = NULL;
    rows->count = rows->room = 0;
    enum archive_rows_event event = begin_part(rows);
    if (event != ARCHIVE_ROWS_LINE)
        return event;
    const struct bytes *fields = rows->documents.row.fields;
    struct archive_header header = {fields[CLASS], fields[ID], pg_copy_i64(fields[VERSION]),
                                    pg_copy_i64(fields[CTIME]), pg_copy_i64(fields[DTIME])};
    if (!data_keys_open_id(rows->keys, rows->arena, header.class, &header.id)) {
        message_print("%.*s: an id cannot be decrypted: it was altered, or is of another class",
                      (int)header.class.size, header.class.data);
        return ARCHIVE_ROWS_FAILED;
    }
    rows->v1 = pg_copy_i64(fields[V1]);
    rows->v2 = pg_copy_i64(fields[V2]);
    archive_line_begin(text, &header);
    for (int order; (order = archive_rows_compare(rows)) <= 0;) {
        if (header.ctime && order == 0) {
            if (!take_item(rows, &header, text, is_first))
                return ARCHIVE_ROWS_FAILED;
            is_first = false;
            sum->items++;
        }
        if (!next_row(&rows->items, ITEM_COLUMNS))
            return ARCHIVE_ROWS_FAILED;
    }
    add_kept(rows, text);
    archive_line_end(text, &header);
    sum->documents += header.ctime != 0;
    sum->deleted += header.ctime == 0;
    sum->highest = header.version > sum->highest ? header.version : sum->highest;
    archive_sum_add(sum, rows->digest, (struct bytes){text->data + began, text->size - began});
    return next_row(&rows->documents, HEADER_COLUMNS) ? ARCHIVE_ROWS_LINE : ARCHIVE_ROWS_FAILED;
}

void archive_rows_volumes(const struct archive_rows *rows, int64_t *v1_r, int64_t *v2_r)
{
    *v1_r = rows->v1;
    *v2_r = rows->v2;
}

void archive_rows_close(struct archive_rows *rows)
{
    if (!rows)
        return;
    digest_destroy(rows->digest);
    arena_destroy(rows->arena);
    free(rows);
}

/* What selects documents is passed in settings of the session. */

/* COPY has no parameters: what selects documents is passed in settings of the session. */
static bool archive_filter_set(struct control *control, struct pg *pg, const char *name,
                               const char *const *texts, size_t count)
{
    struct pg_result *row;
    struct bytes *values = ARENA_ARRAY(control->arena, struct bytes, count + 1);
    for (size_t i = 0; i < count; i++)
        values[i] = bytes_of(texts[i]);
    return control_query(control, pg, "selecting documents",
                         "select set_config($1::text, ($2::text[])::text, false)",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(name)), PG_TEXTS(values, count)), &row);
}

static bool set_all(struct control *control, struct pg *pg, const struct archive_filter *filter)
{
    const char *version = arena_printf(control->arena, "%lld", (long long)filter->since_version);
    return archive_filter_set(control, pg, "stampd.archive_classes", filter->classes, filter->class_count) &&
           archive_filter_set(control, pg, "stampd.archive_ids", filter->ids, filter->id_count) &&
           archive_filter_set(control, pg, "stampd.archive_version", &version, 1) &&
           archive_filter_set(control, pg, "stampd.archive_snapshot", &filter->since_snapshot, 1) &&
           archive_filter_set(control, pg, "stampd.archive_code", &filter->configuration, 1);
}

static const char of_classes[] = " and d.class = any (current_setting('stampd.archive_classes')::text[])";
static const char of_ids[] = " and d.id = any (current_setting('stampd.archive_ids')::text[])";
static const char since_version[] =
    " and d.version > (current_setting('stampd.archive_version')::text[])[1]::bigint";
/* The low half of the number of a transaction stands in each row; older than 2^31 transactions is as good as
 * newer: it is included once more. */
static const char since_snapshot[] =
    " and mod(d.xmin::text::bigint - mod(pg_snapshot_xmin((current_setting('stampd.archive_snapshot')"
    "::text[])[1]::pg_snapshot)::text::bigint, 4294967296) + 4294967296, 4294967296) < 2147483648";
static const char of_configuration[] =
    " and ((d.class in ('Namespace', 'Schema', 'Resources') and"
    " d.id = (current_setting('stampd.archive_code')::text[])[1]) or (d.class = 'Resource' and"
    " starts_with(d.id, (current_setting('stampd.archive_code')::text[])[1] || '/')))";

static void archive_filter_add(struct builder *sql, bool is_wanted, const char *text)
{
    if (is_wanted)
        builder_add_bytes(sql, bytes_of(text));
}

bool archive_filter_copy(struct control *control, struct pg *pg, const struct archive_filter *filter,
                         const char *start, const char *order)
{
    struct builder sql = {0};
    if (!set_all(control, pg, filter))
        return false;
    archive_filter_add(&sql, true, start);
    archive_filter_add(&sql, filter->class_count > 0, of_classes);
    archive_filter_add(&sql, filter->id_count > 0, of_ids);
    archive_filter_add(&sql, filter->since_version > 0, since_version);
    archive_filter_add(&sql, filter->since_snapshot != NULL, since_snapshot);
    archive_filter_add(&sql, filter->configuration != NULL, of_configuration);
    builder_printf(&sql, " order by %s) to stdout (format binary)", order);
    enum fault fault = pg_copy_out(pg, sql.data);
    builder_free(&sql);
    if (fault)
        message_print("reading the documents: %s", pg_message(pg));
    return fault == FAULT_NONE;
}

bool archive_filter_store(struct control *control, const struct data_keys *keys,
                          const struct archive_filter *filter, struct archive_filter *stored_r)
{
    struct arena *arena = control->arena;
    *stored_r = *filter;
    if (!filter->id_count || !data_keys_has_ids(keys))
        return true;
    size_t encrypted = 0;
    for (size_t c = 0; c < filter->class_count; c++)
        encrypted += data_keys_encrypts_ids(keys, bytes_of(filter->classes[c]));
    if (!filter->class_count || (encrypted && encrypted < filter->class_count)) {
        /* the database would read the id in clear, for the other classes */
        return message_refuse("--id is expected with --class, of classes with encrypted ids or of others");
    }
    const char **ids = ARENA_ARRAY(arena, const char *, filter->class_count * filter->id_count);
    size_t count = 0;
    for (size_t c = 0; c < filter->class_count; c++)
        for (size_t i = 0; i < filter->id_count; i++) {
            struct bytes stored =
                data_keys_seal_id(keys, arena, bytes_of(filter->classes[c]), bytes_of(filter->ids[i]));
            ids[count++] = arena_copy(arena, stored.data, stored.size);
        }
    stored_r->ids = ids;
    stored_r->id_count = count;
    return true;
}
