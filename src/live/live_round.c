/* live_round: a round advances the horizon of listeners, whose changes came from the change feed and
 * notifications, not from queries.
 *
 * The horizon of a snapshot may be adopted once all changes committed before it have been sent.  The
 * conditions: the echo of the round's own notification has come back, which follows those of all earlier
 * commits (PostgreSQL keeps their order); each entry of the segment was once without a commit in flight,
 * since workers publish before a commit ends; the pipe was empty after that; and the database was queried
 * about all news received by then.  Sessions of a former generation of the segment publish nothing: while
 * there may be any, or were in the round before, everything is queried instead. */
#include "live/live_private.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"
#include "segment/processes.h"

enum {
    ROUND_MS = 1000,
    /* Transaction numbers in xmin wrap around: older ones cannot be compared. */
    REACH = INT32_MAX - 1000000,
};
enum { KIND, LIFE = 3, FLOOR, XID, XID_NEXT }; /* columns of LOOK and ROUND */

/* --- horizons --- */

bool live_read_horizon(const struct pg_result *result, struct live_horizon *known_r, int64_t *next_r)
{
    for (int row = 0; row < pg_rows(result); row++)
        if (pg_get_i64(result, row, KIND) == LIVE_ROW_OF_ALL) {
            *known_r = (struct live_horizon){.life = pg_get_i64(result, row, LIFE),
                                             .horizon = pg_get_i64(result, row, XID),
                                             .floor = pg_get_i64(result, row, FLOOR)};
            *next_r = pg_get_i64(result, row, XID_NEXT);
            return true;
        }
    return false;
}

bool live_is_within_reach(const struct live_horizon *since, const struct live_horizon *known, int64_t next)
{
    return since->life == known->life && since->horizon <= next && next - since->horizon < REACH;
}

void live_advance(struct live_namespace *ns, const struct live_horizon *known)
{
    ns->known = *known;
    for (struct live_listener *listener = ns->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN && (listener->was_told || listener->known.life != known->life))
            live_listener_know(listener, known);
}

/* --- rounds --- */

static bool round_is_due(struct live_namespace *ns)
{
    int64_t period_ms = ns->is_told_of ? ROUND_MS : ns->live->settings->live_keepalive_s * INT64_C(1000) / 2;
    return ns->round == ROUND_RESTS && ns->known.horizon && ns->listener_count &&
           clock_monotonic_ms() - ns->round_ms >= period_ms;
}

/* An echo unique among all hosts. */
static struct bytes write_echo(const struct live_namespace *ns, uint64_t number, struct arena *arena)
{
    return bytes_of(arena_printf(arena, "%016" PRIx64 ".%" PRIu64, ns->live->nonce, number));
}

static enum fault round_ask(struct live_namespace *ns)
{
    struct pg_params params;
    ns->round = ROUND_ASKS;
    ns->round_ms = clock_monotonic_ms();
    ns->is_told_of = false;
    bool is_clean = namespaces_is_clean(ns->live->segment, ns->ns);
    ns->round_is_clean = ns->was_clean && is_clean;
    ns->was_clean = is_clean;
    pg_params_start(&params, ns->arena);
    pg_add_text(&params, write_echo(ns, ++ns->round_number, ns->arena));
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_ROUND], &params);
}

static void round_take(struct live_namespace *ns)
{
    if (!live_read_horizon(ns->result, &ns->round_known, &ns->round_next)) {
        ns->round = ROUND_RESTS;
        return;
    }
    if (!live_is_within_reach(&ns->known, &ns->round_known, ns->round_next)) {
        ns->round = ROUND_RESTS;
        live_namespace_miss(ns);
        return;
    }
    if (ns->round == ROUND_ASKS) /* else the echo came first, or a gap has intervened */
        ns->round = ROUND_WAITS_FOR_ECHO;
}

static void round_failed(struct live_namespace *ns, enum fault fault)
{
    log_warning("live database=%s: %s, asking for a horizon", ns->database, fault_code(fault));
    ns->round = ROUND_RESTS; /* the next round follows after the usual interval */
    ns->is_told_of = true;
}

const struct live_asking live_asks_round = {round_is_due, round_ask, round_take, round_failed};

void live_round_hear(struct live_namespace *ns, struct bytes payload)
{
    if (ns->round != ROUND_WAITS_FOR_ECHO ||
        !bytes_equal(payload, write_echo(ns, ns->round_number, ns->live->arena)))
        return;
    ns->round = ROUND_WAITS_FOR_WORKERS;
    for (int i = 0; i < SLOTS_WORDS; i++)
        ns->round_busy[i] = UINT64_MAX;
}

static bool all_have_told(struct live_namespace *ns)
{
    struct segment *segment = ns->live->segment;
    bool have_all = true;
    for (int i = 0; i < processes_count(segment); i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (!(ns->round_busy[i / 64] & bit))
            continue;
        if (processes_namespace(segment, i) == ns->ns)
            have_all = false;
        else
            ns->round_busy[i / 64] &= ~bit;
    }
    return have_all;
}

/* All workers have published: the news received so far includes all commits before the snapshot. */
static void note_what_was_heard(struct live_namespace *ns)
{
    live_hear(ns->live);
    if (subscriber_missed(ns->live->subscriber, ns->ns) != ns->missed || !ns->round_is_clean) {
        ns->round = ROUND_RESTS;
        live_namespace_miss(ns);
        return;
    }
    ns->round_heard = ns->news_heard;
    ns->round = ROUND_WAITS_FOR_NEWS;
}

bool live_round_go_on(struct live_namespace *ns)
{
    if (ns->round == ROUND_WAITS_FOR_WORKERS) {
        if (!all_have_told(ns))
            return true;
        note_what_was_heard(ns);
    }
    /* A gap that is about to begin ends this round. */
    if (ns->round == ROUND_WAITS_FOR_NEWS && ns->news_told >= ns->round_heard && !ns->gap && !ns->wants_gap) {
        ns->round = ROUND_RESTS;
        live_advance(ns, &ns->round_known);
    }
    return false;
}
