/* live_look: which of some definitions have changed since a horizon: for a listener that begins or comes
 * again, and for all when something was missed.
 *
 * A horizon is what the collections have it to be (doc/collections.md): all transactions below it had ended
 * in the snapshot that gave it.  A document bears the transaction that wrote it last, in its column xmin;
 * a member of a collection in xid.  So who knows everything below a horizon misses only what these two name,
 * and what happened to a collection as a whole, which its own row's xmin tells. */
#include "serve/live_private.h"

#include <inttypes.h>

#include "base/log.h"

enum { GAP_AT_ONCE = 1000 };
enum { KIND, PLACE, VERSION };         /* columns of LOOK, then those of live_read_horizon */
enum { NO_ROW = -1, OTHER_KEYS = -2 }; /* in place of a version */

struct bytes live_number_text(struct arena *arena, int64_t number)
{
    return bytes_of(arena_printf(arena, "%" PRId64, number));
}

/* --- which of some definitions have changed since a horizon --- */

/* `since` 0: only whether the collections are declared. */
static enum fault ask_look(struct live_space *space, const struct definition *definitions, size_t count,
                           int64_t since)
{
    struct arena *arena = space->arena;
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
    return pg_send(space->pg, &live_statements[LIVE_STATEMENT_LOOK], &params);
}

/* The version to be told of a row; false: it has not changed. */
static bool judge(const struct pg_result *result, int row, const struct live_horizon *since,
                  const struct live_horizon *known, int64_t *version_r)
{
    *version_r = pg_get_i64(result, row, VERSION);
    if (pg_get_i64(result, row, KIND) == LIVE_ROW_OF_ALL)
        return false;
    if (*version_r != NO_ROW || pg_get_i64(result, row, KIND) == LIVE_ROW_OF_COLLECTION) {
        if (*version_r < 0) /* the collection is not declared any more */
            *version_r = 0;
        return true;
    }
    *version_r = known->floor; /* it is no more, or never was: has it been purged since? */
    return known->floor != since->floor;
}

/* --- a listener that begins, or comes again --- */

/* Is the id that it brings, if any, one of ours? */
static bool read_last(struct live_listener *listener)
{
    struct live_space *space = listener->space;
    struct live_opening *opening = listener->opening;
    return !opening->question.last.size ||
           live_token_read(opening->arena, bytes_of(space->secret), bytes_of(space->code),
                           opening->question.last, &opening->last);
}

static bool open_is_due(struct live_space *space)
{
    while (space->first_waiting && !read_last(space->first_waiting))
        live_listener_refuse(live_space_take_waiting(space), FAULT_AARG, "last",
                             "An id that this namespace has given is expected.");
    return space->first_waiting;
}

static enum fault open_ask(struct live_space *space)
{
    const struct live_listener *listener = space->opening = live_space_take_waiting(space);
    const struct live_opening *opening = listener->opening;
    return ask_look(space, opening->question.definitions, opening->question.count, opening->last.horizon);
}

