/* live_round: the states of a round. */
#include "live/live_round.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "live/live_listener.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"

enum { ROUND_MS = 1000, ECHO_MOST_MS = 30000, ECHO_BYTES = 64 };

enum round_state {
    ROUND_RESTS,
    ROUND_QUERIES,
    ROUND_WAITS_FOR_ECHO,
    ROUND_WAITS_FOR_WORKERS,
    ROUND_WAITS_FOR_NEWS
};

struct live_round {
    struct live_round_parts parts;
    enum round_state state;
    bool has_news;            /* there was a change since the last round */
    bool was_clean, is_clean; /* no old sessions at the last query; the last two */
    uint64_t received;        /* of the news */
    uint64_t held;            /* of the changes that are judged */
    int64_t queried_ms;       /* monotonic: time of the last query */
    uint64_t number;
    struct live_horizon known;
    uint64_t busy[SLOTS_WORDS]; /* entries whose commit may not have been received */
};

struct live_round *live_round_create(const struct live_round_parts *parts)
{
    struct live_round *round = memory_zeroed(1, sizeof *round, "live");
    round->parts = *parts;
    return round;
}

void live_round_destroy(struct live_round *round)
{
    free(round);
}

static int live_round_number_of(const struct live_round *round)
{
    return live_audience_number(round->parts.audience);
}

void live_round_begin(struct live_round *round)
{
    round->was_clean = namespaces_is_clean(round->parts.segment, live_round_number_of(round));
}

void live_round_wake(struct live_round *round)
{
    round->has_news = true;
}

void live_round_rest(struct live_round *round)
{
    round->state = ROUND_RESTS;
}

/* --- the query --- */

bool live_round_is_due(const struct live_round *round, const struct settings *settings)
{
    int64_t period_ms = round->has_news ? ROUND_MS : settings->live_keepalive_s * INT64_C(1000) / 2;
    return round->state == ROUND_RESTS && live_audience_known(round->parts.audience)->horizon &&
           live_audience_count(round->parts.audience) &&
           clock_monotonic_ms() - round->queried_ms >= period_ms;
}

/* An echo unique among all hosts. */
static struct bytes write_echo(const struct live_round *round, char *echo, size_t size)
{
    int length = snprintf(echo, size, "%016" PRIx64 ".%" PRIu64, round->parts.nonce, round->number);
    return (struct bytes){echo, (size_t)length};
}

void live_round_query(struct live_round *round, struct pg_params *params)
{
    char echo[ECHO_BYTES];
    round->state = ROUND_QUERIES;
    round->queried_ms = clock_monotonic_ms();
    round->has_news = false;
    bool is_clean = namespaces_is_clean(round->parts.segment, live_round_number_of(round));
    round->is_clean = round->was_clean && is_clean;
    round->was_clean = is_clean;
    round->number++;
    struct bytes text = write_echo(round, echo, sizeof echo);
    pg_params_add_text(params, arena_keep(params->arena, text));
}

void live_round_take(struct live_round *round, const struct live_horizon *known, int64_t next)
{
    if (!known) {
        round->state = ROUND_RESTS;
        return;
    }
    round->known = *known;
    if (!live_horizon_is_within_reach(live_audience_known(round->parts.audience), known, next)) {
        round->state = ROUND_RESTS;
        live_catch_up_note_gap(round->parts.catch_up);
        return;
    }
    if (round->state == ROUND_QUERIES) /* else the echo came first, or a gap has intervened */
        round->state = ROUND_WAITS_FOR_ECHO;
}

/* --- what must have been sent before --- */

bool live_round_receive(struct live_round *round, struct bytes payload)
{
    char echo[ECHO_BYTES];
    if (round->state != ROUND_WAITS_FOR_ECHO || !bytes_equal(payload, write_echo(round, echo, sizeof echo)))
        return false;
    round->state = ROUND_WAITS_FOR_WORKERS;
    for (int i = 0; i < SLOTS_WORDS; i++)
        round->busy[i] = UINT64_MAX;
    return true;
}

bool live_round_is_late(const struct live_round *round, int64_t now_ms)
{
    return round->state == ROUND_WAITS_FOR_ECHO && now_ms - round->queried_ms >= ECHO_MOST_MS;
}

static bool have_all_published(struct live_round *round)
{
    const struct segment *segment = round->parts.segment;
    bool have_all = true;
    for (int i = 0; i < processes_count(segment); i++) {
        uint64_t bit = UINT64_C(1) << (i % 64);
        if (!(round->busy[i / 64] & bit))
            continue;
        if (processes_namespace(segment, i) == live_round_number_of(round))
            have_all = false;
        else
            round->busy[i / 64] &= ~bit;
    }
    return have_all;
}

/* All workers have published: the news received so far includes all commits before the snapshot. */
static void note_received(struct live_round *round)
{
    round->parts.drain(round->parts.context);
    /* Else another host may have committed; losses are noted before this one may prove again. */
    if (!slots_may_prove(round->parts.segment)) {
        round->state = ROUND_RESTS;
        return;
    }
    if (live_catch_up_has_losses(round->parts.catch_up) || !round->is_clean) {
        round->state = ROUND_RESTS;
        live_catch_up_note_gap(round->parts.catch_up);
        return;
    }
    round->received = live_news_received(round->parts.news);
    round->held = live_ruled_received(round->parts.ruled);
    round->state = ROUND_WAITS_FOR_NEWS;
}

void live_round_finish(struct live_round *round)
{
    /* A gap that is about to begin ends this round. */
    if (round->state != ROUND_WAITS_FOR_NEWS || live_news_sent(round->parts.news) < round->received ||
        live_ruled_judged(round->parts.ruled) < round->held || live_catch_up_has_gap(round->parts.catch_up))
        return;
    round->state = ROUND_RESTS;
    live_listener_advance_all(round->parts.audience, &round->known);
}

bool live_round_go_on(struct live_round *round)
{
    if (round->state == ROUND_WAITS_FOR_WORKERS) {
        if (!have_all_published(round))
            return true;
        note_received(round);
    }
    live_round_finish(round);
    return false;
}
