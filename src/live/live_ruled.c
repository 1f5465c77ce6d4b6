/* live_ruled: two queues, in the order of arrival: changes are taken from the front one, the other is filled.
 * Those taken form a batch, which is settled in order; what needs a team, and all behind it, stays in it for
 * a second query. */
#include "live/live_ruled.h"

#include <stdlib.h>

#include "base/log.h"
#include "live/live_accounts.h"
#include "live/live_audience_private.h"
#include "live/live_key.h"
#include "live/live_listener.h"
#include "model/view.h"

enum {
    HELD_MOST = 2000, /* changes; more are not held */
    BATCH_MOST = 32,  /* documents in one query, each perhaps with a team */
    NAMES_MOST = 2 * BATCH_MOST,
};

struct held_change {
    struct bytes class, id;
    uint64_t serial;           /* of the only listener that it is judged for; 0: for all */
    int64_t version;           /* 0: unknown; then `since` decides what is new */
    int64_t since;             /* all transactions below it are known */
    struct document_name team; /* data NULL: none is known to be needed */
    size_t place, team_place;  /* in the query */
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
    uint64_t losses;     /* moves when what is held is discarded */
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

static void clear(struct live_ruled *ruled)
{
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
}

void live_ruled_add(struct live_ruled *ruled, struct bytes class, struct bytes id, int64_t version)
{
    const struct live_index *index = ruled->audience->ruled_index;
    if (!ruled->audience->ruled_count)
        return;
    if (rules_is_reserved(class))
        live_accounts_doubt(ruled->audience, class, id);
    if (live_index_has(index, live_key_of_class(&ruled->key, class)) ||
        live_index_has(index, live_key_of_document(&ruled->key, class, id)))
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
           live_access_is_certain(ruled->audience->access);
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

/* A team precedes its document, so that the first document is loaded whatever the sizes. */
void live_ruled_query(struct live_ruled *ruled, struct pg_params *params)
{
    if (!ruled->batch_count)
        take_batch(ruled);
    ruled->name_count = 0;
    for (size_t i = 0; i < ruled->batch_count; i++) {
        struct held_change *change = ruled->batch[i];
        if (change->team.class.data) {
            change->team_place = ruled->name_count;
            ruled->names[ruled->name_count++] = change->team;
        }
        change->place = ruled->name_count;
        ruled->names[ruled->name_count++] = (struct document_name){change->class, change->id};
    }
    live_snapshot_query(params, ruled->names, ruled->name_count);
}

/* --- judging --- */

struct live_judgement {
    struct live_ruled *ruled;
    const struct live_loaded *loaded; /* by place */
    struct held_change *change;
    bool is_trial;               /* an earlier change is not settled: only finds the team that is needed */
    struct document_name needed; /* a team that is not loaded */
};

static enum fault load_team(void *context, struct bytes class, struct bytes id,
                            const struct document **document_r)
{
    struct live_judgement *judgement = context;
    const struct held_change *change = judgement->change;
    if (change->team.class.data && bytes_equal(change->team.class, class) &&
        bytes_equal(change->team.id, id) && judgement->loaded[change->team_place].document) {
        *document_r = judgement->loaded[change->team_place].document;
        return FAULT_NONE;
    }
    judgement->needed = (struct document_name){class, id};
    return FAULT_STALE;
}

/* Who is not trusted reads everything once it is. */
static bool is_trusted(const struct live_listener *listener)
{
    return listener->trust == LIVE_TRUSTED && !(listener->caller && live_caller_is_over(listener->caller));
}

static bool may_read(struct live_judgement *judgement, const struct live_listener *listener,
                     struct rules_view *view_r)
{
    static const struct rules_caller nobody = {0};
    struct rules_question question = {
        .rules = live_access_rules(listener->audience->access, listener->is_administrator),
        .caller = listener->caller ? live_caller_rules(listener->caller) : &nobody,
        .load = load_team,
        .context = judgement,
        .arena = judgement->ruled->scratch};
    return question.rules &&
           rules_may_read(&question, judgement->loaded[judgement->change->place].document, view_r);
}

/* Has the change reached what the caller sees of the document? */
static bool is_visible(const struct live_judgement *judgement, const struct view *view)
{
    const struct held_change *change = judgement->change;
    const struct live_loaded *loaded = &judgement->loaded[change->place];
    if (view_is_whole(view))
        return true;
    if (change->version)
        return view->version >= change->version;
    for (size_t i = 0; i < loaded->document->item_count; i++)
        if (loaded->writers[i] - (uint32_t)change->since < UINT32_C(1) << 31 &&
            view_shows(view, loaded->document->items[i].iclass))
            return true;
    return false;
}

static void judge_mark(void *context, struct live_mark *mark)
{
    struct live_judgement *judgement = context;
    const struct live_listener *listener = (const struct live_listener *)(const void *)mark->owner;
    const struct document *document = judgement->loaded[judgement->change->place].document;
    struct view view = {0};
    if (judgement->change->serial && judgement->change->serial != listener->serial)
        return;
    if (!is_trusted(listener) || !may_read(judgement, listener, &view.rules) || judgement->is_trial)
        return;
    view_take(&view, document, judgement->ruled->scratch);
    if (is_visible(judgement, &view))
        live_index_match_mark(judgement->ruled->audience->ruled_index, mark, view_version(&view, document));
}

/* True: it is settled.  A team that was loaded and is no longer the one needed: the document has changed
 * since, so another change of it is held, or will be. */
static bool judge(struct live_judgement *judgement)
{
    struct live_ruled *ruled = judgement->ruled;
    struct held_change *change = judgement->change;
    const struct live_index *index = ruled->audience->ruled_index;
    if (!judgement->loaded[change->place].document)
        return false;
    live_index_each_mark(index, live_key_of_document(&ruled->key, change->class, change->id), judge_mark,
                         judgement);
    if (!change->serial)
        live_index_each_mark(index, live_key_of_class(&ruled->key, change->class), judge_mark, judgement);
    if (judgement->needed.class.data && !change->team.class.data) {
        change->team.class = copy(ruled->arena, judgement->needed.class);
        change->team.id = copy(ruled->arena, judgement->needed.id);
        return false;
    }
    return !judgement->is_trial;
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
    ruled->batch_count = left;
}

/* A revocation that was committed before what was loaded has been received by then, and nothing is judged by
 * what it revokes. */
void live_ruled_take(struct live_ruled *ruled, struct live_snapshot *snapshot, const struct pg_result *result)
{
    struct live_loaded loaded[NAMES_MOST];
    uint64_t losses = ruled->losses;
    ruled->drain(ruled->context);
    if (ruled->losses == losses && live_access_is_certain(ruled->audience->access) &&
        live_snapshot_take(snapshot, result, ruled->scratch, ruled->names, ruled->name_count, loaded))
        judge_batch(ruled, loaded);
    arena_reset(ruled->scratch);
    live_listener_flush_all(ruled->audience);
}
