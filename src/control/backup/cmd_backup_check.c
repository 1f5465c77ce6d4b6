/* cmd_backup_check: `stampctl backup check`: one line per finding, as check-config. */
#include "control/backup/cmd_backup.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/backup/backup_log.h"
#include "control/backup/backup_objects.h"
#include "control/backup/backup_tool.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/ns/ns_keys.h"
#include "control/record.h"

enum {
    LINE_BYTES = 4096,
    BASE_HOURS = 26,
    HOURS_MOST = 100000,
    LOG_MB = 64,
    MB_MOST = 1000000,
    HOUR_S = 3600,
    SECOND_MS = 1000,
    NAMED_MOST = 20, /* files that are named, of each kind */
};

struct backup_check {
    struct control *control;
    struct backup_folder folder;
    struct backup_base *bases;
    size_t count;
    struct backup_log log;
    int64_t base_hours, log_mb;
    int64_t behind; /* bytes of log that are not archived; -1: not known */
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

/* --- the server --- */

static void check_server(struct backup_check *check)
{
    struct control *control = check->control;
    const struct backup_folder *folder = &check->folder;
    struct pg *pg;
    struct pg_result *row;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(folder->slot)));
    if (!ns_database_open(control, &pg) ||
        !control_query(
            control, pg, folder->slot,
            "select s.active, coalesce(s.wal_status = 'lost', false),"
            " coalesce(pg_wal_lsn_diff(pg_current_wal_flush_lsn(), coalesce(r.flush_lsn,"
            " s.restart_lsn)), 0)::bigint, (select system_identifier::text from pg_control_system()),"
            " (select timeline_id::bigint from pg_control_checkpoint())"
            " from (select $1::text::name) n (slot) left join pg_replication_slots s on s.slot_name = n.slot"
            " left join pg_stat_replication r on r.pid = s.active_pid",
            params, &row)) {
        cmd_backup_check_find(check, false, "server: it cannot be asked how much of its log is archived");
        return;
    }
    int64_t behind = pg_get_i64(row, 0, 2);
    if (!bytes_equal(pg_get_text(row, 0, 3), bytes_of(folder->system)) ||
        pg_get_i64(row, 0, 4) != folder->timeline)
        cmd_backup_check_find(
            check, false,
            "server: it is another cluster, or was restored or failed over since: begin another folder");
    else if (!pg_get_text(row, 0, 0).data)
        cmd_backup_check_find(check, false,
                              "slot %s: there is none, so that PostgreSQL removes log that is not archived",
                              folder->slot);
    else if (pg_get_bool(row, 0, 1))
        cmd_backup_check_find(
            check, false,
            "slot %s: PostgreSQL has removed log that was not archived (max_slot_wal_keep_size): "
            "begin another folder",
            folder->slot);
    else if (!pg_get_bool(row, 0, 0))
        cmd_backup_check_find(check, false,
                              "slot %s: nothing receives the log (stampctl backup receive %s); %.1f MB wait",
                              folder->slot, folder->path, (double)behind / 1e6);
    else
        cmd_backup_check_find(check, behind <= check->log_mb * 1000000,
                              "slot %s: the archive is %.1f MB behind", folder->slot, (double)behind / 1e6);
    check->behind = behind;
}

/* --- the folder --- */

static void check_bases(struct backup_check *check)
{
    struct control *control = check->control;
    if (!cmd_backup_check_find(check, check->count > 0, "base backups: %zu", check->count))
        return;
    const struct backup_base *newest = &check->bases[check->count - 1];
    int64_t age_s = (clock_wall_ms() - newest->started_ms) / SECOND_MS;
    cmd_backup_check_find(check, age_s <= check->base_hours * HOUR_S, "base backup %s: %.1f hours old",
                          newest->name, (double)age_s / HOUR_S);
    for (size_t i = 0; i < check->count && !check->is_quick; i++) {
        const char *path =
            arena_printf(control->arena, "%s/base/%s", check->folder.path, check->bases[i].name);
        const char *const words[] = {"pg_verifybackup", "--quiet", path, NULL};
        cmd_backup_check_find(check, backup_tool_run(control, &check->folder, words),
                              "base backup %s: its files are those of its manifest", check->bases[i].name);
    }
}

