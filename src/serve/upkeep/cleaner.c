/* cleaner: by shelves, the parts of a store that it lists at once.  A round begins with the shelf at which
 * the last one ended. */
#include "serve/upkeep/cleaner.h"

#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/memory.h"
#include "blob/blob_part.h"
#include "blob/blob_reseal.h"

enum { BATCH = 50, SECONDS_OF_HOUR = 3600 };

static const struct pg_statement uses = {"blob_uses", "select exists (select from stampd.blob)", 0};
static const struct pg_statement mark = {"blob_mark", "select stampd.blob_mark($1::int, $2::int, $3::bigint)",
                                         3};
static const struct pg_statement take = {"blob_take", "select stampd.blob_take($1::int)", 1};
static const struct pg_statement forget = {"blob_forget", "select stampd.blob_forget($1::text[])", 1};
static const struct pg_statement note = {"blob_note", "select stampd.blob_note($1::text[], $2::bigint[])", 2};
static const struct pg_statement *const all[] = {&uses, &mark, &take, &forget, &note};

struct cleaner {
    struct blob_store *store;
    struct arena *arena; /* of a round */
    int64_t unused_s;
    int shelf; /* where the next round begins */
};

/* A round for one database. */
struct cleaning {
    struct cleaner *cleaner;
    struct pg *pg;
    struct bytes database;
    int64_t deadline_ms;
    bool (*pause)(void *context);
    void *context;
    struct cleaned *cleaned;
};

struct cleaner *cleaner_create(const struct settings *settings)
{
    struct cleaner *cleaner = memory_zeroed(1, sizeof *cleaner, "cleaner");
    cleaner->store = blob_store_open(settings->blob_directory, BLOB_NO_GROUP);
    cleaner->arena = arena_create("cleaner");
    cleaner->unused_s = settings->blob_unused_hours * SECONDS_OF_HOUR;
    return cleaner;
}

void cleaner_destroy(struct cleaner *cleaner)
{
    blob_store_close(cleaner->store);
    arena_destroy(cleaner->arena);
    free(cleaner);
}

static bool has_time(const struct cleaning *round)
{
    return clock_monotonic_ms() < round->deadline_ms;
}

/* A statement with one number as its result. */
static enum fault cleaner_count(struct cleaning *round, const struct pg_statement *statement,
                                struct pg_params *params, int64_t *count_r)
{
    struct pg_result *row;
    enum fault fault = pg_run(round->pg, statement, params, &row);
    *count_r = fault ? 0 : pg_get_i64(row, 0, 0);
    return fault;
}

/* --- the second generation --- */

/* The rows are locked: whoever uploads the same bytes waits. */
static enum fault remove_taken(struct cleaning *round, const struct pg_result *rows)
{
    struct arena *arena = round->cleaner->arena;
    struct bytes *digests = ARENA_ARRAY(arena, struct bytes, (size_t)pg_rows(rows));
    int64_t forgotten = 0;
    enum fault fault = FAULT_NONE;
    for (int row = 0; row < pg_rows(rows) && !fault; row++) {
        struct blob_digest digest;
        digests[row] = pg_get_text(rows, row, 0);
        if (blob_store_read_digest(digests[row], &digest))
            fault = blob_store_remove(round->cleaner->store, round->database, &digest);
        crash_at(CRASH_CLEANER_REMOVED);
    }
    if (fault)
        return fault;
    fault =
        cleaner_count(round, &forget, PG_PARAMS(arena, PG_TEXTS(digests, (size_t)pg_rows(rows))), &forgotten);
    round->cleaned->removed += forgotten;
    return fault;
}

/* taken_r 0: no more. */
static enum fault remove_batch(struct cleaning *round, int *taken_r)
{
    struct pg_result *rows = NULL;
    *taken_r = 0;
    enum fault fault = pg_execute(round->pg, "begin");
    if (fault)
        return fault;
    fault = pg_run(round->pg, &take, PG_PARAMS(round->cleaner->arena, PG_I32(BATCH)), &rows);
    crash_at(CRASH_CLEANER_TAKEN);
    if (!fault && pg_rows(rows))
        fault = remove_taken(round, rows);
    if (!fault)
        *taken_r = pg_rows(rows);
    enum fault ended = pg_execute(round->pg, fault ? "rollback" : "commit");
    crash_at(CRASH_CLEANER_FORGOTTEN);
    return fault ? fault : ended;
}

