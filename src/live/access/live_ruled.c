/* live_ruled: two queues, in the order of arrival: changes are taken from the front one, the other is filled.
 * Those taken form a batch, which is settled in order; what needs a team, and all behind it, stays in it for
 * a second query. */
#include "live/access/live_ruled.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "live/access/live_accounts.h"
#include "live/live_audience_private.h"
#include "live/access/live_follow.h"
#include "live/access/live_judge.h"
#include "live/topics/live_key.h"
#include "live/live_listener.h"
#include "model/rules/rules_sight.h"
#include "segment/counts/metrics.h"

enum {
    HELD_MOST = 2000, /* changes; more are not held */
    BATCH_MOST = 32,  /* documents in one query, each perhaps with teams */
    NAMES_MOST = LIVE_FIRST_DOCUMENTS * BATCH_MOST,
};

struct held_queue {
    struct arena *arena;
    struct live_change *items;
    size_t count, next;
};

struct live_ruled {
    struct live_audience *audience;
    void (*drain)(void *context);
    void *context;
    struct held_queue queues[2]; /* the one that the batch is of; the one being filled */
    struct live_change *batch[BATCH_MOST];
    size_t batch_count;
    struct document_name names[NAMES_MOST]; /* of the query */
    size_t name_count;
    uint64_t received;
    uint64_t losses;     /* moves when what is held is discarded */
    uint64_t asked;      /* its value when the query was sent, whose names were held then */
    struct arena *arena; /* of teams' names, while there is a batch */
    struct arena *scratch;
    struct builder key;
};

struct live_ruled *live_ruled_create(struct live_audience *audience, void (*drain)(void *context),
                                     void *context)
{
    struct live_ruled *ruled = memory_zeroed(1, sizeof *ruled, "live");
    *ruled = (struct live_ruled){.audience = audience, .drain = drain, .context = context};
    for (size_t i = 0; i < COUNT_OF(ruled->queues); i++)
        ruled->queues[i].arena = arena_create("live changes");
    ruled->arena = arena_create("live teams");
    ruled->scratch = arena_create("live judgements");
    return ruled;
}

void live_ruled_destroy(struct live_ruled *ruled)
{
    for (size_t i = 0; i < COUNT_OF(ruled->queues); i++)
        arena_destroy(ruled->queues[i].arena);
    arena_destroy(ruled->arena);
    arena_destroy(ruled->scratch);
    builder_free(&ruled->key);
    free(ruled);
}

uint64_t live_ruled_received(const struct live_ruled *ruled)
{
    return ruled->received;
}

uint64_t live_ruled_judged(const struct live_ruled *ruled)
{
    return ruled->audience->judged;
}

/* --- arrival --- */

static void count_held(struct live_ruled *ruled, int64_t more)
{
    atomic_fetch_add(&feed_subscriber_slot(ruled->audience->all->subscriber)->held, (uint64_t)more);
}

static void clear(struct live_ruled *ruled)
{
    count_held(ruled, (int64_t)(ruled->audience->judged - ruled->received));
    for (size_t i = 0; i < COUNT_OF(ruled->queues); i++) {
        arena_reset(ruled->queues[i].arena);
        ruled->queues[i] = (struct held_queue){.arena = ruled->queues[i].arena};
    }
    ruled->batch_count = 0;
    ruled->losses++;
    ruled->audience->judged = ruled->received;
}

void live_ruled_lose(struct live_ruled *ruled)
{
    clear(ruled);
    live_accounts_doubt_all(ruled->audience);
    live_listener_reset_ruled(ruled->audience);
}

void live_ruled_drop(struct live_ruled *ruled)
{
    clear(ruled);
    live_accounts_doubt_all(ruled->audience);
}

static void live_ruled_hold(struct live_ruled *ruled, const struct live_change *change)
{
    struct held_queue *back = &ruled->queues[1];
    if (back->count == HELD_MOST) {
        log_often(LOG_LEVEL_WARNING, ruled->audience->database,
                  "live database=%s: no room for more changes that are to be judged, sending reset",
                  ruled->audience->database);
        pulse_count(&feed_subscriber_slot(ruled->audience->all->subscriber)->overflows, 1);
        live_ruled_lose(ruled);
        return;
    }
    if (!back->items)
        back->items = ARENA_ROOM(back->arena, struct live_change, HELD_MOST);
    struct live_change *held = &back->items[back->count++];
    *held = *change;
    held->class = arena_keep(back->arena, change->class);
    held->id = arena_keep(back->arena, change->id);
    ruled->received++;
    count_held(ruled, 1);
}

