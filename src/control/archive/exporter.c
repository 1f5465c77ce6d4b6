/* exporter: manifest, configuration, documents in pieces, digests. */
#include "control/archive/exporter.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/archive/archive_files.h"
#include "control/archive/archive_reader.h"
#include "control/archive/archive_rows.h"
#include "control/archive/archive_writer.h"
#include "control/documents/progress.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "edge/pg/pg_copy.h"
#include "model/document/attachment.h"
#include "model/document/stamp.h"

/* --- files of attachments --- */

/* The files of attachments that documents of a snapshot have, on their way into an archive.  References by
 * COPY, in the order of the digests; bytes from the store. */

struct exporter_files {
    struct control *control;
    const char *database;
    const struct archive_snapshot *snapshot;
    const struct archive_filter *filter; /* of the documents */
    struct archive_writer *writer;
    bool are_left_out;                          /* all of them */
    const struct archive_files *former, *other; /* that are left out too; NULL: none */
};

enum { LIST_BYTES = 4 << 20 };
enum { DIGEST, SIZE, COLUMNS };

static const char of_references[] =
    "copy (select distinct r.digest, b.size from stampd.doc d join stampd.blob_ref r on r.class = d.class"
    " and r.id = d.id left join stampd.blob b on b.digest = r.digest where r.ended is null";

struct files_export {
    const struct exporter_files *export;
    struct archive_files *files;
    int64_t *count_left_out;
    struct stored_files *store;
    struct builder left_out; /* lines of the next member */
    int lists;
};

/* --- one file --- */

struct file {
    struct archive_writer *writer;
    struct digest *digest;
    int64_t left; /* bytes */
    bool is_failed;
};

static bool take_piece(void *context, struct bytes piece)
{
    struct file *file = context;
    digest_add(file->digest, piece);
    file->left -= (int64_t)piece.size;
    if (file->left < 0)
        return false;
    file->is_failed = !archive_writer_add_piece(file->writer, piece);
    return !file->is_failed;
}

/* The archive has the bytes of the digest, or is not completed. */
static bool write_file(struct files_export *writing, const struct blob_digest *digest, int64_t size)
{
    const struct exporter_files *export = writing->export;
    struct file file = {.writer = export->writer, .digest = digest_create(), .left = size};
    struct blob_digest present;
    char name[ARCHIVE_FILES_NAME];
    archive_files_write_name(digest, name);
    if (!archive_writer_begin(export->writer, name, size)) {
        digest_destroy(file.digest);
        return false;
    }
    enum fault fault = stored_files_read(writing->store, digest, take_piece, &file);
    digest_end(file.digest, present.bytes);
    digest_destroy(file.digest);
    if (file.is_failed)
        return false;
    const char *problem = fault == FAULT_NFILE ? "is missing"
                          : fault              ? "cannot be read; export --no-files leaves files out"
                          : file.left || memcmp(&present, digest, sizeof present) != 0
                              ? "is damaged: its bytes are not those of its digest"
                              : NULL;
    if (problem)
        message_print("%s: the file %s %s", export->database, name, problem);
    writing->files->bytes += size;
    return !problem && archive_files_add(export->control->arena, writing->files, digest);
}

/* --- files that are left out --- */

static bool is_left_out(const struct exporter_files *export, const struct blob_digest *digest)
{
    return export->are_left_out || (export->former && archive_files_has(export->former, digest)) ||
           (export->other && archive_files_has(export->other, digest));
}

static bool write_list(struct files_export *writing)
{
    char name[64];
    if (!writing->left_out.size)
        return true;
    snprintf(name, sizeof name, "left-out/%06d.txt", ++writing->lists);
    bool is_done = archive_writer_add(writing->export->writer, name, builder_bytes(&writing->left_out));
    builder_clear(&writing->left_out, LIST_BYTES);
    return is_done;
}

static bool name_file(struct files_export *writing, const struct blob_digest *digest)
{
    char text[BLOB_HEX + 1];
    blob_store_write_digest(digest, text);
    ++*writing->count_left_out;
    builder_printf(&writing->left_out, "%s\n", text);
    return writing->left_out.size < LIST_BYTES || write_list(writing);
}

/* --- all --- */

