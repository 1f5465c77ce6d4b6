/* cmd_backup: `stampctl backup run, receive, files, list`; init, check and return have files of their own. */
#include "control/backup/cmd_backup.h"

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/backup/backup_files.h"
#include "control/backup/backup_log.h"
#include "control/backup/backup_objects.h"
#include "control/backup/backup_tool.h"
#include "control/message.h"
#include "control/record.h"

enum {
    KEEP = 7,
    KEEP_MOST = 10000,
    SECOND_MS = 1000,
    NAME_WAIT_MS = 50,
    RETRY_S = 5,
    RETRY_MOST_S = 3600,
    PART_NAME = 32,
};

static const char *format_time(struct control *control, int64_t time_ms, const char *format)
{
    char text[PART_NAME];
    time_t time = (time_t)(time_ms / SECOND_MS);
    struct tm parts;
    gmtime_r(&time, &parts);
    size_t size = strftime(text, sizeof text, format, &parts);
    return arena_printf(control->arena, "%.*s", (int)size, text);
}

/* "20261123T031500Z", for names. */
static const char *cmd_backup_name(struct control *control, int64_t time_ms)
{
    return format_time(control, time_ms, "%Y%m%dT%H%M%SZ");
}

const char *cmd_backup_time(struct control *control, int64_t time_ms)
{
    return format_time(control, time_ms, "%Y-%m-%d %H:%M:%SZ");
}

/* --- the cluster --- */

struct cluster_identity {
    int64_t timeline;
    bool is_same;
    const struct backup_folder *folder;
};

/* "systemid|timeline|xlogpos|dbname" */
static void take_identity(void *context, struct bytes line)
{
    struct cluster_identity *identity = context;
    struct bytes system = bytes_cut(&line, '|');
    if (bytes_equal(system, bytes_of(identity->folder->system)))
        identity->is_same = bytes_to_i64(bytes_cut(&line, '|'), &identity->timeline) &&
                            identity->timeline == identity->folder->timeline;
}

/* After a restore or a fail-over the log goes on otherwise than in the archive. */
static bool is_same_cluster(struct control *control, const struct backup_folder *folder)
{
    struct cluster_identity identity = {.folder = folder};
    const char *where =
        arena_printf(control->arena, "%s replication=true", backup_tool_conninfo(control, folder));
    const char *const words[] = {"psql", "-X", "-w", "-A", "-t", "-d", where, "-c", "IDENTIFY_SYSTEM", NULL};
    if (!backup_tool_read(control, folder, words, take_identity, &identity, NULL))
        return false;
    if (!identity.is_same)
        message_print("%s is of another cluster, or from before a restore or a fail-over of this one: begin "
                      "another folder with `stampctl backup init`",
                      folder->path);
    return identity.is_same;
}

static bool open_folder(struct control *control, const char *path, struct backup_folder *folder_r)
{
    return backup_folder_open(control, path, folder_r) && backup_tool_check_user(folder_r->user);
}

/* --- run --- */

/* A name has seconds: a run in the second in which another one began waits for the next.  Returns the path.
 */
static const char *name_base(struct control *control, const struct backup_folder *folder,
                             struct backup_base *base)
{
    struct stat status;
    for (;;) {
        base->started_ms = clock_wall_ms();
        base->name = cmd_backup_name(control, base->started_ms);
        const char *path = arena_printf(control->arena, "%s/base/%s", folder->path, base->name);
        if (lstat(path, &status) != 0)
            return path;
        clock_sleep_ms(NAME_WAIT_MS);
    }
}

static bool take_base(struct control *control, const struct backup_folder *folder, bool is_lazy,
                      struct backup_base *base)
{
    const char *path = name_base(control, folder, base);
    const char *const copy[] = {"pg_basebackup",
                                "--pgdata",
                                path,
                                "--format=plain",
                                "--wal-method=stream",
                                "--checkpoint=fast",
                                "--manifest-checksums=SHA256",
                                "--label=stampd",
                                "--no-password",
                                "--dbname",
                                backup_tool_conninfo(control, folder),
                                is_lazy ? "--no-sync" : NULL,
                                NULL};
    const char *const verify[] = {"pg_verifybackup", "--quiet", path, NULL};
    if (!backup_tool_run(control, folder, copy) || !backup_tool_run(control, folder, verify))
        return false;
    base->finished_ms = clock_wall_ms() + 1; /* it was consistent before */
    return true;
}

