/* cmd_restore: `stampctl restore`: makes a data directory from a base backup and the archived log.
 *
 * The data directory is made beside its place and renamed when it is complete: an interrupted run leaves no
 * directory that PostgreSQL would start with.  It has all the log that it needs, so that the restored
 * cluster depends on the folder of the backup no more.  It also names its restore (stampd.restored): servers
 * refuse its databases until `stampctl ns restored` has been run in each. */
#include "control/control.h"

#include <errno.h>
#include <fcntl.h>
#include <pwd.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/backup/backup_log.h"
#include "control/backup/backup_objects.h"
#include "control/backup/backup_tool.h"
#include "control/backup/cmd_backup.h"
#include "control/message.h"

enum { SECOND_US = 1000000, SECOND_MS = 1000, MS_US = 1000 };

struct restore {
    struct control *control;
    struct backup_folder folder;
    const struct backup_base *base;
    const char *to, *draft, *log; /* the data directory, while it is made, its pg_wal */
    const char *owner, *time, *base_name, *files;
    int64_t time_us; /* 0: up to the end of the log */
    bool is_lazy;    /* nothing is flushed to the disk */
};

static bool cmd_restore_fail(const char *path)
{
    return message_refuse("%s: %s", path, strerror(errno));
}

/* --- what is to be restored --- */

/* The newest that was finished before the time. */
static bool choose_base(struct restore *restore)
{
    struct backup_base *bases;
    size_t count;
    if (!backup_folder_list(restore->control, &restore->folder, &bases, &count))
        return false;
    for (size_t i = 0; i < count; i++)
        if (restore->base_name ? strcmp(bases[i].name, restore->base_name) == 0
                               : !restore->time_us || bases[i].finished_ms * MS_US <= restore->time_us)
            restore->base = &bases[i];
    if (restore->base && (!restore->time_us || restore->base->finished_ms * MS_US <= restore->time_us))
        return true;
    if (!count)
        message_print("%s: there is no base backup", restore->folder.path);
    else if (restore->base_name)
        message_print("%s: there is no base backup %s that was finished before the time",
                      restore->folder.path, restore->base_name);
    else
        message_print("%s: no base backup was finished before that time; the oldest one was at %s",
                      restore->folder.path, cmd_backup_time(restore->control, bases[0].finished_ms));
    return false;
}

/* PostgreSQL's user: that of the directory, or of the folder in which it is made. */
static bool choose_owner(struct restore *restore)
{
    struct stat status;
    const char *slash = strrchr(restore->to, '/');
    const char *parent =
        arena_printf(restore->control->arena, "%.*s/", (int)(slash - restore->to), restore->to);
    if (restore->owner)
        return backup_tool_check_user(restore->owner);
    if (stat(restore->to, &status) != 0 && stat(parent, &status) != 0)
        return cmd_restore_fail(parent);
    const struct passwd *user = getpwuid(geteuid() == 0 ? status.st_uid : geteuid());
    if (user && user->pw_uid != 0) {
        restore->owner = arena_copy(restore->control->arena, user->pw_name, strlen(user->pw_name));
        return true;
    }
    return message_refuse(
        "restore: PostgreSQL does not run as root: name its system user by --owner, as --owner postgres");
}

static bool cmd_restore_is_free(const struct restore *restore)
{
    struct stat status;
    if (!backup_folder_is_empty(restore->to))
        return message_refuse("%s: not empty: a data directory is never overwritten; move it away first",
                              restore->to);
    if (lstat(restore->draft, &status) != 0)
        return true;
    return message_refuse("%s: left by an interrupted restore, or another one is running: remove it first",
                          restore->draft);
}

/* --- the data directory --- */

/* The tools run as the caller here, which must be able to read the folder and write the directory. */
static bool run_tool(struct restore *restore, const char *const *words)
{
    struct backup_folder as_caller = restore->folder;
    as_caller.user = NULL;
    return backup_tool_run(restore->control, &as_caller, words);
}

static bool copy_base(struct restore *restore)
{
    struct arena *arena = restore->control->arena;
    const char *path = arena_printf(arena, "%s/base/%s", restore->folder.path, restore->base->name);
    const char *const verify[] = {"pg_verifybackup", "--quiet", path, NULL};
    const char *const copy[] = {"cp", "-a", "--reflink=auto", "--", path, restore->draft, NULL};
    struct stat status;
    if (!run_tool(restore, verify) || !run_tool(restore, copy))
        return false;
    if (lstat(restore->log, &status) == 0 && S_ISDIR(status.st_mode))
        return true;
    message_print("%s: it has no folder pg_wal", path); /* root would follow a link to elsewhere */
    return false;
}

