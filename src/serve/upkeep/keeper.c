/* keeper: rounds over the namespaces, in batches. */
#include "serve/upkeep/keeper.h"

#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/settings.h"
#include "base/stop.h"
#include "edge/json/json.h"
#include "edge/pg/pg.h"
#include "segment/counts/purge_counts.h"
#include "segment/counts/stored.h"
#include "segment/namespaces.h"
#include "segment/segment.h"
#include "serve/upkeep/cleaner.h"
#include "serve/upkeep/keeper_databases.h"
#include "store/documents/rewriting.h"
#include "store/documents/store_idempotency.h"
#include "store/store.h"

/* Deletes expired documents (maxLife) in the minute in which they expire.  Subscribers are notified by
 * live events and by push, as of any commit made outside the workers.
 *
 * Part of the keeper.  Expiry has a resolution of one minute: each minute the keeper checks the databases
 * that may have expired documents, with one session at a time.  The relay marks them in the segment
 * (segment/counts/purge_counts.h): databases that it has begun to listen to, and those whose schema has
 * changed.  A check that finds no class with expiry clears the mark. */

struct ends;

enum {
    ENDS_BATCH = 200,
    DATABASE_MS = 2000, /* of one database in a round, so that the others get their turn */
    AGAIN_MS = 1000,    /* to the next round if documents are left or were locked */
    BEHIND_MS = 20,     /* margin, so that the minute has surely begun */
    MINUTE_MS = 60000
};
enum { ENDED, IS_DECLARED, HAS_MORE, MINUTE_LEFT_MS }; /* columns */
_Static_assert(NAMESPACES_MOST <= 64 * KEPT_WORDS, "each namespace has its bit");

static const struct pg_statement keep_expiry = {
    "keep_expiry", "select ended, is_declared, has_more, minute_ms from stampd.keep_expiry($1::int)", 1};

struct ends {
    const struct settings *settings;
    struct segment *segment;
    struct arena *arena; /* of a round */
    int64_t due_ms;
    bool has_more; /* found in this round */
};

static struct ends *ends_create(const struct settings *settings, struct segment *segment)
{
    struct ends *ends = memory_zeroed(1, sizeof *ends, "ends");
    *ends = (struct ends){.settings = settings,
                          .segment = segment,
                          .arena = arena_create("ends"),
                          .due_ms = clock_monotonic_ms() + AGAIN_MS};
    return ends;
}

static void ends_destroy(struct ends *ends)
{
    arena_destroy(ends->arena);
    free(ends);
}

/* When ends_run is due; monotonic. */
static int64_t ends_due_ms(const struct ends *ends)
{
    return ends->due_ms;
}

/* --- one database -------------------------------------------------------------------------------- */

static void ends_note(struct ends *ends, int ns, bool may_end)
{
    purge_counts_note_ends(ends->segment->kept, ns, may_end);
}

/* Deletes one batch.  False: the session is unusable, or nothing is left. */
static bool end_batch(struct ends *ends, struct pg *pg, int ns, uint64_t *ended)
{
    struct pg_result *row;
    if (pg_run(pg, &keep_expiry, PG_PARAMS(ends->arena, PG_I32(ENDS_BATCH)), &row)) {
        ends->has_more |= pg_is_usable(pg); /* another process holds the lock */
        return false;
    }
    int64_t count = pg_get_i64(row, 0, ENDED);
    int64_t next_ms = clock_monotonic_ms() + pg_get_i64(row, 0, MINUTE_LEFT_MS) + BEHIND_MS;
    bool is_full = count >= ENDS_BATCH;
    if (!pg_get_bool(row, 0, IS_DECLARED))
        ends_note(ends, ns, false);
    if (next_ms < ends->due_ms)
        ends->due_ms = next_ms;
    ends->has_more |= !is_full && pg_get_bool(row, 0, HAS_MORE);
    atomic_fetch_add(&ends->segment->kept->deleted[KEPT_ENDED], (uint64_t)count);
    *ended += (uint64_t)count;
    return is_full;
}

