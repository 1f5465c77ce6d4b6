/* archive_batch: by COPY when rows are restored, by an SQL function when documents are merged. */
#include "control/archive/archive_batch.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "control/archive/archive_line.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "edge/pg/pg_copy.h"
#include "model/document/attachment.h"
#include "store/documents/store_shown.h"

enum { HEADER_COLUMNS = 7, ITEM_COLUMNS = 8, DEPTH_MOST = 128 };

struct archive_batch {
    struct control *control;
    struct pg *pg;
    struct arena *arena; /* of the lines of this batch */
    struct digest *digest;
    struct data_keys *keys; /* NULL: not read yet */
    struct archive_document *documents;
    size_t count, room;
    struct builder headers, items, line;
    bool attaches, is_prepared;
};

struct archive_batch *archive_batch_create(struct control *control, struct pg *pg, bool attaches)
{
    struct archive_batch *batch = memory_zeroed(1, sizeof *batch, "archive");
    batch->control = control;
    batch->pg = pg;
    batch->attaches = attaches;
    batch->arena = arena_create("archive");
    batch->digest = digest_create();
    return batch;
}

void archive_batch_destroy(struct archive_batch *batch)
{
    arena_destroy(batch->arena);
    digest_destroy(batch->digest);
    builder_free(&batch->headers);
    builder_free(&batch->items);
    builder_free(&batch->line);
    free(batch);
}

/* --- reading --- */

static bool archive_batch_complain(struct bytes line, const char *problem)
{
    return message_refuse("%s, not %.*s%s", problem, (int)(line.size < 100 ? line.size : 100), line.data,
                          line.size < 100 ? "" : "…");
}

static bool check_attachments(struct archive_batch *batch, struct bytes line,
                              const struct archive_document *document)
{
    struct attachment attachment;
    for (size_t i = 0; i < document->count; i++) {
        const struct archive_item *item = &document->items[i];
        if (!bytes_equal(item->class, ATTACHMENT_CLASS))
            continue;
        if (!batch->attaches)
            return archive_batch_complain(line, "expected a document without attachments");
        if (!item->key.size || (item->content.data &&
                                (item->is_raw || !attachment_read(batch->arena, item->content, &attachment))))
            return archive_batch_complain(line, "expected items of class P that describe files");
    }
    return true;
}

static bool archive_batch_read_line(struct archive_batch *batch, struct bytes line, bool is_checked)
{
    static const struct json_limits limits = {.depth = DEPTH_MOST, .tree_depth = 0};
    const char *expected;
    struct json_problem problem;
    struct json *root;
    if (is_checked && json_read(batch->arena, line, &limits, &root, &problem) != FAULT_NONE)
        return archive_batch_complain(line, problem.what);
    ARENA_GROW(batch->arena, batch->documents, batch->count, batch->room);
    struct archive_document *document = &batch->documents[batch->count++];
    if (!archive_line_read(batch->arena, line, document, &expected))
        return archive_batch_complain(line, expected);
    return check_attachments(batch, line, document);
}

/* Locks are taken in this order by everybody.  Of two lines of one document the later version is merged last.
 */
static int by_name(const void *a, const void *b)
{
    const struct archive_header *first = &((const struct archive_document *)a)->header;
    const struct archive_header *second = &((const struct archive_document *)b)->header;
    int order = bytes_compare(first->class, second->class);
    if (!order)
        order = bytes_compare(first->id, second->id);
    return order ? order : (first->version > second->version) - (first->version < second->version);
}

bool archive_batch_read(struct archive_batch *batch, struct bytes lines, bool is_checked)
{
    arena_reset(batch->arena);
    batch->documents = NULL;
    batch->count = batch->room = 0;
    while (lines.size) {
        struct bytes line = bytes_cut(&lines, '\n');
        if (!archive_batch_read_line(batch, line, is_checked))
            return false;
    }
    if (batch->count)
        qsort(batch->documents, batch->count, sizeof *batch->documents, by_name);
    return true;
}

void archive_batch_each(struct archive_batch *batch, void (*change)(void *, struct archive_document *),
                        void *context)
{
    for (size_t i = 0; i < batch->count; i++)
        change(context, &batch->documents[i]);
}

/* --- restoring rows --- */

