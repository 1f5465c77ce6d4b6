/* judge_matches: matches with a document are judged one by one, after one query of which documents are
 * members of the collections.  Those without are judged page by page, all collections together. */
#include "operation/judge/judge_matches.h"

#include "model/schema/definition.h"
#include "operation/classes.h"
#include "operation/judge/filters.h"
#include "operation/judge/judge.h"
#include "operation/judge/sight.h"
#include "store/collections/store_subscriptions.h"

enum {
    PAGE_MOST = 256,           /* documents of a class that are read together */
    ROWS_MOST = 512,           /* of all collections */
    ROWS_LEAST = 4,            /* of each */
    PAGE_BYTES_MOST = 8 << 20, /* memory of documents that are judged together */
};

/* A match that is judged. */
struct judged_match {
    const struct matched_definition *match;
    struct definition definition;
    const struct schema_collection *collection; /* NULL: of a class or document */
    struct member_search search;                /* of a collection */
    bool sees_all; /* the caller sees each document of the class, so each deletion */
    bool is_shut;  /* nothing, or nothing more, is to be found */
    int64_t version;
};

/* --- reading --- */

const struct schema_collection *judge_matches_find_collection(const struct schema *schema,
                                                              const struct definition *definition)
{
    const struct schema_collection *found =
        schema_find_collection(schema_find_class(schema, definition->class), definition->collection);
    return found && found->key_count == (size_t)definition->value_count ? found : NULL;
}

static struct bytes write_keys(struct arena *arena, const struct schema_collection *collection)
{
    const char *keys = "";
    for (size_t i = 0; i < collection->key_count; i++) {
        const struct schema_property *key = &collection->keys[i];
        keys = arena_printf(arena, "%s%s%.*s%s%.*s", keys, i ? " " : "", (int)key->item->name.size,
                            key->item->name.data, key->member.size ? "." : "", (int)key->member.size,
                            key->member.data);
    }
    return bytes_of(keys);
}

/* Where neither rules nor a filter of the class decide, everybody may know of each change. */
static bool is_everybodys(const struct call *call, struct bytes class)
{
    return !call->rules && !filters_cover(call->filters, class);
}

static enum fault read_match(struct attempt *attempt, struct judged_match *one)
{
    struct arena *arena = attempt->call->arena;
    struct definition *definition = &one->definition;
    const struct schema *schema;
    one->is_shut = !definition_read(arena, one->match->text, definition) || one->match->kind;
    if (one->is_shut)
        return FAULT_NONE;
    if (is_everybodys(attempt->call, definition->class)) {
        one->version = one->match->version;
        return FAULT_NONE;
    }
    if (!definition->collection.data) {
        one->sees_all = sight_find(attempt, definition->class, definition->id.data ? RULES_READ : RULES_LIST,
                                   &definition->class, 0)
                            .rules.reach == RULES_REACH_ALL;
        return FAULT_NONE;
    }
    enum fault fault = classes_schema(attempt, &schema);
    one->collection = fault ? NULL : judge_matches_find_collection(schema, definition);
    one->is_shut = !one->collection;
    if (one->collection)
        one->search = (struct member_search){.class = definition->class,
                                             .collection = definition->collection,
                                             .value = definition->value,
                                             .value_count = (size_t)definition->value_count,
                                             .keys = write_keys(arena, one->collection),
                                             .id = one->match->id.size ? one->match->id : BYTES(""),
                                             .transaction = BYTES(MEMBER_SEARCH_START),
                                             .since = one->match->version};
    return fault;
}

/* --- documents --- */

static bool expect_newer(struct attempt *attempt, const struct document_name *names, size_t count,
                         const struct document **documents, int64_t since)
{
    bool is_older = false;
    for (size_t i = 0; i < count && documents[i]; i++) {
        if (documents[i]->header.version >= since)
            continue;
        documents_expect_newer(attempt->worker_context->documents, attempt->ns, &names[i]);
        is_older = true;
    }
    return is_older;
}

