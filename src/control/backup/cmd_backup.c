/* cmd_backup: `stampctl backup run, files, list`; check and return have files of their own. */
#include "control/backup/cmd_backup.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "control/backup/backup_database.h"
#include "control/backup/backup_files.h"
#include "control/backup/backup_objects.h"
#include "control/message.h"
#include "control/record.h"

enum { SEGMENT_NAME = 24 };

/* --- run --- */

/* The files of the directory, then those that only object stores have; `missing` -1: these were left out. */
static bool save_all(struct control *control, const struct backup_folder *folder, bool is_without,
                     struct backup_objects *objects_r)
{
    struct backup_files files;
    *objects_r = (struct backup_objects){.missing = 0};
    if (!backup_files_save(control, folder, control->settings.blob_directory, &files))
        return false;
    bool is_used = backup_objects_are_used(control, folder);
    if (is_used && is_without)
        objects_r->missing = -1;
    else if (is_used && !backup_objects_save(control, folder, objects_r))
        return false;
    objects_r->files.count += files.count;
    objects_r->files.bytes += files.bytes;
    return true;
}

static bool save_files(struct control *control, const struct backup_folder *folder, bool is_without,
                       struct backup_objects *objects_r)
{
    const int lock = backup_folder_lock(control, folder, BACKUP_LOCK_FILES, true);
    const bool is_done = lock >= 0 && save_all(control, folder, is_without, objects_r);
    if (lock >= 0)
        close(lock);
    return is_done;
}

/* A backup that lacks files looks whole when no setting names the stores that have them: the tables of files
 * decide, before anything is copied.  False: reported. */
static bool may_leave_out(struct control *control, const struct backup_folder *folder, bool is_without)
{
    if (is_without || backup_objects_are_used(control, folder) || backup_rows_refuse_stored(control))
        return true;
    return message_refuse("%s: nothing was copied; --without-objects leaves out what only object stores have",
                          folder->path);
}

/* Of the files that were copied: is none missing?  Reports how many are. */
static bool is_whole(const struct backup_folder *folder, const struct backup_objects *objects)
{
    if (objects->missing > 0)
        message_print("%s: %lld files of attachments are missing or altered, and have no copy", folder->path,
                      (long long)objects->missing);
    return objects->missing <= 0;
}

#define WITHOUT_OBJECTS_LINE(flag_)                                                                          \
    {                                                                                                        \
        .name = "without-objects",                                                                           \
        .help = "Leave out the files that only object stores have; they need a backup of their own.",        \
        .flag = (flag_)                                                                                      \
    }

/* Segments that pgBackRest has in its archive are not needed a second time (stampd-backup@.service). */
static bool prune_log(struct control *control, const struct backup_folder *folder,
                      const struct backup_bases *bases)
{
    const char *path = arena_printf(control->arena, "%s/log", folder->path);
    DIR *directory = opendir(path);
    bool is_done = directory || errno == ENOENT;
    for (struct dirent *entry; is_done && directory && (entry = readdir(directory));)
        if (strlen(entry->d_name) == SEGMENT_NAME && strcmp(entry->d_name, bases->newest_segment) <= 0)
            is_done = unlinkat(dirfd(directory), entry->d_name, 0) == 0 || errno == ENOENT;
    const int why = errno;
    if (directory)
        closedir(directory);
    return is_done || message_refuse("%s: %s", path, strerror(why));
}

/* Removes what no backup of the database needs any more. */
static bool retire(struct control *control, const struct backup_folder *folder, struct backup_base *newest_r)
{
    struct backup_bases list;
    int64_t files;
    if (!backup_database_list(control, folder, &list))
        return false;
    if (!list.count)
        return message_refuse("%s: pgBackRest has kept no backup: see repo1-retention-full", folder->path);
    *newest_r = list.bases[list.count - 1];
    return prune_log(control, folder, &list) &&
           backup_files_prune(control, folder, list.bases[0].started_s, &files);
}

struct run_options {
    const char *type;
    bool is_quiet, is_without;
};

/* Files are copied before, so that no backup is taken while a store is away, and again after it: it refers to
 * those that were uploaded meanwhile. */
static bool cmd_backup_run(struct control *control, struct backup_folder *folder, const char *path,
                           const struct run_options *options)
{
    struct backup_base base;
    struct backup_objects first, then;
    if (!backup_folder_open(control, path, folder) ||
        backup_folder_lock(control, folder, BACKUP_LOCK_BASE, false) < 0 ||
        !may_leave_out(control, folder, options->is_without))
        return false;
    if (!save_files(control, folder, options->is_without, &first) ||
        !BACKUP_DATABASE_RUN(
            control, folder, NULL, "backup", arena_printf(control->arena, "--type=%s", options->type),
            arena_printf(control->arena, "--annotation=" BACKUP_MISSING "=%lld", (long long)first.missing)))
        return message_refuse("%s: no base backup was taken; the former ones stay", path);
    if (!save_files(control, folder, options->is_without, &then) || !retire(control, folder, &base))
        return false;
    if (!options->is_quiet)
        printf("%s: base backup %s of %.1f MB in %lld s; %lld files of %.1f MB%s\n", folder->path, base.name,
               (double)base.bytes / 1e6, (long long)(base.finished_s - base.started_s),
               (long long)(first.files.count + then.files.count),
               (double)(first.files.bytes + then.files.bytes) / 1e6,
               then.missing < 0 ? ", without those of object stores" : "");
    return is_whole(folder, &then);
}

