/* ends: a round through the databases that may have expired documents, at the start of each minute of
 * PostgreSQL's clock, which decides what has expired. */
#include "serve/upkeep/ends.h"

#include <stdlib.h>
#include <time.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "segment/namespaces.h"
#include "segment/counts/purge_counts.h"
#include "edge/pg/pg.h"
#include "serve/upkeep/keeper_databases.h"

enum {
    BATCH = 200,
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

struct ends *ends_create(const struct settings *settings, struct segment *segment)
{
    struct ends *ends = memory_zeroed(1, sizeof *ends, "ends");
    *ends = (struct ends){.settings = settings,
                          .segment = segment,
                          .arena = arena_create("ends"),
                          .due_ms = clock_monotonic_ms() + AGAIN_MS};
    return ends;
}

void ends_destroy(struct ends *ends)
{
    arena_destroy(ends->arena);
    free(ends);
}

int64_t ends_due_ms(const struct ends *ends)
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
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, ends->arena);
    pg_params_add_i32(&params, BATCH);
    if (pg_run(pg, &keep_expiry, &params, &row)) {
        ends->has_more |= pg_is_usable(pg); /* another process holds the lock */
        return false;
    }
    int64_t count = pg_get_i64(row, 0, ENDED);
    int64_t next_ms = clock_monotonic_ms() + pg_get_i64(row, 0, MINUTE_LEFT_MS) + BEHIND_MS;
    bool is_full = count >= BATCH;
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

void ends_run(struct ends *ends, bool (*pause)(void *context), void *context)
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
