/* backup_objects: a copy of the part `files` becomes one of the part `objects` when a store has the file, so
 * that it is not fetched. */
#include "control/backup/backup_objects.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/coding/hex.h"
#include "control/message.h"
#include "blob/blob_check.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "edge/crypto/crypto.h"

/* --- backup rows --- */

enum { PAGE = 2000 };
enum { ROW_DIGEST, ROW_SIZE, ROW_STORE, ROW_OBJECT, ROW_HEADER };

struct rows_walk {
    struct control *control;
    int64_t before;
    bool (*visit)(void *context, const struct backup_row *row);
    void *context;
};

bool backup_rows_now(struct control *control, int64_t *stamp_r)
{
    struct pg *z;
    struct pg_result *row;
    if (!ns_registry_open(control, &z) ||
        !control_query(control, z, "z", "select stampd.stamp_of(now() - interval '10 minutes')", NULL, &row))
        return false;
    *stamp_r = pg_get_i64(row, 0, 0);
    return true;
}

bool backup_rows_check(struct control *control, const struct backup_row *row, bool *is_there_r)
{
    struct control own = *control;
    struct pg_result *found;
    own.arena = row->arena;
    if (!control_query(&own, row->pg, row->code,
                       "select exists (select from stampd.blob b where b.digest = decode($1, 'hex')"
                       " and not b.removing)",
                       PG_PARAMS(row->arena, PG_TEXT(bytes_of(row->sha))), &found))
        return false;
    *is_there_r = pg_get_bool(found, 0, 0);
    return true;
}

/* --- one namespace --- */

/* The files after `last`, "" at first. */
static bool backup_rows_read_page(const struct rows_walk *walk, const struct backup_row *row,
                                  const char *last, struct pg_result **rows_r)
{
    struct control own = *walk->control;
    own.arena = row->arena;
    const struct pg_params *params =
        PG_PARAMS(row->arena, PG_TEXT(bytes_of(last)), PG_I64(PAGE), PG_I64(walk->before));
    return control_query(
        &own, row->pg, row->code,
        "select encode(b.digest, 'hex'), b.size, b.store, b.object, encode(b.head, 'hex') from stampd.blob b"
        " where b.digest > decode($1, 'hex') and b.touched < $3 and not b.removing"
        " order by b.digest limit $2",
        params, rows_r);
}

static const char *backup_rows_text_of(const struct backup_row *row, struct bytes text)
{
    return text.data ? arena_copy(row->arena, text.data, text.size) : NULL;
}

static bool backup_rows_take_row(struct backup_row *row, const struct pg_result *rows, int number)
{
    struct bytes header = pg_get_text(rows, number, ROW_HEADER);
    if (!blob_store_read_digest(pg_get_text(rows, number, ROW_DIGEST), &row->digest))
        return false;
    blob_store_write_digest(&row->digest, row->sha);
    row->size = pg_get_i64(rows, number, ROW_SIZE);
    row->store = backup_rows_text_of(row, pg_get_text(rows, number, ROW_STORE));
    row->object = backup_rows_text_of(row, pg_get_text(rows, number, ROW_OBJECT));
    memset(row->header, 0, sizeof row->header);
    for (size_t i = 0; header.size == 2 * sizeof row->header && i < sizeof row->header; i++)
        row->header[i] = (unsigned char)hex_byte(header.data + 2 * i);
    return true;
}

static bool visit_pages(const struct rows_walk *walk, struct backup_row *row)
{
    struct pg_result *rows = NULL;
    char last[BLOB_HEX + 1] = "";
    bool is_fine = true;
    for (int count = PAGE; is_fine && count == PAGE;) {
        arena_reset(row->arena);
        is_fine = backup_rows_read_page(walk, row, last, &rows);
        count = is_fine ? pg_rows(rows) : 0;
        for (int number = 0; number < count && is_fine; number++)
            is_fine = backup_rows_take_row(row, rows, number) && walk->visit(walk->context, row);
        memcpy(last, row->sha, sizeof last);
    }
    return is_fine;
}

