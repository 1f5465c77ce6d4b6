/* live_ranges: a list in the order of the first keys.  It is a search tree, too: the root is in the middle,
 * and each entry has the greatest last key below it. */
#include "live/topics/live_ranges.h"

#include <stdlib.h>

#include "base/log.h"

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

struct live_ranges *live_ranges_create(void)
{
    struct live_ranges *ranges = calloc(1, sizeof *ranges);
    if (!ranges)
        log_fatal("out of memory live");
    return ranges;
}

void live_ranges_destroy(struct live_ranges *ranges)
{
    free(ranges->list);
    free(ranges);
}

void live_ranges_change(struct live_ranges *ranges)
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

size_t live_ranges_each(struct live_ranges *ranges, const struct live_index *index, struct bytes key,
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
