/* cmd_ns_keys: `ns keys`: the data keys of an encrypted namespace. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/identity.h"
#include "blob/blob_reseal.h"
#include "control/files/stored_files.h"
#include "control/message.h"
#include "control/ns/cmd_ns.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "control/schema/schema_plan.h"
#include "edge/mapping.h"
#include "store/data_keys.h"

/* Encrypts the files of an encrypted namespace again that are not under its newest data key,
 * one after the other, while the servers serve (blob/blob_reseal.h). */

enum { REPORT_EVERY_MS = 5000, PAGE = 100, NAME_BYTES = 160 };
#define LEAVING "1 hour"

struct files_reseal {
    struct control *control;
    struct pg *pg;
    struct bytes database;
    struct sealed_file_keys keys;
    struct blob_store *store;
    struct stored_files *stored; /* reads objects */
    struct arena *arena;         /* of a file */
    int64_t seen, done, bytes, wrong, reported_ms;
};

static bool files_reseal_query(struct files_reseal *run, const char *sql, const struct pg_params *params,
                               struct pg_result **row_r)
{
    struct control own = *run->control;
    own.arena = run->arena;
    return control_query(&own, run->pg, "encrypting the files again", sql, params, row_r);
}

static void show_progress(struct files_reseal *run)
{
    run->seen++;
    if (clock_monotonic_ms() - run->reported_ms >= REPORT_EVERY_MS) {
        run->reported_ms = clock_monotonic_ms();
        fprintf(stderr, "  %lld files\n", (long long)run->seen);
    }
}

/* True also of a file that is not there any more. */
static bool files_reseal_settle(struct files_reseal *run, const struct blob_digest *name, enum fault fault)
{
    char text[BLOB_HEX + 1];
    if (!fault || fault == FAULT_NFILE)
        return true;
    blob_store_write_digest(name, text);
    message_print("%.*s: %s: %s", (int)run->database.size, run->database.data, text,
                  fault == FAULT_BCONTENT ? "the file was altered, or is under an unknown key; it stays"
                                          : "the file cannot be encrypted again");
    run->wrong++;
    return fault == FAULT_BCONTENT;
}

/* One that has no row is about to be removed; one that a store has by now is leaving. */
static bool replace(struct files_reseal *run, const struct blob_entry *entry,
                    struct blob_resealing *resealing)
{
    struct pg_result *row;
    enum fault fault = FAULT_NONE;
    const struct pg_params *params =
        PG_PARAMS(run->arena, PG_TEXT(blob_store_digits(run->arena, &entry->digest)));
    if (!control_execute(run->pg, "encrypting the files again", "begin") ||
        !files_reseal_query(
            run,
            "select from stampd.blob where digest = decode($1, 'hex') and store is null for no key update",
            params, &row)) {
        blob_reseal_abandon(resealing);
        return false;
    }
    if (pg_rows(row)) {
        fault = blob_reseal_finish(resealing);
        run->done += !fault;
        run->bytes += fault ? 0 : entry->size;
    } else {
        blob_reseal_abandon(resealing);
    }
    return files_reseal_settle(run, &entry->digest, fault) &&
           control_execute(run->pg, "encrypting the files again", "commit");
}

static bool files_reseal_file(struct files_reseal *run, const struct blob_entry *entry)
{
    struct blob_resealing *resealing = NULL;
    arena_reset(run->arena);
    show_progress(run);
    enum fault fault = entry->is_leaving ? FAULT_NONE
                                         : blob_reseal_begin(run->store, run->database, &run->keys,
                                                             &entry->digest, &resealing);
    return resealing ? replace(run, entry, resealing) : files_reseal_settle(run, &entry->digest, fault);
}

/* Former files are removed on the way, so that the disk need not hold all files twice. */
static bool reseal_shelf(struct files_reseal *run, int shelf)
{
    struct blob_entry *entries;
    size_t count;
    int64_t removed;
    enum fault fault = blob_store_list(run->store, run->database, shelf, &entries, &count);
    bool is_fine = !fault;
    for (size_t i = 0; i < count && is_fine; i++)
        is_fine = files_reseal_file(run, &entries[i]);
    free(entries);
    return is_fine && !blob_store_clear_former(run->store, run->database, BLOB_FORMER_S, &removed);
}

/* Two of them would each take the file of the other for the former one. */
static bool files_reseal_lock(struct files_reseal *run)
{
    struct pg_result *row;
    if (!files_reseal_query(run, "select pg_try_advisory_lock(hashtextextended('stampd reseal', 0))", NULL,
                            &row))
        return false;
    bool is_held = pg_get_bool(row, 0, 0);
    if (!is_held)
        message_print("files are being encrypted again by another command");
    return is_held;
}