/* What was wrong with it may be wrong with this one alone: only it is refused. */
void live_open_failed(struct live_space *space, enum fault fault)
{
    if (space->opening) /* nobody tries again in its place */
        live_listener_refuse(space->opening, fault == FAULT_STALE ? FAULT_XTIME : fault, NULL, NULL);
    space->opening = NULL;
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

static void touch_links(struct live_listener *listener, const struct pg_result *result,
                        const struct live_horizon *known)
{
    const struct live_opening *opening = listener->opening;
    struct live_index *index = listener->space->index;
    int64_t version;
    for (int row = 0; row < pg_rows(result); row++)
        if (judge(result, row, &opening->last, known, &version))
            live_index_touch_link(index, &listener->ears.links[pg_get_i64(result, row, PLACE)], version);
    for (size_t i = 0; i < opening->question.count; i++) /* of whole classes nothing is remembered */
        if (!opening->question.definitions[i].id.data && !opening->question.definitions[i].collection.data)
            live_index_touch_link(index, &listener->ears.links[i], 0);
}

static void open_take(struct live_space *space)
{
    struct live_listener *listener = space->opening;
    struct live_horizon known;
    int64_t next;
    space->opening = NULL;
    if (!listener)
        return;
    if (!live_read_horizon(space->result, &known, &next)) {
        live_listener_refuse(listener, FAULT_XDATABASE, NULL, NULL);
        return;
    }
    if (refuse_undeclared(listener, space->result))
        return;
    const struct live_horizon *last = &listener->opening->last;
    bool is_same_life = last->horizon && last->life == known.life;
    if (is_same_life && last->horizon > next) {
        live_listener_refuse(listener, FAULT_AARG, "last", "An id that this server has given is expected.");
        return;
    }
    bool is_reset = last->horizon && !live_is_within_reach(last, &known, next);
    if (last->horizon && !is_reset)
        touch_links(listener, space->result, &known);
    if (!space->known.horizon || space->known.life != known.life) {
        if (!space->known.horizon)
            space->known = known;
        else
            live_space_miss(space);
    }
    live_listener_open(listener, &known, is_reset);
}

const struct live_asking live_asks_open = {open_is_due, open_ask, open_take, live_open_failed};

/* --- a gap: something was missed, so the database is asked about everything that is listened to --- */

static void reset_all(struct live_space *space)
{
    log_info("live database=%s: what changed is not known, all are told so", space->database);
    for (struct live_listener *listener = space->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN) {
            listener->must_reset = true;
            live_listener_flush(listener);
        }
}

struct gathering {
    struct live_space *space;
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
    struct live_space *space = gathering->space;
    struct arena *arena = space->gap_arena;
    space->gap[gathering->count++] = (struct definition){
        .class = copy(arena, definition->class),
        .id = copy(arena, definition->id),
        .collection = copy(arena, definition->collection),
        .value = copy(arena, definition->value),
        .value_count = definition->value_count,
    };
}

static void begin_gap(struct live_space *space)
{
    struct gathering gathering = {.space = space};
    space->wants_gap = false;
    space->round = ROUND_RESTS;
    space->missed = ear_missed(space->live->ear, space->space); /* before the question */
    if (!space->gap_arena)
        space->gap_arena = arena_create("live gap");
    arena_reset(space->gap_arena);
    live_index_each(space->index, count_definition, &gathering);
    space->gap = ARENA_ARRAY(space->gap_arena, struct definition, gathering.count + 1);
    gathering.count = 0;
    live_index_each(space->index, gather_definition, &gathering);
    space->gap_count = gathering.count;
    space->gap_next = 0;
    space->gap_is_first = true;
}

static bool gap_is_due(struct live_space *space)
{
    if (!space->known.horizon)
        space->wants_gap = false; /* nobody is open, so nobody has missed anything */
    return space->wants_gap || space->gap;
}

static size_t gap_batch(const struct live_space *space)
{
    size_t left = space->gap_count - space->gap_next;
    return left < GAP_AT_ONCE ? left : GAP_AT_ONCE;
}

static enum fault gap_ask(struct live_space *space)
{
    if (space->wants_gap)
        begin_gap(space);
    return ask_look(space, space->gap + space->gap_next, gap_batch(space), space->known.horizon);
}

static void touch_gap(struct live_space *space, const struct live_horizon *known)
{
    struct builder *key = &space->live->key;
    const struct definition *definitions = space->gap + space->gap_next;
    int64_t version;
    for (int row = 0; row < pg_rows(space->result); row++)
        if (judge(space->result, row, &space->known, known, &version))
            live_index_touch(space->index,
                             live_key_of_definition(key, &definitions[pg_get_i64(space->result, row, PLACE)]),
                             version);
    for (size_t i = 0; i < gap_batch(space); i++)
        if (!definitions[i].id.data && !definitions[i].collection.data)
            live_index_touch(space->index, live_key_of_class(key, definitions[i].class), 0);
}

static void end_gap(struct live_space *space)
{
    space->gap = NULL;
    space->gap_count = 0;
    arena_reset(space->gap_arena);
}

static void gap_take(struct live_space *space)
{
    struct live_horizon known;
    int64_t next;
    if (!live_read_horizon(space->result, &known, &next))
        return; /* it is asked again */
    if (!live_is_within_reach(&space->known, &known, next)) {
        end_gap(space);
        reset_all(space);
        live_claim(space, &known);
        return;
    }
    if (space->gap_is_first)
        space->gap_known = known; /* the lowest of all */
    space->gap_is_first = false;
    touch_gap(space, &known);
    live_flush(space);
    space->gap_next += gap_batch(space);
    if (space->gap_next < space->gap_count)
        return;
    end_gap(space);
    if (!space->wants_gap)
        live_claim(space, &space->gap_known);
}

/* Who looks at everything has missed nothing of what was before: a round gives a new horizon. */
static void gap_failed(struct live_space *space, enum fault fault)
{
    log_warning("live database=%s: %s, asking what has changed", space->database, fault_code(fault));
    end_gap(space);
    reset_all(space);
}

const struct live_asking live_asks_gap = {gap_is_due, gap_ask, gap_take, gap_failed};