static bool end_database(struct ends *ends, int ns, const char *database, bool (*pause)(void *),
                         void *context)
{
    struct pg *pg;
    uint64_t ended = 0;
    int64_t until_ms = clock_monotonic_ms() + DATABASE_MS;
    bool goes_on = true, is_full = true;
    if (keeper_databases_open(ends->settings, database, &pg))
        return true;
    is_full = pg_prepare(pg, &keep_expiry, 1) == FAULT_NONE;
    while (is_full && goes_on && clock_monotonic_ms() < until_ms) {
        is_full = end_batch(ends, pg, ns, &ended);
        goes_on = pause(context);
    }
    ends->has_more |= is_full;
    pg_close(pg);
    if (ended)
        log_info("deleted expired documents database=%s documents=%llu", database, (unsigned long long)ended);
    return goes_on;
}

/* --- a round ------------------------------------------------------------------------------------- */

/* Deletes expired documents for a few seconds at most; the rest is due again soon.  Calls `pause` between two
 * batches; false: stop. */
static void ends_run(struct ends *ends, bool (*pause)(void *context), void *context)
{
    size_t count = 0;
    bool goes_on = true;
    const struct keeper_database *databases = NULL;
    int64_t listed_ms = clock_monotonic_ms();
    ends->has_more = false;
    ends->due_ms = clock_monotonic_ms() + MINUTE_MS - clock_wall_ms() % MINUTE_MS + BEHIND_MS;
    if (purge_counts_any_ends(ends->segment->kept))
        databases = keeper_databases_list(ends->settings, ends->arena, &count);
    for (size_t i = 0; goes_on && i < count; i++) {
        int ns = namespaces_look_up(ends->segment, databases[i].name); /* -1: it is not in use here */
        if (ns < 0 || !purge_counts_may_end(ends->segment->kept, ns) ||
            !keeper_databases_has(ends->settings, ends->arena, databases[i].name, listed_ms))
            continue;
        goes_on = end_database(ends, ns, databases[i].name, pause, context);
    }
    if (ends->has_more)
        ends->due_ms = clock_monotonic_ms() + AGAIN_MS;
    arena_reset(ends->arena);
}

enum {
    BATCH = 200,
    FOLD_BATCH = 10000,   /* rows of a few numbers each */
    PAUSE_MS = 20,        /* between two batches, to leave room for other writers */
    NAMESPACE_MS = 5000,  /* for one namespace in a round; the rest waits for the next */
    REWRITING_MS = 60000, /* for one class in a round */
};
static const int64_t NEVER_MS = INT64_MAX / 2; /* only expiry is checked */

#define KEPT_NAME(name, text) [KEPT_##name] = text,
static const char *const names[KEPT_COUNT] = {KEPT_KINDS(KEPT_NAME)};
#undef KEPT_NAME

struct keeper {
    const struct settings *settings;
    struct segment *segment;
    struct purge_counts *board;
    struct arena *arena; /* of a round */
    struct ends *ends;
    struct cleaner *cleaner;
    bool is_ending; /* ends_run is running */
    int stop;       /* readable: a signal has arrived */
};

static const struct pg_statement rewritings = {
    "rewritings",
    "select f.class, s.content from stampd.schema_fill f cross join stampd.schema s where f.iclass = '~' and "
    "s.one"
    " and f.class = any (select substr(w, 2) from unnest(string_to_array(s.building, ' ')) w where w like "
    "'~%')",
    0};
static const struct pg_statement older = {
    "older",
    "select coalesce(string_agg(l.virtualxid, ' '), '') from pg_locks l join pg_stat_activity a on a.pid = "
    "l.pid"
    " and a.datname = current_database() where l.locktype = 'virtualxid' and l.pid <> pg_backend_pid()",
    0};
static const struct pg_statement still = {"still",
                                          "select count(*) from pg_locks where locktype = 'virtualxid' and "
                                          "virtualxid = any (string_to_array($1, ' '))",
                                          1};
/* Without classes only the row of the namespace: it may have many classes. */
static const struct pg_statement stored = {
    "stored",
    "select v.class, v.v1 + v.v2, v.v2 from stampd.volumes() v where v.class is null or $1::int <> 0", 1};
static const struct pg_statement fold = {"volumes_fold", "select stampd.volumes_fold($1::int)", 1};
static const struct pg_statement uncounted = {
    "uncounted",
    "select s.number from stampd.schema s where s.one and exists (select from stampd.owner_property p where "
    "not p.is_ready)",
    0};
static const struct pg_statement owned = {"owned", "select stampd.keep_owned($1::int, $2)", 2};
static const struct pg_statement keep = {"keep", "select stampd.keep($1, $2::int, $3::bigint)", 3};

static bool wait_ms(struct keeper *keeper, int64_t pause_ms);