static struct bytes stored_id(const struct archive_batch *batch, const struct archive_header *header)
{
    return data_keys_seal_id(batch->keys, batch->arena, header->class, header->id);
}

static void add_header_row(struct archive_batch *batch, const struct archive_document *document)
{
    struct builder *rows = &batch->headers;
    const struct archive_header *header = &document->header;
    pg_copy_add_row(rows, HEADER_COLUMNS);
    pg_copy_add_text(rows, header->class);
    pg_copy_add_text(rows, stored_id(batch, header));
    pg_copy_add_i64(rows, header->version);
    pg_copy_add_i64(rows, header->ctime);
    pg_copy_add_i64(rows, header->dtime);
    pg_copy_add_i64(rows, document->bytes);
    pg_copy_add_i64(rows, archive_line_attached(document));
}

static void add_item_row(struct archive_batch *batch, const struct archive_header *header,
                         const struct archive_item *item)
{
    struct builder *rows = &batch->items;
    struct item_place place = {header->class, header->id, item->class, item->key, item->is_raw, BYTES("")};
    store_shown_add(batch->keys, batch->arena, NULL, &place, item->content); /* no schema is applied yet */
    pg_copy_add_row(rows, ITEM_COLUMNS);
    pg_copy_add_text(rows, header->class);
    pg_copy_add_text(rows, stored_id(batch, header));
    pg_copy_add_text(rows, item->class);
    pg_copy_add_text(rows, data_keys_seal_key(batch->keys, batch->arena, &place));
    pg_copy_add_i64(rows, item->version);
    pg_copy_add_i64(rows, item->vop);
    pg_copy_add_text(rows, data_keys_seal_content(batch->keys, batch->arena, &place, item->content));
    pg_copy_add_bool(rows, item->is_raw);
}

static void add_rows(struct archive_batch *batch, const struct archive_document *document,
                     struct archive_sum *sum)
{
    const struct archive_header *header = &document->header;
    builder_clear(&batch->line, 1 << 20);
    archive_line_begin(&batch->line, header);
    add_header_row(batch, document);
    for (size_t i = 0; i < document->count; i++) {
        add_item_row(batch, header, &document->items[i]);
        archive_line_add_item(&batch->line, &document->items[i], i == 0);
    }
    archive_line_end(&batch->line, header);
    sum->documents += header->ctime != 0;
    sum->deleted += header->ctime == 0;
    sum->items += (int64_t)document->count;
    sum->highest = header->version > sum->highest ? header->version : sum->highest;
    archive_sum_add(sum, batch->digest, builder_bytes(&batch->line));
}

static bool copy_in(struct archive_batch *batch, const char *sql, const struct builder *rows)
{
    if (!rows->size || pg_copy_in(batch->pg, sql, builder_bytes(rows)) == FAULT_NONE)
        return true;
    return message_refuse("storing documents: %s", pg_message(batch->pg));
}

static bool has_versions(const struct archive_document *document)
{
    const struct archive_header *header = &document->header;
    if (header->version > 0 && document->is_deleted == !header->ctime && header->ctime <= header->version &&
        header->dtime <= header->version)
        return true;
    return message_refuse("%.*s/%.*s: \"v\", \"ct\" and \"dt\" are not those of a document",
                          (int)header->class.size, header->class.data, (int)header->id.size, header->id.data);
}

bool archive_batch_restore(struct archive_batch *batch, struct archive_sum *sum)
{
    builder_clear(&batch->headers, 1 << 24);
    builder_clear(&batch->items, 1 << 24);
    if (!batch->keys && !ns_keys_read(batch->control, batch->pg, &batch->keys))
        return false;
    for (size_t i = 0; i < batch->count; i++) {
        if (!has_versions(&batch->documents[i]))
            return false;
        add_rows(batch, &batch->documents[i], sum);
    }
    return copy_in(batch,
                   "copy stampd.doc (class, id, version, ctime, dtime, v1, v2) from stdin (format binary)",
                   &batch->headers) &&
           copy_in(batch,
                   "copy stampd.item (class, id, iclass, key, version, vop, content, raw) from stdin"
                   " (format binary)",
                   &batch->items);
}

/* --- merging documents --- */

