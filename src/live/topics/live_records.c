/* live_records: one reading position for each namespace with such listeners. */
#include "live/topics/live_records.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "live/live_audience_private.h"
#include "live/topics/live_index.h"
#include "live/topics/live_key.h"
#include "records/records_changes.h"

/* --- live ranges --- */

/* Definitions of ranges of records: which of them have a key.
 *
 * They are sorted when a key is sought after listeners have come or gone, and then found without looking at
 * the others: those that end before the key, or begin behind it, are passed many at a time. */

struct range {
    const struct definition *definition; /* of the index */
    struct bytes greatest;               /* of its subtree; NO_BYTES: no last one */
};

struct live_ranges {
    struct range *list;
    size_t count, room;
    bool is_stale;
};

/* A key that changed. */
struct range_search {
    struct bytes key;
    void (*see)(void *context, const struct definition *definition);
    void *context;
    size_t steps;
};

static struct live_ranges *live_ranges_create(void)
{
    struct live_ranges *ranges = memory_zeroed(1, sizeof *ranges, "live");
    return ranges;
}

static void live_ranges_destroy(struct live_ranges *ranges)
{
    free(ranges->list);
    free(ranges);
}

/* A listener that names a range has joined the index, or leaves it. */
static void live_ranges_change(struct live_ranges *ranges)
{
    ranges->count = 0; /* they may be gone */
    ranges->is_stale = true;
}

/* --- the list --- */

static void live_ranges_collect(void *context, const struct definition *definition)
{
    struct live_ranges *ranges = context;
    if (definition->kind != DEFINITION_OF_RANGE)
        return;
    if (ranges->count == ranges->room) {
        ranges->room = ranges->room ? 2 * ranges->room : 16;
        ranges->list = reallocarray(ranges->list, ranges->room, sizeof *ranges->list);
        if (!ranges->list)
            log_fatal("out of memory live");
    }
    ranges->list[ranges->count++] = (struct range){definition, definition->to};
}

static int live_ranges_compare(const void *a, const void *b)
{
    const struct range *one = a, *other = b;
    return bytes_compare(one->definition->value, other->definition->value);
}

static struct bytes greater(struct bytes one, struct bytes other)
{
    if (!one.data || !other.data)
        return NO_BYTES;
    return bytes_compare(one, other) > 0 ? one : other;
}

static struct bytes set_greatest(struct range *list, size_t count)
{
    size_t root = count / 2, above = count - root - 1;
    struct bytes greatest = list[root].definition->to;
    if (root)
        greatest = greater(greatest, set_greatest(list, root));
    if (above)
        greatest = greater(greatest, set_greatest(list + root + 1, above));
    return list[root].greatest = greatest;
}

static void sort(struct live_ranges *ranges, const struct live_index *index)
{
    ranges->count = 0;
    live_index_each(index, live_ranges_collect, ranges);
    ranges->is_stale = false;
    if (!ranges->count)
        return;
    qsort(ranges->list, ranges->count, sizeof *ranges->list, live_ranges_compare);
    set_greatest(ranges->list, ranges->count);
}

/* --- keys --- */

static bool is_before(struct bytes to, struct bytes key)
{
    return to.data && bytes_compare(to, key) < 0;
}

static void live_ranges_look(struct range_search *search, const struct range *list, size_t count)
{
    size_t root = count / 2;
    if (!count || is_before(list[root].greatest, search->key))
        return;
    search->steps++;
    live_ranges_look(search, list, root);
    const struct definition *definition = list[root].definition;
    if (bytes_compare(definition->value, search->key) > 0)
        return;
    if (!is_before(definition->to, search->key))
        search->see(search->context, definition);
    live_ranges_look(search, list + root + 1, count - root - 1);
}

/* Calls `see` with each range of the index that has the key; it must not change the index.  Returns how many
 * were looked at. */
static size_t live_ranges_each(struct live_ranges *ranges, const struct live_index *index, struct bytes key,
                               void (*see)(void *context, const struct definition *definition), void *context)
{
    struct range_search search = {key, see, context, 0};
    if (ranges->is_stale) {
        sort(ranges, index);
        search.steps = ranges->count;
    }
    live_ranges_look(&search, ranges->list, ranges->count);
    return search.steps;
}

/* --- live records --- */

enum {
    BUSY_MS = 50,        /* the longest wait for the lock, since all connections wait meanwhile */
    PAUSE_MS = 1000,     /* after which it is tried again */
    READINGS_MOST = 16,  /* of one namespace in one look, each under the lock */
    STEPS_MOST = 100000, /* likewise: comparisons of keys with definitions, a few milliseconds */
    KEPT_BYTES = 64 * 1024
};
_Static_assert((int)LIVE_RECORDS_STEP_MS == (int)RECORDS_CHANGES_STEP_MS, "as all that look at the ring");
_Static_assert((int)DEFINITION_KEY_MOST == (int)RECORDS_KEY_MOST, "a definition has room for each key");