/* The partial segment gets its final name; what the base backup itself has of it is older, unless nothing
 * was archived since. */
static bool copy_segment(struct restore *restore, const struct backup_log *log, uint64_t number)
{
    struct control *control = restore->control;
    const char *name = backup_log_name(control, &restore->folder, number);
    bool is_partial = log->has_partial && log->partial == number;
    const char *from = arena_printf(control->arena, "%s/%s%s", log->path, name, is_partial ? ".partial" : "");
    const char *to = arena_printf(control->arena, "%s/%s", restore->log, name);
    struct stat status;
    if (is_partial && access(to, F_OK) == 0 && stat(from, &status) == 0 &&
        status.st_mtime < restore->base->finished_ms / SECOND_MS)
        return true;
    const char *const copy[] = {"cp", "--reflink=auto", "--preserve=timestamps", "--", from, to, NULL};
    return run_tool(restore, copy);
}

static bool copy_log(struct restore *restore, struct backup_log *copied_r)
{
    struct control *control = restore->control;
    struct backup_log log;
    uint64_t first = backup_log_segment(&restore->folder, restore->base->start), missing;
    const char *archive = arena_printf(control->arena, "%s/log", restore->folder.path);
    if (!backup_log_list(control, &restore->folder, archive, &log))
        return false;
    for (size_t i = 0; i < log.count; i++)
        if (log.numbers[i] >= first && !copy_segment(restore, &log, log.numbers[i]))
            return false;
    if (log.has_partial && log.partial >= first && !copy_segment(restore, &log, log.partial))
        return false;
    if (!backup_log_list(control, &restore->folder, restore->log, copied_r))
        return false;
    if (backup_log_is_whole(copied_r, first, &missing))
        return true;
    return message_refuse("%s: segment %s of the log is missing or damaged", archive,
                          backup_log_name(control, &restore->folder, missing));
}

static bool check_log(struct restore *restore, const struct backup_log *log)
{
    struct control *control = restore->control;
    struct backup_log_content content;
    struct backup_folder as_caller = restore->folder;
    as_caller.user = NULL;
    if (!backup_log_examine(control, &as_caller, log, restore->base->start, true, &content))
        return false;
    if (!content.is_sound)
        return message_refuse("%s/log: altered: a record of a complete segment is not as PostgreSQL wrote it "
                              "(stampctl backup check %s)",
                              restore->folder.path, restore->folder.path);
    if (!restore->time_us || content.newest_us >= restore->time_us)
        return true;
    return message_refuse(
        "%s: the newest commit in the log is of %s, before the time; leave out --target-time to restore "
        "all",
        restore->folder.path,
        content.newest_us ? cmd_backup_time(control, content.newest_us / MS_US) : "no time");
}