static const struct pg_statement statements[] = {
    {"import_document",
     "select stampd.import_document($1::text, $2::text, $3::text[], $4::text[], $5::text[], $6::bool[], "
     "$7::bigint <> 0)",
     7},
    {"import_deletion", "select coalesce(stampd.delete_document($1::text, $2::text), 0)", 2},
};

static void archive_batch_add_items(struct pg_params *params, struct arena *arena,
                                    const struct archive_document *document)
{
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, document->count + 1);
    struct bytes *keys = ARENA_ARRAY(arena, struct bytes, document->count + 1);
    struct bytes *contents = ARENA_ARRAY(arena, struct bytes, document->count + 1);
    bool *raws = ARENA_ARRAY(arena, bool, document->count + 1);
    size_t count = 0;
    for (size_t i = 0; i < document->count; i++) {
        const struct archive_item *item = &document->items[i];
        if (!item->content.data)
            continue; /* a tombstone */
        classes[count] = item->class;
        keys[count] = item->key;
        contents[count] = item->content;
        raws[count++] = item->is_raw;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(keys, count), PG_TEXTS(contents, count));
    pg_params_add_bool_array(params, raws, count);
}

static enum fault merge_one(struct archive_batch *batch, const struct archive_document *document,
                            int64_t *changed)
{
    const struct archive_header *header = &document->header;
    struct pg_result *row;
    bool is_deletion = document->is_deleted;
    struct pg_params *params = PG_PARAMS(batch->arena, PG_TEXT(header->class), PG_TEXT(header->id));
    if (!is_deletion) {
        archive_batch_add_items(params, batch->arena, document);
        pg_params_add_i64(params, batch->attaches);
    }
    enum fault fault = pg_run(batch->pg, &statements[is_deletion], params, &row);
    if (!fault)
        *changed += pg_get_i64(row, 0, 0) != 0;
    else if (fault != FAULT_STALE)
        message_print("%.*s/%.*s: %s%s%s", (int)header->class.size, header->class.data, (int)header->id.size,
                      header->id.data, pg_message(batch->pg), *pg_detail(batch->pg) ? ": " : "",
                      pg_detail(batch->pg));
    return fault;
}

enum fault archive_batch_merge(struct archive_batch *batch, bool deletes, int64_t *changed_r)
{
    enum fault fault = FAULT_NONE;
    *changed_r = 0;
    if (!batch->is_prepared)
        fault = pg_prepare(batch->pg, statements, COUNT_OF(statements));
    batch->is_prepared = true;
    for (size_t i = 0; i < batch->count && !fault; i++)
        if (!batch->documents[i].is_deleted || deletes)
            fault = merge_one(batch, &batch->documents[i], changed_r);
    return fault;
}

/* Begin, merge, record, commit; again after a conflict. */

/* The plans of a session of stampd (commit.md 1.6), which serve all documents: else PostgreSQL plans the
 * functions of a commit again and again, which takes more than running them. */
const char archive_merge_begin[] =
    "begin; set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off;"
    " set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off";

enum { MERGE_TRIES = 100, MERGE_PAUSE_MS = 50 };

bool archive_merge_recorded(struct pg *pg, struct archive_batch *batch, bool deletes,
                            archive_recorder *record, void *context)
{
    int64_t changed;
    for (int try = 0; try < MERGE_TRIES; try++) {
        if (!control_execute(pg, "storing documents", archive_merge_begin))
            return false;
        enum fault fault = archive_batch_merge(batch, deletes, &changed);
        if (fault == FAULT_NONE)
            return record(context, changed) && control_execute(pg, "storing documents", "commit");
        if (!control_execute(pg, "storing documents", "rollback") || fault != FAULT_STALE)
            return false;
        clock_sleep_ms(MERGE_PAUSE_MS); /* others hold its documents */
    }
    return message_refuse("documents are locked by others for too long");
}

struct recorded_merge {
    struct pg *pg;
    struct import_progress *done;
};

static bool move(void *context, int64_t changed)
{
    const struct recorded_merge *merge = context;
    merge->done->sum.documents += changed;
    return import_progress_move(merge->pg, merge->done);
}

bool archive_merge_run(struct pg *pg, struct archive_batch *batch, bool deletes, struct import_progress *done)
{
    struct recorded_merge merge = {pg, done};
    return archive_merge_recorded(pg, batch, deletes, move, &merge);
}