static bool pause_ending(void *keeper)
{
    return wait_ms(keeper, PAUSE_MS);
}

/* Expiry must not wait for other work: it is checked in every pause. */
static int64_t ends_left_ms(struct keeper *keeper)
{
    if (keeper->is_ending)
        return INT32_MAX;
    if (ends_due_ms(keeper->ends) <= clock_monotonic_ms()) {
        keeper->is_ending = true;
        ends_run(keeper->ends, pause_ending, keeper);
        keeper->is_ending = false;
    }
    return ends_due_ms(keeper->ends) - clock_monotonic_ms();
}

/* False: stop. */
static bool wait_ms(struct keeper *keeper, int64_t pause_ms)
{
    int64_t until_ms = clock_monotonic_ms() + pause_ms;
    while (stop_requested() == STOP_NOT) {
        int64_t wait_ms = ends_left_ms(keeper), left_ms = until_ms - clock_monotonic_ms();
        if (left_ms <= 0 || stop_requested() != STOP_NOT)
            break;
        wait_ms = wait_ms < 0 ? 0 : wait_ms < left_ms ? wait_ms : left_ms;
        (void)poll(&(struct pollfd){.fd = keeper->stop, .events = POLLIN}, 1,
                   wait_ms < INT32_MAX ? (int)wait_ms : INT32_MAX);
    }
    return stop_requested() == STOP_NOT;
}

/* --- one namespace ------------------------------------------------------------------------------- */

static int64_t age_of(const struct settings *settings, enum kept_kind kind)
{
    switch (kind) {
    case KEPT_ANSWERS:
        return store_idempotency_purge_s(settings);
    case KEPT_ATTEMPTS:
        return settings->task_history_s;
    case KEPT_REFERENCES:
        return settings->blob_keep_hours * 3600;
    default:
        return settings->keep_deletions_days * 86400;
    }
}

/* Deletes all of one kind; false: the session is unusable, or it is time to stop. */
static bool keep_kind(struct keeper *keeper, struct pg *pg, enum kept_kind kind, int64_t deadline_ms,
                      uint64_t *deleted)
{
    int64_t count;
    do {
        struct pg_result *row;
        struct pg_params *params = PG_PARAMS(keeper->arena, PG_TEXT(bytes_of(names[kind])), PG_I32(BATCH),
                                             PG_I64(age_of(keeper->settings, kind)));
        if (pg_run(pg, &keep, params, &row)) /* if another process holds the lock, continue with the rest */
            return pg_is_usable(pg) && wait_ms(keeper, PAUSE_MS);
        count = pg_get_i64(row, 0, 0);
        atomic_fetch_add(&keeper->board->deleted[kind], (uint64_t)count);
        *deleted += (uint64_t)count;
        if (!wait_ms(keeper, count ? PAUSE_MS : 0))
            return false;
    } while (count >= BATCH && clock_monotonic_ms() < deadline_ms);
    return true;
}

/* --- rewriting ----------------------------------------------------------------------------------- */

/* Transactions that had begun before something was declared may still write as it was before. */
static bool wait_for_older(struct keeper *keeper, struct pg *pg)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, keeper->arena);
    if (pg_run(pg, &older, &params, &row))
        return false;
    pg_params_add_text(&params, pg_get_text(row, 0, 0));
    for (int64_t until_ms = clock_monotonic_ms() + NAMESPACE_MS; clock_monotonic_ms() < until_ms;) {
        if (pg_run(pg, &still, &params, &row))
            return false;
        if (pg_get_i64(row, 0, 0) == 0)
            return true;
        if (!wait_ms(keeper, PAUSE_MS))
            return false;
    }
    return false; /* in the next round */
}

static void rewrite_class(struct keeper *keeper, struct pg *pg, const struct schema_class *class)
{
    struct arena *arena = arena_create("rewriting");
    int64_t until_ms = clock_monotonic_ms() + REWRITING_MS, count = 1, total = 0;
    enum fault fault = FAULT_NONE;
    while (!fault && count && clock_monotonic_ms() < until_ms && wait_ms(keeper, total ? PAUSE_MS : 0)) {
        fault = rewriting_run(pg, arena, class, BATCH, &count);
        total += count;
        arena_reset(arena);
    }
    if (!fault && !count)
        fault = rewriting_end(pg, arena, class->name);
    if (total || !count)
        log_info("%s the documents of a class in its newest release class=%.*s documents=%lld",
                 count ? "rewrites" : "has rewritten", (int)class->name.size, class->name.data,
                 (long long)total);
    arena_destroy(arena);
}