static bool exporter_files_take_file(struct files_export *writing, const struct blob_digest *digest,
                                     int64_t size)
{
    return is_left_out(writing->export, digest) ? name_file(writing, digest)
                                                : write_file(writing, digest, size);
}

static bool exporter_files_write_one(struct files_export *writing, const struct pg_copy_row *row)
{
    struct blob_digest digest;
    if (row->fields[DIGEST].size != sizeof digest || !row->fields[SIZE].data)
        return message_refuse("%s: an attachment refers to a file that is not registered",
                              writing->export->database);
    memcpy(&digest, row->fields[DIGEST].data, sizeof digest);
    return exporter_files_take_file(writing, &digest, pg_copy_i64(row->fields[SIZE]));
}

/* --- an encrypted namespace: the digests are in the contents of the items --- */

static const char of_items[] =
    "copy (select i.class, i.id, i.key, i.content from stampd.doc d join stampd.item i on i.class = d.class"
    " and i.id = d.id and i.iclass = 'P' where i.content is not null";
enum { CLASS, ID, KEY, CONTENT };

struct sealed_list {
    struct attachment *files; /* their types are not kept */
    size_t count, room;
};

static bool add_sealed(struct control *control, const struct data_keys *keys, struct arena *scratch,
                       const struct pg_copy_row *row, struct sealed_list *list)
{
    struct item_place place = {row->fields[CLASS], row->fields[ID], ATTACHMENT_CLASS,
                               row->fields[KEY],   false,           BYTES("")};
    struct bytes content = row->fields[CONTENT];
    struct attachment attachment;
    arena_reset(scratch);
    if (!data_keys_open_id(keys, scratch, place.class, &place.id) ||
        !data_keys_open_item(keys, scratch, &place, &content) ||
        !attachment_read(scratch, content, &attachment))
        return message_refuse(
            "%.*s/%.*s: an attachment cannot be decrypted: it was altered, or is of another place",
            (int)place.class.size, place.class.data, (int)place.id.size, place.id.data);
    ARENA_GROW(control->arena, list->files, list->count, list->room);
    attachment.mime = NO_BYTES;
    list->files[list->count++] = attachment;
    return true;
}

static int compare_digests(const void *a, const void *b)
{
    const struct attachment *one = a, *other = b;
    return memcmp(one->digest.bytes, other->digest.bytes, BLOB_DIGEST);
}

static bool list_sealed(const struct exporter_files *export, const struct data_keys *keys,
                        struct sealed_list *list)
{
    struct pg *pg = export->snapshot->documents;
    struct archive_filter filter;
    struct pg_copy_row row;
    if (!archive_filter_store(export->control, keys, export->filter, &filter) ||
        !archive_filter_copy(export->control, pg, &filter, of_items, "1"))
        return false;
    struct arena *scratch = arena_create("attachments");
    bool is_done = true, is_read;
    while ((is_read = pg_copy_next(pg, &row) == FAULT_NONE) && row.count && is_done)
        is_done = add_sealed(export->control, keys, scratch, &row, list);
    arena_destroy(scratch);
    if (!is_read)
        message_print("reading the attachments: %s", pg_message(pg));
    if (list->count)
        qsort(list->files, list->count, sizeof *list->files, compare_digests);
    return is_done && is_read;
}

/* Each once. */
static bool write_sealed(struct files_export *writing, const struct data_keys *keys)
{
    struct sealed_list list = {0};
    bool is_done = list_sealed(writing->export, keys, &list);
    stored_files_set_keys(writing->store, keys);
    for (size_t i = 0; i < list.count && is_done; i++)
        if (!i || compare_digests(&list.files[i - 1], &list.files[i]) != 0)
            is_done = exporter_files_take_file(writing, &list.files[i].digest, list.files[i].size);
    return is_done;
}

static bool write_clear(struct files_export *writing)
{
    const struct exporter_files *export = writing->export;
    struct pg *pg = export->snapshot->documents;
    struct pg_copy_row row;
    if (!archive_filter_copy(export->control, pg, export->filter, of_references, "1"))
        return false;
    bool is_done = true, is_read;
    while ((is_read = pg_copy_next(pg, &row) == FAULT_NONE) && row.count && is_done)
        is_done = exporter_files_write_one(writing, &row);
    if (!is_read)
        message_print("reading the attachments: %s", pg_message(pg));
    return is_done && is_read;
}

