/* mover: rounds over the namespaces; in each first what is to be removed, then what is to be moved. */
#include "serve/upkeep/mover.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/coding/hex.h"
#include "base/identity.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/crypto/crypto.h"
#include "blob/object_stores.h"
#include "edge/pg/pg.h"
#include "segment/counts/purge_counts.h"
#include "serve/upkeep/keeper_databases.h"
#include "serve/upkeep/mover_file.h"
#include "store/data_keys.h"

enum {
    BATCH = 50,
    NAMESPACE_MS = 30000, /* for one namespace in a round; a file that was begun is completed */
    REQUEST_S = 30,       /* an answer of a store, beside the time of its bytes */
    LEAVING_S = 60,       /* from the last use of a location to the end of it */
    TOKEN = 16,           /* digits that make the name of an object a new one */
    NAME_BYTES = 160,
};

static const struct pg_statement lock = {
    "mover_lock", "select pg_try_advisory_lock(hashtextextended('stampd mover', 0))", 0};
static const struct pg_statement to_send = {
    "blob_to_send", "select digest, size, store, object from stampd.blob_to_send($1, $2::int)", 2};
static const struct pg_statement to_bring = {
    "blob_to_bring", "select digest, size, store, object from stampd.blob_to_bring($1, $2::int)", 2};
static const struct pg_statement begin = {"blob_object_begin", "select stampd.blob_object_begin($1, $2)", 2};
static const struct pg_statement note = {"blob_object_note", "select stampd.blob_object_note($1, $2, $3, $4)",
                                         4};
static const struct pg_statement release = {"blob_object_release",
                                            "select stampd.blob_object_release($1, $2)", 2};
static const struct pg_statement release_marked = {"blob_objects_release",
                                                   "select stampd.blob_objects_release($1::int)", 1};
static const struct pg_statement left = {
    "blob_objects_left", "select store, object from stampd.blob_objects_left($1::bigint, $2::int)", 2};
static const struct pg_statement forget = {"blob_objects_forget", "select stampd.blob_objects_forget($1, $2)",
                                           2};
static const struct pg_statement away = {"blob_away",
                                         "select digest from stampd.blob_away($1::text[]) digest", 1};
static const struct pg_statement lock_away = {"blob_lock_away", "select stampd.blob_lock_away($1)", 1};
static const struct pg_statement *const all[] = {
    &lock, &to_send, &to_bring, &begin, &note, &release, &release_marked, &left, &forget, &away, &lock_away};

struct mover {
    const struct settings *settings;
    struct segment *segment;
    struct object_stores *stores;
    struct blob_store *blobs;
    struct arena *list, *arena; /* of a round; of a batch */
    struct object_store *open;  /* the store used last; NULL: none */
    char *open_name;
};

/* A round for one database. */
struct moves {
    struct mover *mover;
    struct pg *pg;
    const char *database;
    struct data_keys keys; /* none: files are in clear */
    int64_t deadline_ms;
    int64_t sent, brought, removed, wrong;
};

static bool has_time(const struct moves *moves)
{
    return clock_monotonic_ms() < moves->deadline_ms;
}

static void mover_count(struct moves *moves, enum moved_kind kind)
{
    atomic_fetch_add(&moves->mover->segment->kept->moved[kind], 1);
}

/* --- stores --- */

/* NULL: the settings do not name it; logged. */
static struct object_store *mover_open_store(struct mover *mover, const char *name)
{
    const struct object_store_place *place;
    char problem[400];
    if (mover->open && strcmp(mover->open_name, name) == 0)
        return mover->open;
    if (mover->open)
        object_store_close(mover->open);
    free(mover->open_name);
    mover->open = NULL;
    mover->open_name = NULL;
    if (!object_stores_find(mover->stores, name, &place, problem, sizeof problem)) {
        log_often(LOG_LEVEL_ERROR, "object store", "attachments: %s", problem);
        return NULL;
    }
    struct object_store_place own = *place;
    own.timeout_s = REQUEST_S;
    mover->open = object_store_open(&own);
    mover->open_name = strdup(name);
    if (!mover->open_name)
        log_fatal("out of memory mover");
    return mover->open;
}

/* --- statements --- */

static enum fault run_texts(struct moves *moves, const struct pg_statement *statement,
                            const char *const *texts, size_t count_of_texts, struct pg_result **row_r)
{
    struct pg_params params;
    pg_params_start(&params, moves->mover->arena);
    for (size_t i = 0; i < count_of_texts; i++)
        pg_params_add_text(&params, bytes_of(texts[i]));
    return pg_run(moves->pg, statement, &params, row_r);
}