/* Do documents of other classes depend on it? */
static bool is_team(const struct live_ruled *ruled, struct bytes class)
{
    const struct rules *rules = live_access_rules(ruled->audience->access, false);
    return rules && rules_sight_is_team(rules, class);
}

void live_ruled_add(struct live_ruled *ruled, struct bytes class, struct bytes id, int64_t version)
{
    const struct live_index *index = ruled->audience->ruled_index;
    if (!ruled->audience->ruled_count)
        return;
    if (rules_is_reserved(class))
        live_accounts_doubt(ruled->audience, class, id);
    if (live_index_has(index, live_key_of_class(&ruled->key, class)) ||
        live_index_has(index, live_key_of_document(&ruled->key, class, id)) ||
        live_index_has_members_of(index, class) || is_team(ruled, class))
        live_ruled_hold(ruled, &(struct live_change){.class = class,
                                                     .id = id,
                                                     .version = version,
                                                     .since = ruled->audience->known.horizon});
}

void live_ruled_look(struct live_ruled *ruled, const struct live_listener *listener,
                     const struct definition *definition)
{
    live_ruled_hold(ruled, &(struct live_change){.class = definition->class,
                                                 .id = definition->id,
                                                 .serial = live_listener_serial(listener),
                                                 .since = live_listener_last(listener)->horizon});
}

/* --- the query --- */

bool live_ruled_is_due(const struct live_ruled *ruled)
{
    const struct held_queue *front = &ruled->queues[0], *back = &ruled->queues[1];
    return (ruled->batch_count || front->next < front->count || back->count) &&
           live_access_is_certain(ruled->audience->access) && live_follow_is_settled(ruled->audience);
}

/* The front queue is taken until it is empty, while the other is filled. */
static void take_batch(struct live_ruled *ruled)
{
    struct held_queue *front = &ruled->queues[0], *back = &ruled->queues[1];
    arena_reset(ruled->arena);
    if (front->next == front->count) {
        struct held_queue empty = {.arena = front->arena};
        arena_reset(empty.arena);
        *front = *back;
        *back = empty;
    }
    while (front->next < front->count && ruled->batch_count < BATCH_MOST)
        ruled->batch[ruled->batch_count++] = &front->items[front->next++];
}

/* Teams precede their document, so that the first document is loaded whatever the sizes. */
void live_ruled_query(struct live_ruled *ruled, struct pg_params *params)
{
    int64_t since = INT64_MAX;
    bool with_members = false;
    if (!ruled->batch_count)
        take_batch(ruled);
    ruled->asked = ruled->losses;
    ruled->name_count = 0;
    for (size_t i = 0; i < ruled->batch_count; i++) {
        struct live_change *change = ruled->batch[i];
        for (size_t k = 0; k < change->team_count; k++)
            ruled->names[ruled->name_count++] = change->teams[k];
        change->place = ruled->name_count;
        ruled->names[ruled->name_count++] = (struct document_name){change->class, change->id};
        since = change->since < since ? change->since : since;
        with_members |= live_index_has_members_of(ruled->audience->ruled_index, change->class);
    }
    live_snapshot_query(params, ruled->names, ruled->name_count, since, with_members);
}

/* --- judging --- */

static void judge_batch(struct live_ruled *ruled, struct live_judging *judging)
{
    size_t left = 0;
    for (size_t i = 0; i < ruled->batch_count; i++) {
        if (live_judge(judging, ruled->batch[i], left > 0))
            ruled->audience->judged++;
        else
            ruled->batch[left++] = ruled->batch[i];
    }
    count_held(ruled, (int64_t)left - (int64_t)ruled->batch_count);
    ruled->batch_count = left;
}

/* A revocation that was committed before what was loaded has been received by then, and nothing is judged by
 * what it revokes. */
void live_ruled_take(struct live_ruled *ruled, struct live_snapshot *snapshot, const struct pg_result *result)
{
    struct live_loaded loaded[NAMES_MOST];
    struct live_judging judging = {.audience = ruled->audience,
                                   .snapshot = snapshot,
                                   .loaded = loaded,
                                   .scratch = ruled->scratch,
                                   .teams = ruled->arena,
                                   .key = &ruled->key};
    ruled->drain(ruled->context);
    if (ruled->losses == ruled->asked && live_access_is_certain(ruled->audience->access) &&
        live_snapshot_take(snapshot, result, ruled->scratch, ruled->names, ruled->name_count, loaded) &&
        live_follow_confirm(ruled->audience, live_snapshot_followed(snapshot)))
        judge_batch(ruled, &judging);
    if (judging.is_too_much)
        live_ruled_lose(ruled);
    arena_reset(ruled->scratch);
    live_listener_flush_all(ruled->audience);
}
