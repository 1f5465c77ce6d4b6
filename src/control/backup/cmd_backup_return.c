/* cmd_backup_return: `stampctl backup return`: after a restore, the tables of files may name objects that
 * were removed since, and files of the directory that were in an object store when they were copied.
 *
 * An object gets the name that the table has: names are used once, so that it replaces nothing but an object
 * that is cut off or, with --verify, altered. */
#include "control/backup/cmd_backup.h"

#include <stdio.h>

#include "control/backup/backup_objects.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "blob/blob_check.h"

struct returning {
    struct control *control;
    const struct backup_folder *folder;
    const char *directory;
    struct backup_owner owner; /* of the directory */
    bool has_owner;
    bool is_thorough, is_altered; /* files that are there are read; this one has other bytes */
    struct backup_files files;    /* returned now */
    int64_t present, missing;
    const struct backup_row *row;
    struct object_store *store;
};

static bool report_missing(struct returning *returning, const struct backup_row *row)
{
    message_print("%s: %s: %s %s%s, and the backup has no sound copy", row->code, row->sha,
                  returning->is_altered ? "altered" : "missing",
                  row->store ? "in the object store " : "in the directory", row->store ? row->store : "");
    returning->missing++;
    return true;
}

static void cmd_backup_return_count(struct returning *returning, const struct backup_row *row)
{
    returning->files.count++;
    returning->files.bytes += row->size;
}

/* --- what is there --- */

static bool report_store(const struct returning *returning)
{
    return message_refuse("%s: %s: %s", returning->row->store, returning->row->object,
                          object_store_problem(returning->store));
}

static bool check_piece(void *context, struct bytes piece)
{
    blob_check_add(context, piece);
    return true;
}

/* Where the table has it.  False: it could not be read, which was reported. */
static bool read_present(const struct returning *returning, const struct backup_row *row,
                         enum sealed_file_state *state_r)
{
    enum fault fault = FAULT_NONE;
    struct blob_check *check = blob_check_begin(&row->keys, &row->digest, row->size);
    bool is_read =
        !row->store || object_store_read(returning->store, row->object, row->size, check_piece, check);
    if (!row->store)
        fault = blob_store_read(stored_files_directory(row->files), bytes_of(row->database), &row->digest,
                                check_piece, check);
    *state_r = blob_check_end(check, NULL);
    return is_read ? !fault : report_store(returning);
}

/* Is the file, which has this size, to be kept?  False: it could not be read, which was reported. */
static bool judge_present(struct returning *returning, const struct backup_row *row, int64_t size,
                          bool *is_kept_r)
{
    returning->is_altered = false;
    *is_kept_r = size == row->size;
    if (*is_kept_r && returning->is_thorough) {
        enum sealed_file_state state;
        if (!read_present(returning, row, &state))
            return false;
        *is_kept_r = state == SEALED_FILE_FINE;
        returning->is_altered = !*is_kept_r;
    }
    returning->present += *is_kept_r;
    return true;
}

/* --- to the directory --- */

static bool write_piece(void *context, struct bytes piece)
{
    return bytes_write(backup_draft_fd(context), piece);
}

static const char *path_in_directory(const struct returning *returning, const char *name)
{
    const struct backup_row *row = returning->row;
    return arena_printf(row->arena, "%s/%s/%.2s/%s", returning->directory, row->database, row->sha, name);
}

/* False: another copy is to be tried. */
static bool put_file(void *context, const char *copy)
{
    struct returning *returning = context;
    const struct backup_row *row = returning->row;
    const char *path = path_in_directory(returning, row->sha);
    struct backup_draft *draft = backup_draft_begin(path, &returning->owner);
    if (!draft)
        return false;
    if (backup_objects_read(copy, &row->keys, &row->digest, row->size, write_piece, draft) ==
        SEALED_FILE_FINE)
        return backup_draft_finish(draft, path, row->size) &&
               backup_draft_sync(path_in_directory(returning, ""));
    backup_draft_abandon(draft);
    return false;
}

static bool return_file(struct returning *returning, const struct backup_row *row)
{
    int64_t size;
    bool is_there;
    if (blob_store_measure(stored_files_directory(row->files), bytes_of(row->database), &row->digest,
                           &size) ||
        !judge_present(returning, row, size, &is_there))
        return false;
    if (is_there)
        return true;
    if (!returning->has_owner && !backup_files_owner_of(returning->directory, &returning->owner))
        return false;
    returning->has_owner = true;
    if (!backup_draft_folder(arena_printf(row->arena, "%s/%s", returning->directory, row->database),
                             &returning->owner) ||
        !backup_draft_folder(path_in_directory(returning, ""), &returning->owner))
        return false;
    if (!backup_objects_try(returning->folder, row, put_file, returning))
        return report_missing(returning, row);
    cmd_backup_return_count(returning, row);
    return true;
}

