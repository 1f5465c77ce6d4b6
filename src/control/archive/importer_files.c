/* importer_files: one file after the other; each is registered by a transaction of its own. */
#include "control/archive/importer_files.h"

#include <stdlib.h>

#include "base/identity.h"
#include "base/memory.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "blob/blob_sealed.h"

enum { CHECK_BATCH = 1000 };

struct importer_files {
    struct control *control;
    struct pg *pg;
    const char *database;
    struct blob_store *store;
    struct sealed_file_keys keys; /* none: it is not encrypted; in the arena of the command */
    struct arena *arena;          /* of a file */
    int64_t stored;
};

/* --- files that are left out --- */

/* They count as uploaded now, so that the cleaner leaves them until the documents are there. */
static bool check_batch(struct control *control, const struct ns_target *target,
                        const struct sealed_file_keys *keys, struct arena *arena,
                        const struct blob_digest *digests, size_t count)
{
    struct control own = *control;
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    struct pg_result *rows;
    own.arena = arena;
    for (size_t i = 0; i < count; i++)
        texts[i] = blob_sealed_digits(arena, keys, &digests[i]);
    const struct pg_params *params = PG_PARAMS(arena, PG_TEXTS(texts, count));
    if (!control_query(&own, target->pg, "checking the files that the archive leaves out",
                       "with kept as (update stampd.blob b set touched = stampd.stamp_now() from"
                       " unnest($1::text[]) u(digest) where b.digest = decode(u.digest, 'hex') and"
                       " not b.removing returning b.digest) select u.digest from unnest($1::text[])"
                       " u(digest) where decode(u.digest, 'hex') not in (select digest from kept) limit 1",
                       params, &rows))
        return false;
    if (!pg_rows(rows))
        return true;
    struct bytes missing = pg_get_text(rows, 0, 0);
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(missing, texts[i])) {
            missing = blob_store_digits(arena, &digests[i]);
            break;
        }
    return message_refuse(
        "the file %.*s is not in the archive, and %s does not have it: import the archive before it"
        " first, or export without --since and --no-files",
        (int)missing.size, missing.data, target->conf->code);
}

bool importer_files_check(struct control *control, const struct ns_target *target,
                          const struct archive_contents *contents)
{
    const struct archive_files *left_out = &contents->left_out;
    struct data_keys *keys;
    if (!ns_keys_read(control, target->pg, &keys))
        return false;
    const struct sealed_file_keys of_files = data_keys_of_files(keys);
    struct arena *arena = arena_create("files of an archive");
    bool is_right = true;
    for (size_t at = 0; is_right && at < left_out->count; at += CHECK_BATCH) {
        size_t rest = left_out->count - at;
        is_right = check_batch(control, target, &of_files, arena, left_out->digests + at,
                               rest < CHECK_BATCH ? rest : CHECK_BATCH);
        arena_reset(arena);
    }
    arena_destroy(arena);
    return is_right;
}

/* --- files of the archive --- */

struct importer_files *importer_files_open(struct control *control, const struct ns_target *target)
{
    struct data_keys *keys;
    if (!ns_keys_read(control, target->pg, &keys))
        return NULL;
    struct importer_files *files = memory_zeroed(1, sizeof *files, "archive");
    files->keys = data_keys_of_files(keys);
    files->control = control;
    files->pg = target->pg;
    files->database = target->conf->database;
    files->arena = arena_create("file of an archive");
    files->store =
        blob_store_open(control->settings.blob_directory, identity_socket_group(&control->settings));
    return files;
}

void importer_files_close(struct importer_files *files)
{
    if (!files)
        return;
    blob_store_close(files->store);
    arena_destroy(files->arena);
    free(files);
}

int64_t importer_files_stored(const struct importer_files *files)
{
    return files->stored;
}

