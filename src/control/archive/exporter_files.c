/* exporter_files: references by COPY, in the order of the digests; bytes from the store. */
#include "control/archive/exporter_files.h"

#include <stdio.h>

#include "control/message.h"
#include "edge/pg_copy.h"

enum { LIST_BYTES = 4 << 20 };
enum { DIGEST, SIZE, COLUMNS };

static const char of_references[] =
    "copy (select distinct r.digest, b.size from stampd.doc d join stampd.blob_ref r on r.class = d.class"
    " and r.id = d.id left join stampd.blob b on b.digest = r.digest where r.ended is null";

struct files_export {
    const struct exporter_files *export;
    struct archive_files *files;
    int64_t *count_left_out;
    struct blob_store *store;
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
    enum fault fault = blob_store_read(writing->store, bytes_of(export->database), digest, take_piece, &file);
    digest_end(file.digest, present.bytes);
    digest_destroy(file.digest);
    if (file.is_failed)
        return false;
    const char *problem = fault == FAULT_NFILE ? "is missing in blob_directory"
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

static bool write_one(struct files_export *writing, const struct pg_copy_row *row)
{
    struct blob_digest digest;
    if (row->fields[DIGEST].size != sizeof digest || !row->fields[SIZE].data) {
        message_print("%s: an attachment refers to a file that is not registered", writing->export->database);
        return false;
    }
    memcpy(&digest, row->fields[DIGEST].data, sizeof digest);
    return is_left_out(writing->export, &digest)
               ? name_file(writing, &digest)
               : write_file(writing, &digest, pg_copy_i64(row->fields[SIZE]));
}

bool exporter_files_write(const struct exporter_files *export, struct archive_files *files, int64_t *left_out)
{
    struct pg *pg = export->snapshot->documents;
    struct pg_copy_row row;
    if (!archive_rows_copy(export->control, pg, export->filter, of_references, "1"))
        return false;
    struct files_export writing = {
        .export = export,
        .files = files,
        .count_left_out = left_out,
        .store = blob_store_open(export->control->settings.blob_directory, BLOB_NO_GROUP)};
    bool is_done = true, is_read;
    while ((is_read = pg_copy_next(pg, &row) == FAULT_NONE) && row.count && is_done)
        is_done = write_one(&writing, &row);
    if (!is_read)
        message_print("reading the attachments: %s", pg_message(pg));
    is_done = is_done && is_read && write_list(&writing);
    blob_store_close(writing.store);
    builder_free(&writing.left_out);
    return is_done;
}