static enum fault remove_marked(struct cleaning *round)
{
    int taken = BATCH;
    enum fault fault = FAULT_NONE;
    while (!fault && taken == BATCH && has_time(round)) {
        fault = remove_batch(round, &taken);
        if (!fault && taken && !round->pause(round->context))
            return FAULT_OSTOPPING;
    }
    return fault;
}

/* --- the first generation, and what has no row --- */

static enum fault mark_shelf(struct cleaning *round, int shelf)
{
    int64_t marked = BATCH;
    enum fault fault = FAULT_NONE;
    while (!fault && marked == BATCH && has_time(round)) {
        fault = cleaner_count(
            round, &mark,
            PG_PARAMS(round->cleaner->arena, PG_I32(shelf), PG_I32(BATCH), PG_I64(round->cleaner->unused_s)),
            &marked);
        round->cleaned->marked += marked;
        if (marked)
            crash_at(CRASH_CLEANER_MARKED);
        if (!fault && marked && !round->pause(round->context))
            return FAULT_OSTOPPING;
    }
    return fault;
}

/* A file gets its row before its name: one without a row is left over. */
static enum fault sweep_shelf(struct cleaning *round, int shelf)
{
    struct arena *arena = round->cleaner->arena;
    struct blob_entry *entries = NULL;
    size_t listed = 0, old = 0;
    enum fault fault = blob_store_list(round->cleaner->store, round->database, shelf, &entries, &listed);
    if (fault || !listed) {
        free(entries);
        return fault;
    }
    struct bytes *digests = ARENA_ARRAY(arena, struct bytes, listed);
    int64_t *sizes = ARENA_ARRAY(arena, int64_t, listed);
    for (size_t i = 0; i < listed; i++) {
        if (entries[i].age_s < round->cleaner->unused_s)
            continue;
        digests[old] = blob_store_digits(arena, &entries[i].digest);
        sizes[old++] = entries[i].size;
    }
    free(entries);
    if (!old)
        return FAULT_NONE;
    int64_t found = 0;
    fault =
        cleaner_count(round, &note, PG_PARAMS(arena, PG_TEXTS(digests, old), PG_I64S(sizes, old)), &found);
    round->cleaned->found += found;
    if (found)
        crash_at(CRASH_CLEANER_NOTED);
    return fault;
}

static void visit_shelves(struct cleaning *round, bool has_rows)
{
    struct cleaner *cleaner = round->cleaner;
    enum fault fault = FAULT_NONE;
    for (int i = 0; i < BLOB_SHELVES && !fault && has_time(round); i++) {
        int shelf = cleaner->shelf;
        if (has_rows)
            fault = mark_shelf(round, shelf);
        if (!fault)
            fault = sweep_shelf(round, shelf);
        cleaner->shelf = (shelf + 1) % BLOB_SHELVES;
        arena_reset(cleaner->arena);
    }
}

/* --- a round --- */

static enum fault cleaner_prepare(struct pg *pg)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < COUNT_OF(all) && !fault; i++)
        fault = pg_prepare(pg, all[i], 1);
    return fault;
}

void cleaner_run(struct cleaner *cleaner, struct pg *pg, const char *database, int64_t deadline_ms,
                 bool (*pause)(void *context), void *context, struct cleaned *cleaned_r)
{
    struct cleaning round = {cleaner, pg, bytes_of(database), deadline_ms, pause, context, cleaned_r};
    struct pg_result *row;
    *cleaned_r = (struct cleaned){0};
    arena_reset(cleaner->arena);
    if (cleaner_prepare(pg) || pg_run(pg, &uses, PG_NO_PARAMS(cleaner->arena), &row))
        return;
    bool has_rows = pg_get_bool(row, 0, 0);
    if (has_rows && remove_marked(&round))
        return;
    visit_shelves(&round, has_rows);
    int64_t cleared = 0, cleared_parts = 0, former = 0;
    if (blob_store_clear(cleaner->store, round.database, cleaner->unused_s, &cleared))
        cleared = 0; /* logged */
    if (blob_part_clear(cleaner->store, round.database, cleaner->unused_s, &cleared_parts))
        cleared_parts = 0;
    if (blob_store_clear_former(cleaner->store, round.database, BLOB_FORMER_S, &former))
        former = 0;
    cleaned_r->cleared = cleared + cleared_parts + former;
}