/* --- to an object store --- */

struct return_upload {
    struct object_upload *upload;
    bool is_taken;
};

static bool cmd_backup_return_send_piece(void *context, struct bytes piece)
{
    struct return_upload *sending = context;
    sending->is_taken = object_store_write(sending->upload, piece);
    return sending->is_taken;
}

/* What the store then has is measured: it may lie. */
static bool put_object(struct returning *returning, const char *copy, bool *is_sound_r)
{
    const struct backup_row *row = returning->row;
    int64_t size;
    struct return_upload sending = {object_store_begin(returning->store, row->object, row->size), true};
    enum sealed_file_state state = backup_objects_read(copy, &row->keys, &row->digest, row->size,
                                                       cmd_backup_return_send_piece, &sending);
    *is_sound_r = state == SEALED_FILE_FINE;
    if (!*is_sound_r) {
        object_store_abandon(sending.upload);
        return sending.is_taken ? state != SEALED_FILE_FAILED : report_store(returning);
    }
    if (!object_store_finish(sending.upload) || !object_store_measure(returning->store, row->object, &size))
        return report_store(returning);
    if (size == row->size)
        return true;
    return message_refuse("%s: %s: the store does not have what was written", row->store, row->object);
}

static bool return_object(struct returning *returning, const struct backup_row *row)
{
    int64_t size;
    bool is_sound = false, is_there;
    returning->store = stored_files_store(row->files, row->store);
    if (!returning->store)
        return false;
    if (!object_store_measure(returning->store, row->object, &size))
        return report_store(returning);
    if (!judge_present(returning, row, size, &is_there))
        return false;
    if (is_there)
        return true;
    const char *copy = backup_objects_find(returning->folder, row);
    if (copy && !put_object(returning, copy, &is_sound))
        return false;
    if (!is_sound)
        return report_missing(returning, row);
    cmd_backup_return_count(returning, row);
    return true;
}

static bool return_row(void *context, const struct backup_row *row)
{
    struct returning *returning = context;
    returning->row = row;
    return row->store ? return_object(returning, row) : return_file(returning, row);
}

/* --- the command --- */

/* Before the end of the recovery the tables are those of another time. */
static bool is_recovered(struct control *control)
{
    struct pg *pg;
    struct pg_result *row;
    if (!ns_database_open(control, &pg) ||
        !control_query(control, pg, "PostgreSQL", "select pg_is_in_recovery()", NULL, &row))
        return false;
    if (pg_get_bool(row, 0, 0))
        message_print("PostgreSQL still replays the log: wait until `select pg_is_in_recovery()` is false");
    return !pg_get_bool(row, 0, 0);
}

static bool cmd_backup_return_run(struct control *control, const char *path, bool is_thorough)
{
    struct backup_folder folder;
    struct returning returning = {
        .control = control,
        .folder = &folder,
        .directory = control->settings.blob_directory,
        .is_thorough = is_thorough,
    };
    if (!backup_folder_open(control, path, &folder) || !is_recovered(control) ||
        backup_folder_lock(control, &folder, BACKUP_LOCK_FILES, true) < 0)
        return false;
    bool is_done = backup_rows_walk(control, INT64_MAX, return_row, &returning);
    printf("%s: %lld files of %.1f MB returned; %lld were there", folder.path,
           (long long)returning.files.count, (double)returning.files.bytes / 1e6,
           (long long)returning.present);
    if (returning.missing)
        printf("; %lld are missing", (long long)returning.missing);
    printf("%s\n", is_done ? "" : "; not finished: run the command again");
    return is_done && !returning.missing;
}

int cmd_backup_return(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "backup return", "FOLDER", "Return the files that a restored cluster lacks to their object stores.",
        "Run it when PostgreSQL has replayed the log, before stampd is started.  Files that are there and "
        "have\ntheir size stay; with --verify they are read, and replaced if their bytes are others.\n");
    bool is_thorough = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_FLAG("verify", &is_thorough,
                    "Also read the files that are there, and compare them with their digests."),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_backup_return_run(control, words[0], is_thorough) ? CONTROL_DONE : CONTROL_FAILED;
}
