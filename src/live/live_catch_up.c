/* live_catch_up: the query LOOK, for a listener and for a gap. */
#include "live/live_catch_up.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "live/access/live_follow.h"
#include "live/access/live_judge.h"
#include "live/topics/live_key.h"
#include "live/live_listener.h"
#include "live/live_statement.h"
#include "segment/slots.h"

enum { GAP_AT_ONCE = 1000 };
enum { KIND, PLACE, VERSION };         /* columns of LOOK, followed by those of live_horizon_read */
enum { NO_ROW = -1, OTHER_KEYS = -2 }; /* instead of a version */

struct live_catch_up {
    struct segment *segment;
    struct subscriber *subscriber;
    struct live_audience *audience;
    struct live_ruled *ruled;
    const char *database;
    live_gap_noted *noted;
    void *context;
    bool wants_gap;
    uint32_t missed; /* losses handled so far */
    struct arena *arena;
    struct definition *gap; /* to be queried; NULL: no gap is being closed */
    size_t gap_count, gap_next;
    struct live_horizon gap_known;
    bool gap_is_first;
    struct builder key;
};

struct live_catch_up *live_catch_up_create(struct segment *segment, struct subscriber *subscriber,
                                           struct live_audience *audience, struct live_ruled *ruled,
                                           const char *database, live_gap_noted *noted, void *context)
{
    struct live_catch_up *catch_up = memory_zeroed(1, sizeof *catch_up, "live");
    *catch_up = (struct live_catch_up){.segment = segment,
                                       .subscriber = subscriber,
                                       .audience = audience,
                                       .ruled = ruled,
                                       .database = database,
                                       .noted = noted,
                                       .context = context,
                                       .arena = arena_create("live gap")};
    return catch_up;
}

void live_catch_up_destroy(struct live_catch_up *catch_up)
{
    arena_destroy(catch_up->arena);
    builder_free(&catch_up->key);
    free(catch_up);
}

/* --- losses --- */

static uint32_t count_missed(const struct live_catch_up *catch_up)
{
    return feed_subscriber_missed(catch_up->subscriber, live_audience_number(catch_up->audience));
}

void live_catch_up_note_gap(struct live_catch_up *catch_up)
{
    catch_up->wants_gap = true;
    if (catch_up->noted)
        catch_up->noted(catch_up->context);
}

bool live_catch_up_has_gap(const struct live_catch_up *catch_up)
{
    return catch_up->wants_gap || catch_up->gap;
}

bool live_catch_up_has_losses(const struct live_catch_up *catch_up)
{
    return count_missed(catch_up) != catch_up->missed;
}

void live_catch_up_check_losses(struct live_catch_up *catch_up)
{
    if (!live_catch_up_has_losses(catch_up))
        return;
    catch_up->missed = count_missed(catch_up);
    live_catch_up_note_gap(catch_up);
}

void live_catch_up_forgive(struct live_catch_up *catch_up)
{
    catch_up->missed = count_missed(catch_up);
    catch_up->wants_gap = false;
}

void live_catch_up_begin(struct live_catch_up *catch_up)
{
    slots_move_all(catch_up->segment);
    if (live_audience_known(catch_up->audience)->horizon)
        live_catch_up_note_gap(catch_up);
}

/* --- which of some definitions have changed since a horizon --- */

/* `listener`: that asks; NULL: a gap.  `since` 0: checks only whether the collections are declared. */
static void query_look(struct pg_params *params, const struct definition *definitions, size_t count,
                       int64_t since, const struct live_listener *listener)
{
    struct arena *arena = params->arena;
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
    PG_PARAMS_ADD(params, PG_TEXTS(texts[0], documents), PG_TEXTS(texts[1], documents),
                  PG_I64S(numbers[0], documents), PG_TEXTS(texts[2], members), PG_TEXTS(texts[3], members),
                  PG_TEXTS(texts[4], members), PG_I64S(numbers[1], members), PG_I64(since),
                  PG_I64S(numbers[2], members),
                  PG_TEXT(bytes_of(arena_printf(arena, "%" PRId64, since ? since : INT64_MAX))));
    live_follow_add_teams(listener, params);
}