static const char *mover_copy(struct moves *moves, const struct pg_result *rows, int row, int column)
{
    struct bytes text = pg_get_text(rows, row, column);
    return arena_copy(moves->mover->arena, text.data, text.size);
}

/* --- what is to be removed --- */

struct left_object {
    const char *store, *object;
};

/* False: end this part of the round. */
static bool remove_object(struct moves *moves, const struct left_object *object)
{
    struct object_store *store = mover_open_store(moves->mover, object->store);
    struct pg_result *row;
    if (!store)
        return true; /* others may be in another store */
    if (!object_store_remove(store, object->object)) {
        log_often(LOG_LEVEL_ERROR, "cannot remove an object",
                  "attachments: cannot remove an object store=%s object=%s: %s", object->store,
                  object->object, object_store_problem(store));
        mover_count(moves, MOVED_FAILURES);
        return false;
    }
    crash_at(CRASH_MOVER_REMOVED);
    const char *const names[] = {object->store, object->object};
    moves->removed++;
    return !run_texts(moves, &forget, names, COUNT_OF(names), &row);
}

static bool remove_left(struct moves *moves)
{
    struct pg_result *rows;
    if (pg_run(moves->pg, &left, PG_PARAMS(moves->mover->arena, PG_I64(LEAVING_S), PG_I32(BATCH)), &rows))
        return false;
    int rows_count = pg_rows(rows);
    struct left_object *objects =
        ARENA_ARRAY(moves->mover->arena, struct left_object, (size_t)rows_count + 1);
    for (int row = 0; row < rows_count; row++)
        objects[row] = (struct left_object){mover_copy(moves, rows, row, 0), mover_copy(moves, rows, row, 1)};
    bool goes_on = true;
    for (int row = 0; row < rows_count && goes_on && has_time(moves); row++)
        goes_on = remove_object(moves, &objects[row]);
    return pg_is_usable(moves->pg);
}

static bool release_unused(struct moves *moves)
{
    int64_t released = BATCH;
    while (released == BATCH && has_time(moves)) {
        struct pg_result *row;
        if (pg_run(moves->pg, &release_marked, PG_PARAMS(moves->mover->arena, PG_I32(BATCH)), &row))
            return false;
        released = pg_get_i64(row, 0, 0);
        if (released)
            crash_at(CRASH_MOVER_RELEASED);
    }
    return true;
}

/* --- what is to be moved --- */

struct file_move {
    const char *sha;
    int64_t size;
    const char *store, *object;
};

static bool prepare_file(struct moves *moves, const struct file_move *move, struct moved_file *file_r)
{
    struct mover *mover = moves->mover;
    *file_r = (struct moved_file){.blobs = mover->blobs,
                                  .store = mover_open_store(mover, move->store),
                                  .store_name = move->store,
                                  .database = bytes_of(moves->database),
                                  .size = move->size,
                                  .object = move->object,
                                  .keys = data_keys_of_files(&moves->keys)};
    return file_r->store && blob_store_read_digest(bytes_of(move->sha), &file_r->digest);
}

/* False: end this part of the round. */
static bool mover_settle(struct moves *moves, enum moving moving)
{
    if (!moving)
        return true;
    mover_count(moves, MOVED_FAILURES);
    moves->wrong += moving == MOVING_WRONG;
    return moving == MOVING_WRONG;
}

/* The object gets a name that no other ever had. */
static bool mover_send(struct moves *moves, const struct file_move *move)
{
    char name[NAME_BYTES], token[TOKEN + 1], digits[2 * SEALED_FILE_HEADER + 1] = "";
    struct moved_head head;
    unsigned char random[TOKEN / 2];
    struct moved_file file;
    struct pg_result *row;
    crypto_random(random, sizeof random);
    hex_write(random, sizeof random, token);
    token[TOKEN] = '\0';
    snprintf(name, sizeof name, "%s/%s-%s", moves->database, move->sha, token);
    char *cell = strchr(name, '@'); /* which an address would have in another form */
    if (cell)
        *cell = '.';
    const struct file_move named = {move->sha, move->size, move->store, name};
    if (!prepare_file(moves, &named, &file))
        return false;
    const char *const names[] = {move->store, name};
    if (run_texts(moves, &begin, names, COUNT_OF(names), &row))
        return false;
    crash_at(CRASH_MOVER_BEGUN);
    enum moving moving = mover_file_send(&file, &head);
    if (moving)
        return mover_settle(moves, moving);
    if (moves->keys.count)
        hex_write(head.bytes, sizeof head.bytes, digits);
    const char *const noted[] = {move->sha, move->store, name, digits};
    if (run_texts(moves, &note, noted, COUNT_OF(noted), &row))
        return false;
    crash_at(CRASH_MOVER_NOTED);
    if (pg_get_bool(row, 0, 0)) {
        moves->sent++;
        mover_count(moves, MOVED_SENT);
    }
    return true;
}