/* `own` has an arena for the namespace. */
static bool visit_files(const void *context, struct control *own, const char *code, const char *database)
{
    const struct rows_walk *walk = context;
    struct data_keys *keys;
    struct backup_row row = {.code = code, .database = database};
    enum fault fault = control_connect(own, database, &row.pg);
    if (fault == FAULT_ODATABASE)
        message_print("%s: the database %s does not exist", code, database);
    if (fault || !ns_keys_read(own, row.pg, &keys))
        return false;
    row.keys = data_keys_of_files(keys);
    row.arena = arena_create("backup rows");
    row.files = stored_files_open(own, database);
    bool is_done = visit_pages(walk, &row);
    stored_files_close(row.files);
    arena_destroy(row.arena);
    return is_done;
}

/* A namespace whose database is missing has no files. */
static bool refuse_stored(const void *context UNUSED, struct control *own, const char *code,
                          const char *database)
{
    struct pg *pg;
    struct pg_result *row;
    enum fault fault = control_connect(own, database, &pg);
    if (fault == FAULT_ODATABASE)
        return true;
    if (fault || !control_query(own, pg, code,
                                "select b.store from stampd.blob b where b.store is not null"
                                " and not b.removing limit 1",
                                NULL, &row))
        return false;
    if (!pg_rows(row))
        return true;
    struct bytes store = pg_get_text(row, 0, 0);
    return message_refuse("%s: the object store %.*s has files, and the setting object_stores_file is empty",
                          code, (int)store.size, store.data);
}

/* --- all namespaces --- */

typedef bool visit_namespace(const void *context, struct control *own, const char *code,
                             const char *database);

static bool visit_one(const struct control *control, visit_namespace *visit, const void *context,
                      const char *code, const char *database)
{
    struct control own = *control;
    own.arena = arena_create("backup namespace");
    bool is_done = visit(context, &own, code, database);
    arena_destroy(own.arena);
    return is_done;
}

static bool visit_all(struct control *control, visit_namespace *visit, const void *context)
{
    struct namespace_conf *confs;
    size_t count;
    struct pg *z;
    if (!ns_registry_open(control, &z) || !ns_registry_read(control, z, &confs, &count) ||
        !visit_one(control, visit, context, "z", control->settings.z_database))
        return false;
    for (size_t i = 0; i < count; i++)
        if (strcmp(confs[i].code, "z") != 0 &&
            !visit_one(control, visit, context, confs[i].code, confs[i].database))
            return false;
    return true;
}

bool backup_rows_walk(struct control *control, int64_t before,
                      bool (*visit)(void *context, const struct backup_row *row), void *context)
{
    const struct rows_walk walk = {control, before, visit, context};
    return visit_all(control, visit_files, &walk);
}

bool backup_rows_refuse_stored(struct control *control)
{
    return visit_all(control, refuse_stored, NULL);
}

enum { PIECE = 1 << 20, SHELF = 2, MARK = 8 };

static bool backup_objects_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
}

bool backup_objects_are_used(struct control *control, const struct backup_folder *folder)
{
    return *control->settings.object_stores_file || backup_folder_has_objects(control, folder);
}

/* --- names --- */

static const char *backup_objects_path_of(const struct backup_folder *folder, const char *part,
                                          const struct backup_row *row, const char *name)
{
    return arena_printf(row->arena, "%s/%s/%s/%.*s/%s", folder->path, part, row->database, SHELF, row->sha,
                        name);
}

/* Of the copy of an object with this header; zeros: it is in clear. */
static const char *backup_objects_name_of(const struct backup_row *row,
                                          const unsigned char header[SEALED_FILE_HEADER])
{
    unsigned char hash[CRYPTO_SHA256];
    char mark[2 * MARK];
    if (!row->keys.count)
        return row->sha;
    crypto_sha256((struct bytes){(const char *)header, SEALED_FILE_HEADER}, hash);
    hex_write(hash, MARK, mark);
    return arena_printf(row->arena, "%s.%.*s", row->sha, 2 * MARK, mark);
}