struct live_records {
    struct records *records; /* NULL: none */
    void (*begins)(void *context);
    void *context;
    struct live_audience *first; /* with listeners that name records */
    uint64_t seen;               /* records_changes, when all was read; if nothing is behind */
    bool is_behind;
    int64_t expired_ms, paused_ms; /* monotonic: the last call of records_changes_expire; not before this */
    struct builder read, key;
};

struct live_records *live_records_create(struct records *records, void (*begins)(void *context),
                                         void *context)
{
    struct live_records *all = memory_zeroed(1, sizeof *all, "live");
    *all = (struct live_records){.records = records, .begins = begins, .context = context};
    if (records)
        records_limit_wait(records, BUSY_MS);
    return all;
}

void live_records_destroy(struct live_records *all)
{
    if (!all)
        return;
    assert(!all->first);
    builder_free(&all->read);
    builder_free(&all->key);
    free(all);
}

bool live_records_are_followed(const struct live_records *all)
{
    return all->first != NULL;
}

/* --- listeners --- */

/* Prefixes are found by the sizes that there are. */
static void note_definitions(struct live_listener *listener, int change)
{
    struct live_records_place *place = &listener->audience->records;
    for (size_t i = 0; i < listener->records.count; i++) {
        const struct definition *definition = live_index_definition(&listener->records.marks[i]);
        if (definition->kind == DEFINITION_OF_PREFIX)
            place->prefix_sizes[definition->value.size] += (uint32_t)change;
        else if (definition->kind == DEFINITION_OF_RANGE)
            live_ranges_change(place->ranges);
    }
}

static void pause_reading(struct live_records *all)
{
    all->paused_ms = clock_monotonic_ms() + PAUSE_MS;
}

static bool take_position(struct live_records *all, struct live_audience *audience)
{
    struct live_records_place *place = &audience->records;
    place->is_known =
        clock_monotonic_ms() >= all->paused_ms && records_changes_position(all->records, &place->position);
    if (!place->is_known)
        pause_reading(all);
    return place->is_known;
}

/* The position is taken before the stream begins, so before its client reads anything. */
static void live_records_begin(struct live_audience *audience)
{
    struct live_records *all = audience->all->records;
    struct live_records_place *place = &audience->records;
    bool is_first = !all->first;
    place->prefix_sizes = memory_zeroed(DEFINITION_KEY_MOST + 1, sizeof *place->prefix_sizes, "live");
    place->index = live_index_create();
    place->ranges = live_ranges_create();
    (void)take_position(all, audience);
    place->next = all->first;
    all->first = audience;
    all->is_behind = true;
    if (is_first)
        all->begins(all->context);
}

static void live_records_end(struct live_audience *audience)
{
    struct live_audience **link = &audience->all->records->first;
    while (*link != audience)
        link = &(*link)->records.next;
    *link = audience->records.next;
    live_index_destroy(audience->records.index);
    live_ranges_destroy(audience->records.ranges);
    free(audience->records.prefix_sizes);
    audience->records = (struct live_records_place){0};
}

void live_records_join(struct live_listener *listener, const struct definition *definitions, size_t count)
{
    struct live_audience *audience = listener->audience;
    if (!count)
        return;
    if (!audience->records.count++)
        live_records_begin(audience);
    live_index_add(audience->records.index, &listener->records, definitions, count);
    note_definitions(listener, 1);
}

void live_records_leave(struct live_listener *listener)
{
    struct live_audience *audience = listener->audience;
    if (!listener->records.count)
        return;
    note_definitions(listener, -1);
    live_index_remove(audience->records.index, &listener->records);
    if (!--audience->records.count)
        live_records_end(audience);
}

void live_records_match(struct live_listener *listener)
{
    if (listener->records.count)
        live_index_match_feed(listener->audience->records.index, &listener->records);
}

/* --- rights --- */

static const struct rules_caller *caller_of(const struct live_listener *listener)
{
    static const struct rules_caller nobody;
    return listener->caller ? live_caller_rules(listener->caller) : &nobody;
}

static bool may_read(const struct live_listener *listener, struct bytes key)
{
    if (listener->is_administrator)
        return true;
    return listener->trust == LIVE_TRUSTED && !(listener->caller && live_caller_is_over(listener->caller)) &&
           record_rules_allow(live_access_records(listener->audience->access), caller_of(listener), key,
                              false);
}

/* Could one of the keys be read?  No key of the range or prefix is before its value. */
static bool may_read_some(const struct live_listener *listener, const struct definition *definition)
{
    if (listener->is_administrator)
        return true;
    struct arena *arena = listener->audience->all->arena;
    struct bytes found = record_rules_seek(arena, live_access_records(listener->audience->access),
                                           caller_of(listener), definition->value);
    bool may = found.data && (definition->kind == DEFINITION_OF_PREFIX
                                  ? bytes_has_prefix(found, definition->value)
                                  : !definition->to.data || bytes_compare(found, definition->to) <= 0);
    arena_reset(arena);
    return may;
}