static bool mover_fetch(struct moves *moves, const struct file_move *move)
{
    struct moved_file file;
    struct pg_result *row;
    if (!prepare_file(moves, move, &file))
        return false;
    enum moving moving = mover_file_bring(&file);
    if (moving)
        return mover_settle(moves, moving);
    crash_at(CRASH_MOVER_BROUGHT);
    const char *const names[] = {move->sha, move->object};
    if (run_texts(moves, &release, names, COUNT_OF(names), &row))
        return false;
    if (pg_get_bool(row, 0, 0)) {
        moves->brought++;
        mover_count(moves, MOVED_BROUGHT);
    }
    return true;
}

/* A batch of files after `last`, which becomes the last one of them. */
static int read_moves(struct moves *moves, const struct pg_statement *statement, char last[BLOB_HEX + 1],
                      struct file_move **list_r)
{
    struct pg_result *rows;
    if (pg_run(moves->pg, statement, PG_PARAMS(moves->mover->arena, PG_TEXT(bytes_of(last)), PG_I32(BATCH)),
               &rows))
        return 0;
    int batch = pg_rows(rows);
    struct file_move *list = ARENA_ARRAY(moves->mover->arena, struct file_move, (size_t)batch + 1);
    for (int row = 0; row < batch; row++)
        list[row] = (struct file_move){mover_copy(moves, rows, row, 0), pg_get_i64(rows, row, 1),
                                       mover_copy(moves, rows, row, 2), mover_copy(moves, rows, row, 3)};
    if (batch)
        snprintf(last, BLOB_HEX + 1, "%s", list[batch - 1].sha);
    *list_r = list;
    return batch;
}

static bool move_all(struct moves *moves, const struct pg_statement *statement,
                     bool (*step)(struct moves *moves, const struct file_move *move))
{
    char last[BLOB_HEX + 1] = "";
    struct file_move *list = NULL;
    bool goes_on = true;
    for (int batch = BATCH; batch == BATCH && goes_on && has_time(moves);) {
        batch = read_moves(moves, statement, last, &list);
        for (int i = 0; i < batch && goes_on && has_time(moves); i++)
            goes_on = step(moves, &list[i]);
        arena_reset(moves->mover->arena);
    }
    return pg_is_usable(moves->pg);
}

/* --- files that the directory may lose --- */

typedef enum fault file_step(struct blob_store *store, struct bytes database,
                             const struct blob_digest *digest);

static enum fault step_locked(struct moves *moves, const struct blob_digest *digest, const char *sha,
                              file_step *step)
{
    const char *const names[] = {sha};
    struct pg_result *row;
    enum fault fault = run_texts(moves, &lock_away, names, COUNT_OF(names), &row);
    if (!fault && pg_get_bool(row, 0, 0))
        fault = step(moves->mover->blobs, bytes_of(moves->database), digest);
    crash_at(step == blob_store_leave ? CRASH_MOVER_LEAVING : CRASH_MOVER_DROPPED);
    return fault;
}

/* Until the end of the transaction the object store has the file, and no upload of the same bytes ends, nor
 * does a command bring the file back, encrypted again. */
static enum fault take_step(struct moves *moves, const struct blob_digest *digest, const char *sha,
                            file_step *step)
{
    enum fault fault = pg_execute(moves->pg, "begin");
    if (fault)
        return fault;
    fault = step_locked(moves, digest, sha, step);
    enum fault ended = pg_execute(moves->pg, fault ? "rollback" : "commit");
    return fault ? fault : ended;
}

static const struct blob_entry *mover_find_entry(const struct blob_entry *entries, size_t listed,
                                                 const struct blob_digest *digest)
{
    for (size_t i = 0; i < listed; i++)
        if (memcmp(&entries[i].digest, digest, sizeof *digest) == 0)
            return &entries[i];
    return NULL;
}

/* First it is leaving, later it is gone. */
static enum fault leave(struct moves *moves, const struct blob_entry *entry, const char *sha)
{
    if (!entry->is_leaving)
        return take_step(moves, &entry->digest, sha, blob_store_leave);
    return entry->age_s > LEAVING_S ? take_step(moves, &entry->digest, sha, blob_store_remove) : FAULT_NONE;
}