/* Later lines take precedence over those that the cluster had. */
static bool write_settings(struct restore *restore)
{
    struct builder lines = {0};
    const char *path = arena_printf(restore->control->arena, "%s/postgresql.auto.conf", restore->draft);
    const char *signal = arena_printf(restore->control->arena, "%s/recovery.signal", restore->draft);
    int64_t target_ms = restore->time_us / MS_US, now_ms = clock_wall_ms();
    const char *now = cmd_backup_time(restore->control, now_ms);
    builder_printf(
        &lines, "\n# By stampctl restore, %s.  All the log is in pg_wal.\nrestore_command = 'false'\n", now);
    if (restore->time_us)
        builder_printf(&lines, "recovery_target_time = '%.19s.%06d+00'\n",
                       cmd_backup_time(restore->control, target_ms), (int)(restore->time_us % SECOND_US));
    builder_printf(&lines,
                   "recovery_target_action = 'promote'\nrecovery_target_timeline = 'current'\n"
                   "# Servers refuse the databases until `stampctl ns restored` was run in each.\n"
                   "stampd.restored = '%s.%03d'\n",
                   now, (int)(now_ms % SECOND_MS));
    int fd = open(path, O_WRONLY | O_APPEND | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
    bool is_written = fd >= 0 && bytes_write(fd, builder_bytes(&lines)) && fsync(fd) == 0;
    builder_free(&lines);
    if (fd >= 0)
        close(fd);
    if (!is_written)
        return cmd_restore_fail(path);
    fd = open(signal, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC | O_NOFOLLOW, 0600);
    if (fd < 0)
        return cmd_restore_fail(signal);
    close(fd);
    return true;
}

/* All of it is durable before it has its name. */
static bool cmd_restore_finish(struct restore *restore)
{
    const char *owner = arena_printf(restore->control->arena, "%s:", restore->owner);
    const char *const give[] = {"chown", "-R", "--no-dereference", owner, "--", restore->draft, NULL};
    const char *const close_it[] = {"chmod", "0700", "--", restore->draft, NULL};
    const char *const sync_it[] = {"sync", "--file-system", restore->draft, NULL};
    if ((geteuid() == 0 && !run_tool(restore, give)) || !run_tool(restore, close_it) ||
        (!restore->is_lazy && !run_tool(restore, sync_it)))
        return false;
    return rename(restore->draft, restore->to) == 0 || cmd_restore_fail(restore->to);
}

static void print_end(struct restore *restore, const struct backup_files *files)
{
    bool is_used = backup_objects_are_used(restore->control, &restore->folder),
         has_objects = is_used && restore->base->missing >= 0;
    printf("%s: the cluster as it was at %s, from base backup %s; %lld files to %s.\n", restore->to,
           restore->time_us ? restore->time : "the end of the log", restore->base->name,
           (long long)files->count, restore->files);
    if (is_used && !has_objects)
        printf("The base backup was taken without the files of object stores: these must have them.\n");
    if (restore->base->missing > 0)
        printf("%lld files of attachments had no copy.\n", (long long)restore->base->missing);
    printf("Start PostgreSQL, which replays the log, then run ");
    if (has_objects)
        printf("`stampctl backup return %s` and ", restore->folder.path);
    printf("`stampctl ns restored --all`, and start stampd.\n");
}

static bool cmd_restore_make(struct restore *restore)
{
    struct backup_log log;
    struct backup_files files = {0};
    bool is_made = copy_base(restore) && copy_log(restore, &log) && check_log(restore, &log) &&
                   write_settings(restore) &&
                   backup_files_restore(restore->control, &restore->folder, restore->files, &files) &&
                   cmd_restore_finish(restore);
    if (is_made) {
        print_end(restore, &files);
        return true;
    }
    const char *const words[] = {"rm", "-rf", "--", restore->draft, NULL};
    if (!run_tool(restore, words))
        message_print("%s: remove it", restore->draft);
    return false;
}

static bool cmd_restore_prepare(struct restore *restore, const char *path)
{
    struct arena *arena = restore->control->arena;
    if (!backup_folder_open(restore->control, path, &restore->folder) || !choose_base(restore) ||
        !choose_owner(restore))
        return false;
    restore->draft = arena_printf(arena, "%s.restoring", restore->to);
    restore->log = arena_printf(arena, "%s/pg_wal", restore->draft);
    if (!restore->files)
        restore->files = restore->control->settings.blob_directory;
    /* no base backup is removed meanwhile */
    return cmd_restore_is_free(restore) &&
           backup_folder_lock(restore->control, &restore->folder, BACKUP_LOCK_BASE, false);
}

static bool is_right(struct restore *restore)
{
    size_t size = restore->to ? strlen(restore->to) : 0;
    if (!restore->to || restore->to[0] != '/' || restore->to[size - 1] == '/')
        message_print("restore: --to: expected the absolute path of a data directory, without / at its end");
    else if (restore->time && !backup_log_time(bytes_of(restore->time), &restore->time_us))
        message_print("restore: --target-time %s: expected a time with its zone, as 2026-11-23T03:15:00Z",
                      restore->time);
    else
        return true;
    return false;
}

int control_restore(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "restore", "FOLDER", "Make a data directory of PostgreSQL from a backup, as of any time.",
        "FOLDER is that of `stampctl backup`.  The data directory must be missing or empty.  PostgreSQL "
        "replays\n"
        "the log when it is started; servers refuse its databases until `stampctl ns restored --all` was "
        "run.\n");
    struct restore restore = {.control = control};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_TEXT("to", "FOLDER", &restore.to, "Make this data directory.  Required."),
        OPTION_TEXT("target-time", "TIME", &restore.time,
                    "Restore all commits up to TIME, as 2026-11-23T03:15:00Z (default: all)."),
        OPTION_TEXT("base", "NAME", &restore.base_name,
                    "Use this base backup (default: the newest before TIME)."),
        OPTION_TEXT("owner", "USER", &restore.owner,
                    "Give the directory to this system user (default: the owner of its place)."),
        OPTION_FLAG("no-sync", &restore.is_lazy, "Do not wait until all is on the disk; for tests."),
        OPTION_TEXT("files", "FOLDER", &restore.files,
                    "Restore the files of attachments to FOLDER (default: setting blob_directory).")};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!is_right(&restore))
        return CONTROL_WRONG;
    return cmd_restore_prepare(&restore, words[0]) && cmd_restore_make(&restore) ? CONTROL_DONE
                                                                                 : CONTROL_FAILED;
}
