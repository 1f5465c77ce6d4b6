/* live_ruled: two queues, in the order of arrival: changes are taken from the front one, the other is filled.
 * Those taken form a batch, which is settled in order; what needs a team, and all behind it, stays in it for
 * a second query. */
#include "live/live_ruled.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "live/live_accounts.h"
#include "live/live_audience_private.h"
#include "live/live_follow.h"
#include "live/live_key.h"
#include "live/live_listener.h"
#include "live/live_sight.h"
#include "model/view.h"
#include "operation/filters.h"
#include "segment/metrics.h"

enum {
    HELD_MOST = 2000, /* changes; more are not held */
    BATCH_MOST = 32,  /* documents in one query, each perhaps with teams */
    TEAMS_MOST = LIVE_FIRST_DOCUMENTS - 1,
    NAMES_MOST = LIVE_FIRST_DOCUMENTS * BATCH_MOST,
};

struct held_change {
    struct bytes class, id;
    uint64_t serial;                        /* of the only listener that it is judged for; 0: for all */
    int64_t version;                        /* 0: unknown; then `since` decides what is new */
    int64_t since;                          /* all transactions below it are known */
    struct document_name teams[TEAMS_MOST]; /* that are known to be needed */
    size_t team_count;
    size_t place; /* in the query, behind the teams */
};

struct held_queue {
    struct arena *arena;
    struct held_change *items;
    size_t count, next;
};

struct live_ruled {
    struct live_audience *audience;
    void (*drain)(void *context);
    void *context;
    struct held_queue queues[2]; /* the one that the batch is of; the one being filled */
    struct held_change *batch[BATCH_MOST];
    size_t batch_count;
    struct document_name names[NAMES_MOST]; /* of the query */
    size_t name_count;
    uint64_t received;
    bool is_too_much;
    uint64_t losses;     /* moves when what is held is discarded */
    uint64_t asked;      /* its value when the query was sent, whose names were held then */
    struct arena *arena; /* of teams' names, while there is a batch */
    struct arena *scratch;
    struct builder key;
};

struct live_ruled *live_ruled_create(struct live_audience *audience, void (*drain)(void *context),
                                     void *context)
{
    struct live_ruled *ruled = calloc(1, sizeof *ruled);
    if (!ruled)
        log_fatal("out of memory live");
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

static struct bytes copy(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}

static void hold(struct live_ruled *ruled, const struct held_change *change)
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
        back->items = ARENA_ROOM(back->arena, struct held_change, HELD_MOST);
    struct held_change *held = &back->items[back->count++];
    *held = *change;
    held->class = copy(back->arena, change->class);
    held->id = copy(back->arena, change->id);
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
        live_index_has(index, live_key_of_document(&ruled->key, class, id)) || is_team(ruled, class))
        hold(ruled,
             &(struct held_change){
                 .class = class, .id = id, .version = version, .since = ruled->audience->known.horizon});
}