static bool has_size(const char *path, int64_t size)
{
    struct stat status;
    return lstat(path, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == size;
}

/* A file that was encrypted again has the size that it had, and another header. */
static bool has_header(const char *path, const struct backup_row *row)
{
    unsigned char header[SEALED_FILE_HEADER];
    if (!row->keys.count || !row->store)
        return true;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    bool is_same = fd >= 0 && pread(fd, header, sizeof header, 0) == (ssize_t)sizeof header &&
                   memcmp(header, row->header, sizeof header) == 0;
    if (fd >= 0)
        close(fd);
    return is_same;
}

const char *backup_objects_find(const struct backup_folder *folder, const struct backup_row *row)
{
    const char *object =
        backup_objects_path_of(folder, "objects", row, backup_objects_name_of(row, row->header));
    const char *file = backup_objects_path_of(folder, "files", row, row->sha);
    return has_size(object, row->size)                          ? object
           : has_size(file, row->size) && has_header(file, row) ? file
                                                                : NULL;
}

bool backup_objects_try(const struct backup_folder *folder, const struct backup_row *row,
                        bool (*try)(void *context, const char *path), void *context)
{
    const char *path = backup_objects_path_of(folder, "objects", row, "");
    const char *file = backup_objects_path_of(folder, "files", row, row->sha);
    if (has_size(file, row->size) && try(context, file))
        return true;
    DIR *shelf = opendir(path);
    bool is_done = false;
    for (struct dirent *entry; shelf && !is_done && (entry = readdir(shelf));) {
        const char *name = entry->d_name;
        if (strncmp(name, row->sha, BLOB_HEX) != 0 || strstr(name, BACKUP_DRAFT_END))
            continue;
        const char *copy = backup_objects_path_of(folder, "objects", row, name);
        is_done = has_size(copy, row->size) && try(context, copy);
    }
    if (shelf)
        closedir(shelf);
    return is_done;
}

/* --- a copy is read --- */

enum sealed_file_state backup_objects_read(const char *path, const struct sealed_file_keys *keys,
                                           const struct blob_digest *digest, int64_t size,
                                           bool (*take)(void *context, struct bytes piece), void *context)
{
    static char piece[PIECE];
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOFOLLOW);
    if (fd < 0) {
        if (errno != ENOENT)
            (void)backup_objects_fail(path);
        return SEALED_FILE_FAILED;
    }
    struct blob_check *check = blob_check_begin(keys, digest, size);
    bool is_taken = true;
    ssize_t got;
    while ((got = read(fd, piece, sizeof piece)) > 0 && is_taken) {
        const struct bytes bytes = {piece, (size_t)got};
        blob_check_add(check, bytes);
        is_taken = !take || take(context, bytes);
    }
    if (got < 0)
        (void)backup_objects_fail(path);
    close(fd);
    enum sealed_file_state state = blob_check_end(check, NULL);
    return got < 0 ? SEALED_FILE_FAILED : is_taken ? state : SEALED_FILE_ALTERED;
}

/* --- a file is copied --- */

struct objects_save {
    struct control *control;
    const struct backup_folder *folder;
    struct backup_owner owner;
    struct backup_objects result;
};

static bool report_missing(struct objects_save *save, const struct backup_row *row, const char *problem)
{
    bool is_there;
    if (!backup_rows_check(save->control, row, &is_there))
        return false;
    if (!is_there)
        return true; /* a cleaner has removed it */
    message_print("%s: %s: %s", row->code, row->sha, problem);
    save->result.missing++;
    return true;
}

/* Has a cleaner removed the file while it was read? */
static bool has_gone(struct objects_save *save, const struct backup_row *row)
{
    bool is_there;
    return backup_rows_check(save->control, row, &is_there) && !is_there;
}

/* The folders of a copy. */
static bool make_folders(const struct objects_save *save, const char *part, const struct backup_row *row)
{
    const char *top = arena_printf(row->arena, "%s/%s", save->folder->path, part);
    const char *database = arena_printf(row->arena, "%s/%s", top, row->database);
    return backup_draft_folder(top, &save->owner) && backup_draft_folder(database, &save->owner) &&
           backup_draft_folder(backup_objects_path_of(save->folder, part, row, ""), &save->owner);
}