/* The files of the directory, then those that only object stores have; `missing` -1: these were left out. */
static bool save_files(struct control *control, const struct backup_folder *folder, bool is_without,
                       struct backup_objects *objects_r)
{
    struct backup_files files;
    *objects_r = (struct backup_objects){.missing = 0};
    if (!backup_folder_lock(control, folder, BACKUP_LOCK_FILES, true) ||
        !backup_files_save(control, folder, control->settings.blob_directory, &files))
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

/* Removes base backups beyond `keep`, then what only they needed. */
static bool retire(struct control *control, const struct backup_folder *folder, int64_t keep)
{
    struct backup_base *bases;
    struct backup_log log;
    size_t count, segments;
    int64_t files;
    if (!backup_folder_list(control, folder, &bases, &count))
        return false;
    for (; count > (size_t)keep; count--, bases++)
        if (!backup_folder_remove(control, folder, bases->name))
            return false;
    const char *path = arena_printf(control->arena, "%s/log", folder->path);
    return backup_log_list(control, folder, path, &log) &&
           backup_log_prune(control, folder, &log, backup_log_segment(folder, bases->start), &segments) &&
           backup_files_prune(control, folder, bases->started_ms / SECOND_MS, &files);
}

struct run_options {
    int64_t keep;
    bool is_quiet, is_lazy, is_without;
};

static void print_run(const struct backup_folder *folder, const struct backup_base *base,
                      const struct backup_files *files)
{
    printf("%s: base backup %s of %.1f MB in %.1f s; %lld files of %.1f MB%s\n", folder->path, base->name,
           (double)base->bytes / 1e6, (double)(base->finished_ms - base->started_ms) / SECOND_MS,
           (long long)files->count, (double)files->bytes / 1e6,
           base->missing < 0 ? ", without those of object stores" : "");
}

static bool cmd_backup_run(struct control *control, const char *path, const struct run_options *options)
{
    struct backup_folder folder;
    struct backup_base base = {0};
    struct backup_objects objects;
    if (!open_folder(control, path, &folder) ||
        !backup_folder_lock(control, &folder, BACKUP_LOCK_BASE, false) ||
        !backup_folder_sweep(control, &folder) || !is_same_cluster(control, &folder) ||
        !may_leave_out(control, &folder, options->is_without))
        return false;
    bool is_taken = take_base(control, &folder, options->is_lazy, &base) &&
                    save_files(control, &folder, options->is_without, &objects);
    if (is_taken)
        base.missing = objects.missing;
    if (!is_taken || !backup_folder_add(control, &folder, &base)) {
        message_print("%s: no base backup was taken; the former ones stay", path);
        bool is_swept = backup_folder_sweep(control, &folder); /* else the next run does it */
        (void)is_swept;
        return false;
    }
    if (!retire(control, &folder, options->keep))
        return false;
    if (!options->is_quiet)
        print_run(&folder, &base, &objects.files);
    return is_whole(&folder, &objects);
}

static int backup_run(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "backup run", "FOLDER", "Take a base backup, verify it, and remove old ones.",
        "The files of attachments are copied after it.  The log before the oldest base backup is removed.\n"
        "If it fails, as when an object store is away, the former base backups stay as they were.\n");
    struct run_options options = {.keep = KEEP};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_NUMBER("keep", "N", &options.keep, 1, KEEP_MOST,
                      "Keep the newest N base backups (default: 7)."),
        WITHOUT_OBJECTS_LINE(&options.is_without),
        OPTION_FLAG("no-sync", &options.is_lazy, "Do not wait until all is on the disk; for tests."),
        OPTION_FLAG("quiet", &options.is_quiet, "Print nothing when all is well, for cron."),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_backup_run(control, words[0], &options) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- files --- */

static int backup_files(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup files", "FOLDER", "Copy new files of attachments between two base backups.",
                "The log has the references to files, not their bytes: a restore "
                "has the files up to the last copy.\n");
    bool is_quiet = false, is_without = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), WITHOUT_OBJECTS_LINE(&is_without),
        OPTION_FLAG("quiet", &is_quiet, "Print nothing when all is well, for cron."),
        CONTROL_ADMIN_LINE(control)};
    struct backup_folder folder;
    struct backup_objects objects;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_folder(control, words[0], &folder) || !may_leave_out(control, &folder, is_without) ||
        !save_files(control, &folder, is_without, &objects))
        return CONTROL_FAILED;
    if (!is_quiet)
        printf("%s: %lld files of %.1f MB%s\n", folder.path, (long long)objects.files.count,
               (double)objects.files.bytes / 1e6,
               objects.missing < 0 ? ", without those of object stores" : "");
    return is_whole(&folder, &objects) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- receive --- */

/* pg_receivewal refuses a segment that it could not make whole, as on a full disk.  Nothing of it was
 * reported as archived, so that PostgreSQL sends it again. */
static bool remove_torn(struct control *control, const struct backup_folder *folder)
{
    struct backup_log log;
    struct stat status;
    const char *path = arena_printf(control->arena, "%s/log", folder->path);
    if (!backup_log_list(control, folder, path, &log))
        return false;
    if (!log.has_partial)
        return true;
    const char *partial =
        arena_printf(control->arena, "%s/%s.partial", path, backup_log_name(control, folder, log.partial));
    return lstat(partial, &status) != 0 || status.st_size == folder->segment_bytes || unlink(partial) == 0;
}

