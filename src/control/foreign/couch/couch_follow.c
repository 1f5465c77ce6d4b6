/* couch_follow: pages, until one of _changes has nothing new.
 *
 * The sequence of the database is read before its first document, so no change is missed between the two.  A
 * page of _all_docs begins with the last document of the one before, which may have been deleted: it is left
 * out when it is there. */
#include "control/foreign/couch/couch_follow.h"

#include <stdio.h>
#include <string.h>

#include "control/archive/archive_batch.h"
#include "control/archive/import_progress.h"
#include "control/documents/progress.h"
#include "control/foreign/couch/couch_mapping.h"
#include "control/foreign/couch/couch_text.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"

/* How far a database of CouchDB has been brought in, in the table `import_source` of the
 * namespace.
 *
 * {"made":…,"since":…,"copies":true,"after":…}: the creation of the database as it states it; the sequence
 * that _changes goes on from; whether _all_docs is still being read, and the id up to which it was.  All
 * values are as CouchDB writes them. */

struct couch_position {
    const char *source;              /* address, and digest of the mapping */
    struct bytes made, since, after; /* texts of JSON; `after` NO_BYTES: nothing was read */
    bool is_copying;
    int64_t documents; /* read so far */
};

static struct bytes couch_position_keep(struct arena *arena, struct bytes text)
{
    return text.data ? arena_keep(arena, text) : NO_BYTES;
}

static void couch_position_read_text(struct arena *arena, struct bytes text, struct couch_position *position)
{
    struct bytes own = couch_position_keep(arena, text);
    position->made = couch_text_member(own, BYTES("made"));
    position->since = couch_text_member(own, BYTES("since"));
    position->after = couch_text_member(own, BYTES("after"));
    position->is_copying = couch_text_member(own, BYTES("copies")).size > 0;
}

/* Each on failure reports why. */
/* Excludes other imports, and reads the row; without one `is_there_r` is false. */
MUST_USE static bool couch_position_take(struct control *control, struct pg *pg, const char *code,
                                         struct couch_position *position, bool *is_there_r)
{
    struct import_progress other;
    struct pg_result *row;
    bool is_other;
    if (!import_progress_lock(control, pg) || !import_progress_read(control, pg, &is_other, &other))
        return false;
    if (is_other)
        return message_refuse(
            "an import of an archive or a file was interrupted: complete it, or give it up with import "
            "--abandon %s",
            code);
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(position->source)));
    if (!control_query(control, pg, "reading how far the import has come",
                       "select position, documents from stampd.import_source where source = $1::text", params,
                       &row))
        return false;
    *is_there_r = pg_rows(row) > 0;
    if (*is_there_r) {
        couch_position_read_text(control->arena, pg_get_text(row, 0, 0), position);
        position->documents = pg_get_i64(row, 0, 1);
    }
    return true;
}

static void couch_position_add(struct builder *json, const char *name, struct bytes text)
{
    if (!text.data)
        return;
    builder_printf(json, "%s\"%s\":", json->size > 1 ? "," : "", name);
    builder_add_bytes(json, text);
}

/* Stores the position, within the transaction that stores documents, or alone. */
MUST_USE static bool couch_position_store(struct control *control, struct pg *pg,
                                          const struct couch_position *position)
{
    struct pg_result *row;
    struct builder json = {0};
    builder_add_text(&json, "{");
    couch_position_add(&json, "made", position->made);
    couch_position_add(&json, "since", position->since);
    couch_position_add(&json, "copies", position->is_copying ? BYTES("true") : NO_BYTES);
    couch_position_add(&json, "after", position->is_copying ? position->after : NO_BYTES);
    builder_add_text(&json, "}");
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(position->source)),
                                               PG_TEXT(builder_bytes(&json)), PG_I64(position->documents));
    bool is_stored = control_query(
        control, pg, "recording how far the import has come",
        "insert into stampd.import_source (source, position, documents) values ($1::text, $2::text, "
        "$3::bigint)"
        " on conflict (source) do update set position = excluded.position, documents = excluded.documents,"
        " moved = now()",
        params, &row);
    builder_free(&json);
    return is_stored;
}

