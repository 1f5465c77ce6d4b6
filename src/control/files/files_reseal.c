/* files_reseal: the shelves of the directory.  The row of a file is locked while it is replaced, so that no
 * cleaner removes it at the same time. */
#include "control/files/files_reseal.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/identity.h"
#include "control/message.h"
#include "edge/blob_reseal.h"
#include "edge/mapping.h"

enum { REPORT_EVERY_MS = 5000 };

struct files_reseal {
    struct control *control;
    struct pg *pg;
    struct bytes database;
    struct sealed_file_keys keys;
    struct blob_store *store;
    struct arena *arena; /* of a file */
    int64_t seen, done, bytes, wrong, reported_ms;
};

static bool query(struct files_reseal *run, const char *sql, struct pg_params *params,
                  struct pg_result **row_r)
{
    struct control own = *run->control;
    own.arena = run->arena;
    return control_query(&own, run->pg, "encrypting the files again", sql, params, row_r);
}

/* True also of a file that is not there any more. */
static bool settle(struct files_reseal *run, const struct blob_digest *name, enum fault fault)
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
    struct pg_params params;
    struct pg_result *row;
    enum fault fault = FAULT_NONE;
    pg_params_start(&params, run->arena);
    pg_params_add_text(&params, blob_store_digits(run->arena, &entry->digest));
    if (!control_execute(run->pg, "encrypting the files again", "begin") ||
        !query(run,
               "select from stampd.blob where digest = decode($1, 'hex') and store is null for no key update",
               &params, &row)) {
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
    return settle(run, &entry->digest, fault) &&
           control_execute(run->pg, "encrypting the files again", "commit");
}

static bool reseal(struct files_reseal *run, const struct blob_entry *entry)
{
    struct blob_resealing *resealing = NULL;
    arena_reset(run->arena);
    enum fault fault = entry->is_leaving ? FAULT_NONE
                                         : blob_reseal_begin(run->store, run->database, &run->keys,
                                                             &entry->digest, &resealing);
    run->seen++;
    if (clock_monotonic_ms() - run->reported_ms >= REPORT_EVERY_MS) {
        run->reported_ms = clock_monotonic_ms();
        fprintf(stderr, "  %lld files\n", (long long)run->seen);
    }
    return resealing ? replace(run, entry, resealing) : settle(run, &entry->digest, fault);
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
        is_fine = reseal(run, &entries[i]);
    free(entries);
    return is_fine && !blob_store_clear_former(run->store, run->database, BLOB_FORMER_S, &removed);
}

/* Two of them would each take the file of the other for the former one. */
static bool lock(struct files_reseal *run)
{
    struct pg_result *row;
    if (!query(run, "select pg_try_advisory_lock(hashtextextended('stampd reseal', 0))", NULL, &row))
        return false;
    bool is_held = pg_get_bool(row, 0, 0);
    if (!is_held)
        message_print("files are being encrypted again by another command");
    return is_held;
}

/* Those of object stores are not reached here. */
static bool report_objects(struct files_reseal *run)
{
    struct pg_params params;
    struct pg_result *row;
    arena_reset(run->arena);
    pg_params_start(&params, run->arena);
    pg_params_add_i64(&params, run->keys.keys[run->keys.count - 1].id);
    if (!query(run,
               "select count(*) from stampd.blob where store is not null"
               " and substring(head from 9 for 8) is distinct from int8send($1::bigint)",
               &params, &row))
        return false;
    int64_t count = pg_get_i64(row, 0, 0);
    if (count)
        message_print("%lld files in object stores are not under the newest key: move them to the directory "
                      "(files place), run the command again, and move them back",
                      (long long)count);
    return !count;
}

bool files_reseal_run(struct control *control, const struct ns_target *target, const struct data_keys *keys)
{
    const struct settings *settings = &control->settings;
    struct files_reseal run = {
        .control = control,
        .pg = target->pg,
        .database = bytes_of(target->conf->database),
        .keys = data_keys_of_files(keys),
        .store = blob_store_open(settings->blob_directory, identity_socket_group(settings)),
        .arena = arena_create("files that are encrypted again"),
        .reported_ms = clock_monotonic_ms(),
    };
    crash_arm(settings->debug_die_at, mapping_share);
    bool is_fine = lock(&run);
    for (int shelf = 0; shelf < BLOB_SHELVES && is_fine; shelf++)
        is_fine = reseal_shelf(&run, shelf);
    printf("files encrypted again: %lld, %lld bytes%s\n", (long long)run.done, (long long)run.bytes,
           is_fine ? "" : "; not finished: run the command again");
    is_fine = is_fine && report_objects(&run);
    blob_store_close(run.store);
    arena_destroy(run.arena);
    return is_fine && !run.wrong;
}