static bool touch(struct importer_files *files, const struct blob_digest *digest, int64_t size)
{
    struct control own = *files->control;
    struct pg_result *row;
    own.arena = files->arena;
    arena_reset(files->arena);
    const struct pg_params *params =
        PG_PARAMS(files->arena, PG_TEXT(blob_sealed_digits(files->arena, &files->keys, digest)),
                  PG_I64(blob_sealed_size(&files->keys, size)));
    return control_query(&own, files->pg, "registering a file",
                         "select stampd.blob_touch($1::text, $2::bigint)", params, &row);
}

static bool importer_files_complain(const struct importer_files *files, const char *what)
{
    return message_refuse("%s: %s: blob_directory = %s", files->database, what,
                          files->control->settings.blob_directory);
}

/* Once it is registered no cleaner removes it, but one may have done so just before. */
static bool importer_files_find(struct importer_files *files, const struct blob_digest *digest, int64_t size,
                                bool *is_there_r)
{
    struct bytes database = bytes_of(files->database);
    const struct blob_digest name = blob_sealed_name(&files->keys, digest);
    int64_t present = -1;
    *is_there_r = false;
    if (blob_store_measure(files->store, database, &name, &present))
        return importer_files_complain(files, "the files of attachments cannot be read");
    if (present != blob_sealed_size(&files->keys, size))
        return true;
    if (!touch(files, digest, size))
        return false;
    if (blob_store_measure(files->store, database, &name, &present))
        return importer_files_complain(files, "the files of attachments cannot be read");
    *is_there_r = present == blob_sealed_size(&files->keys, size);
    return true;
}

struct taking {
    struct importer_files *files;
    struct blob_upload *upload;
};

static bool take_piece(void *context, struct bytes piece)
{
    struct taking *taking = context;
    return blob_store_write(taking->upload, piece) == FAULT_NONE ||
           importer_files_complain(taking->files, "a file of an attachment cannot be written");
}

/* Seals, registers and names what was written. */
static bool importer_files_finish(struct importer_files *files, struct blob_upload *upload)
{
    struct blob_digest digest;
    int64_t size;
    if (blob_store_seal(upload, &digest, &size)) {
        blob_store_abandon(upload);
        return importer_files_complain(files, "a file of an attachment cannot be written");
    }
    if (!touch(files, &digest, size)) {
        blob_store_abandon(upload);
        return false;
    }
    if (blob_store_finish(upload))
        return importer_files_complain(files, "a file of an attachment cannot be named");
    files->stored++;
    return true;
}

static bool importer_files_begin(struct importer_files *files, struct taking *taking)
{
    *taking = (struct taking){files, NULL};
    return !blob_store_begin(files->store, bytes_of(files->database), &files->keys, &taking->upload) ||
           importer_files_complain(files, "a file of an attachment cannot be created");
}

static bool store_importer_files(struct importer_files *files, struct archive_reader *reader)
{
    struct taking taking;
    if (!importer_files_begin(files, &taking))
        return false;
    if (archive_reader_take(reader, take_piece, &taking))
        return importer_files_finish(files, taking.upload);
    blob_store_abandon(taking.upload);
    return false;
}

bool importer_files_put(struct importer_files *files, struct bytes bytes, const struct blob_digest *digest)
{
    struct taking taking;
    bool is_there;
    if (!importer_files_find(files, digest, (int64_t)bytes.size, &is_there))
        return false;
    if (is_there)
        return true;
    if (!importer_files_begin(files, &taking))
        return false;
    if (take_piece(&taking, bytes))
        return importer_files_finish(files, taking.upload);
    blob_store_abandon(taking.upload);
    return false;
}

bool importer_files_store(struct importer_files *files, struct archive_reader *reader, struct bytes name)
{
    struct blob_digest digest;
    bool is_there;
    if (!archive_files_read_name(name, &digest))
        return false;
    return importer_files_find(files, &digest, archive_reader_file_size(reader), &is_there) &&
           (is_there || store_importer_files(files, reader));
}