/* Continues rewriting that `stampctl schema apply` has begun and not finished. */
static void rewrite(struct keeper *keeper, struct pg *pg)
{
    struct pg_result *rows;
    struct schema *schema;
    struct schema_problem problem;
    if (pg_prepare(pg, &rewritings, 1) || pg_run(pg, &rewritings, PG_NO_PARAMS(keeper->arena), &rows) ||
        !pg_rows(rows))
        return;
    if (schema_read(keeper->arena, pg_get_text(rows, 0, 1), &schema, &problem) ||
        rewriting_prepare(pg, false) || !wait_for_older(keeper, pg))
        return;
    for (int row = 0; row < pg_rows(rows) && stop_requested() == STOP_NOT && pg_is_usable(pg); row++) {
        const struct schema_class *class = schema_find_class(schema, pg_get_text(rows, row, 0));
        if (class)
            rewrite_class(keeper, pg, class);
    }
}

/* So a reader of volumes has little to add up. */
static void fold_volumes(struct keeper *keeper, struct pg *pg, int64_t deadline_ms)
{
    int64_t folded = FOLD_BATCH;
    if (pg_prepare(pg, &fold, 1))
        return;
    while (folded == FOLD_BATCH && clock_monotonic_ms() < deadline_ms) {
        struct pg_result *row;
        if (pg_run(pg, &fold, PG_PARAMS(keeper->arena, PG_I32(FOLD_BATCH)), &row))
            return;
        folded = pg_get_i64(row, 0, 0);
        if (!wait_ms(keeper, folded ? PAUSE_MS : 0))
            return;
    }
}

/* The bytes that the namespace stores, and those of its classes that are limited, if it is in use here. */
static void keeper_measure(struct keeper *keeper, struct pg *pg, const struct keeper_database *database)
{
    enum { CLASS, ALL_BYTES, FILE_BYTES };
    int ns = namespaces_look_up(keeper->segment, database->name);
    struct stored_measurement measurement;
    struct pg_result *rows;
    if (ns < 0 || pg_prepare(pg, &stored, 1))
        return;
    (void)stored_want(keeper->segment, ns, database->code, NO_BYTES);
    stored_begin(keeper->segment, ns, &measurement);
    if (pg_run(pg, &stored, PG_PARAMS(keeper->arena, PG_I32(stored_has_classes(&measurement))), &rows))
        return;
    size_t count = (size_t)pg_rows(rows);
    struct stored_volume *volumes = ARENA_ARRAY(keeper->arena, struct stored_volume, count + 1);
    for (size_t i = 0; i < count; i++)
        volumes[i] = (struct stored_volume){
            pg_is_null(rows, (int)i, CLASS) ? NO_BYTES : pg_get_text(rows, (int)i, CLASS),
            {pg_get_i64(rows, (int)i, ALL_BYTES), pg_get_i64(rows, (int)i, FILE_BYTES)}};
    stored_end(keeper->segment, ns, &measurement, volumes, count);
}

/* Counts the documents of accounts that have a quota of bytes and were there before it.  Commits that had
 * begun before count none. */
static void count_owned(struct keeper *keeper, struct pg *pg, int64_t deadline_ms)
{
    struct pg_result *row;
    int64_t count = 1;
    if (pg_prepare(pg, &uncounted, 1) || pg_run(pg, &uncounted, PG_NO_PARAMS(keeper->arena), &row) ||
        !pg_rows(row))
        return;
    int64_t number = pg_get_i64(row, 0, 0);
    if (pg_prepare(pg, &owned, 1) || !wait_for_older(keeper, pg))
        return;
    while (count && clock_monotonic_ms() < deadline_ms) {
        if (pg_run(pg, &owned, PG_PARAMS(keeper->arena, PG_I32(BATCH), PG_I64(number)), &row) ||
            !wait_ms(keeper, PAUSE_MS))
            return;
        count = pg_get_i64(row, 0, 0);
    }
}

