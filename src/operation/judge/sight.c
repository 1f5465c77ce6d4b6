/* sight: digests, and questions to the database. */
#include "operation/judge/sight.h"

#include <inttypes.h>
#include <stdio.h>

#include "edge/crypto/crypto.h"
#include "model/rules/rules_schema.h"
#include "model/schema/schema.h"
#include "operation/judge/filters.h"
#include "operation/signed_text.h"

static void sight_add_number(struct builder *text, int64_t number)
{
    char digits[24];
    int size = snprintf(digits, sizeof digits, "%" PRId64, number);
    signed_text_add_part(text, (struct bytes){digits, (size_t)size});
}

static struct bytes make_digest(const struct call *call)
{
    char hex[CRYPTO_SHA256_HEX + 1];
    struct builder text = {0};
    if (!call_is_judged(call))
        return BYTES("");
    signed_text_add_part(&text, call->caller.account);
    sight_add_number(&text, call->caller.version);
    for (size_t i = 0; i < call->caller.role_count; i++)
        signed_text_add_part(&text, call->caller.roles[i]);
    sight_add_number(&text, call->rules_version);
    crypto_sha256_hex(builder_bytes(&text), hex);
    builder_free(&text);
    return (struct bytes){arena_copy(call->arena, hex, SIGHT_DIGEST), SIGHT_DIGEST};
}

struct caller_sight sight_find(const struct attempt *attempt, struct bytes class, enum rules_right right,
                               const struct bytes *items, size_t count)
{
    const struct call *call = attempt->call;
    struct caller_sight sight = {.class = class, .digest = BYTES("")};
    if (!call_is_judged(call))
        return sight;
    sight.digest = make_digest(call);
    if (filters_cover(call->filters,
                      class)) { /* what it takes away depends on contents: always a complete answer */
        sight.rules.reach = RULES_REACH_MIXED;
        return sight;
    }
    if (!call->rules) {
        sight.rules.reach = RULES_REACH_ALL;
        return sight;
    }
    sight.rules = rules_sight_find(call->rules, &call->caller, call->arena, class, right, items, count);
    return sight;
}

/* --- names of the schema --- */

bool sight_discloses(const struct call *call, struct bytes class, const struct bytes *items, size_t count)
{
    return !call_is_judged(call) || !call->rules ||
           rules_outline_discloses(call->rules, &call->caller, class, items, count);
}

bool sight_discloses_writer(const struct attempt *attempt, struct bytes class, struct bytes item)
{
    const struct call *call = attempt->call;
    return !call_is_judged(call) || !call->rules ||
           rules_outline_discloses_writer(call->rules, &call->caller, class, item);
}

bool sight_discloses_collection(const struct attempt *attempt, struct bytes class,
                                const struct schema_collection *collection)
{
    struct bytes items[SCHEMA_KEYS_MOST];
    size_t count = 0;
    for (; collection && count < collection->key_count; count++)
        items[count] = collection->keys[count].item->name;
    return sight_discloses(attempt->call, class, collection ? items : NULL, count);
}

/* --- the database --- */

/* Does anything depend on principals? */
static bool has_principals(const struct caller_sight *sight)
{
    return sight->rules.reach == RULES_REACH_SOME || sight->rules.watched_count ||
           sight->rules.team_watched_count;
}

static struct store_sight_query query_of(const struct attempt *attempt, const struct caller_sight *sight)
{
    return (struct store_sight_query){.arena = attempt->call->arena,
                                      .class = sight->class,
                                      .account = attempt->call->caller.account,
                                      .sight = &sight->rules,
                                      .from = sight->from};
}

static struct store *store_of(const struct attempt *attempt)
{
    return documents_store(attempt->worker_context->documents);
}

static bool is_followed(const struct attempt *attempt, const struct store_sight_changes *changes)
{
    return changes->mark == attempt->call->rules_version && changes->since;
}

/* A declaration that cannot be made now is made by a later request.  In an encrypted namespace none is: the
 * database does not see owners and members, so answers are complete. */
static enum fault declare(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    struct builder places = {0};
    rules_sight_write_places(call->rules, &places);
    enum fault fault = store_sight_declare(store_of(attempt), attempt->ns, call->arena, call->rules_version,
                                           builder_bytes(&places));
    builder_free(&places);
    return fault == FAULT_STALE || fault == FAULT_OENCRYPTED ? FAULT_NONE : fault;
}

enum fault sight_follow(struct attempt *attempt, const struct caller_sight *sight)
{
    const struct rules_sight none = {0};
    struct store_sight_changes changes;
    if (!has_principals(sight) || sight->rules.reach == RULES_REACH_MIXED)
        return FAULT_NONE;
    struct store_sight_query query = query_of(attempt, sight);
    query.sight = &none;
    enum fault fault = store_sight_changes(store_of(attempt), attempt->ns, &query, &changes);
    return fault || is_followed(attempt, &changes) ? fault : declare(attempt);
}