/* The version to send for a row; false: unchanged. */
static bool live_catch_up_judge(const struct pg_result *result, int row, const struct live_horizon *since,
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

void live_catch_up_query_listener(struct live_catch_up *catch_up, struct pg_params *params)
{
    const struct live_listener *listener = live_listener_take_waiting(catch_up->audience);
    const struct live_question *question = live_listener_question(listener);
    query_look(params, question->definitions, question->count, live_listener_last(listener)->horizon,
               listener);
}

static bool refuse_undeclared(struct live_listener *listener, const struct pg_result *result)
{
    for (int row = 0; row < pg_rows(result); row++) {
        int64_t version = pg_get_i64(result, row, VERSION);
        if (pg_get_i64(result, row, KIND) != LIVE_ROW_OF_COLLECTION || version >= 0)
            continue;
        const struct definition *definition =
            &live_listener_question(listener)->definitions[pg_get_i64(result, row, PLACE)];
        if (!live_judge_tells(listener, definition->class))
            continue;
        live_listener_refuse(listener, version == NO_ROW ? FAULT_NCOLLECTION : FAULT_AARG, definition->text,
                             version == NO_ROW ? NULL : "The collection has another number of properties.");
        return true;
    }
    return false;
}

/* Under rules, a document that does not exist is none that the caller may read. */
static void look_at(struct live_catch_up *catch_up, struct live_listener *listener,
                    const struct pg_result *result, int row)
{
    size_t place = (size_t)pg_get_i64(result, row, PLACE);
    const struct definition *definition = &live_listener_question(listener)->definitions[place];
    if (pg_get_i64(result, row, VERSION) == NO_ROW)
        return;
    live_ruled_look(catch_up->ruled, listener, definition);
}

static void match_listener(struct live_catch_up *catch_up, struct live_listener *listener,
                           const struct pg_result *result, const struct live_horizon *known)
{
    const struct live_question *question = live_listener_question(listener);
    bool is_ruled = live_listener_is_ruled(listener);
    int64_t version;
    for (int row = 0; row < pg_rows(result); row++)
        if (live_catch_up_judge(result, row, live_listener_last(listener), known, &version)) {
            if (is_ruled && pg_get_i64(result, row, KIND) != LIVE_ROW_OF_COLLECTION)
                look_at(catch_up, listener, result, row);
            else if (!is_ruled)
                live_listener_match(listener, (size_t)pg_get_i64(result, row, PLACE), version);
        }
    if (is_ruled)
        live_listener_await(listener, live_ruled_received(catch_up->ruled));
    for (size_t i = 0; i < question->count;
         i++) /* changes of whole classes are not recorded, nor what was seen */
        if (!question->definitions[i].id.data && (is_ruled || !question->definitions[i].collection.data))
            live_listener_match(listener, i, 0);
}

/* The horizon of the audience is the lowest that any of its listeners has. */
static void adopt(struct live_catch_up *catch_up, const struct live_horizon *known)
{
    const struct live_horizon *present = live_audience_known(catch_up->audience);
    if (!present->horizon)
        live_audience_set_known(catch_up->audience, known);
    else if (present->life != known->life)
        live_catch_up_note_gap(catch_up);
}

/* Another account, other roles or rules, another team, and what it has lost is not known: it reads
 * everything. Documents that were purged are none of a class that it could name, or may have been hidden. */
static bool has_same_sight(struct live_listener *listener, const struct pg_result *result,
                           const struct live_horizon *known)
{
    const struct live_horizon *last = live_listener_last(listener);
    return last->sight == live_follow_sight(listener) &&
           (!live_listener_is_ruled(listener) ||
            (last->floor == known->floor && live_horizon_is_sight_known(result)));
}

bool live_catch_up_take_listener(struct live_catch_up *catch_up, const struct pg_result *result)
{
    struct live_listener *listener = live_listener_take_queried(catch_up->audience);
    struct live_horizon known;
    int64_t next;
    if (!listener)
        return false;
    if (!live_horizon_read(result, &known, &next)) {
        live_listener_refuse(listener, FAULT_XDATABASE, NO_BYTES, NULL);
        return false;
    }
    if (refuse_undeclared(listener, result))
        return false;
    const struct live_horizon *last = live_listener_last(listener);
    bool is_same_incarnation = last->horizon && last->life == known.life;
    if (is_same_incarnation && last->horizon > next) {
        live_listener_refuse(listener, FAULT_AARG, BYTES("last"),
                             "An id that this server has given is expected.");
        return false;
    }
    bool is_reset = last->horizon && (!live_horizon_is_within_reach(last, &known, next) ||
                                      !has_same_sight(listener, result, &known));
    if (last->horizon && !is_reset)
        match_listener(catch_up, listener, result, &known);
    adopt(catch_up, &known);
    live_listener_open(listener, &known, is_reset);
    return true;
}

/* --- a gap: changes may have been missed, so all definitions are queried --- */

static void reset_all(const struct live_catch_up *catch_up)
{
    log_info("live database=%s: changes unknown, sending reset to all listeners", catch_up->database);
    live_listener_reset_all(catch_up->audience);
}

struct gathering {
    struct live_catch_up *catch_up;
    size_t count;
};

static void count_definition(void *context, const struct definition *definition)
{
    struct gathering *gathering = context;
    (void)definition;
    gathering->count++;
}

static struct bytes live_catch_up_copy(struct arena *arena, struct bytes text)
{
    return text.data ? arena_keep(arena, text) : NO_BYTES;
}

static void gather_definition(void *context, const struct definition *definition)
{
    struct gathering *gathering = context;
    struct arena *arena = gathering->catch_up->arena;
    gathering->catch_up->gap[gathering->count++] = (struct definition){
        .class = live_catch_up_copy(arena, definition->class),
        .id = live_catch_up_copy(arena, definition->id),
        .collection = live_catch_up_copy(arena, definition->collection),
        .value = live_catch_up_copy(arena, definition->value),
        .value_count = definition->value_count,
    };
}

static void begin_gap(struct live_catch_up *catch_up)
{
    const struct live_index *index = live_audience_index(catch_up->audience);
    struct gathering gathering = {.catch_up = catch_up};
    catch_up->wants_gap = false;
    catch_up->missed = count_missed(catch_up); /* before the query */
    arena_reset(catch_up->arena);
    live_ruled_lose(catch_up->ruled); /* what they missed cannot be judged afterwards */
    live_index_each(index, count_definition, &gathering);
    catch_up->gap = ARENA_ARRAY(catch_up->arena, struct definition, gathering.count + 1);
    gathering.count = 0;
    live_index_each(index, gather_definition, &gathering);
    catch_up->gap_count = gathering.count;
    catch_up->gap_next = 0;
    catch_up->gap_is_first = true;
}

void live_catch_up_drop(struct live_catch_up *catch_up)
{
    catch_up->gap = NULL;
    catch_up->gap_count = 0;
    arena_reset(catch_up->arena);
}

bool live_catch_up_is_due(struct live_catch_up *catch_up)
{
    if (!live_audience_known(catch_up->audience)->horizon && catch_up->wants_gap) {
        catch_up->wants_gap = false; /* no listener is open, so none has missed anything but its account */
        live_ruled_lose(catch_up->ruled);
    }
    return live_catch_up_has_gap(catch_up);
}

static size_t gap_batch(const struct live_catch_up *catch_up)
{
    size_t left = catch_up->gap_count - catch_up->gap_next;
    return left < GAP_AT_ONCE ? left : GAP_AT_ONCE;
}

bool live_catch_up_query(struct live_catch_up *catch_up, struct pg_params *params)
{
    bool begins = catch_up->wants_gap;
    if (begins)
        begin_gap(catch_up);
    query_look(params, catch_up->gap + catch_up->gap_next, gap_batch(catch_up),
               live_audience_known(catch_up->audience)->horizon, NULL);
    return begins;
}

static void match_gap(struct live_catch_up *catch_up, const struct pg_result *result,
                      const struct live_horizon *known)
{
    struct builder *key = &catch_up->key;
    struct live_index *index = live_audience_index(catch_up->audience);
    const struct live_horizon *since = live_audience_known(catch_up->audience);
    const struct definition *definitions = catch_up->gap + catch_up->gap_next;
    int64_t version;
    for (int row = 0; row < pg_rows(result); row++)
        if (live_catch_up_judge(result, row, since, known, &version))
            live_index_match(index, live_key_of_definition(key, &definitions[pg_get_i64(result, row, PLACE)]),
                             version);
    for (size_t i = 0; i < gap_batch(catch_up); i++)
        if (!definitions[i].id.data && !definitions[i].collection.data)
            live_index_match(index, live_key_of_class(key, definitions[i].class), 0);
}

void live_catch_up_take(struct live_catch_up *catch_up, const struct pg_result *result)
{
    struct live_audience *audience = catch_up->audience;
    struct live_horizon known;
    int64_t next;
    if (!live_horizon_read(result, &known, &next))
        return; /* it is queried again */
    if (!live_horizon_is_within_reach(live_audience_known(audience), &known, next)) {
        live_catch_up_drop(catch_up);
        reset_all(catch_up);
        live_listener_advance_all(audience, &known);
        return;
    }
    if (catch_up->gap_is_first)
        catch_up->gap_known = known; /* the lowest of all */
    catch_up->gap_is_first = false;
    match_gap(catch_up, result, &known);
    live_listener_flush_all(audience);
    catch_up->gap_next += gap_batch(catch_up);
    if (catch_up->gap_next < catch_up->gap_count)
        return;
    live_catch_up_drop(catch_up);
    if (!catch_up->wants_gap)
        live_listener_advance_all(audience, &catch_up->gap_known);
}

void live_catch_up_fail(struct live_catch_up *catch_up, enum fault fault)
{
    log_often(LOG_LEVEL_WARNING, catch_up->database, "live database=%s: %s, querying what has changed",
              catch_up->database, fault_code(fault));
    live_catch_up_drop(catch_up);
    reset_all(catch_up);
}