/* The next import begins anew. */
MUST_USE static bool couch_position_forget(struct control *control, struct pg *pg, const char *source)
{
    struct pg_result *row;
    return control_query(control, pg, "beginning anew",
                         "delete from stampd.import_source where source = $1::text",
                         PG_PARAMS(control->arena, PG_TEXT(bytes_of(source))), &row);
}

enum {
    PAGE_MOST = 200, /* documents of a page; fewer where they are large */
    PAGE_LEAST = 2,  /* one is that of the page before */
    BATCH_BYTES = 1 << 20,
    PROBLEMS_SHOWN = 20,
    NAME_SHOWN = 100,
};

struct couch_follow {
    struct control *control;
    const struct couch_follow_options *options;
    struct couch_mapping *mapping;
    struct couch_server *server;
    struct couch_server
        *single; /* for single documents, while a page is being read; NULL: not needed so far */
    struct couch_position position, reached; /* stored; of the last row in `lines` */
    struct ns_target target;
    struct archive_batch *batch; /* NULL: a dry run, as are `files` */
    struct importer_files *files;
    struct arena *row_arena, *page_arena;
    struct builder query, lines, whole; /* whole: a row with the bytes of its attachments */
    struct progress progress;
    int64_t page_size, number;           /* of the next line of the batch */
    int64_t read, wrong, changed, total; /* total: documents that the server has; 0: not known */
};

/* --- storing --- */

static bool couch_follow_record(void *context, int64_t changed)
{
    struct couch_follow *follow = context;
    follow->changed += changed;
    return couch_position_store(follow->control, follow->target.pg, &follow->reached);
}

/* What was read since the last call, with its position. */
static bool couch_follow_store(struct couch_follow *follow)
{
    bool is_stored =
        !follow->batch ||
        (archive_batch_read(follow->batch, builder_bytes(&follow->lines), false) &&
         archive_merge_recorded(follow->target.pg, follow->batch, true, couch_follow_record, follow));
    follow->number = 0;
    builder_clear(&follow->lines, 2 * BATCH_BYTES);
    return is_stored;
}

/* --- rows --- */

static void couch_follow_report(struct couch_follow *follow, struct bytes id, const char *problem)
{
    progress_clear(&follow->progress);
    message_print("%s: the document %.*s: %s", follow->options->server.url,
                  (int)(id.size < NAME_SHOWN ? id.size : NAME_SHOWN), id.size ? id.data : "", problem);
}

/* GET of a document whose attachments came as stubs.  It is the current revision: the one of the row, or a
 * later one, whose change follows; the one of the row may have been compacted.  False: reported. */
static bool fetch_whole(struct couch_follow *follow, struct bytes id, const char **problem_r)
{
    struct json *text;
    struct bytes document;
    if (!json_is_tree(follow->row_arena, id, 1, 1, &text) || text->kind != JSON_STRING)
        return true; /* the mapping has accepted it */
    if (!follow->single)
        follow->single = couch_server_open(&follow->options->server);
    builder_clear(&follow->query, 1 << 16);
    builder_add_text(&follow->query, "/");
    couch_server_escape(&follow->query, text->value);
    builder_add_text(&follow->query, "?attachments=true&att_encoding_info=true");
    builder_add(&follow->query, "", 1);
    switch (couch_server_get(follow->single, follow->query.data, &document)) {
    case COUCH_ANSWERED:
        couch_text_wrap(&follow->whole, id, document, !follow->position.is_copying);
        *problem_r = NULL;
        return true;
    case COUCH_TOO_LARGE:
        *problem_r = "with its attachments it is more than 256 MB: attach its files by the server";
        return true;
    case COUCH_REFUSED:
        break;
    }
    couch_follow_report(follow, id,
                        "its attachments could not be fetched; run the command again, it goes on");
    return false;
}

