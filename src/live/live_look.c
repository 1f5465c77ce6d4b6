/* live_look: finds which definitions have changed since a horizon: for a listener that begins or resumes, and
 * for all listeners after a loss.
 *
 * A horizon is defined as for collections (collections.md): all transactions below it had ended in the
 * snapshot that returned it.  The column xmin of a document holds the transaction that wrote it last; for a
 * member of a collection, xid does.  So a client that has everything below a horizon misses only the changes
 * that these two name, and changes to a collection as a whole, which the xmin of its own row shows. */
#include "live/live_private.h"

#include <inttypes.h>

#include "base/log.h"

enum { GAP_AT_ONCE = 1000 };
enum { KIND, PLACE, VERSION };         /* columns of LOOK, followed by those of live_read_horizon */
enum { NO_ROW = -1, OTHER_KEYS = -2 }; /* instead of a version */

struct bytes live_number_text(struct arena *arena, int64_t number)
{
    return bytes_of(arena_printf(arena, "%" PRId64, number));
}

/* --- which of some definitions have changed since a horizon --- */

/* `since` 0: checks only whether the collections are declared. */
static enum fault ask_look(struct live_namespace *ns, const struct definition *definitions, size_t count,
                           int64_t since)
{
    struct arena *arena = ns->arena;
    struct bytes *texts[5];
    int64_t *numbers[3];
    size_t documents = 0, members = 0;
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        texts[i] = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < COUNT_OF(numbers); i++)
        numbers[i] = ARENA_ARRAY(arena, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        const struct definition *definition = &definitions[i];
        if (definition->collection.data) {
            texts[2][members] = definition->class;
            texts[3][members] = definition->collection;
            texts[4][members] = definition->value;
            numbers[1][members] = definition->value_count;
            numbers[2][members++] = (int64_t)i;
        } else if (definition->id.data && since) {
            texts[0][documents] = definition->class;
            texts[1][documents] = definition->id;
            numbers[0][documents++] = (int64_t)i;
        }
    }
    struct pg_params params;
    pg_params_start(&params, arena);
    pg_add_text_array(&params, texts[0], documents);
    pg_add_text_array(&params, texts[1], documents);
    pg_add_i64_array(&params, numbers[0], documents);
    pg_add_text_array(&params, texts[2], members);
    pg_add_text_array(&params, texts[3], members);
    pg_add_text_array(&params, texts[4], members);
    pg_add_i64_array(&params, numbers[1], members);
    pg_add_i64(&params, since);
    pg_add_i64_array(&params, numbers[2], members);
    pg_add_text(&params, live_number_text(arena, since ? since : INT64_MAX));
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_LOOK], &params);
}

/* The version to send for a row; false: unchanged. */
static bool judge(const struct pg_result *result, int row, const struct live_horizon *since,
                  const struct live_horizon *known, int64_t *version_r)
{
    *version_r = pg_get_i64(result, row, VERSION);
    if (pg_get_i64(result, row, KIND) == LIVE_ROW_OF_ALL)
        return false;
    if (*version_r != NO_ROW || pg_get_i64(result, row, KIND) == LIVE_ROW_OF_COLLECTION) {
        if (*version_r < 0) /* the collection is no longer declared */
            *version_r = 0;
        return true;
    }
    *version_r = known->floor; /* it does not exist: may it have been purged since? */
    return known->floor != since->floor;
}

/* --- a listener that begins or resumes --- */

/* Is its last id, if any, one that this server made? */
static bool read_last(struct live_listener *listener)
{
    struct live_namespace *ns = listener->ns;
    struct live_opening *opening = listener->opening;
    return !opening->question.last.size ||
           live_token_read(opening->arena, bytes_of(ns->secret), bytes_of(ns->code), opening->question.last,
                           &opening->last);
}

static bool open_is_due(struct live_namespace *ns)
{
    while (ns->first_waiting && !read_last(ns->first_waiting))
        live_listener_refuse(live_namespace_take_waiting(ns), FAULT_AARG, "last",
                             "An id that this namespace has given is expected.");
    return ns->first_waiting;
}