/* As documents_newest_part.  A change by psql can be matched while copies in caches are older. */
static enum fault load_since(struct attempt *attempt, const struct document_name *names, size_t count,
                             int64_t since, const struct document **documents_r)
{
    struct documents *documents = attempt->worker_context->documents;
    struct arena *arena = attempt->call->arena;
    enum fault fault =
        documents_newest_part(documents, attempt->ns, arena, names, count, PAGE_BYTES_MOST, documents_r);
    if (fault || !expect_newer(attempt, names, count, documents_r, since))
        return fault;
    return documents_newest_part(documents, attempt->ns, arena, names, count, PAGE_BYTES_MOST, documents_r);
}

static int64_t find_deletion(const struct document *document, int64_t since)
{
    bool is_deleted = !document_exists(document) && !document->has_ended && document->header.version >= since;
    return is_deleted ? document->header.version : 0;
}

/* The first of them that the caller may know of. */
static enum fault judge_documents(struct attempt *attempt, const struct judged_match *one,
                                  const struct document_name *names, size_t count, int64_t *version_r)
{
    const struct document **documents = ARENA_ARRAY(attempt->call->arena, const struct document *, count);
    const int64_t since = one->match->version;
    const bool is_named = one->definition.id.data != NULL;
    size_t done = 0;
    enum fault fault = FAULT_NONE;
    while (done < count && !fault && !*version_r) {
        fault = load_since(attempt, names + done, count - done, since, documents + done);
        for (; done < count && !fault && !*version_r && documents[done]; done++) {
            fault = one->collection
                        ? judge_news_in(attempt, documents[done], one->collection, since, version_r)
                        : judge_news(attempt, documents[done], since, !is_named, version_r);
            if (!fault && !*version_r && one->sees_all)
                *version_r = find_deletion(documents[done], since);
        }
    }
    return fault;
}

/* The document of the match. */
static enum fault judge_one(struct attempt *attempt, struct judged_match *one)
{
    const struct definition *definition = &one->definition;
    const struct document_name name = {definition->class,
                                       definition->id.data ? definition->id : one->match->id};
    return judge_documents(attempt, one, &name, 1, &one->version);
}

/* --- a class of which many documents were written --- */

/* `last`: the id before the page; then its last. */
static enum fault judge_class_page(struct attempt *attempt, struct judged_match *one, struct builder *last)
{
    struct arena *arena = attempt->call->arena;
    const struct bytes class = one->definition.class;
    struct bytes *ids;
    size_t count;
    enum fault fault =
        store_subscriptions_written(documents_store(attempt->worker_context->documents), attempt->ns, arena,
                                    class, builder_bytes(last), one->match->version, PAGE_MOST, &ids, &count);
    if (fault)
        return fault;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, count);
    for (size_t i = 0; i < count; i++)
        names[i] = (struct document_name){class, ids[i]};
    fault = judge_documents(attempt, one, names, count, &one->version);
    one->is_shut = count < PAGE_MOST;
    if (count) {
        last->size = 0;
        builder_add_bytes(last, ids[count - 1]);
    }
    return fault;
}

/* Reads on until one may be known. */
static enum fault judge_class(struct attempt *attempt, struct judged_match *one)
{
    struct arena *arena = attempt->call->arena;
    struct builder last = {0};
    enum fault fault = FAULT_NONE;
    while (!one->is_shut && !one->version && !fault) {
        attempt->call->arena = arena_create("matches");
        fault = judge_class_page(attempt, one, &last);
        arena_destroy(attempt->call->arena);
        attempt->call->arena = arena;
    }
    builder_free(&last);
    return fault;
}

/* --- collections of which many members were written --- */

static bool is_sought(const struct judged_match *one)
{
    return one->collection && !one->match->id.size && !one->is_shut && !one->version;
}

/* The rows of one collection, of which there are no more if they are fewer than `most`; the last is noted in
 * `kept`. */
static enum fault judge_rows(struct attempt *attempt, struct judged_match *one,
                             const struct changed_member *rows, size_t count, size_t most, struct arena *kept)
{
    struct document_name *names = ARENA_ARRAY(attempt->call->arena, struct document_name, count);
    size_t members = 0;
    for (size_t i = 0; i < count; i++)
        if (rows[i].is_member)
            names[members++] = (struct document_name){one->definition.class, rows[i].id};
    one->is_shut = count < most;
    if (!one->is_shut) {
        one->search.id = arena_keep(kept, rows[count - 1].id);
        one->search.transaction = arena_keep(kept, rows[count - 1].transaction);
    }
    return judge_documents(attempt, one, names, members, &one->version);
}