static enum foreign_event write_row(struct couch_follow *follow, struct bytes row, struct bytes id,
                                    const char **problem_r)
{
    enum foreign_event event = couch_mapping_write(follow->mapping, follow->row_arena, row, ++follow->number,
                                                   follow->files, &follow->lines, problem_r);
    if (event != FOREIGN_WRONG || *problem_r != couch_mapping_stub)
        return event;
    if (!fetch_whole(follow, id, problem_r))
        return FOREIGN_FAILED;
    if (*problem_r)
        return FOREIGN_WRONG;
    event = couch_mapping_write(follow->mapping, follow->row_arena, builder_bytes(&follow->whole),
                                follow->number, follow->files, &follow->lines, problem_r);
    if (event == FOREIGN_WRONG && *problem_r == couch_mapping_stub)
        *problem_r = "the server sends its attachments without their bytes";
    return event;
}

/* False: the import ends here. */
static bool couch_follow_take_row(struct couch_follow *follow, struct bytes row, struct bytes id)
{
    const char *problem = NULL;
    arena_reset(follow->row_arena);
    enum foreign_event event = write_row(follow, row, id, &problem);
    follow->read += event == FOREIGN_DOCUMENT;
    follow->reached.documents += event == FOREIGN_DOCUMENT;
    if (event == FOREIGN_DOCUMENT || event == FOREIGN_LEFT_OUT)
        return true;
    if (event == FOREIGN_WRONG && follow->wrong++ < PROBLEMS_SHOWN)
        couch_follow_report(follow, id, problem);
    return event == FOREIGN_WRONG && (follow->options->import->skips_wrong || !follow->batch);
}

/* Moves `reached` behind the row.  False: the row does not say where it stands. */
static bool pass_row(struct couch_follow *follow, struct bytes row, struct bytes id)
{
    struct bytes mark = follow->position.is_copying ? id : couch_text_member(row, BYTES("seq"));
    if (!mark.size)
        return false;
    mark.data = arena_copy(follow->page_arena, mark.data, mark.size);
    *(follow->position.is_copying ? &follow->reached.after : &follow->reached.since) = mark;
    return true;
}

static bool take_rows(struct couch_follow *follow, struct bytes rows, int64_t *count_r)
{
    struct bytes row;
    for (*count_r = 0; couch_text_cut(&rows, &row); ++*count_r) {
        struct bytes id = couch_text_member(row, BYTES("id"));
        bool is_known = follow->position.is_copying && follow->position.after.data &&
                        bytes_equal(id, follow->position.after);
        if (!is_known && !couch_follow_take_row(follow, row, id)) {
            if (!couch_follow_store(follow)) /* those before it */
                couch_follow_report(follow, id, "the documents before it could not be stored");
            return false;
        }
        if (!pass_row(follow, row, id))
            return message_refuse("%s: expected rows with \"id\" and \"seq\"", follow->options->server.url);
        if (follow->lines.size >= BATCH_BYTES && !couch_follow_store(follow))
            return false;
        progress_show(&follow->progress, follow->read, follow->reached.documents);
    }
    return true;
}

/* --- pages --- */

static void write_query(struct couch_follow *follow)
{
    struct builder *query = &follow->query;
    struct bytes mark = follow->position.is_copying ? follow->position.after : follow->position.since;
    builder_clear(query, 1 << 16);
    builder_printf(query, "/%s?include_docs=true&attachments=true&att_encoding_info=true&limit=%lld",
                   follow->position.is_copying ? "_all_docs" : "_changes", (long long)follow->page_size);
    if (mark.size) {
        builder_printf(query, "%s", follow->position.is_copying ? "&startkey=" : "&since=");
        if (!follow->position.is_copying && *mark.data == '"') /* its letters need no escapes */
            mark = (struct bytes){mark.data + 1, mark.size - 2};
        couch_server_escape(query, mark);
    }
    builder_add(query, "", 1);
}

/* Pages become smaller when documents are large, and larger again. */
static bool couch_follow_fetch(struct couch_follow *follow, struct bytes *page_r)
{
    for (;;) {
        write_query(follow);
        switch (couch_server_get(follow->server, follow->query.data, page_r)) {
        case COUCH_ANSWERED:
            return true;
        case COUCH_REFUSED:
            return false;
        case COUCH_TOO_LARGE:
            break;
        }
        if (follow->page_size == PAGE_LEAST)
            return message_refuse(
                "%s: two documents with their attachments are more than 256 MB: leave them out, and "
                "attach their files by the server",
                follow->options->server.url);
        follow->page_size = follow->page_size / 4 > PAGE_LEAST ? follow->page_size / 4 : PAGE_LEAST;
    }
}

