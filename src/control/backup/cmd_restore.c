/* cmd_restore: `stampctl restore`: pgBackRest makes a data directory, and the files of attachments are
 * copied.
 *
 * pgBackRest writes the file without which PostgreSQL does not start (global/pg_control) last: an interrupted
 * run leaves no directory that PostgreSQL would start with.  The data directory also names its restore
 * (stampd.restored): servers refuse its databases until `stampctl ns restored` has been run in each. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "base/clock.h"
#include "control/backup/backup_database.h"
#include "control/backup/backup_files.h"
#include "control/backup/backup_objects.h"
#include "control/message.h"

enum { SECOND_MS = 1000, WORDS_MOST = 16 };

struct restore {
    struct control *control;
    struct backup_folder folder;
    const char *to, *time, *base, *files;
};

/* "2026-11-23T03:15:00.5Z", with a blank for T, with +01 or +01:30 for Z, as PostgreSQL takes it; NULL: it
 * has another form.  A time without zone is refused: it would depend on the host. */
static const char *time_of(struct arena *arena, const char *text)
{
    static const char shape[] = "0000-00-00 00:00:00";
    char *time = arena_copy(arena, text, strlen(text));
    size_t size = strlen(shape);
    for (size_t i = 0; i < size; i++) {
        const bool is_digit = time[i] >= '0' && time[i] <= '9';
        if (shape[i] == '0' ? !is_digit : time[i] != shape[i] && !(shape[i] == ' ' && time[i] == 'T'))
            return NULL;
    }
    time[strlen("0000-00-00")] = ' ';
    if (time[size] == '.')
        size += 1 + strspn(time + size + 1, "0123456789");
    const char *zone = time + size;
    if (strcmp(zone, "Z") == 0)
        return arena_printf(arena, "%.*s+00", (int)size, time);
    const size_t digits = strspn(zone + (*zone != '\0'), "0123456789:");
    return (*zone == '+' || *zone == '-') && (digits == strlen("00") || digits == strlen("00:00")) &&
                   !zone[1 + digits]
               ? time
               : NULL;
}

/* Where PostgreSQL gets its log: the archive, then what pg_receivewal has written since.  archive-get ends
 * with 1 where the archive does not have the file; any other failure must not pass for the end of the log, at
 * which PostgreSQL would go on without the rest: above 125 it gives up. */
static const char *restore_command(const struct restore *restore)
{
    struct stat status;
    const struct backup_folder *folder = &restore->folder;
    struct arena *arena = restore->control->arena;
    const char *log = arena_printf(arena, "%s/log", folder->path), *config = getenv("PGBACKREST_CONFIG");
    const char *rest = stat(log, &status) != 0
                           ? "exit 1"
                           : arena_printf(arena, "cp %s/%%f \"%%p\" || cp %s/%%f.partial \"%%p\"", log, log);
    return arena_printf(arena,
                        "--recovery-option=restore_command=pgbackrest %s%s --stanza=%s --pg1-path=%s"
                        " archive-get %%f \"%%p\"; s=$?; [ $s -le 1 ] || exit 255; [ $s = 0 ] || %s",
                        config ? "--config=" : "", config ? config : "", folder->stanza, restore->to, rest);
}

static bool make_database(const struct restore *restore)
{
    struct control *control = restore->control;
    struct arena *arena = control->arena;
    const int64_t now_ms = clock_wall_ms();
    const char *words[WORDS_MOST] = {
        "restore", arena_printf(arena, "--pg1-path=%s", restore->to), "--target-action=promote",
        arena_printf(arena, "--recovery-option=stampd.restored=%s.%03d",
                     backup_database_time(control, now_ms / SECOND_MS), (int)(now_ms % SECOND_MS))};
    size_t count = 4;
    words[count++] = restore_command(restore);
    if (restore->base)
        words[count++] = arena_printf(arena, "--set=%s", restore->base);
    if (restore->time) {
        words[count++] = "--type=time";
        words[count++] = arena_printf(arena, "--target=%s", restore->time);
    } else {
        words[2] = "--type=default";
    }
    return backup_database_run(control, &restore->folder, NULL, words);
}

/* Any of the backups may be the one that pgBackRest has chosen. */
static void print_incomplete(const struct restore *restore)
{
    struct backup_bases list;
    if (!backup_objects_are_used(restore->control, &restore->folder) ||
        !backup_database_list(restore->control, &restore->folder, &list))
        return;
    for (size_t i = 0; i < list.count; i++)
        if (list.bases[i].missing < 0)
            printf("The backup %s was taken without the files of object stores: these must have them.\n",
                   list.bases[i].name);
        else if (list.bases[i].missing)
            printf("When the backup %s was taken, %lld files of attachments had no copy.\n",
                   list.bases[i].name, (long long)list.bases[i].missing);
}

static void print_end(const struct restore *restore, const struct backup_files *files)
{
    printf("%s: the cluster as it was at %s; %lld files to %s.\n", restore->to,
           restore->time ? restore->time : "the end of the log", (long long)files->count, restore->files);
    print_incomplete(restore);
    printf("Start PostgreSQL, which replays the log, then run ");
    if (backup_folder_has_objects(restore->control, &restore->folder))
        printf("`stampctl backup return %s` and ", restore->folder.path);
    printf("`stampctl ns restored --all`, and start stampd.\n");
}

static bool cmd_restore_run(struct restore *restore, const char *path)
{
    struct backup_files files = {0};
    if (!restore->files)
        restore->files = restore->control->settings.blob_directory;
    if (!backup_folder_is_empty(restore->to))
        return message_refuse("%s: not empty: a data directory is never overwritten; move it away first",
                              restore->to);
    if (!backup_folder_open(restore->control, path, &restore->folder) ||
        backup_folder_lock(restore->control, &restore->folder, BACKUP_LOCK_BASE, false) < 0 ||
        !backup_files_restore(restore->control, &restore->folder, restore->files, &files) ||
        !backup_folder_make(&restore->folder, restore->to) || !make_database(restore))
        return false;
    print_end(restore, &files);
    return true;
}

static bool is_right(struct restore *restore)
{
    const char *time = restore->time;
    if (!restore->to || restore->to[0] != '/' || restore->to[strlen(restore->to) - 1] == '/')
        message_print("restore: --to: expected the absolute path of a data directory, without / at its end");
    else if (time && !(restore->time = time_of(restore->control->arena, time)))
        message_print("restore: --target-time %s: expected a time with its zone, as 2026-11-23T03:15:00Z",
                      time);
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
    struct restore restore = {.control = control, .folder = {.stanza = BACKUP_STANZA_DEFAULT}};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        BACKUP_STANZA_LINE(&restore.folder),
        OPTION_TEXT("to", "FOLDER", &restore.to, "Make this data directory.  Required."),
        OPTION_TEXT("target-time", "TIME", &restore.time,
                    "Restore all commits up to TIME, as 2026-11-23T03:15:00Z (default: all)."),
        OPTION_TEXT("base", "NAME", &restore.base,
                    "Begin with this backup (default: the newest before TIME)."),
        OPTION_TEXT("files", "FOLDER", &restore.files,
                    "Restore the files of attachments to FOLDER (default: setting blob_directory).")};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!is_right(&restore))
        return CONTROL_WRONG;
    return cmd_restore_run(&restore, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