static void check_log(struct backup_check *check)
{
    struct control *control = check->control;
    const struct backup_folder *folder = &check->folder;
    struct backup_log_content content;
    uint64_t missing;
    if (check->log.strangers)
        cmd_backup_check_find(check, false, "log: %zu files of another timeline: begin another folder",
                              check->log.strangers);
    if (!check->count)
        return;
    uint64_t start = check->bases[0].start, first = backup_log_segment(folder, start);
    if (!backup_log_is_whole(&check->log, first, &missing)) {
        cmd_backup_check_find(
            check, false,
            "log: segment %s is missing or damaged; a restore is possible to times before it only",
            backup_log_name(control, folder, missing));
        return;
    }
    cmd_backup_check_find(check, true, "log: %zu segments without gap, %.1f MB, written last %s",
                          check->log.count + check->log.has_partial, (double)check->log.bytes / 1e6,
                          cmd_backup_time(control, check->log.newest_s * SECOND_MS));
    if (!check->is_quick)
        cmd_backup_check_find(check,
                              backup_log_examine(control, folder, &check->log, start, false, &content) &&
                                  content.is_sound,
                              "log: the checksums of its records");
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
    const struct backup_base *newest = check->count ? &check->bases[check->count - 1] : NULL;
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
    const struct backup_base *newest = check->count ? &check->bases[check->count - 1] : NULL;
    builder_printf(&text, "stampd_backup_ok %d\n", check->is_well);
    builder_printf(&text, "stampd_backup_bases %zu\n", check->count);
    if (newest)
        builder_printf(&text, "stampd_backup_base_time_seconds %lld\nstampd_backup_base_bytes %lld\n",
                       (long long)(newest->started_ms / SECOND_MS), (long long)newest->bytes);
    builder_printf(&text, "stampd_backup_log_bytes %lld\n", (long long)check->log.bytes);
    if (check->behind >= 0)
        builder_printf(&text, "stampd_backup_log_behind_bytes %lld\n", (long long)check->behind);
    builder_printf(&text, "stampd_backup_check_time_seconds %lld\n",
                   (long long)(clock_wall_ms() / SECOND_MS));
    bool is_written = control_write_file(check->control->arena, check->metrics, builder_bytes(&text), 0644);
    builder_free(&text);
    return is_written;
}

static bool cmd_backup_check_run(struct backup_check *check, const char *path)
{
    struct control *control = check->control;
    if (!backup_folder_open(control, path, &check->folder) || !backup_tool_check_user(check->folder.user) ||
        !backup_folder_list(control, &check->folder, &check->bases, &check->count) ||
        !backup_log_list(control, &check->folder, arena_printf(control->arena, "%s/log", check->folder.path),
                         &check->log))
        return false;
    check_server(check);
    check_bases(check);
    check_log(check);
    cmd_backup_check_check_files(check);
    return (!check->metrics || write_metrics(check)) && check->is_well;
}

int cmd_backup_check(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("backup check", "FOLDER", "Check that a restore would work, and that the log is archived.",
                "Reads all base backups, the whole log, and all copies of files; "
                "exits with 1 when something is wrong.\n");
    struct backup_check check = {
        .control = control, .base_hours = BASE_HOURS, .log_mb = LOG_MB, .behind = -1, .is_well = true};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_NUMBER("base-hours", "HOURS", &check.base_hours, 1, HOURS_MOST,
                      "The newest base backup may be this old (default: 26)."),
        OPTION_NUMBER("log-mb", "MB", &check.log_mb, 1, MB_MOST,
                      "So much of the log may wait to be archived (default: 64)."),
        OPTION_FLAG("quick", &check.is_quick, "Read neither base backups, nor log, nor files."),
        OPTION_FLAG("quiet", &check.is_quiet, "Print failures only, for cron."),
        OPTION_TEXT("metrics", "FILE", &check.metrics, "Write the findings to FILE too, for Prometheus."),
        RECORD_JSON_LINE(&check.is_json),
        CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_backup_check_run(&check, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
