/* exporter_files: references by COPY, in the order of the digests; bytes from the store. */
#include "control/archive/exporter_files.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "control/archive/archive_filter.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "edge/pg/pg_copy.h"
#include "model/document/attachment.h"

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
    if (row->fields[DIGEST].size != sizeof digest || !row->fields[SIZE].data) {
        message_print("%s: an attachment refers to a file that is not registered", writing->export->database);
        return false;
    }
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
        !attachment_read(scratch, content, &attachment)) {
        message_print("%.*s/%.*s: an attachment cannot be decrypted: it was altered, or is of another place",
                      (int)place.class.size, place.class.data, (int)place.id.size, place.id.data);
        return false;
    }
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

bool exporter_files_write(const struct exporter_files *export, struct archive_files *files, int64_t *left_out)
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