static int backup_run(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "backup run", "FOLDER", "Take a backup of the database by pgBackRest, and copy the files.",
        "How many backups are kept is a setting of pgBackRest; copies of files that none of them needs are "
        "removed.\nIf it fails, as when an object store is away, the former backups stay as they were.\n");
    struct backup_folder folder = {.stanza = BACKUP_STANZA_DEFAULT};
    struct run_options options = {.type = "full"};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        BACKUP_STANZA_LINE(&folder),
        OPTION_TEXT("type", "TYPE", &options.type, "Take a backup full, diff or incr (default: full)."),
        WITHOUT_OBJECTS_LINE(&options.is_without),
        OPTION_FLAG("quiet", &options.is_quiet, "Print nothing when all is well, for cron."),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_backup_run(control, &folder, words[0], &options) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- files --- */

static int backup_files(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup files", "FOLDER", "Copy new files of attachments between two base backups.",
                "The log has the references to files, not their bytes: a restore "
                "has the files up to the last copy.\n");
    struct backup_folder folder = {.stanza = BACKUP_STANZA_DEFAULT};
    bool is_quiet = false, is_without = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), WITHOUT_OBJECTS_LINE(&is_without),
        OPTION_FLAG("quiet", &is_quiet, "Print nothing when all is well, for cron."),
        CONTROL_ADMIN_LINE(control)};
    struct backup_objects objects;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!backup_folder_open(control, words[0], &folder) || !may_leave_out(control, &folder, is_without) ||
        !save_files(control, &folder, is_without, &objects))
        return CONTROL_FAILED;
    if (!is_quiet)
        printf("%s: %lld files of %.1f MB%s\n", folder.path, (long long)objects.files.count,
               (double)objects.files.bytes / 1e6,
               objects.missing < 0 ? ", without those of object stores" : "");
    return is_whole(&folder, &objects) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- list --- */

static void print_base(struct control *control, const struct backup_base *base, bool is_json)
{
    const char *from = backup_database_time(control, base->started_s),
               *to = backup_database_time(control, base->finished_s);
    const char *missing = base->missing < 0 ? "without"
                          : base->missing
                              ? arena_printf(control->arena, "%lld missing", (long long)base->missing)
                              : "all";
    if (!is_json) {
        printf("%-33s  %-20s  %-20s  %10.1f  %s\n", base->name, from, to, (double)base->bytes / 1e6, missing);
        return;
    }
    struct record record = {0};
    record_add_word(&record, "name", base->name);
    record_add_word(&record, "type", base->type);
    record_add_word(&record, "started", from);
    record_add_word(&record, "finished", to);
    record_add_i64(&record, "bytes", base->bytes);
    record_add_word(&record, "first_segment", base->first_segment);
    if (base->missing >= 0)
        record_add_i64(&record, "objects_missing", base->missing);
    record_print(&record);
}

static int backup_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup list", "FOLDER", "List the backups of the database.",
                "A restore is possible to any time from FINISHED of the oldest base backup on.\n");
    struct backup_folder folder = {.stanza = BACKUP_STANZA_DEFAULT};
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), BACKUP_STANZA_LINE(&folder),
                                        RECORD_JSON_LINE(&is_json)};
    struct backup_bases list;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!backup_folder_open(control, words[0], &folder) || !backup_database_list(control, &folder, &list))
        return CONTROL_FAILED;
    if (!is_json)
        printf("%-33s  %-20s  %-20s  %10s  %s\n", "BACKUP", "STARTED", "FINISHED", "SIZE MB", "OBJECTS");
    for (size_t i = 0; i < list.count; i++)
        print_base(control, &list.bases[i], is_json);
    return CONTROL_DONE;
}

int control_backup(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"run", "Take a backup of the database, and copy the files.", backup_run},
        {"files", "Copy new files of attachments.", backup_files},
        {"list", "List the backups of the database.", backup_list},
        {"check", "Check that a restore would work.", cmd_backup_check},
        {"return", "Return missing files to object stores, after a restore.", cmd_backup_return},
    };
    return options_choose(
        "backup",
        "Back up the whole cluster: the database by pgBackRest, which also archives\n"
        "PostgreSQL's log, and the files of attachments.  `stampctl restore` makes the cluster "
        "as it was\nat any time.\n",
        choices, COUNT_OF(choices), control, argc, argv);
}
