/* archive_replace: two passes; the first frees the unique values of all documents, since one may take what
 * another, which comes later, gives up. */
#include "control/archive/archive_replace.h"

#include "control/archive/archive_batch.h"
#include "control/archive/importer_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/schema/schema_plan.h"
#include "store/documents/store_shown.h"

struct replacing {
    struct pg *pg;
    struct arena *arena; /* of a document */
    struct data_keys *keys;
    const struct schema
        *schema; /* that is applied: the database finds encrypted documents by what it names */
    struct archive_batch *batch;
    void (*change)(void *, struct archive_document *); /* of the pass */
    bool has_failed;
};

static const struct pg_statement statements[] = {
    {"replace_free",
     "delete from stampd.unique_value v using stampd.unique_property u"
     " where u.class = $1::text and v.property = u.number and v.id = $2::text",
     2},
    {"replace_document",
     "select stampd.restore_document($1::text, $2::text, $3::bigint, $4::bigint, $5::bigint, $6::bigint,"
     " $7::bigint, $8::text[], $9::text[], $10::bigint[], $11::bigint[], $12::text[], $13::bool[])",
     13},
};

static void run_archive_replace(struct replacing *replacing, const struct archive_header *header,
                                const struct pg_statement *statement, const struct pg_params *params)
{
    if (pg_run(replacing->pg, statement, params, NULL) == FAULT_NONE)
        return;
    message_print("%.*s/%.*s: %s", (int)header->class.size, header->class.data, (int)header->id.size,
                  header->id.data, pg_message(replacing->pg));
    replacing->has_failed = true;
}

static void archive_replace_begin(struct replacing *replacing, const struct archive_header *header,
                                  struct pg_params *params)
{
    arena_reset(replacing->arena);
    pg_params_start(params, replacing->arena);
    PG_PARAMS_ADD(params, PG_TEXT(header->class),
                  PG_TEXT(data_keys_seal_id(replacing->keys, replacing->arena, header->class, header->id)));
}

static void free_values(void *context, struct archive_document *document)
{
    struct replacing *replacing = context;
    struct pg_params params;
    if (replacing->has_failed)
        return;
    archive_replace_begin(replacing, &document->header, &params);
    run_archive_replace(replacing, &document->header, &statements[0], &params);
}

static void archive_replace_add_items(struct replacing *replacing, const struct archive_document *document,
                                      struct pg_params *params)
{
    struct arena *arena = replacing->arena;
    const struct archive_header *header = &document->header;
    size_t count = document->count;
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, count + 1);
    struct bytes *keys = ARENA_ARRAY(arena, struct bytes, count + 1);
    struct bytes *contents = ARENA_ARRAY(arena, struct bytes, count + 1);
    int64_t *versions = ARENA_ARRAY(arena, int64_t, count + 1);
    int64_t *stamps = ARENA_ARRAY(arena, int64_t, count + 1);
    bool *raws = ARENA_ARRAY(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        const struct archive_item *item = &document->items[i];
        struct item_place place = {header->class, header->id,   item->class,
                                   item->key,     item->is_raw, BYTES("")};
        classes[i] = item->class;
        store_shown_add(replacing->keys, arena, replacing->schema, &place, item->content);
        keys[i] = data_keys_seal_key(replacing->keys, arena, &place);
        versions[i] = item->version;
        stamps[i] = item->vop;
        contents[i] = data_keys_seal_content(replacing->keys, arena, &place, item->content);
        raws[i] = item->is_raw;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(keys, count), PG_I64S(versions, count),
                  PG_I64S(stamps, count), PG_TEXTS(contents, count));
    pg_params_add_bool_array(params, raws, count);
}

static void replace(void *context, struct archive_document *document)
{
    struct replacing *replacing = context;
    const struct archive_header *header = &document->header;
    struct pg_params params;
    if (replacing->has_failed)
        return;
    archive_replace_begin(replacing, header, &params);
    PG_PARAMS_ADD(&params, PG_I64(header->version), PG_I64(header->ctime), PG_I64(header->dtime),
                  PG_I64(document->bytes), PG_I64(archive_line_attached(document)));
    archive_replace_add_items(replacing, document, &params);
    run_archive_replace(replacing, header, &statements[1], &params);
}

static bool take_documents(void *context, struct archive_reader *reader UNUSED, struct bytes name,
                           struct bytes lines)
{
    struct replacing *replacing = context;
    if (!archive_reader_has_documents(name))
        return true;
    if (!archive_batch_read(replacing->batch, lines, false))
        return false;
    archive_batch_each(replacing->batch, replacing->change, replacing);
    return !replacing->has_failed;
}

static bool archive_replace_pass(struct replacing *replacing, const char *path,
                                 const struct archive_contents *contents,
                                 void (*change)(void *, struct archive_document *))
{
    replacing->change = change;
    return archive_reader_each(path, contents, take_documents, replacing);
}

static bool archive_replace_take_file(void *context, struct archive_reader *reader, struct bytes name,
                                      struct bytes bytes UNUSED)
{
    struct blob_digest digest;
    return !archive_files_read_name(name, &digest) || importer_files_store(context, reader, name);
}

bool archive_replace_files(struct control *control, const struct ns_target *target, const char *path,
                           const struct archive_contents *contents)
{
    if (!importer_files_check(control, target, contents))
        return false;
    struct importer_files *files = importer_files_open(control, target);
    bool is_right = files && archive_reader_each(path, contents, archive_replace_take_file, files);
    importer_files_close(files);
    return is_right;
}

bool archive_replace_run(struct control *control, struct pg *pg, const char *path,
                         const struct archive_contents *contents)
{
    struct replacing replacing = {
        .pg = pg, .arena = arena_create("replaced"), .batch = archive_batch_create(control, pg, true)};
    struct schema_plan plan;
    bool is_done = ns_keys_read(control, pg, &replacing.keys) && schema_plan_read_applied(control, pg, &plan);
    replacing.schema = is_done ? plan.applied : NULL;
    if (is_done && pg_prepare(pg, statements, COUNT_OF(statements)) != FAULT_NONE) {
        message_print("storing documents: %s", pg_message(pg));
        is_done = false;
    }
    is_done = is_done && archive_replace_pass(&replacing, path, contents, free_values) &&
              archive_replace_pass(&replacing, path, contents, replace) &&
              control_execute(pg, "storing documents", "deallocate all");
    archive_batch_destroy(replacing.batch);
    arena_destroy(replacing.arena);
    return is_done;
}