static bool has_moved(const struct couch_follow *follow)
{
    const struct couch_position *one = &follow->position, *other = &follow->reached;
    return one->is_copying ? !bytes_equal(one->after, other->after) : !bytes_equal(one->since, other->since);
}

/* Is there nothing behind this page at this moment?  A server may send fewer rows than were asked for. */
static bool is_last_page(const struct couch_follow *follow, struct bytes page, int64_t count, int64_t asked)
{
    if (follow->position.is_copying)
        return count == 0 || (count == 1 && !has_moved(follow));
    struct bytes pending = couch_text_member(page, BYTES("pending"));
    return count == 0 || (pending.size ? bytes_equal(pending, BYTES("0")) : count < asked);
}

/* The texts of `reached` are in the page's arena. */
static bool keep_position(struct couch_follow *follow)
{
    struct arena *arena = follow->control->arena;
    struct couch_position *kept = &follow->position;
    *kept = follow->reached;
    if (kept->after.size)
        kept->after.data = arena_copy(arena, kept->after.data, kept->after.size);
    kept->since.data = arena_copy(arena, kept->since.data, kept->since.size);
    follow->reached = *kept;
    arena_reset(follow->page_arena);
    return true;
}

/* `is_last_r`: there is nothing behind it at this moment. */
static bool take_page(struct couch_follow *follow, bool *is_last_r)
{
    struct bytes page, rows;
    int64_t count, asked;
    if (!couch_follow_fetch(follow, &page))
        return false;
    asked = follow->page_size;
    rows = couch_text_member(page, follow->position.is_copying ? BYTES("rows") : BYTES("results"));
    if (rows.size < 2 || *rows.data != '[')
        return message_refuse("%s: expected an answer of CouchDB to _all_docs and _changes",
                              follow->options->server.url);
    rows = (struct bytes){rows.data + 1, rows.size - 2};
    if (!take_rows(follow, rows, &count) || !couch_follow_store(follow))
        return false;
    *is_last_r = is_last_page(follow, page, count, asked);
    if (!*is_last_r && !has_moved(follow))
        return message_refuse("%s: the server sends the same page again", follow->options->server.url);
    if (follow->page_size < PAGE_MOST)
        follow->page_size = follow->page_size * 2 < PAGE_MOST ? follow->page_size * 2 : PAGE_MOST;
    return keep_position(follow);
}

static bool take_pages(struct couch_follow *follow)
{
    for (bool is_last = false; !is_last;)
        if (!take_page(follow, &is_last))
            return false;
    return true;
}

/* --- in order --- */

/* Where it begins: before any document is read. */
static bool find_start(struct couch_follow *follow, bool is_there)
{
    struct bytes head;
    if (couch_server_get(follow->server, "", &head) != COUCH_ANSWERED)
        return false;
    struct bytes made = couch_text_member(head, BYTES("instance_start_time"));
    struct bytes since = couch_text_member(head, BYTES("update_seq"));
    if (!bytes_to_i64(couch_text_member(head, BYTES("doc_count")), &follow->total))
        follow->total = 0;
    if (!since.size)
        return message_refuse("%s: the answer is not that of a database of CouchDB",
                              follow->options->server.url);
    if (is_there && !bytes_equal(made, follow->position.made))
        return message_refuse("%s: the database is another one than before: bring it in anew with --anew",
                              follow->options->server.url);
    struct arena *arena = follow->control->arena;
    if (!is_there)
        follow->position =
            (struct couch_position){.source = follow->position.source,
                                    .made = made.size ? arena_keep(arena, made) : NO_BYTES,
                                    .since = {arena_copy(arena, since.data, since.size), since.size},
                                    .is_copying = true};
    follow->reached = follow->position;
    return true;
}