static enum fault open_ask(struct live_namespace *ns)
{
    const struct live_listener *listener = ns->opening = live_namespace_take_waiting(ns);
    const struct live_opening *opening = listener->opening;
    return ask_look(ns, opening->question.definitions, opening->question.count, opening->last.horizon);
}

/* The cause may lie in this listener alone, so only this one is refused. */
void live_open_failed(struct live_namespace *ns, enum fault fault)
{
    if (ns->opening) /* unless it has disconnected */
        live_listener_refuse(ns->opening, fault == FAULT_STALE ? FAULT_XTIME : fault, NULL, NULL);
    ns->opening = NULL;
}

static bool refuse_undeclared(struct live_listener *listener, const struct pg_result *result)
{
    for (int row = 0; row < pg_rows(result); row++) {
        int64_t version = pg_get_i64(result, row, VERSION);
        if (pg_get_i64(result, row, KIND) != LIVE_ROW_OF_COLLECTION || version >= 0)
            continue;
        const struct definition *definition =
            &listener->opening->question.definitions[pg_get_i64(result, row, PLACE)];
        struct bytes text = definition->text;
        const char *argument = arena_copy(listener->opening->arena, text.data, text.size);
        live_listener_refuse(listener, version == NO_ROW ? FAULT_NCOLLECTION : FAULT_AARG, argument,
                             version == NO_ROW ? NULL : "The collection has another number of properties.");
        return true;
    }
    return false;
}

static void match_links(struct live_listener *listener, const struct pg_result *result,
                        const struct live_horizon *known)
{
    const struct live_opening *opening = listener->opening;
    struct live_index *index = listener->ns->index;
    int64_t version;
    for (int row = 0; row < pg_rows(result); row++)
        if (judge(result, row, &opening->last, known, &version))
            live_index_match_link(index, &listener->feed.links[pg_get_i64(result, row, PLACE)], version);
    for (size_t i = 0; i < opening->question.count; i++) /* changes of whole classes are not recorded */
        if (!opening->question.definitions[i].id.data && !opening->question.definitions[i].collection.data)
            live_index_match_link(index, &listener->feed.links[i], 0);
}

static void open_take(struct live_namespace *ns)
{
    struct live_listener *listener = ns->opening;
    struct live_horizon known;
    int64_t next;
    ns->opening = NULL;
    if (!listener)
        return;
    if (!live_read_horizon(ns->result, &known, &next)) {
        live_listener_refuse(listener, FAULT_XDATABASE, NULL, NULL);
        return;
    }
    if (refuse_undeclared(listener, ns->result))
        return;
    const struct live_horizon *last = &listener->opening->last;
    bool is_same_incarnation = last->horizon && last->life == known.life;
    if (is_same_incarnation && last->horizon > next) {
        live_listener_refuse(listener, FAULT_AARG, "last", "An id that this server has given is expected.");
        return;
    }
    bool is_reset = last->horizon && !live_is_within_reach(last, &known, next);
    if (last->horizon && !is_reset)
        match_links(listener, ns->result, &known);
    if (!ns->known.horizon || ns->known.life != known.life) {
        if (!ns->known.horizon)
            ns->known = known;
        else
            live_namespace_miss(ns);
    }
    live_listener_open(listener, &known, is_reset);
}

const struct live_asking live_asks_open = {open_is_due, open_ask, open_take, live_open_failed};

/* --- a gap: changes may have been missed, so all definitions are queried --- */

static void reset_all(struct live_namespace *ns)
{
    log_info("live database=%s: changes unknown, sending reset to all listeners", ns->database);
    for (struct live_listener *listener = ns->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN) {
            listener->must_reset = true;
            live_listener_flush(listener);
        }
}

struct gathering {
    struct live_namespace *ns;
    size_t count;
};

static void count_definition(void *context, const struct definition *definition)
{
    struct gathering *gathering = context;
    (void)definition;
    gathering->count++;
}

