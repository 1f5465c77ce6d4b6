/* cmd_backup_check: `stampctl backup check`: one line per finding, as check-config. */
#include "control/backup/cmd_backup.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/backup/backup_database.h"
#include "control/backup/backup_objects.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/ns/ns_keys.h"
#include "control/record.h"

enum {
    LINE_BYTES = 4096,
    BASE_HOURS = 26,
    HOURS_MOST = 100000,
    SEGMENT_NAME = 24,
    SEGMENT_PART = 8, /* timeline, file of the log, segment of it */
    HOUR_S = 3600,
    SECOND_MS = 1000,
    NAMED_MOST = 20, /* files that are named, of each kind */
};

struct backup_check {
    struct control *control;
    struct backup_folder folder;
    struct backup_bases list;
    int64_t base_hours;
    bool is_quick, is_json, is_quiet, is_well;
    const char *metrics;
};

static bool cmd_backup_check_find(struct backup_check *check, bool is_well, const char *format, ...)
    PRINTF_LIKE(3, 4);
static bool cmd_backup_check_find(struct backup_check *check, bool is_well, const char *format, ...)
{
    char text[LINE_BYTES];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    check->is_well = check->is_well && is_well;
    if (check->is_json) {
        struct record record = {0};
        record_add_word(&record, "result", is_well ? "OK" : "FAIL");
        record_add_word(&record, "text", text);
        record_print(&record);
    } else if (!is_well || !check->is_quiet) {
        printf("%-4s  %s\n", is_well ? "OK" : "FAIL", text);
    }
    return is_well;
}

/* --- the database --- */

static void check_bases(struct backup_check *check)
{
    struct control *control = check->control;
    if (!cmd_backup_check_find(check, check->list.count > 0, "base backups: %zu", check->list.count))
        return;
    const struct backup_base *newest = &check->list.bases[check->list.count - 1];
    int64_t age_s = clock_wall_ms() / SECOND_MS - newest->started_s;
    cmd_backup_check_find(check, age_s <= check->base_hours * HOUR_S, "base backup %s: %.1f hours old",
                          newest->name, (double)age_s / HOUR_S);
    cmd_backup_check_find(check, BACKUP_DATABASE_RUN(control, &check->folder, NULL, "check"),
                          "PostgreSQL archives its log");
}

/* Nothing of pgBackRest compares the segments that it has with those that a restore needs: the names of a
 * timeline follow each other. */
static bool follows(struct bytes before, struct bytes after, int64_t segments_of_file)
{
    int64_t numbers[2];
    const struct bytes names[] = {before, after};
    for (int i = 0; i < 2; i++) {
        char digits[SEGMENT_PART + 1] = "";
        memcpy(digits, names[i].data + SEGMENT_PART, SEGMENT_PART);
        const int64_t file = strtoll(digits, NULL, 16);
        memcpy(digits, names[i].data + 2 * SEGMENT_PART, SEGMENT_PART);
        numbers[i] = file * segments_of_file + strtoll(digits, NULL, 16);
    }
    return memcmp(before.data, after.data, SEGMENT_PART) != 0 || numbers[1] <= numbers[0] + 1;
}

static bool read_segments(struct control *control, const struct backup_folder *folder, const char *archive,
                          struct builder *names, int64_t *segments_of_file_r)
{
    struct pg *pg;
    struct pg_result *row;
    if (!ns_database_open(control, &pg) ||
        !control_query(control, pg, "PostgreSQL",
                       "select (4294967296 / setting::bigint)::bigint from pg_settings"
                       " where name = 'wal_segment_size'",
                       NULL, &row))
        return false;
    *segments_of_file_r = pg_get_i64(row, 0, 0);
    return BACKUP_DATABASE_RUN(control, folder, names, "repo-ls", "--recurse",
                               "--filter=/[0-9A-F]{24}-[0-9a-f]{40}[^/]*$", "--sort=asc",
                               arena_printf(control->arena, "archive/%s/%s", folder->stanza, archive));
}