struct bytes live_records_refused(const struct live_listener *listener)
{
    if (listener->records.count && live_access_is_spread(listener->audience->access))
        return listener->records.marks[0].text;
    for (size_t i = 0; i < listener->records.count; i++) {
        const struct live_mark *mark = &listener->records.marks[i];
        const struct definition *definition = live_index_definition(mark);
        bool may = definition->kind == DEFINITION_OF_RECORD ? may_read(listener, definition->value)
                                                            : may_read_some(listener, definition);
        if (!may)
            return mark->text;
    }
    return NO_BYTES;
}

/* --- changes --- */

struct changed_key {
    struct live_index *index;
    struct builder *topic;
    struct bytes key;
    size_t steps; /* definitions that were seen, sizes of prefixes, and ranges */
};

/* A listener that is not open yet reads everything when it is, or is matched then; one whose account is in
 * doubt gets a reset. */
static void see(void *context, struct live_mark *mark)
{
    struct changed_key *changed = context;
    changed->steps++;
    const struct live_listener *listener = live_audience_listener_of_records(mark->owner);
    if (!mark->is_changed && listener->state == LIVE_OPEN && may_read(listener, changed->key))
        live_index_match_mark(changed->index, mark, 0);
}

static void see_all(void *context, const struct definition *definition)
{
    struct changed_key *changed = context;
    live_index_each_mark(changed->index, live_key_of_definition(changed->topic, definition), see, changed);
}

/* The number of its steps. */
static size_t match(struct live_records *all, const struct live_audience *audience, struct bytes key)
{
    const struct live_records_place *place = &audience->records;
    struct changed_key changed = {place->index, &all->key, key, 1};
    struct definition definition = {.kind = DEFINITION_OF_RECORD, .value = key};
    see_all(&changed, &definition);
    definition.kind = DEFINITION_OF_PREFIX;
    for (definition.value.size = 0; definition.value.size <= key.size; definition.value.size++)
        if (place->prefix_sizes[definition.value.size]) {
            changed.steps++;
            see_all(&changed, &definition);
        }
    return changed.steps + live_ranges_each(place->ranges, place->index, key, see_all, &changed);
}

static void match_all(const struct live_audience *audience)
{
    for (struct live_listener *one = audience->listeners; one; one = one->next)
        if (one->state == LIVE_OPEN)
            live_records_match(one);
}

/* --- the ring --- */

/* The position of now, in place of one that could not be had: whatever stands before it may be news. */
static bool find_position(struct live_records *all, struct live_audience *audience)
{
    bool is_found = take_position(all, audience);
    if (is_found)
        match_all(audience);
    return is_found;
}

/* What was read, but for what goes beyond the limit: the position is before it.  False: there is more. */
static bool match_read(struct live_records *all, struct live_audience *audience, size_t *steps)
{
    struct bytes rest = builder_bytes(&all->read), key;
    uint64_t behind;
    while (*steps < STEPS_MOST && records_changes_take(&rest, &key, &behind)) {
        *steps += match(all, audience, key);
        if (*steps >= STEPS_MOST && rest.size)
            audience->records.position = behind;
    }
    return !rest.size;
}

/* False: there is more to be read. */
static bool read_changes(struct live_records *all, struct live_audience *audience)
{
    struct live_records_place *place = &audience->records;
    enum records_changes_end end = RECORDS_CHANGES_MORE;
    size_t steps = 0;
    if (!live_access_is_certain(audience->access) || (!place->is_known && !find_position(all, audience)))
        return false;
    for (int i = 0; i < READINGS_MOST && steps < STEPS_MOST && end == RECORDS_CHANGES_MORE; i++) {
        builder_clear(&all->read, KEPT_BYTES);
        end = records_changes_read(all->records, bytes_of(audience->code),
                                   live_access_is_encrypted(audience->access), &place->position, &all->read);
        if (!match_read(all, audience, &steps))
            end = RECORDS_CHANGES_MORE;
    }
    if (end == RECORDS_CHANGES_LOST)
        match_all(audience);
    if (end == RECORDS_CHANGES_BUSY)
        pause_reading(all);
    return end == RECORDS_CHANGES_ALL || end == RECORDS_CHANGES_LOST;
}

static void expire(struct live_records *all, int64_t now_ms)
{
    if (now_ms < all->expired_ms + RECORDS_CHANGES_EXPIRY_MS)
        return;
    if (!records_changes_expire(all->records))
        pause_reading(all);
    all->expired_ms = now_ms;
}

bool live_records_look(struct live_records *all)
{
    int64_t now_ms = clock_monotonic_ms();
    if (!all->first || now_ms < all->paused_ms)
        return false;
    expire(all, now_ms); /* if the records are busy, what has changed is read after the pause */
    uint64_t changes = records_changes(all->records);
    if (changes == all->seen && !all->is_behind)
        return false;
    all->seen = changes; /* from before the reading */
    all->is_behind = false;
    for (struct live_audience *one = all->first; one && clock_monotonic_ms() >= all->paused_ms;
         one = one->records.next)
        all->is_behind |= !read_changes(all, one);
    all->is_behind |= all->paused_ms > now_ms;
    return true;
}