static void clean(struct keeper *keeper, struct pg *pg, const char *database)
{
    struct cleaned cleaned;
    cleaner_run(keeper->cleaner, pg, database, clock_monotonic_ms() + NAMESPACE_MS, pause_ending, keeper,
                &cleaned);
    atomic_fetch_add(&keeper->board->files, (uint64_t)cleaned.removed);
    if (cleaned.marked || cleaned.removed || cleaned.found || cleaned.cleared)
        log_info("cleaned files database=%s marked=%lld removed=%lld found=%lld unfinished=%lld", database,
                 (long long)cleaned.marked, (long long)cleaned.removed, (long long)cleaned.found,
                 (long long)cleaned.cleared);
}

static void keep_database(struct keeper *keeper, const struct keeper_database *kept)
{
    const char *database = kept->name;
    struct pg *pg;
    int64_t deadline_ms = clock_monotonic_ms() + NAMESPACE_MS;
    uint64_t deleted[KEPT_COUNT] = {0}, sum = 0;
    if (keeper_databases_open(keeper->settings, database, &pg))
        return;
    bool goes_on = !pg_prepare(pg, &keep, 1) && !pg_prepare(pg, &older, 1) && !pg_prepare(pg, &still, 1);
    for (int kind = 0; goes_on && kind < KEPT_COUNT; kind++)
        goes_on = keep_kind(keeper, pg, (enum kept_kind)kind, deadline_ms, &deleted[kind]);
    if (goes_on)
        clean(keeper, pg, database);
    if (goes_on && pg_is_usable(pg))
        fold_volumes(keeper, pg, clock_monotonic_ms() + NAMESPACE_MS);
    if (goes_on && pg_is_usable(pg))
        keeper_measure(keeper, pg, kept);
    if (goes_on)
        count_owned(keeper, pg, clock_monotonic_ms() + NAMESPACE_MS);
    if (goes_on)
        rewrite(keeper, pg);
    pg_close(pg);
    struct builder words = {0};
    for (int kind = 0; kind < KEPT_COUNT; kind++) {
        if (deleted[kind])
            builder_printf(&words, " %s=%llu", names[kind], (unsigned long long)deleted[kind]);
        sum += deleted[kind];
    }
    if (sum)
        log_info("purged database=%s%.*s", database, (int)words.size, words.data);
    builder_free(&words);
}

/* --- a round ------------------------------------------------------------------------------------- */

/* What is off, or has been dropped, has no volumes any more: another database may have its code. */
static void forget_others(struct keeper *keeper, const struct keeper_database *databases, size_t count)
{
    int known = namespaces_count(keeper->segment);
    for (int ns = 0; ns < known && count > 1; ns++) { /* 1: perhaps they could not be listed */
        const char *name = namespaces_database(keeper->segment, ns);
        bool is_listed = !name;
        for (size_t i = 0; i < count && !is_listed; i++)
            is_listed = strcmp(databases[i].name, name) == 0;
        if (!is_listed)
            stored_forget(keeper->segment, ns);
    }
}

static void keep_all(struct keeper *keeper)
{
    size_t count;
    int64_t listed_ms = clock_monotonic_ms();
    const struct keeper_database *databases = keeper_databases_list(keeper->settings, keeper->arena, &count);
    forget_others(keeper, databases, count);
    for (size_t i = 0; i < count && stop_requested() == STOP_NOT; i++)
        if (keeper_databases_has(keeper->settings, keeper->arena, databases[i].name, listed_ms))
            keep_database(keeper, &databases[i]);
    atomic_fetch_add(&keeper->board->rounds, 1);
    atomic_store(&keeper->board->round_s, (int64_t)time(NULL));
}

void keeper_run(const struct settings *settings, struct segment *segment)
{
    struct keeper keeper = {.settings = settings,
                            .segment = segment,
                            .board = segment->kept,
                            .arena = arena_create("keeper"),
                            .stop = stop_open()};
    keeper.ends = ends_create(settings, segment);
    keeper.cleaner = cleaner_create(settings);
    (void)prctl(PR_SET_NAME, "stampd-keeper"); /* for administrators */
    /* The first round waits for an interval: the server is still starting, and may be restarted
     * repeatedly. */
    int64_t interval_ms = settings->keep_interval_s ? settings->keep_interval_s * 1000 : NEVER_MS;
    while (wait_ms(&keeper, interval_ms)) {
        keep_all(&keeper);
        log_flush(clock_monotonic_ms());
        arena_reset(keeper.arena);
    }
    ends_destroy(keeper.ends);
    cleaner_destroy(keeper.cleaner);
    arena_destroy(keeper.arena);
}
