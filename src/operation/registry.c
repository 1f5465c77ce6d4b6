/* registry: the table of the operations that are built in, and a list of those that modules bring. */
#include "operation/registry.h"

#include <stdlib.h>

#include "base/memory.h"

static const struct operation *const *builtin;
static size_t builtin_count;
static const struct operation *resources;

/* Filled before fork, sorted by name. */
static const struct operation **added;
static size_t added_count;

/* The position of the name among the added ones, or where it belongs. */
static size_t registry_place_of(struct bytes name, bool *is_there_r)
{
    size_t low = 0, high = added_count;
    *is_there_r = false;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(bytes_of(added[middle]->name), name);
        if (order == 0) {
            *is_there_r = true;
            return middle;
        }
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

void registry_begin(const struct operation *const *operations, size_t count,
                    const struct operation *operations_of_resources)
{
    builtin = operations;
    builtin_count = count;
    resources = operations_of_resources;
}

/* A request looks for its operation twice. */
const struct operation *registry_find(struct bytes name)
{
    static const struct operation *last;
    bool is_there;
    if (last && bytes_are(name, last->name))
        return last;
    for (size_t i = 0; i < builtin_count; i++)
        if (bytes_are(name, builtin[i]->name))
            return last = builtin[i];
    size_t place = registry_place_of(name, &is_there);
    return is_there ? added[place] : NULL;
}

const struct operation *registry_get_resource(enum resource_act act)
{
    return &resources[act];
}

bool registry_add(const struct operation *operation)
{
    struct bytes name = bytes_of(operation->name);
    bool is_there;
    if (registry_find(name))
        return false;
    const struct operation **more =
        memory_grown(added, added_count + 1, sizeof *added, "adding an operation");
    added = more;
    size_t place = registry_place_of(name, &is_there);
    memmove(added + place + 1, added + place, (added_count - place) * sizeof *added);
    added[place] = operation;
    added_count++;
    return true;
}

const struct operation *registry_get_builtin(size_t place)
{
    return place < builtin_count ? builtin[place] : NULL;
}

const struct operation *registry_get(size_t place)
{
    return place < builtin_count ? builtin[place] : registry_get_added(place - builtin_count);
}

const struct operation *registry_get_added(size_t place)
{
    return place < added_count ? added[place] : NULL;
}