/* --- files of object stores --- */

struct stored_file {
    struct blob_digest digest;
    char sha[BLOB_HEX + 1], object[NAME_BYTES];
    int64_t size;
};

static enum fault files_reseal_read_object(void *source, const struct blob_digest *name,
                                           bool (*take)(void *context, struct bytes piece), void *context)
{
    return stored_files_read_name(source, name, take, context);
}

static void add_names(struct files_reseal *run, const struct stored_file *file, struct pg_params *params)
{
    pg_params_start(params, run->arena);
    PG_PARAMS_ADD(params, PG_TEXT(bytes_of(file->sha)), PG_TEXT(bytes_of(file->object)));
}

/* The directory has the file durably before its object is given up.  Whoever reads that one goes on for
 * LEAVING: the file of the directory would not continue it. */
static bool files_reseal_release(struct files_reseal *run, const struct stored_file *file)
{
    struct pg_params params;
    struct pg_result *row;
    add_names(run, file, &params);
    if (!files_reseal_query(run, "select stampd.blob_object_release($1, $2)", &params, &row))
        return false;
    add_names(run, file, &params);
    return files_reseal_query(run,
                              "update stampd.blob_left set since = stampd.stamp_of(now() + interval '" LEAVING
                              "') where object = $2 and $1 <> '' returning object",
                              &params, &row);
}

static bool bring_back(struct files_reseal *run, const struct stored_file *file,
                       struct blob_resealing *resealing)
{
    struct pg_params params;
    struct pg_result *row;
    add_names(run, file, &params);
    if (!control_execute(run->pg, "encrypting the files again", "begin") ||
        !files_reseal_query(
            run,
            "select from stampd.blob where digest = decode($1, 'hex') and object = $2 and not removing"
            " for update",
            &params, &row)) {
        blob_reseal_abandon(resealing);
        return false;
    }
    bool is_there = pg_rows(row) == 1;
    enum fault fault = FAULT_NONE;
    if (is_there)
        fault = blob_reseal_finish(resealing);
    else
        blob_reseal_abandon(resealing);
    if (is_there && !fault) {
        if (!files_reseal_release(run, file))
            return false;
        run->done++;
        run->bytes += file->size;
    }
    return files_reseal_settle(run, &file->digest, fault) &&
           control_execute(run->pg, "encrypting the files again", "commit");
}

static bool reseal_object(struct files_reseal *run, const struct stored_file *file)
{
    struct blob_resealing *resealing;
    const struct blob_source from = {files_reseal_read_object, run->stored};
    arena_reset(run->arena);
    show_progress(run);
    enum fault fault =
        blob_reseal_bring(run->store, run->database, &run->keys, &file->digest, &from, &resealing);
    return resealing ? bring_back(run, file, resealing) : files_reseal_settle(run, &file->digest, fault);
}

/* Those after `last` that are not under the newest key.  -1: reported. */
static int files_reseal_read_page(struct files_reseal *run, const char *last, struct stored_file page_r[PAGE])
{
    enum { SHA, SIZE, OBJECT };
    struct pg_result *rows;
    arena_reset(run->arena);
    const struct pg_params *params = PG_PARAMS(run->arena, PG_I64(run->keys.keys[run->keys.count - 1].id),
                                               PG_TEXT(bytes_of(last)), PG_I64(PAGE));
    if (!files_reseal_query(
            run,
            "select encode(digest, 'hex'), size, object from stampd.blob where store is not null"
            " and not removing and substring(head from 9 for 8) is distinct from int8send($1::bigint)"
            " and digest > decode($2, 'hex') order by digest limit $3::bigint",
            params, &rows))
        return -1;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct stored_file *file = &page_r[row];
        struct bytes sha = pg_get_text(rows, row, SHA), object = pg_get_text(rows, row, OBJECT);
        if (!blob_store_read_digest(sha, &file->digest) || object.size >= sizeof file->object) {
            message_print("the row of a file is damaged");
            return -1;
        }
        blob_store_write_digest(&file->digest, file->sha);
        snprintf(file->object, sizeof file->object, "%.*s", (int)object.size, object.data);
        file->size = pg_get_i64(rows, row, SIZE);
    }
    return pg_rows(rows);
}

static bool reseal_objects(struct files_reseal *run)
{
    struct stored_file page[PAGE];
    char last[BLOB_HEX + 1] = "";
    bool is_fine = true;
    for (int count = PAGE; is_fine && count == PAGE;) {
        count = files_reseal_read_page(run, last, page);
        is_fine = count >= 0;
        for (int i = 0; i < count && is_fine; i++)
            is_fine = reseal_object(run, &page[i]);
        if (count > 0)
            memcpy(last, page[count - 1].sha, sizeof last);
    }
    return is_fine;
}