void live_ruled_look(struct live_ruled *ruled, const struct live_listener *listener,
                     const struct definition *definition)
{
    hold(ruled, &(struct held_change){.class = definition->class,
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
    if (!ruled->batch_count)
        take_batch(ruled);
    ruled->asked = ruled->losses;
    ruled->name_count = 0;
    for (size_t i = 0; i < ruled->batch_count; i++) {
        struct held_change *change = ruled->batch[i];
        for (size_t k = 0; k < change->team_count; k++)
            ruled->names[ruled->name_count++] = change->teams[k];
        change->place = ruled->name_count;
        ruled->names[ruled->name_count++] = (struct document_name){change->class, change->id};
        since = change->since < since ? change->since : since;
    }
    live_snapshot_query(params, ruled->names, ruled->name_count, since);
}

/* --- judging --- */

struct live_event {
    struct live_mark *mark;
    int64_t version;
};

struct live_judgement {
    struct live_ruled *ruled;
    const struct live_loaded *loaded; /* by place */
    struct held_change *change;
    bool is_trial;               /* an earlier change is not settled: only finds the team that is needed */
    struct document_name needed; /* a team that is not loaded */
    struct live_event *events;   /* to be sent once all are decided; in the scratch arena */
    size_t event_count, event_room;
};

/* NULL: it is needed, and not loaded. */
static const struct live_loaded *find_team(void *context, struct bytes class, struct bytes id)
{
    struct live_judgement *judgement = context;
    const struct held_change *change = judgement->change;
    for (size_t i = 0; i < change->team_count; i++) {
        const struct live_loaded *team = &judgement->loaded[change->place - change->team_count + i];
        if (team->document && bytes_equal(change->teams[i].class, class) &&
            bytes_equal(change->teams[i].id, id))
            return team;
    }
    judgement->needed = (struct document_name){class, id};
    return NULL;
}

static enum fault load_team(void *context, struct bytes class, struct bytes id,
                            const struct document **document_r)
{
    const struct live_loaded *team = find_team(context, class, id);
    *document_r = team ? team->document : NULL;
    return team ? FAULT_NONE : FAULT_STALE;
}

/* Who is not trusted reads everything once it is. */
static bool is_trusted(const struct live_listener *listener)
{
    return listener->trust == LIVE_TRUSTED && !(listener->caller && live_caller_is_over(listener->caller));
}

static const struct rules_caller *caller_of(const struct live_listener *listener)
{
    static const struct rules_caller nobody = {0};
    return listener->caller ? live_caller_rules(listener->caller) : &nobody;
}

static bool rules_allow(struct live_judgement *judgement, const struct live_listener *listener,
                        const struct document *document, struct rules_view *view_r)
{
    struct rules_question question = {
        .rules = live_access_rules(listener->audience->access, listener->is_administrator),
        .caller = caller_of(listener),
        .load = load_team,
        .context = judgement,
        .arena = judgement->ruled->scratch};
    return !question.rules || rules_may_read(&question, document, view_r);
}

enum { FILTER_MS = 1000 }; /* that it may assume; nothing ends it */

static bool filters_allow(const struct live_judgement *judgement, const struct live_listener *listener,
                          const struct document **document, struct view *view)
{
    const struct live_audience *audience = listener->audience;
    const struct filters *filters = live_access_filters(audience->access, listener->is_administrator);
    const struct filter_question question = {.settings = audience->all->settings,
                                             .ns = bytes_of(audience->code),
                                             .caller = caller_of(listener),
                                             .request_id = "live",
                                             .deadline_ms = clock_monotonic_ms() + FILTER_MS};
    return !filters || filters_show(filters, &question, judgement->ruled->scratch, document, view);
}

/* Replaces the document by what the caller may be shown of it. */
static bool may_read(struct live_judgement *judgement, const struct live_listener *listener,
                     const struct document **document, struct view *view)
{
    return document_exists(*document) &&
           live_access_is_judged(listener->audience->access, listener->is_administrator) &&
           rules_allow(judgement, listener, *document, &view->rules) &&
           (judgement->is_trial || filters_allow(judgement, listener, document, view));
}

static struct live_sight sight_of(struct live_judgement *judgement, const struct live_listener *listener)
{
    const struct held_change *change = judgement->change;
    return (struct live_sight){.rules =
                                   live_access_rules(listener->audience->access, listener->is_administrator),
                               .caller = caller_of(listener),
                               .arena = judgement->ruled->scratch,
                               .class = change->class,
                               .loaded = &judgement->loaded[change->place],
                               .version = change->version,
                               .since = change->since,
                               .find_team = find_team,
                               .context = judgement};
}

/* Has the change reached what the caller sees of the document? */
static bool is_visible(const struct live_judgement *judgement, const struct document *shown,
                       const struct view *view)
{
    const struct held_change *change = judgement->change;
    const struct live_loaded *loaded = &judgement->loaded[change->place];
    if (view_is_whole(view))
        return true;
    if (change->version)
        return view->version >= change->version;
    for (size_t i = 0; i < loaded->document->item_count; i++) {
        const struct item *item = &loaded->document->items[i];
        if (loaded->writers[i] - (uint32_t)change->since < UINT32_C(1) << 31 &&
            view_shows(view, item->iclass) && document_find_item(shown, item->iclass, item->key))
            return true;
    }
    return false;
}

/* Where no rules apply, nor a filter to the class: everybody may know of each change. */
static bool is_everybodys(const struct live_judgement *judgement, const struct live_listener *listener)
{
    const struct live_access *access = listener->audience->access;
    bool is_administrator = listener->is_administrator;
    return live_access_is_judged(access, is_administrator) && !live_access_rules(access, is_administrator) &&
           !filters_cover(live_access_filters(access, is_administrator), judgement->change->class);
}

static void add_event(struct live_judgement *judgement, struct live_mark *mark, int64_t version)
{
    ARENA_GROW(judgement->ruled->scratch, judgement->events, judgement->event_count, judgement->event_room);
    judgement->events[judgement->event_count++] = (struct live_event){mark, version};
}

/* What a filter hid before is not recorded, so of its classes no departure is sent. */
static int64_t find_loss(const struct live_judgement *judgement, const struct live_listener *listener,
                         const struct live_sight *sight)
{
    const struct filters *filters =
        live_access_filters(listener->audience->access, listener->is_administrator);
    return sight->rules && !filters_cover(filters, judgement->change->class) ? live_sight_lost(sight)
                                                                             : LIVE_SIGHT_KEPT;
}

/* What it sees has changed, or it is what it has lost. */
static void judge_mark(void *context, struct live_mark *mark)
{
    struct live_judgement *judgement = context;
    const struct live_listener *listener = (const struct live_listener *)(const void *)mark->owner;
    const struct document *document = judgement->loaded[judgement->change->place].document;
    struct view view = {0};
    if (judgement->change->serial && judgement->change->serial != listener->serial)
        return;
    if (is_everybodys(judgement, listener)) {
        int64_t version = judgement->change->version;
        add_event(judgement, mark, version ? version : document->header.version);
        return;
    }
    if (!is_trusted(listener))
        return;
    bool may = may_read(judgement, listener, &document, &view);
    const struct live_sight sight = sight_of(judgement, listener);
    if (!may) {
        int64_t lost = find_loss(judgement, listener, &sight);
        if (lost != LIVE_SIGHT_KEPT)
            add_event(judgement, mark, lost);
        return;
    }
    view_take(&view, document, judgement->ruled->scratch);
    if (is_visible(judgement, document, &view) || (sight.rules && live_sight_has_moved(&sight)))
        add_event(judgement, mark, view_version(&view, document));
}

/* A caller that has joined or left a team may now see other documents: those that depend on it. */
static void judge_team(struct live_judgement *judgement)
{
    struct live_ruled *ruled = judgement->ruled;
    struct live_audience *audience = ruled->audience;
    const struct rules *rules = live_access_rules(audience->access, false);
    struct bytes class;
    if (!rules || !rules_sight_is_team(rules, judgement->change->class) ||
        !judgement->loaded[judgement->change->place].principal_count)
        return;
    for (struct live_listener *one = audience->listeners; one; one = one->next) {
        size_t position = 0;
        if (!one->is_ruled || !one->caller || !is_trusted(one))
            continue;
        const struct live_sight sight = sight_of(judgement, one);
        while ((class = rules_sight_next(rules, &position)).data)
            if (live_index_has_class(&one->feed, class) && live_sight_has_other_team(&sight, class))
                live_index_match_class(audience->ruled_index, &one->feed, class);
    }
}

/* True: it is settled.  Each team that is needed takes another query. */
static bool judge(struct live_judgement *judgement)
{
    struct live_ruled *ruled = judgement->ruled;
    struct held_change *change = judgement->change;
    struct live_index *index = ruled->audience->ruled_index;
    if (!judgement->loaded[change->place].document)
        return false;
    live_index_each_mark(index, live_key_of_document(&ruled->key, change->class, change->id), judge_mark,
                         judgement);
    if (!change->serial)
        live_index_each_mark(index, live_key_of_class(&ruled->key, change->class), judge_mark, judgement);
    if (judgement->needed.class.data && change->team_count < TEAMS_MOST) {
        struct document_name *team = &change->teams[change->team_count++];
        team->class = copy(ruled->arena, judgement->needed.class);
        team->id = copy(ruled->arena, judgement->needed.id);
        return false;
    }
    if (judgement->is_trial)
        return false;
    ruled->is_too_much |= judgement->needed.class.data ||
                          judgement->loaded[change->place].principal_count > LIVE_PRINCIPALS_MOST;
    for (size_t i = 0; i < judgement->event_count; i++)
        live_index_match_mark(index, judgement->events[i].mark, judgement->events[i].version);
    if (!change->serial)
        judge_team(judgement);
    return true;
}

static void judge_batch(struct live_ruled *ruled, const struct live_loaded *loaded)
{
    size_t left = 0;
    for (size_t i = 0; i < ruled->batch_count; i++) {
        struct live_judgement judgement = {
            .ruled = ruled, .loaded = loaded, .change = ruled->batch[i], .is_trial = left > 0};
        if (judge(&judgement))
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
    ruled->drain(ruled->context);
    if (ruled->losses == ruled->asked && live_access_is_certain(ruled->audience->access) &&
        live_snapshot_take(snapshot, result, ruled->scratch, ruled->names, ruled->name_count, loaded) &&
        live_follow_confirm(ruled->audience, live_snapshot_followed(snapshot)))
        judge_batch(ruled, loaded);
    if (ruled->is_too_much) { /* what callers have lost is not known */
        ruled->is_too_much = false;
        live_ruled_lose(ruled);
    }
    arena_reset(ruled->scratch);
    live_listener_flush_all(ruled->audience);
}