static void check_log(struct backup_check *check)
{
    struct builder names = {0};
    struct bytes last = NO_BYTES;
    int64_t count = 0, segments_of_file = 1;
    if (!check->list.count)
        return;
    bool is_whole =
        read_segments(check->control, &check->folder, check->list.archive, &names, &segments_of_file);
    if (!is_whole)
        cmd_backup_check_find(check, false, "log: its segments cannot be listed");
    const struct bytes first = bytes_of(check->list.bases[0].first_segment);
    for (struct bytes rest = builder_bytes(&names); rest.size;) {
        struct bytes line = bytes_cut(&rest, '\n'), folder = bytes_cut(&line, '/');
        if (line.size < SEGMENT_NAME || folder.size != 2 * SEGMENT_PART)
            continue;
        line.size = SEGMENT_NAME;
        if (bytes_compare(line, first) < 0)
            continue;
        if (last.data ? !follows(last, line, segments_of_file) : !bytes_equal(line, first)) {
            const struct bytes before = last.data ? last : first;
            cmd_backup_check_find(check, false,
                                  "log: segments are missing %s %.*s; a restore is possible to times before "
                                  "them only",
                                  last.data ? "after" : "from", (int)before.size, before.data);
            is_whole = false;
        }
        last = line;
        count++;
    }
    if (is_whole)
        cmd_backup_check_find(check, count > 0, "log: %lld segments without gap", (long long)count);
    builder_free(&names);
}

/* pgBackRest verify ends with status 0 also when something is wrong: its text decides. */
static void check_contents(struct backup_check *check)
{
    struct builder text = {0};
    bool is_well =
        BACKUP_DATABASE_RUN(check->control, &check->folder, &text, "verify", "--output=text", "--verbose");
    for (struct bytes rest = builder_bytes(&text); is_well && rest.size;) {
        const struct bytes line = bytes_cut(&rest, '\n');
        is_well = !memmem(line.data, line.size, "status: error", strlen("status: error")) &&
                  !memmem(line.data, line.size, "status: invalid", strlen("status: invalid"));
    }
    if (!is_well)
        fwrite(text.data, 1, text.size, stderr);
    cmd_backup_check_find(check, is_well, "the checksums of base backups and log");
    builder_free(&text);
}

/* --- files of attachments --- */

struct files_check {
    struct backup_check *check;
    struct arena *arena;          /* of a database */
    char *database;               /* of the keys; NULL: none yet */
    struct sealed_file_keys keys; /* none: its files are in clear */
    bool is_readable;             /* the database is there, and its keys are known */
    int64_t read, wrong, skipped;
};

/* Names the first ones. */
static void find_wrong(struct files_check *files, const char *problem, const char *database, const char *sha)
{
    files->check->is_well = false;
    if (files->wrong++ < NAMED_MOST)
        cmd_backup_check_find(files->check, false, "files: %s: %s: %s", database, sha, problem);
}

/* The keys of the namespace; a dropped one has none that a restore would need now. */
static void enter_database(struct files_check *files, const char *database)
{
    struct control own = *files->check->control;
    struct data_keys *keys;
    struct pg *pg;
    if (files->database && strcmp(files->database, database) == 0)
        return;
    arena_reset(files->arena);
    own.arena = files->arena;
    files->database = arena_copy(files->arena, database, strlen(database));
    enum fault fault = control_connect(&own, database, &pg);
    files->is_readable = !fault && ns_keys_read(&own, pg, &keys);
    if (files->is_readable)
        files->keys = data_keys_of_files(keys);
    else if (fault != FAULT_ODATABASE)
        cmd_backup_check_find(files->check, false, "files: %s: its copies cannot be checked", database);
}

static bool check_copy(void *context, const struct backup_copy *copy)
{
    struct files_check *files = context;
    struct blob_digest digest;
    if (copy->is_draft)
        return true;
    enter_database(files, copy->database);
    if (!files->is_readable || !blob_store_read_digest(bytes_of(copy->digest), &digest)) {
        files->skipped++;
        return true;
    }
    enum sealed_file_state state =
        backup_objects_read(copy->path, &files->keys, &digest, copy->size, NULL, NULL);
    if (state == SEALED_FILE_FAILED && access(copy->path, F_OK) != 0)
        return true; /* another command has removed it */
    files->read++;
    if (state != SEALED_FILE_FINE)
        find_wrong(files,
                   state == SEALED_FILE_UNKNOWN  ? "it is under a data key that is not there"
                   : state == SEALED_FILE_FAILED ? "it cannot be read"
                                                 : "altered; remove it, and it is copied again",
                   copy->database, copy->path);
    return true;
}