/* Writes each file once; those that are left out are named and counted only.  What was written is added to
 * `files`, which is in the arena of `control`.  A file that the store does not have as it was is a failure.
 * On failure reports why. */
static bool exporter_files_write(const struct exporter_files *export, struct archive_files *files,
                                 int64_t *left_out)
{
    struct data_keys *keys;
    if (!ns_keys_read(export->control, export->snapshot->documents, &keys))
        return false;
    struct files_export writing = {.export = export,
                                   .files = files,
                                   .count_left_out = left_out,
                                   .store = stored_files_open(export->control, export->database)};
    bool is_done = keys->count ? write_sealed(&writing, keys) : write_clear(&writing);
    is_done = is_done && write_list(&writing);
    stored_files_close(writing.store);
    builder_free(&writing.left_out);
    return is_done;
}

/* --- the export --- */

struct export
{
    struct control *control;
    const struct ns_target *target;
    const struct exporter_options *options;
    struct archive_filter filter;
    struct archive_contents former; /* of the archive to go on from */
    struct archive_writer *writer;
    struct exporter_report *report;
    struct progress progress;
};

/* --- what an incremental archive goes on from --- */

static bool go_on_from(struct export *export, const struct archive_contents *former)
{
    const char *path = export->options->since;
    struct arena *arena = export->control->arena;
    if (!bytes_equal(former->database, bytes_of(export->report->snapshot.database)))
        message_print("%s: of another database, or of a time before a restore: export all documents", path);
    else if (former->is_partial)
        message_print("%s: an archive of some documents only", path);
    else {
        export->filter.since_snapshot = arena_copy(arena, former->snapshot.data, former->snapshot.size);
        return true;
    }
    return false;
}

static bool find_since(struct export *export)
{
    const char *since = export->options->since;
    int64_t after;
    if (!since)
        return true;
    if (bytes_to_i64(bytes_of(since), &after)) {
        export->filter.since_version = after;
    } else {
        if (!archive_verify(export->control->arena, since, export->options->archive.key, false,
                            &export->former) ||
            !go_on_from(export, &export->former))
            return false;
        after = export->former.at;
    }
    /* What was deleted after that version and is purged already would be missing. */
    if (export->report->snapshot.floor <= after)
        return true;
    return message_refuse("deletions up to %lld are purged, some of them after %lld: export all documents",
                          (long long)export->report->snapshot.floor, (long long)after);
}

/* --- the manifest --- */

static void exporter_add_text(struct builder *json, const char *name, const char *text)
{
    builder_printf(json, ",\"%s\":", name);
    json_add_string(json, bytes_of(text));
}

static void exporter_add_words(struct builder *json, const char *name, const char *const *words, size_t count)
{
    if (!count)
        return;
    builder_printf(json, ",\"%s\":[", name);
    for (size_t i = 0; i < count; i++) {
        builder_add(json, ",", i > 0);
        json_add_string(json, bytes_of(words[i]));
    }
    builder_add_text(json, "]");
}

static bool write_manifest(struct export *export)
{
    const struct archive_snapshot *snapshot = &export->report->snapshot;
    const struct archive_filter *filter = &export->filter;
    struct builder json = {0};
    builder_printf(&json, "{\"format\":\"stampd archive\",\"version\":%d", ARCHIVE_VERSION);
    exporter_add_text(&json, "namespace", export->target->conf->code);
    exporter_add_text(&json, "state", namespace_state_word(export->target->conf->state));
    builder_printf(&json, ",\"at\":%lld,\"floor\":%lld", (long long)snapshot->at, (long long)snapshot->floor);
    exporter_add_text(&json, "snapshot", snapshot->snapshot);
    exporter_add_text(&json, "database", snapshot->database);
    if (filter->since_snapshot || filter->since_version) {
        builder_add_text(&json, ",\"since\":{");
        if (filter->since_snapshot) {
            json_add_text(&json, "\"snapshot\":", bytes_of(filter->since_snapshot));
        } else {
            builder_printf(&json, "\"version\":%lld", (long long)filter->since_version);
        }
        builder_add_text(&json, "}");
    }
    exporter_add_words(&json, "classes", filter->classes, filter->class_count);
    exporter_add_words(&json, "ids", filter->ids, filter->id_count);
    builder_add_text(&json, "}\n");
    bool is_done = archive_writer_add(export->writer, ARCHIVE_MANIFEST, builder_bytes(&json));
    builder_free(&json);
    return is_done;
}