/* The next rows of all collections that are sought. */
static enum fault judge_changed(struct attempt *attempt, struct judged_match *const *sought, size_t count,
                                struct arena *kept)
{
    struct arena *arena = attempt->call->arena;
    const size_t share = ROWS_MOST / count, most = share < ROWS_LEAST ? ROWS_LEAST : share;
    struct member_search *searches = ARENA_ARRAY(arena, struct member_search, count);
    struct changed_member *rows;
    size_t row_count, at = 0;
    for (size_t i = 0; i < count; i++)
        searches[i] = sought[i]->search;
    enum fault fault =
        store_subscriptions_changed(documents_store(attempt->worker_context->documents), attempt->ns, arena,
                                    searches, count, most, &rows, &row_count);
    for (size_t i = 0; i < count && !fault; i++) {
        const size_t first = at;
        while (at < row_count && rows[at].search == i)
            at++;
        fault = judge_rows(attempt, sought[i], rows + first, at - first, most, kept);
    }
    return fault;
}

/* Reads on until nothing is sought. */
static enum fault judge_collections(struct attempt *attempt, struct judged_match *all, size_t count)
{
    struct arena *arena = attempt->call->arena;
    struct judged_match **sought = ARENA_ARRAY(arena, struct judged_match *, count);
    enum fault fault = FAULT_NONE;
    for (;;) {
        size_t left = 0;
        for (size_t i = 0; i < count; i++)
            if (is_sought(&all[i]))
                sought[left++] = &all[i];
        if (!left || fault)
            return fault;
        attempt->call->arena = arena_create("matches");
        fault = judge_changed(attempt, sought, left, arena);
        arena_destroy(attempt->call->arena);
        attempt->call->arena = arena;
    }
}

/* --- all --- */

/* Those whose document is not a member are shut. */
static enum fault find_members(struct attempt *attempt, struct judged_match *all, size_t count)
{
    struct arena *arena = attempt->call->arena;
    struct judged_match **asked = ARENA_ARRAY(arena, struct judged_match *, count);
    struct member_search *searches = ARENA_ARRAY(arena, struct member_search, count);
    bool *are_members = ARENA_ARRAY(arena, bool, count);
    size_t asked_count = 0;
    for (size_t i = 0; i < count; i++) {
        if (!all[i].collection || !all[i].match->id.size)
            continue;
        searches[asked_count] = all[i].search;
        asked[asked_count++] = &all[i];
    }
    enum fault fault = store_subscriptions_members(documents_store(attempt->worker_context->documents),
                                                   attempt->ns, arena, searches, asked_count, are_members);
    for (size_t i = 0; i < asked_count; i++)
        asked[i]->is_shut = fault || !are_members[i];
    return fault;
}

/* The memory of the documents is freed behind each. */
static enum fault judge_alone(struct attempt *attempt, struct judged_match *one)
{
    struct arena *arena = attempt->call->arena;
    if (one->is_shut || one->version || (one->collection && !one->match->id.size))
        return FAULT_NONE;
    if (!one->definition.id.data && !one->match->id.size)
        return judge_class(attempt, one);
    attempt->call->arena = arena_create("matches");
    enum fault fault = judge_one(attempt, one);
    arena_destroy(attempt->call->arena);
    attempt->call->arena = arena;
    return fault;
}

enum fault judge_matches(struct attempt *attempt, const struct matched_definition *matches, size_t count,
                         int64_t *versions_r)
{
    struct judged_match *all = ARENA_ARRAY(attempt->call->arena, struct judged_match, count);
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < count && !fault; i++) {
        all[i] = (struct judged_match){.match = &matches[i]};
        fault = read_match(attempt, &all[i]);
    }
    if (!fault)
        fault = find_members(attempt, all, count);
    for (size_t i = 0; i < count && !fault; i++) {
        if (i && bytes_equal(matches[i - 1].text, matches[i].text))
            all[i].version = all[i].version ? all[i].version : all[i - 1].version;
        fault = judge_alone(attempt, &all[i]);
    }
    if (!fault)
        fault = judge_collections(attempt, all, count);
    for (size_t i = 0; i < count && !fault; i++)
        versions_r[i] = all[i].version;
    return fault;
}