static struct bytes copy(struct arena *arena, struct bytes text)
{
    return text.data ? (struct bytes){arena_copy(arena, text.data, text.size), text.size} : NO_BYTES;
}

static void gather_definition(void *context, const struct definition *definition)
{
    struct gathering *gathering = context;
    struct live_namespace *ns = gathering->ns;
    struct arena *arena = ns->gap_arena;
    ns->gap[gathering->count++] = (struct definition){
        .class = copy(arena, definition->class),
        .id = copy(arena, definition->id),
        .collection = copy(arena, definition->collection),
        .value = copy(arena, definition->value),
        .value_count = definition->value_count,
    };
}

static void begin_gap(struct live_namespace *ns)
{
    struct gathering gathering = {.ns = ns};
    ns->wants_gap = false;
    ns->round = ROUND_RESTS;
    ns->missed = subscriber_missed(ns->live->subscriber, ns->ns); /* before the query */
    if (!ns->gap_arena)
        ns->gap_arena = arena_create("live gap");
    arena_reset(ns->gap_arena);
    live_index_each(ns->index, count_definition, &gathering);
    ns->gap = ARENA_ARRAY(ns->gap_arena, struct definition, gathering.count + 1);
    gathering.count = 0;
    live_index_each(ns->index, gather_definition, &gathering);
    ns->gap_count = gathering.count;
    ns->gap_next = 0;
    ns->gap_is_first = true;
}

static bool gap_is_due(struct live_namespace *ns)
{
    if (!ns->known.horizon)
        ns->wants_gap = false; /* no listener is open, so none has missed anything */
    return ns->wants_gap || ns->gap;
}

static size_t gap_batch(const struct live_namespace *ns)
{
    size_t left = ns->gap_count - ns->gap_next;
    return left < GAP_AT_ONCE ? left : GAP_AT_ONCE;
}

static enum fault gap_ask(struct live_namespace *ns)
{
    if (ns->wants_gap)
        begin_gap(ns);
    return ask_look(ns, ns->gap + ns->gap_next, gap_batch(ns), ns->known.horizon);
}

static void match_gap(struct live_namespace *ns, const struct live_horizon *known)
{
    struct builder *key = &ns->live->key;
    const struct definition *definitions = ns->gap + ns->gap_next;
    int64_t version;
    for (int row = 0; row < pg_rows(ns->result); row++)
        if (judge(ns->result, row, &ns->known, known, &version))
            live_index_match(ns->index,
                             live_key_of_definition(key, &definitions[pg_get_i64(ns->result, row, PLACE)]),
                             version);
    for (size_t i = 0; i < gap_batch(ns); i++)
        if (!definitions[i].id.data && !definitions[i].collection.data)
            live_index_match(ns->index, live_key_of_class(key, definitions[i].class), 0);
}

static void end_gap(struct live_namespace *ns)
{
    ns->gap = NULL;
    ns->gap_count = 0;
    arena_reset(ns->gap_arena);
}

static void gap_take(struct live_namespace *ns)
{
    struct live_horizon known;
    int64_t next;
    if (!live_read_horizon(ns->result, &known, &next))
        return; /* it is queried again */
    if (!live_is_within_reach(&ns->known, &known, next)) {
        end_gap(ns);
        reset_all(ns);
        live_advance(ns, &known);
        return;
    }
    if (ns->gap_is_first)
        ns->gap_known = known; /* the lowest of all */
    ns->gap_is_first = false;
    match_gap(ns, &known);
    live_flush(ns);
    ns->gap_next += gap_batch(ns);
    if (ns->gap_next < ns->gap_count)
        return;
    end_gap(ns);
    if (!ns->wants_gap)
        live_advance(ns, &ns->gap_known);
}

/* After a reset clients read everything, so earlier losses no longer matter; a round sets a new horizon. */
static void gap_failed(struct live_namespace *ns, enum fault fault)
{
    log_warning("live database=%s: %s, asking what has changed", ns->database, fault_code(fault));
    end_gap(ns);
    reset_all(ns);
}

const struct live_asking live_asks_gap = {gap_is_due, gap_ask, gap_take, gap_failed};