static void check_copies(struct backup_check *check)
{
    struct files_check files = {.check = check, .arena = arena_create("backup check")};
    bool is_read = backup_files_visit(check->control, &check->folder, check_copy, &files);
    cmd_backup_check_find(check, is_read && !files.wrong,
                          "files: %lld copies have their digests, %lld have not",
                          (long long)(files.read - files.wrong), (long long)files.wrong);
    if (files.skipped)
        cmd_backup_check_find(check, true,
                              "files: %lld copies are of namespaces that cannot be read, or were dropped",
                              (long long)files.skipped);
    arena_destroy(files.arena);
}

static bool check_row(void *context, const struct backup_row *row)
{
    struct files_check *files = context;
    files->read++;
    if (!backup_objects_find(&files->check->folder, row))
        find_wrong(files, "it has no copy", row->code, row->sha);
    return true;
}

/* Files that were uploaded after the last copy wait for the next one. */
static void check_rows(struct backup_check *check)
{
    int64_t before;
    struct files_check files = {.check = check};
    if (!backup_folder_read_objects(check->control, &check->folder, &before) || before < 0) {
        cmd_backup_check_find(check, false,
                              "files: those of object stores were never copied (stampctl backup files %s)",
                              check->folder.path);
        return;
    }
    bool is_read = backup_rows_walk(check->control, before, check_row, &files);
    cmd_backup_check_find(check, is_read && !files.wrong,
                          "files: of %lld that the namespaces have, %lld have no copy", (long long)files.read,
                          (long long)files.wrong);
}

static void cmd_backup_check_check_files(struct backup_check *check)
{
    bool is_used = backup_objects_are_used(check->control, &check->folder);
    const struct backup_base *newest = check->list.count ? &check->list.bases[check->list.count - 1] : NULL;
    bool is_without = is_used && newest && newest->missing < 0;
    if (is_without)
        cmd_backup_check_find(check, true,
                              "base backup %s: without the files of object stores (--without-objects)",
                              newest->name);
    else if (newest && newest->missing > 0)
        cmd_backup_check_find(check, false, "base backup %s: %lld files had no copy", newest->name,
                              (long long)newest->missing);
    if (check->is_quick)
        return;
    check_copies(check);
    if (is_used && newest && !is_without)
        check_rows(check);
}

/* For the text collector of Prometheus' node_exporter. */
static bool write_metrics(struct backup_check *check)
{
    struct builder text = {0};
    const struct backup_base *newest = check->list.count ? &check->list.bases[check->list.count - 1] : NULL;
    builder_printf(&text, "stampd_backup_ok %d\n", check->is_well);
    builder_printf(&text, "stampd_backup_bases %zu\n", check->list.count);
    if (newest)
        builder_printf(&text, "stampd_backup_base_time_seconds %lld\nstampd_backup_base_bytes %lld\n",
                       (long long)newest->started_s, (long long)newest->bytes);
    builder_printf(&text, "stampd_backup_check_time_seconds %lld\n",
                   (long long)(clock_wall_ms() / SECOND_MS));
    bool is_written = control_write_file(check->control->arena, check->metrics, builder_bytes(&text), 0644);
    builder_free(&text);
    return is_written;
}

static bool cmd_backup_check_run(struct backup_check *check, const char *path)
{
    struct control *control = check->control;
    if (!backup_folder_open(control, path, &check->folder) ||
        !backup_database_list(control, &check->folder, &check->list))
        return false;
    check_bases(check);
    check_log(check);
    if (!check->is_quick && check->list.count)
        check_contents(check);
    cmd_backup_check_check_files(check);
    return (!check->metrics || write_metrics(check)) && check->is_well;
}

int cmd_backup_check(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup check", "FOLDER", "Check that a restore would work, and that the log is archived.",
                "Reads all base backups, the whole log, and all copies of files; "
                "exits with 1 when something is wrong.\n");
    struct backup_check check = {.control = control,
                                 .folder = {.stanza = BACKUP_STANZA_DEFAULT},
                                 .base_hours = BASE_HOURS,
                                 .is_well = true};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        BACKUP_STANZA_LINE(&check.folder),
        OPTION_NUMBER("base-hours", "HOURS", &check.base_hours, 1, HOURS_MOST,
                      "The newest base backup may be this old (default: 26)."),
        OPTION_FLAG("quick", &check.is_quick, "Read neither backups, nor log, nor files."),
        OPTION_FLAG("quiet", &check.is_quiet, "Print failures only, for cron."),
        OPTION_TEXT("metrics", "FILE", &check.metrics, "Write the findings to FILE too, for Prometheus."),
        RECORD_JSON_LINE(&check.is_json),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_backup_check_run(&check, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
