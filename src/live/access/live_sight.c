/* live_sight: compares what a document has lost and gained with the principals of a caller. */
#include "live/access/live_sight.h"

#include <string.h>

static struct rules_sight find_sight(const struct live_sight *sight)
{
    static const struct bytes none[1];
    return rules_sight_find(sight->rules, sight->caller, sight->arena, sight->class, sight->right,
                            sight->item_count ? sight->items : none, sight->item_count);
}

enum rules_reach live_sight_reach(const struct live_sight *sight)
{
    return find_sight(sight).reach;
}

static bool is_recent(const struct live_sight *sight, const struct live_principal *principal)
{
    return live_snapshot_is_recent(principal->version, principal->writer, sight->version, sight->since);
}

static bool is_team(struct bytes principal)
{
    return principal.size > 2 && memcmp(principal.data, "t:", 2) == 0;
}

/* Is the caller in the team since before this version of the document? */
static bool is_in_team(const struct live_sight *sight, const struct rules_sight *of, struct bytes principal,
                       const struct bytes *principals, size_t count, int64_t version)
{
    const struct bytes id = {principal.data + 2, principal.size - 2};
    if (!count)
        return false;
    const struct live_loaded *team = sight->find_team(sight->context, of->team_class, id);
    if (!team || !rules_sight_is_in_team(of, sight->arena, sight->caller, team->document, principals, count))
        return false;
    for (size_t i = 0; i < team->principal_count; i++) {
        const struct live_principal *one = &team->principals[i];
        if (!one->is_lost && one->gained > version && rules_sight_contains(principals, count, one->name))
            return false;
    }
    return true;
}

/* Everything of the class was seen until its deletion. */
static int64_t find_deletion(const struct live_sight *sight)
{
    const struct document *document = sight->loaded->document;
    if (document_exists(document) || document->has_ended || !document->header.version ||
        document->header.version < sight->version)
        return LIVE_SIGHT_KEPT;
    return document->header.version;
}

int64_t live_sight_lost(const struct live_sight *sight)
{
    int64_t lost = LIVE_SIGHT_KEPT;
    if (!sight->loaded->principal_count && document_exists(sight->loaded->document))
        return lost;
    const struct rules_sight of = find_sight(sight);
    if (of.reach == RULES_REACH_ALL)
        return find_deletion(sight);
    for (size_t i = 0; i < sight->loaded->principal_count && of.reach == RULES_REACH_SOME; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (!one->is_lost || one->version <= lost || !is_recent(sight, one))
            continue;
        if (is_team(one->name)
                ? is_in_team(sight, &of, one->name, of.team_principals, of.team_principal_count, one->version)
                : rules_sight_contains(of.principals, of.principal_count, one->name))
            lost = one->version;
    }
    return lost;
}

bool live_sight_has_moved(const struct live_sight *sight)
{
    if (!sight->loaded->principal_count)
        return false;
    const struct rules_sight of = find_sight(sight);
    for (size_t i = 0; i < sight->loaded->principal_count; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (is_recent(sight, one) &&
            (is_team(one->name)
                 ? is_in_team(sight, &of, one->name, of.team_watched, of.team_watched_count, INT64_MAX)
                 : rules_sight_contains(of.watched, of.watched_count, one->name)))
            return true;
    }
    return false;
}

/* Most changes of a team do not concern the caller. */
static bool live_sight_is_named(const struct live_sight *sight, const struct live_principal *principal)
{
    struct bytes account = sight->caller->account;
    return account.size && memmem(principal->name.data, principal->name.size, account.data, account.size);
}

bool live_sight_has_other_team(const struct live_sight *sight, struct bytes dependent_class)
{
    for (size_t i = 0; i < sight->loaded->principal_count; i++) {
        const struct live_principal *one = &sight->loaded->principals[i];
        if (!is_recent(sight, one) || !live_sight_is_named(sight, one))
            continue;
        const struct rules_sight of =
            rules_sight_find(sight->rules, sight->caller, sight->arena, dependent_class, RULES_LIST, NULL, 0);
        if (of.team_class.data && bytes_equal(of.team_class, sight->class) &&
            rules_sight_contains(of.team_watched, of.team_watched_count, one->name))
            return true;
    }
    return false;
}