/* --- lines --- */

/* Writes the lines of a database as members `folder/000001.jsonl`…; one without lines is left out. */
static bool write_lines(struct export *export, struct archive_rows *rows, const char *folder,
                        struct archive_sum *sum, bool is_shown)
{
    struct builder piece = {0};
    enum archive_rows_event event = ARCHIVE_ROWS_LINE;
    bool is_done = true;
    for (int number = 1; is_done && event == ARCHIVE_ROWS_LINE;) {
        event = archive_rows_next(rows, &piece, sum);
        if (event == ARCHIVE_ROWS_FAILED)
            break;
        if (event == ARCHIVE_ROWS_END ? piece.size > 0
                                      : (int64_t)piece.size >= export->options->piece_bytes) {
            char name[64];
            snprintf(name, sizeof name, "%s/%06d.jsonl", folder, number++);
            is_done = archive_writer_add(export->writer, name, builder_bytes(&piece));
            builder_clear(&piece, (size_t) export->options->piece_bytes * 2);
        }
        if (is_shown)
            progress_show(&export->progress, sum->documents + sum->deleted, sum->documents + sum->deleted);
    }
    builder_free(&piece);
    return is_done && event == ARCHIVE_ROWS_END;
}

static bool exporter_write_all(struct export *export, const struct archive_snapshot *snapshot,
                               const struct archive_filter *filter, const char *folder,
                               struct archive_sum *sum, bool is_shown)
{
    struct archive_rows *rows = NULL;
    bool is_done = archive_rows_open(export->control, snapshot, filter, &rows) &&
                   write_lines(export, rows, folder, sum, is_shown);
    archive_rows_close(rows);
    return is_done;
}

/* The documents of z about the namespace: of no archive of some documents only. */
static bool write_configuration(struct export *export)
{
    const struct archive_filter filter = {.configuration = export->target->conf->code};
    struct archive_snapshot snapshot;
    struct archive_sum sum = {0};
    return export->filter.class_count || export->filter.id_count ||
           (archive_rows_begin_snapshot(export->control, export->target->z,
                                        export->control->settings.z_database, &snapshot) &&
            exporter_write_all(export, &snapshot, &filter, "configuration", &sum, false));
}

static bool write_files(struct export *export)
{
    const struct exporter_files files = {.control = export->control,
                                         .database = export->target->conf->database,
                                         .snapshot = &export->report->snapshot,
                                         .filter = &export->filter,
                                         .writer = export->writer,
                                         .are_left_out = export->options->leaves_files,
                                         .former = &export->former.files,
                                         .other = &export->former.left_out};
    return exporter_files_write(&files, &export->report->files, &export->report->left_out);
}

static bool exporter_finish(struct export *export)
{
    struct builder members = {0};
    archive_sum_write(&export->report->sum, &members);
    builder_add_text(&members, ",");
    archive_files_write(&export->report->files, &members);
    bool is_done = archive_writer_finish(export->writer, builder_bytes(&members));
    builder_free(&members);
    export->report->bytes = archive_writer_size(export->writer);
    return is_done;
}

bool exporter_run(struct control *control, const struct ns_target *target,
                  const struct exporter_options *options, struct exporter_report *report_r)
{
    struct export export = {.control = control,
                            .target = target,
                            .options = options,
                            .filter = options->filter,
                            .report = report_r};
    *report_r = (struct exporter_report){0};
    if (!archive_rows_begin_snapshot(control, target->pg, target->conf->database, &report_r->snapshot) ||
        !find_since(&export))
        return false;
    progress_start(&export.progress, 0,
                   options->since || options->filter.class_count || options->filter.id_count
                       ? 0
                       : report_r->snapshot.document_rows);
    bool is_done =
        archive_writer_open(control->arena, &options->archive, &export.writer) && write_manifest(&export) &&
        write_configuration(&export) && write_files(&export) &&
        exporter_write_all(&export, &report_r->snapshot, &export.filter, "documents", &report_r->sum, true);
    progress_clear(&export.progress);
    is_done = is_done && exporter_finish(&export);
    archive_writer_close(export.writer);
    return is_done;
}
