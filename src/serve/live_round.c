/* live_round: a round moves the horizon of those who listen, who were told by workers and notifications, not
 * by the database.
 *
 * The horizon of a snapshot may be claimed when what was committed before it has been told.  That is so when
 * the echo of a notification of its own has come back, which follows all notifications of what was committed
 * before (PostgreSQL keeps their order); when each entry of the segment was once seen without a commit in
 * flight, since workers tell before they end; when the pipe was empty then; and when the database was asked
 * about all that had been heard by then.  Sessions of a former generation of the segment tell nobody: while
 * there may be any, or were in the round before, the database is asked about everything instead. */
#include "serve/live_private.h"

#include <inttypes.h>

#include "base/clock.h"
#include "base/log.h"

enum {
    ROUND_MS = 1000,
    /* Numbers of transactions in xmin go around: what is older than this cannot be compared. */
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

void live_claim(struct live_space *space, const struct live_horizon *known)
{
    space->known = *known;
    for (struct live_listener *listener = space->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN && (listener->was_told || listener->known.life != known->life))
            live_listener_know(listener, known);
}

/* --- rounds --- */

static bool round_is_due(struct live_space *space)
{
    int64_t period_ms =
        space->is_told_of ? ROUND_MS : space->live->settings->live_keepalive_s * INT64_C(1000) / 2;
    return space->round == ROUND_RESTS && space->known.horizon && space->listener_count &&
           clock_monotonic_ms() - space->round_ms >= period_ms;
}

/* Nobody else's, on whatever host. */
static struct bytes write_echo(const struct live_space *space, uint64_t number, struct arena *arena)
{
    return bytes_of(arena_printf(arena, "%016" PRIx64 ".%" PRIu64, space->live->nonce, number));
}

static enum fault round_ask(struct live_space *space)
{
    struct pg_params params;
    space->round = ROUND_ASKS;
    space->round_ms = clock_monotonic_ms();
    space->is_told_of = false;
    bool is_clean = stamps_space_is_clean(space->live->stamps, space->space);
    space->round_is_clean = space->was_clean && is_clean;
    space->was_clean = is_clean;
    pg_params_start(&params, space->arena);
    pg_add_text(&params, write_echo(space, ++space->round_number, space->arena));
    return pg_send(space->pg, &live_statements[LIVE_STATEMENT_ROUND], &params);
}

static void round_take(struct live_space *space)
{
    if (!live_read_horizon(space->result, &space->round_known, &space->round_next)) {
        space->round = ROUND_RESTS;
        return;
    }
    if (!live_is_within_reach(&space->known, &space->round_known, space->round_next)) {
        space->round = ROUND_RESTS;
        live_space_miss(space);
        return;
    }
    if (space->round == ROUND_ASKS) /* else the echo was quicker, or a gap has come between */
        space->round = ROUND_WAITS_FOR_ECHO;
}

static void round_failed(struct live_space *space, enum fault fault)
{
    log_warning("live database=%s: %s, asking for a horizon", space->database, fault_code(fault));
    space->round = ROUND_RESTS; /* the next one after its time */
    space->is_told_of = true;
}

const struct live_asking live_asks_round = {round_is_due, round_ask, round_take, round_failed};

void live_round_hear(struct live_space *space, struct bytes payload)
{
    if (space->round != ROUND_WAITS_FOR_ECHO ||
        !bytes_equal(payload, write_echo(space, space->round_number, space->live->arena)))
        return;
    space->round = ROUND_WAITS_FOR_WORKERS;
    for (int i = 0; i < STAMPS_WORDS; i++)
        space->round_busy[i] = UINT64_MAX;
}

static bool all_have_told(struct live_space *space)
{
    struct stamps *stamps = space->live->stamps;
    bool have_all = true;
    for (int i = 0; i < stamps_entries(stamps); i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (!(space->round_busy[i / 64] & bit))
            continue;
        if (stamps_entry_space(stamps, i) == space->space)
            have_all = false;
        else
            space->round_busy[i / 64] &= ~bit;
    }
    return have_all;
}

/* Workers have told: what was heard until now includes what was committed before the snapshot. */
static void note_what_was_heard(struct live_space *space)
{
    live_hear(space->live);
    if (ear_missed(space->live->ear, space->space) != space->missed || !space->round_is_clean) {
        space->round = ROUND_RESTS;
        live_space_miss(space);
        return;
    }
    space->round_heard = space->news_heard;
    space->round = ROUND_WAITS_FOR_NEWS;
}

bool live_round_go_on(struct live_space *space)
{
    if (space->round == ROUND_WAITS_FOR_WORKERS) {
        if (!all_have_told(space))
            return true;
        note_what_was_heard(space);
    }
    /* A gap that is still to begin ends this round. */
    if (space->round == ROUND_WAITS_FOR_NEWS && space->news_told >= space->round_heard && !space->gap &&
        !space->wants_gap) {
        space->round = ROUND_RESTS;
        live_claim(space, &space->round_known);
    }
    return false;
}