/* Prints how many.  A damaged file is reported and stays; the others follow.  On failure, also because of
 * such a file, reports why; run again it goes on. */
MUST_USE static bool files_reseal_run(struct control *control, const struct ns_target *target,
                                      const struct data_keys *keys)
{
    const struct settings *settings = &control->settings;
    struct files_reseal run = {
        .control = control,
        .pg = target->pg,
        .database = bytes_of(target->conf->database),
        .keys = data_keys_of_files(keys),
        .store = blob_store_open(settings->blob_directory, identity_socket_group(settings)),
        .stored = stored_files_open(control, target->conf->database),
        .arena = arena_create("files that are encrypted again"),
        .reported_ms = clock_monotonic_ms(),
    };
    crash_arm(settings->debug_die_at, mapping_share);
    stored_files_set_keys(run.stored, keys);
    bool is_fine = files_reseal_lock(&run);
    for (int shelf = 0; shelf < BLOB_SHELVES && is_fine; shelf++)
        is_fine = reseal_shelf(&run, shelf);
    is_fine = is_fine && reseal_objects(&run);
    printf("files encrypted again: %lld, %lld bytes%s\n", (long long)run.done, (long long)run.bytes,
           is_fine ? "" : "; not finished: run the command again");
    stored_files_close(run.stored);
    blob_store_close(run.store);
    arena_destroy(run.arena);
    return is_fine && !run.wrong;
}

static bool print_keys(struct control *control, struct pg *pg, const struct data_keys *keys, bool is_json)
{
    struct pg_result *rows;
    if (!control_query(control, pg, "reading the data keys",
                       "select id, site, to_char(made at time zone 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
                       " from stampd.data_key order by id",
                       NULL, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes site = pg_get_text(rows, row, 1), made = pg_get_text(rows, row, 2);
        struct record record = {0};
        if (is_json) {
            record_add_i64(&record, "id", pg_get_i64(rows, row, 0));
            record_add_word(&record, "site", arena_copy(control->arena, site.data, site.size));
            record_add_word(&record, "made", arena_copy(control->arena, made.data, made.size));
            record_add_word(&record, "encryptedIds", keys->id_classes);
            record_print(&record);
        } else {
            printf("%lld  made %.*s  under site key %.*s\n", (long long)pg_get_i64(rows, row, 0),
                   (int)made.size, made.data, (int)site.size, site.data);
        }
    }
    if (!is_json && *keys->id_classes)
        printf("ids are encrypted of %s\n", keys->id_classes);
    return true;
}

static bool reseal(struct control *control, const struct ns_target *target)
{
    struct pg *pg = target->pg;
    struct schema_plan plan;
    struct data_keys *keys;
    return ns_keys_read(control, pg, &keys) && schema_plan_read_applied(control, pg, &plan) &&
           ns_keys_reseal(control, pg, keys, plan.applied, NO_BYTES) &&
           files_reseal_run(control, target, keys);
}

int cmd_ns_keys(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns keys", "CODE",
        "List the data keys of an encrypted namespace, add one, or wrap them under the present site key.",
        "Running servers begin to use a new data key at once; what was written before stays readable under\n"
        "its own.  After a change of the site key, with the former one in site_key_former_file, --wrap "
        "wraps\n"
        "all data keys under the present one; then the former one is no longer needed.  --reseal works "
        "while\n"
        "the servers do; interrupted, it is run again.\n");
    bool is_new = false, is_wrap = false, is_again = false, is_json = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("new", &is_new, "Add a data key, for what is written from now on."),
        OPTION_FLAG("reseal", &is_again,
                    "Encrypt all items and files that are not under the newest data key again."),
        OPTION_FLAG("wrap", &is_wrap, "Wrap all data keys under the site key."),
        RECORD_JSON_LINE(&is_json),
    };
    struct ns_target target;
    struct data_keys *keys;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!ns_registry_connect(control, words[0], &target) || !ns_keys_read(control, target.pg, &keys))
        return CONTROL_FAILED;
    if (!keys->count)
        return message_end(CONTROL_FAILED,
                           "%s is not encrypted: a namespace is encrypted from its creation (ns create "
                           "--encrypted); export it, and import it into an encrypted one",
                           words[0]);
    if ((is_wrap && !ns_keys_wrap(control, target.pg)) || (is_new && !ns_keys_add(control, target.pg, "")) ||
        (is_again && !reseal(control, &target)) || !print_keys(control, target.pg, keys, is_json))
        return CONTROL_FAILED;
    return CONTROL_DONE;
}