/* Runs until it is stopped, or cannot even begin. */
static bool cmd_backup_receive(struct control *control, const struct backup_folder *folder, int64_t retry_s)
{
    const char *const words[] = {"pg_receivewal",
                                 "--directory",
                                 arena_printf(control->arena, "%s/log", folder->path),
                                 "--slot",
                                 folder->slot,
                                 "--synchronous", /* each commit is durable here at once */
                                 "--no-loop",
                                 "--no-password",
                                 "--dbname",
                                 backup_tool_conninfo(control, folder),
                                 NULL};
    for (;;) {
        struct control round = *control;
        round.arena = arena_create("round");
        bool is_ready = remove_torn(&round, folder);
        if (is_ready && backup_tool_run(&round, folder, words))
            message_print("pg_receivewal has ended");
        arena_destroy(round.arena);
        if (!is_ready)
            return false;
        clock_sleep_ms(retry_s * SECOND_MS);
    }
}

static int backup_receive(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "backup receive", "FOLDER", "Archive PostgreSQL's log as it is written; runs until it is stopped.",
        "Runs pg_receivewal, and again a few seconds after it has ended: PostgreSQL was away, the disk was\n"
        "full.  The unit stampd-backup@.service runs it.\n");
    int64_t retry_s = RETRY_S;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control),
                                        OPTION_NUMBER("retry", "SECONDS", &retry_s, 1, RETRY_MOST_S,
                                                      "Run pg_receivewal again after SECONDS (default: 5).")};
    struct backup_folder folder;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_folder(control, words[0], &folder) || !is_same_cluster(control, &folder))
        return CONTROL_FAILED;
    return cmd_backup_receive(control, &folder, retry_s) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- list --- */

static void print_base(struct control *control, const struct backup_base *base, bool is_json)
{
    const char *from = cmd_backup_time(control, base->started_ms),
               *to = cmd_backup_time(control, base->finished_ms);
    const char *missing = base->missing < 0 ? "without"
                          : base->missing
                              ? arena_printf(control->arena, "%lld missing", (long long)base->missing)
                              : "all";
    if (!is_json) {
        printf("%-18s  %-20s  %-20s  %10.1f  %s\n", base->name, from, to, (double)base->bytes / 1e6, missing);
        return;
    }
    struct record record = {0};
    record_add_word(&record, "name", base->name);
    record_add_word(&record, "started", from);
    record_add_word(&record, "finished", to);
    record_add_i64(&record, "bytes", base->bytes);
    if (base->missing >= 0)
        record_add_i64(&record, "objects_missing", base->missing);
    record_print(&record);
}

static int backup_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup list", "FOLDER", "List the base backups and the archived log.",
                "A restore is possible to any time from FINISHED of the oldest base backup on.\n");
    bool is_json = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), RECORD_JSON_LINE(&is_json)};
    struct backup_folder folder;
    struct backup_base *bases;
    struct backup_log log;
    size_t count;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!backup_folder_open(control, words[0], &folder) ||
        !backup_folder_list(control, &folder, &bases, &count) ||
        !backup_log_list(control, &folder, arena_printf(control->arena, "%s/log", folder.path), &log))
        return CONTROL_FAILED;
    if (!is_json)
        printf("%-18s  %-20s  %-20s  %10s  %s\n", "BASE", "STARTED", "FINISHED", "SIZE MB", "OBJECTS");
    for (size_t i = 0; i < count; i++)
        print_base(control, &bases[i], is_json);
    if (!is_json)
        printf("log: %zu segments, %.1f MB, written last %s\n", log.count + log.has_partial,
               (double)log.bytes / 1e6,
               log.newest_s ? cmd_backup_time(control, log.newest_s * SECOND_MS) : "never");
    return CONTROL_DONE;
}

int control_backup(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"init", "Prepare a folder for backups.", cmd_backup_init},
        {"run", "Take a base backup, and remove old ones.", backup_run},
        {"receive", "Archive PostgreSQL's log as it is written.", backup_receive},
        {"files", "Copy new files of attachments.", backup_files},
        {"list", "List base backups and log.", backup_list},
        {"check", "Check that a restore would work.", cmd_backup_check},
        {"return", "Return missing files to object stores, after a restore.", cmd_backup_return},
    };
    return options_choose(
        "backup",
        "Back up the whole cluster: base backups and an archive of PostgreSQL's log, from which\n"
        "`stampctl restore` makes the cluster as it was at any time.\n",
        choices, COUNT_OF(choices), control, argc, argv);
}