static enum fault sweep(struct moves *moves, const struct blob_entry *entries, size_t listed)
{
    struct arena *arena = moves->mover->arena;
    struct bytes *digests = ARENA_ARRAY(arena, struct bytes, listed);
    struct pg_result *rows;
    for (size_t i = 0; i < listed; i++)
        digests[i] = blob_store_digits(arena, &entries[i].digest);
    enum fault fault = pg_run(moves->pg, &away, PG_PARAMS(arena, PG_TEXTS(digests, listed)), &rows);
    if (fault)
        return fault;
    int found = pg_rows(rows);
    const char **shas = ARENA_ARRAY(arena, const char *, (size_t)found + 1);
    for (int row = 0; row < found; row++)
        shas[row] = mover_copy(moves, rows, row, 0);
    for (int row = 0; row < found && !fault && has_time(moves); row++) {
        struct blob_digest digest;
        const struct blob_entry *entry = blob_store_read_digest(bytes_of(shas[row]), &digest)
                                             ? mover_find_entry(entries, listed, &digest)
                                             : NULL;
        if (entry)
            fault = leave(moves, entry, shas[row]);
    }
    return fault;
}

static void sweep_all(struct moves *moves)
{
    enum fault fault = FAULT_NONE;
    for (int shelf = 0; shelf < BLOB_SHELVES && !fault && has_time(moves); shelf++) {
        struct blob_entry *entries;
        size_t listed;
        fault = blob_store_list(moves->mover->blobs, bytes_of(moves->database), shelf, &entries, &listed);
        if (!fault && listed)
            fault = sweep(moves, entries, listed);
        free(entries);
        arena_reset(moves->mover->arena);
    }
}

/* --- a round --- */

static bool mover_read_keys(struct moves *moves)
{
    struct pg_result *rows;
    const char *problem = "";
    if (pg_prepare(moves->pg, data_keys_statement(), 1) ||
        pg_run(moves->pg, data_keys_statement(), PG_NO_PARAMS(moves->mover->arena), &rows))
        return false;
    if (data_keys_take(&moves->keys, rows, &problem))
        return true;
    log_often(LOG_LEVEL_ERROR, moves->database, "attachments: files of %s stay where they are: %s",
              moves->database, problem);
    return false;
}

static bool mover_prepare(struct moves *moves)
{
    struct pg_result *row;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (pg_prepare(moves->pg, all[i], 1))
            return false;
    return !pg_run(moves->pg, &lock, PG_NO_PARAMS(moves->mover->arena), &row) && pg_get_bool(row, 0, 0) &&
           mover_read_keys(moves);
}

static void move_database(struct mover *mover, const char *database)
{
    struct moves moves = {
        .mover = mover, .database = database, .deadline_ms = clock_monotonic_ms() + NAMESPACE_MS};
    if (keeper_databases_open(mover->settings, database, &moves.pg))
        return;
    if (mover_prepare(&moves) && remove_left(&moves) && release_unused(&moves) &&
        move_all(&moves, &to_bring, mover_fetch) && move_all(&moves, &to_send, mover_send))
        sweep_all(&moves);
    pg_close(moves.pg);
    data_keys_free(&moves.keys);
    arena_reset(mover->arena);
    if (moves.sent || moves.brought || moves.removed || moves.wrong)
        log_info("moved files database=%s sent=%lld brought=%lld removed=%lld damaged=%lld", database,
                 (long long)moves.sent, (long long)moves.brought, (long long)moves.removed,
                 (long long)moves.wrong);
}

static void move_namespaces(struct mover *mover)
{
    size_t count_of_all;
    int64_t listed_ms = clock_monotonic_ms();
    const struct keeper_database *databases =
        keeper_databases_list(mover->settings, mover->list, &count_of_all);
    for (size_t i = 0; i < count_of_all; i++)
        if (strcmp(databases[i].name, mover->settings->z_database) != 0 &&
            keeper_databases_has(mover->settings, mover->list, databases[i].name, listed_ms))
            move_database(mover, databases[i].name);
    arena_reset(mover->list);
}

void mover_run(const struct settings *settings, struct segment *segment)
{
    char problem[400];
    struct mover mover = {
        .settings = settings,
        .segment = segment,
        .blobs = blob_store_open(settings->blob_directory, identity_socket_group(settings)),
        .list = arena_create("mover"),
        .arena = arena_create("moves"),
    };
    stop_end_at_once();
    (void)prctl(PR_SET_NAME, "stampd-mover"); /* for administrators */
    for (;;) {
        clock_sleep_ms(settings->object_stores_interval_s * 1000);
        mover.stores = object_stores_open(settings->object_stores_file, problem, sizeof problem);
        if (!mover.stores) {
            log_often(LOG_LEVEL_ERROR, "object stores", "attachments: %s", problem);
            continue;
        }
        move_namespaces(&mover);
        if (mover.open)
            object_store_close(mover.open);
        free(mover.open_name);
        mover.open = NULL;
        mover.open_name = NULL;
        object_stores_close(mover.stores);
        log_flush(clock_monotonic_ms());
    }
}
