/* judge_losses: one query for the matches of each definition, with what the class has lost for the caller
 * since the first of their commits (sight.h). */
#include "operation/judge/judge_losses.h"

#include "operation/classes.h"
#include "operation/judge/filters.h"
#include "operation/judge/judge_matches.h"
#include "operation/judge/sight.h"
#include "store/collections/store_subscriptions.h"

enum { LEFT_MOST = 250 }; /* rows that are read together */

/* The matches of one definition. */
struct definition_matches {
    const struct matched_definition *matches;
    size_t count;
    struct definition definition;
    const struct schema_collection *collection; /* NULL: of a class or document */
    int64_t from, since;                        /* the first transaction and version */
    struct caller_sight sight;
};

static enum fault read_sight(struct attempt *attempt, struct definition_matches *of)
{
    struct arena *arena = attempt->call->arena;
    const struct definition *definition = &of->definition;
    const struct schema *schema;
    if (!definition->collection.data) {
        of->sight = sight_find(attempt, definition->class, definition->id.data ? RULES_READ : RULES_LIST,
                               &definition->class, 0);
        return FAULT_NONE;
    }
    enum fault fault = classes_schema(attempt, &schema);
    of->collection = fault ? NULL : judge_matches_find_collection(schema, definition);
    if (!of->collection)
        return fault;
    struct bytes *items = ARENA_ARRAY(arena, struct bytes, of->collection->key_count);
    for (size_t i = 0; i < of->collection->key_count; i++)
        items[i] = of->collection->keys[i].item->name;
    of->sight = sight_find(attempt, definition->class, RULES_LIST, items, of->collection->key_count);
    return FAULT_NONE;
}

/* The version of the last loss of the document, or of any, since this version; 0: none. */
static int64_t find_lost(const struct definition_matches *of, struct bytes id, int64_t since)
{
    const struct store_sight_changes *changes = &of->sight.changes;
    int64_t found = 0;
    for (size_t i = 0; i < changes->lost_count; i++) {
        const struct store_sight_lost *lost = &changes->lost[i];
        if ((!id.size || bytes_equal(lost->id, id)) && lost->version >= since && lost->version > found)
            found = lost->version;
    }
    return found;
}

/* Each loss is a match of the class and of the document.  In which collection it was is known by the commit
 * alone: in which one it is now, or came with the loss, is nothing that the caller may learn. */
static int64_t find_loss(const struct definition_matches *of)
{
    int64_t found = 0;
    if (!of->collection)
        return find_lost(of, of->definition.id, of->since);
    for (size_t i = 0; i < of->count && !found; i++)
        if (of->matches[i].kind == MATCH_DEPARTED)
            found = find_lost(of, of->matches[i].id, of->matches[i].version);
    return found;
}

/* --- what has left the collection while the caller saw it --- */

static enum fault judge_left(struct attempt *attempt, const struct definition_matches *of,
                             const struct left_member *left, size_t count, int64_t *version_r)
{
    struct arena *arena = attempt->call->arena;
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, count + 1);
    int64_t *versions = ARENA_ARRAY(arena, int64_t, count + 1);
    bool *were = ARENA_ARRAY(arena, bool, count + 1), *are_lost = ARENA_ARRAY(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        ids[i] = left[i].id;
        versions[i] = left[i].version;
    }
    enum fault fault = FAULT_FIRST(sight_was_before(attempt, &of->sight, ids, versions, count, were),
                                   sight_was_lost(attempt, &of->sight, ids, versions, count, are_lost));
    for (size_t i = 0; i < count && !fault && !*version_r; i++)
        if (were[i] || are_lost[i])
            *version_r = versions[i];
    return fault;
}

/* Reads on until one may be known. */
static enum fault find_left(struct attempt *attempt, const struct definition_matches *of, int64_t *version_r)
{
    const struct definition *definition = &of->definition;
    struct member_search search = {.class = definition->class,
                                   .collection = definition->collection,
                                   .value = definition->value,
                                   .id = BYTES(""),
                                   .transaction = BYTES(MEMBER_SEARCH_START)};
    struct store *store = documents_store(attempt->worker_context->documents);
    struct left_member *left;
    size_t count;
    enum fault fault;
    do {
        fault = FAULT_FIRST(store_subscriptions_left(store, attempt->ns, attempt->call->arena, &search,
                                                     of->from, LEFT_MOST, &left, &count),
                            judge_left(attempt, of, left, count, version_r));
        if (count) {
            search.id = left[count - 1].id;
            search.transaction = left[count - 1].transaction;
        }
    } while (!fault && !*version_r && count == LEFT_MOST);
    return fault;
}

/* --- the caller's own roles and memberships --- */

static int64_t find_own_change(const struct attempt *attempt, const struct definition_matches *of)
{
    const int64_t roles = attempt->call->caller.version;
    for (size_t i = 0; i < of->count; i++) {
        if (of->matches[i].kind != MATCH_SIGHT)
            continue;
        if (roles >= of->matches[i].version)
            return roles;
        if (of->sight.changes.has_changed_teams)
            return of->matches[i].version;
    }
    return 0;
}

/* --- all --- */

static enum fault judge_definition(struct attempt *attempt, struct definition_matches *of, int64_t *version_r)
{
    const struct call *call = attempt->call;
    bool is_known;
    if (!definition_read(call->arena, of->matches->text, &of->definition) || !call->rules ||
        filters_cover(call->filters, of->definition.class))
        return FAULT_NONE;
    enum fault fault = read_sight(attempt, of);
    if (fault || (of->definition.collection.data && !of->collection))
        return fault;
    fault = sight_losses(attempt, &of->sight, of->from, &is_known);
    if (fault)
        return fault;
    *version_r = find_own_change(attempt, of);
    if (is_known && !*version_r)
        *version_r = find_loss(of);
    if (is_known && !*version_r && of->collection)
        fault = find_left(attempt, of, version_r);
    return fault;
}

static bool is_judged(const int64_t *versions, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (versions[i])
            return true;
    return false;
}

enum fault judge_losses(struct attempt *attempt, const struct matched_definition *matches, size_t count,
                        int64_t *versions_r)
{
    struct arena *arena = attempt->call->arena;
    enum fault fault = FAULT_NONE;
    for (size_t i = 0, next = 0; i < count && !fault; i = next) {
        struct definition_matches of = {
            .matches = matches + i, .from = matches[i].transaction, .since = matches[i].version};
        for (; next < count && bytes_equal(matches[next].text, matches[i].text); next++) {
            of.from = matches[next].transaction < of.from ? matches[next].transaction : of.from;
            of.since = matches[next].version < of.since ? matches[next].version : of.since;
        }
        of.count = next - i;
        if (is_judged(versions_r + i, of.count))
            continue;
        attempt->call->arena = arena_create("losses");
        fault = judge_definition(attempt, &of, &versions_r[i]);
        arena_destroy(attempt->call->arena);
        attempt->call->arena = arena;
    }
    return fault;
}