static bool follow_changes(struct couch_follow *follow)
{
    follow->reached.is_copying = follow->position.is_copying = false;
    follow->reached.after = follow->position.after = NO_BYTES;
    return couch_follow_store(follow) && take_pages(follow);
}

static bool run_couch_follow(struct couch_follow *follow)
{
    const struct foreign_import_options *import = follow->options->import;
    bool is_there = false;
    if (follow->options->begins_anew && !import->is_dry_run &&
        !couch_position_forget(follow->control, follow->target.pg, follow->position.source))
        return false;
    if (!import->is_dry_run &&
        !couch_position_take(follow->control, follow->target.pg, import->code, &follow->position, &is_there))
        return false;
    if (!find_start(follow, is_there))
        return false;
    if (is_there)
        printf("%s: going on after %lld documents\n", import->code, (long long)follow->position.documents);
    progress_start(&follow->progress, follow->position.documents,
                   follow->position.is_copying ? follow->total : 0);
    follow->progress.unit = "documents";
    bool is_done = (!follow->position.is_copying || take_pages(follow)) &&
                   (import->is_dry_run || follow_changes(follow));
    progress_clear(&follow->progress);
    return is_done;
}

static void couch_follow_sum_up(const struct couch_follow *follow)
{
    const struct foreign_import_options *import = follow->options->import;
    if (follow->wrong > PROBLEMS_SHOWN)
        message_print("%s: and %lld more", import->path, (long long)follow->wrong - PROBLEMS_SHOWN);
    if (import->is_dry_run)
        printf("%s: %lld documents are right, %lld wrong; nothing was stored\n", import->path,
               (long long)follow->read, (long long)follow->wrong);
    else
        printf("%s: %lld documents read: %lld changed here; %lld wrong left out; up to date with CouchDB\n",
               import->code, (long long)follow->read, (long long)follow->changed, (long long)follow->wrong);
}

static const char *name_source(struct arena *arena, const struct couch_follow_options *options,
                               struct bytes mapping)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    struct builder text = {0};
    builder_printf(&text, "%s\n", options->class ? options->class : "");
    builder_add_bytes(&text, mapping);
    crypto_sha256_hex(builder_bytes(&text), hex);
    builder_free(&text);
    return arena_printf(arena, "couchdb %s %s", options->import->path, hex);
}

static bool couch_follow_prepare(struct couch_follow *follow)
{
    struct control *control = follow->control;
    const struct foreign_import_options *import = follow->options->import;
    struct bytes text = NO_BYTES;
    const char *problem;
    if (import->mapping && !control_read_file(control->arena, import->mapping, &text))
        return false;
    follow->mapping =
        couch_mapping_read(control->arena, &control->settings, text, follow->options->class, &problem);
    if (!follow->mapping)
        return message_refuse("%s: %s", import->mapping ? import->mapping : "import-couchdb", problem);
    follow->position.source = name_source(control->arena, follow->options, text);
    if (!ns_registry_connect(control, import->code, &follow->target) ||
        !ns_keys_refuse(control, follow->target.pg, "attachments"))
        return false;
    if (import->is_dry_run)
        return true;
    follow->batch = archive_batch_create(control, follow->target.pg, true);
    follow->files = importer_files_open(control, &follow->target);
    return follow->files != NULL;
}

bool couch_follow_run(struct control *control, const struct couch_follow_options *options)
{
    struct couch_follow follow = {.control = control, .options = options, .page_size = PAGE_MOST};
    follow.row_arena = arena_create("row");
    follow.page_arena = arena_create("page");
    bool is_done = couch_follow_prepare(&follow);
    if (is_done) {
        follow.server = couch_server_open(&options->server);
        is_done = run_couch_follow(&follow);
    }
    if (is_done)
        couch_follow_sum_up(&follow);
    couch_server_close(follow.server);
    couch_server_close(follow.single);
    importer_files_close(follow.files);
    if (follow.batch)
        archive_batch_destroy(follow.batch);
    builder_free(&follow.query);
    builder_free(&follow.lines);
    builder_free(&follow.whole);
    arena_destroy(follow.row_arena);
    arena_destroy(follow.page_arena);
    return is_done && !follow.wrong;
}