struct objects_fetch {
    struct backup_draft *draft;
    struct blob_check *check;
    bool is_written;
};

static bool fetch_piece(void *context, struct bytes piece)
{
    struct objects_fetch *fetch = context;
    blob_check_add(fetch->check, piece);
    fetch->is_written = bytes_write(backup_draft_fd(fetch->draft), piece);
    return fetch->is_written;
}

/* The name has the header that was read: the row may have got another one meanwhile. */
static bool backup_objects_finish(struct objects_save *save, const struct backup_row *row,
                                  struct objects_fetch *fetch, const unsigned char header[SEALED_FILE_HEADER])
{
    const char *part = row->store ? "objects" : "files";
    const char *path = backup_objects_path_of(save->folder, part, row,
                                              row->store ? backup_objects_name_of(row, header) : row->sha);
    save->result.files.count++;
    save->result.files.bytes += row->size;
    return backup_draft_finish(fetch->draft, path, row->size) &&
           backup_draft_sync(backup_objects_path_of(save->folder, part, row, ""));
}

static bool fetch_file(struct objects_save *save, const struct backup_row *row)
{
    const char *part = row->store ? "objects" : "files";
    const char *path = backup_objects_path_of(save->folder, part, row, row->sha);
    unsigned char header[SEALED_FILE_HEADER];
    if (!make_folders(save, part, row))
        return false;
    struct objects_fetch fetch = {backup_draft_begin(path, &save->owner), NULL, true};
    if (!fetch.draft)
        return false;
    fetch.check = blob_check_begin(&row->keys, &row->digest, row->size);
    enum fault fault = stored_files_read_bytes(row->files, &row->digest, fetch_piece, &fetch);
    int why = errno;
    enum sealed_file_state state = blob_check_end(fetch.check, header);
    if (!fault && fetch.is_written && state == SEALED_FILE_FINE)
        return backup_objects_finish(save, row, &fetch, header);
    backup_draft_abandon(fetch.draft);
    errno = why;
    if (!fetch.is_written)
        return backup_objects_fail(path);
    return fault == FAULT_NFILE ? report_missing(save, row, "missing")
           : fault              ? has_gone(save, row) /* the fault was reported */
           : state == SEALED_FILE_UNKNOWN
               ? report_missing(save, row, "it is under a data key that is not there")
               : report_missing(save, row,
                                row->keys.count ? "the file was altered or cut off"
                                                : "the bytes do not match the digest");
}

static bool take_copy(struct objects_save *save, const struct backup_row *row, const char *path)
{
    const char *object =
        backup_objects_path_of(save->folder, "objects", row, backup_objects_name_of(row, row->header));
    if (row->store && strcmp(path, object) != 0) {
        if (!make_folders(save, "objects", row) || rename(path, object) != 0)
            return backup_objects_fail(object);
        path = object;
    }
    return utimensat(AT_FDCWD, path, NULL, AT_SYMLINK_NOFOLLOW) == 0 || backup_objects_fail(path);
}

static bool save_row(void *context, const struct backup_row *row)
{
    struct objects_save *save = context;
    int64_t size;
    const char *copy = backup_objects_find(save->folder, row);
    if (copy)
        return take_copy(save, row, copy);
    enum fault fault = stored_files_measure_name(row->files, &row->digest, &size);
    if (fault)
        return false;
    return size == row->size ? fetch_file(save, row) : report_missing(save, row, "missing or truncated");
}

bool backup_objects_save(struct control *control, const struct backup_folder *folder,
                         struct backup_objects *objects_r)
{
    struct objects_save save = {.control = control, .folder = folder, .owner = backup_files_owner(folder)};
    int64_t begun;
    bool is_done = backup_rows_now(control, &begun) &&
                   backup_rows_walk(control, INT64_MAX, save_row, &save) &&
                   backup_folder_note_objects(control, folder, begun);
    *objects_r = save.result;
    if (!is_done)
        message_print("%s: the files of object stores were not copied; --without-objects leaves them out",
                      folder->path);
    return is_done;
}
