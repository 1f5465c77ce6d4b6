/* backup_database: one process of pgBackRest after the other; its list of backups is JSON. */
#include "control/backup/backup_database.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/process/subprocess.h"
#include "control/message.h"
#include "edge/json/json.h"

enum { WORDS_MOST = 32, TIME_TEXT = 32, JSON_DEPTH = 16, OUTPUT_MOST = 1 << 30 };
static const char program[] = "pgbackrest";

bool backup_database_run(struct control *control, const struct backup_folder *folder, struct builder *output,
                         const char *const *words)
{
    const char *all[WORDS_MOST] = {"env",
                                   "--chdir=/",
                                   "LC_ALL=C",
                                   "TZ=UTC",
                                   program,
                                   "--log-level-console=off",
                                   "--log-level-stderr=warn",
                                   arena_printf(control->arena, "--stanza=%s", folder->stanza)};
    /* PostgreSQL does not have our environment: the command that a restore leaves it names the file. */
    const char *config = getenv("PGBACKREST_CONFIG");
    struct subprocess child;
    size_t count = 8;
    if (config)
        all[count++] = arena_printf(control->arena, "--config=%s", config);
    for (; *words && count < WORDS_MOST - 1; words++)
        all[count++] = *words;
    const struct subprocess_work work = {.words = all,
                                         .user = folder->user,
                                         .has_no_in = true,
                                         .is_bound = true,
                                         .has_out = output != NULL,
                                         .has_out_in_errors = !output};
    if (!subprocess_start(&work, &child))
        return message_refuse("%s: %s", program, strerror(errno));
    const bool is_read = !output || subprocess_read(&child, OUTPUT_MOST, output);
    const int status = subprocess_end(&child);
    if (status == SUBPROCESS_NOT_RUN)
        return message_refuse("%s cannot be run; it makes the backups of the database (apt install %s)",
                              program, program);
    return (is_read && status == 0) || message_refuse("%s failed with status %d", program, status);
}

const char *backup_database_time(struct control *control, int64_t time_s)
{
    char text[TIME_TEXT];
    const time_t time = (time_t)time_s;
    struct tm parts;
    gmtime_r(&time, &parts);
    const size_t size = strftime(text, sizeof text, "%Y-%m-%d %H:%M:%SZ", &parts);
    return arena_copy(control->arena, text, size);
}

/* --- the list --- */

static const char *text_of(struct control *control, const struct json *object, const char *name)
{
    const struct bytes text = json_text_of(object, name, BYTES(""));
    return arena_copy(control->arena, text.data, text.size);
}

static struct backup_base base_of(struct control *control, const struct json *backup)
{
    const struct json *time = json_member(backup, "timestamp");
    const struct bytes missing = json_text_of(json_member(backup, "annotation"), BACKUP_MISSING, BYTES("0"));
    struct backup_base base = {.name = text_of(control, backup, "label"),
                               .type = text_of(control, backup, "type"),
                               .started_s = json_i64_of(time, "start", 0),
                               .finished_s = json_i64_of(time, "stop", 0),
                               .bytes = json_i64_of(json_member(backup, "info"), "size", 0),
                               .first_segment = text_of(control, json_member(backup, "archive"), "start")};
    if (!bytes_to_i64(missing, &base.missing))
        base.missing = 0;
    return base;
}

/* The archive of the present cluster is the last one: an upgrade of PostgreSQL begins another. */
static void take_archive(struct control *control, const struct json *stanza, struct backup_bases *bases)
{
    const struct json *archives = json_member(stanza, "archive");
    bases->archive = bases->newest_segment = "";
    for (const struct json *archive = archives ? archives->first : NULL; archive; archive = archive->next) {
        bases->archive = text_of(control, archive, "id");
        bases->newest_segment = text_of(control, archive, "max");
    }
}

bool backup_database_list(struct control *control, const struct backup_folder *folder,
                          struct backup_bases *bases_r)
{
    struct builder output = {0};
    struct json *root;
    if (!BACKUP_DATABASE_RUN(control, folder, &output, "info", "--output=json")) {
        builder_free(&output);
        return false;
    }
    const struct bytes text = {arena_copy(control->arena, output.data, output.size), output.size};
    builder_free(&output);
    const struct json *stanza =
        json_is_tree(control->arena, text, JSON_DEPTH, JSON_DEPTH, &root) ? root->first : NULL;
    const struct json *status = json_member(stanza, "status"), *backups = json_member(stanza, "backup");
    if (!stanza || !backups)
        return message_refuse("%s: its list of backups cannot be read", program);
    enum { FINE = 0, NO_BACKUP = 2 };
    const int64_t code = json_i64_of(status, "code", FINE);
    if (code != FINE && code != NO_BACKUP) {
        const struct bytes why = json_text_of(status, "message", BYTES("unknown"));
        return message_refuse("%s: stanza %s: %.*s", program, folder->stanza, (int)why.size, why.data);
    }
    *bases_r = (struct backup_bases){
        .bases = arena_alloc(control->arena, (backups->count + 1) * sizeof *bases_r->bases)};
    for (const struct json *backup = backups->first; backup; backup = backup->next)
        if (!json_is_true(backup, "error"))
            bases_r->bases[bases_r->count++] = base_of(control, backup);
    take_archive(control, stanza, bases_r);
    return true;
}