enum fault sight_changes(struct attempt *attempt, struct caller_sight *sight, int64_t from, bool *is_known_r)
{
    struct store_sight_changes *changes = &sight->changes;
    sight->from = from;
    *is_known_r = sight->rules.reach != RULES_REACH_MIXED;
    if (!*is_known_r || !has_principals(sight))
        return FAULT_NONE;
    const struct store_sight_query query = query_of(attempt, sight);
    enum fault fault = store_sight_changes(store_of(attempt), attempt->ns, &query, changes);
    *is_known_r = is_followed(attempt, changes) && changes->since <= from && changes->floor < from &&
                  !changes->has_changed_teams && !changes->has_more;
    return fault;
}

enum fault sight_losses(struct attempt *attempt, struct caller_sight *sight, int64_t from, bool *is_known_r)
{
    struct store_sight_changes *changes = &sight->changes;
    sight->from = from;
    *changes = (struct store_sight_changes){0};
    *is_known_r = sight->rules.reach != RULES_REACH_MIXED;
    if (!*is_known_r || !has_principals(sight))
        return FAULT_NONE;
    const struct store_sight_query query = query_of(attempt, sight);
    enum fault fault = store_sight_changes(store_of(attempt), attempt->ns, &query, changes);
    *is_known_r = is_followed(attempt, changes) && changes->since <= from && changes->floor < from;
    return fault || is_followed(attempt, changes) ? fault : declare(attempt);
}

enum fault sight_follow_rules(struct attempt *attempt)
{
    const struct rules_sight none = {0};
    const struct store_sight_query query = {
        .arena = attempt->call->arena, .class = BYTES(""), .sight = &none};
    struct store_sight_changes changes;
    if (!attempt->call->rules || !rules_sight_has_places(attempt->call->rules))
        return FAULT_NONE;
    enum fault fault = store_sight_changes(store_of(attempt), attempt->ns, &query, &changes);
    return fault || is_followed(attempt, &changes) ? fault : declare(attempt);
}

enum fault sight_was_before(struct attempt *attempt, const struct caller_sight *sight,
                            const struct bytes *ids, const int64_t *versions, size_t count, bool *was_r)
{
    int64_t *since = ARENA_ARRAY(attempt->call->arena, int64_t, count + 1);
    for (size_t i = 0; i < count; i++)
        was_r[i] = sight->rules.reach == RULES_REACH_ALL;
    if (sight->rules.reach != RULES_REACH_SOME)
        return FAULT_NONE;
    const struct store_sight_query query = query_of(attempt, sight);
    enum fault fault =
        store_sight_since(store_of(attempt), attempt->ns, &query, &sight->changes, ids, count, since);
    for (size_t i = 0; !fault && i < count; i++)
        was_r[i] = since[i] && since[i] < versions[i];
    return fault;
}

enum fault sight_was_lost(struct attempt *attempt, const struct caller_sight *sight, const struct bytes *ids,
                          const int64_t *versions, size_t count, bool *was_r)
{
    const struct store_sight_query query = query_of(attempt, sight);
    for (size_t i = 0; i < count; i++)
        was_r[i] = false;
    if (sight->rules.reach != RULES_REACH_SOME)
        return FAULT_NONE;
    return store_sight_had(store_of(attempt), attempt->ns, &query, &sight->changes, ids, versions, count,
                           was_r);
}

/* --- views --- */

/* A removal that is no longer known is newer than all that is seen. */
static bool may_be_purged(const struct document *document, const struct view *view)
{
    const struct header *header = &document->header;
    return header->dtime > header->ctime && header->dtime > view->version;
}

enum fault sight_was_written(struct attempt *attempt, const struct caller_sight *sight,
                             const struct document *const *documents, const struct view *views, size_t count,
                             bool *was_r)
{
    struct arena *arena = attempt->call->arena;
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, count + 1),
                 *hidden = ARENA_ARRAY(arena, struct bytes, count + 1);
    size_t *places = ARENA_ARRAY(arena, size_t, count + 1), asked = 0;
    bool *are = ARENA_ARRAY(arena, bool, count + 1);
    for (size_t i = 0; i < count; i++) {
        was_r[i] = view_is_whole(&views[i]) || may_be_purged(documents[i], &views[i]);
        if (was_r[i] || !document_exists(documents[i]))
            continue;
        ids[asked] = documents[i]->header.id;
        hidden[asked] = rules_view_hidden(&views[i].rules, arena);
        places[asked++] = i;
    }
    const struct store_sight_query query = query_of(attempt, sight);
    enum fault fault = store_sight_written(store_of(attempt), attempt->ns, &query, ids, hidden, asked, are);
    for (size_t i = 0; !fault && i < asked; i++)
        was_r[places[i]] = are[i];
    return fault;
}
