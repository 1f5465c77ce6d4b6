/* live_follow: the declaration is called twice, in transactions of their own. */
#include "live/access/live_follow.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "edge/crypto/crypto.h"
#include "live/live_audience_private.h"
#include "model/rules/rules_sight.h"
#include "operation/judge/filters.h"
#include "operation/signed_text.h"

enum { RETRY_MS = 1000, TEAMS_MOST = RULES_CLASSES_MOST * RULES_GRANTS_MOST };
enum { MARK, SINCE, XMIN }; /* columns of SIGHT */

static bool has_places(const struct live_audience *audience)
{
    const struct rules *rules = live_access_rules(audience->access, false);
    return rules && rules_sight_has_places(rules);
}

static bool is_of_present(const struct live_audience *audience)
{
    return audience->follow.mark == live_access_mark(audience->access);
}

bool live_follow_is_settled(const struct live_audience *audience)
{
    return !audience->ruled_count || !has_places(audience) ||
           (audience->follow.is_settled && is_of_present(audience));
}

bool live_follow_confirm(struct live_audience *audience, int64_t followed)
{
    struct live_follow *follow = &audience->follow;
    if (!has_places(audience) || !follow->is_followed || !is_of_present(audience) || followed == follow->mark)
        return true;
    follow->is_settled = follow->is_followed = false;
    return false;
}

void live_follow_drop(struct live_audience *audience)
{
    audience->follow.step = LIVE_FOLLOW_BEGINS;
}

/* --- the steps --- */

static bool is_wanted(const struct live_audience *audience)
{
    const struct live_follow *follow = &audience->follow;
    return audience->ruled_count && live_access_is_certain(audience->access) &&
           (!live_follow_is_settled(audience) ||
            (has_places(audience) && !follow->is_followed && clock_monotonic_ms() >= follow->retry_ms));
}

bool live_follow_is_due(const struct live_audience *audience)
{
    enum live_follow_step step = audience->follow.step;
    return (step == LIVE_FOLLOW_BEGINS || step == LIVE_FOLLOW_ENDS) && is_wanted(audience);
}

bool live_follow_must_declare(const struct live_audience *audience)
{
    enum live_follow_step step = audience->follow.step;
    return (step == LIVE_FOLLOW_DECLARES || step == LIVE_FOLLOW_DECLARES_AGAIN) && is_wanted(audience);
}

/* Listeners that were open while nothing was followed may have missed a departure. */
static void live_follow_settle(struct live_audience *audience, bool is_followed)
{
    struct live_follow *follow = &audience->follow;
    bool was_followed = follow->is_settled && follow->is_followed && is_of_present(audience);
    *follow = (struct live_follow){.mark = live_access_mark(audience->access),
                                   .is_settled = true,
                                   .is_followed = is_followed,
                                   .retry_ms = clock_monotonic_ms() + RETRY_MS};
    for (struct live_listener *one = audience->listeners; one; one = one->next)
        if (one->is_ruled && is_followed && !was_followed && one->state == LIVE_OPEN)
            one->must_reset = true;
}

void live_follow_take(struct live_audience *audience, const struct pg_result *result)
{
    struct live_follow *follow = &audience->follow;
    bool is_declared = pg_rows(result) && pg_get_i64(result, 0, MARK) == live_access_mark(audience->access) &&
                       pg_get_i64(result, 0, SINCE);
    if (!is_declared && follow->step == LIVE_FOLLOW_BEGINS)
        follow->step = LIVE_FOLLOW_DECLARES;
    else /* transactions from before the declaration may not have ended */
        live_follow_settle(audience,
                           is_declared && pg_get_i64(result, 0, SINCE) <= pg_get_i64(result, 0, XMIN));
}

void live_follow_declare(const struct live_audience *audience, struct pg_params *params)
{
    struct builder places = {0};
    rules_sight_write_places(live_access_rules(audience->access, false), &places);
    struct bytes text = builder_bytes(&places);
    PG_PARAMS_ADD(params, PG_I64(live_access_mark(audience->access)),
                  PG_TEXT(arena_keep(params->arena, text)));
    builder_free(&places);
}

void live_follow_take_declared(struct live_audience *audience)
{
    struct live_follow *follow = &audience->follow;
    follow->step = follow->step == LIVE_FOLLOW_DECLARES ? LIVE_FOLLOW_DECLARES_AGAIN : LIVE_FOLLOW_ENDS;
}

void live_follow_fail(struct live_audience *audience)
{
    live_follow_settle(audience, false);
}

/* --- ids --- */

enum { SIGHT_DIGITS = 15 }; /* hexadecimal: a positive number */

int64_t live_follow_sight(struct live_listener *listener)
{
    int64_t mark = live_access_mark(listener->audience->access);
    if (!listener->is_ruled)
        return 0;
    if (listener->sight && listener->sight_mark == mark)
        return listener->sight;
    const struct rules_caller *caller = listener->caller ? live_caller_rules(listener->caller) : NULL;
    struct builder text = {0};
    char hex[CRYPTO_SHA256_HEX + 1], number[64];
    snprintf(number, sizeof number, "%" PRId64 ".%" PRId64, mark, caller ? caller->version : 0);
    signed_text_add_part(&text, bytes_of(number));
    signed_text_add_part(&text, caller && caller->account.size ? caller->account : BYTES(""));
    for (size_t i = 0; caller && i < caller->role_count; i++)
        signed_text_add_part(&text, caller->roles[i]);
    filters_add_versions(live_access_filters(listener->audience->access, listener->is_administrator), &text);
    crypto_sha256_hex(builder_bytes(&text), hex);
    builder_free(&text);
    hex[SIGHT_DIGITS] = '\0';
    listener->sight = (int64_t)strtoll(hex, NULL, 16) | 1;
    listener->sight_mark = mark;
    return listener->sight;
}

/* Its principals in teams on which documents of one of its classes depend. */
static void add_teams_of(const struct rules *rules, const struct rules_caller *caller, struct arena *arena,
                         struct bytes class, struct bytes *classes, struct bytes *principals, size_t *count)
{
    const struct rules_sight of = rules_sight_find(rules, caller, arena, class, RULES_LIST, NULL, 0);
    for (size_t i = 0; i < of.team_watched_count && *count < TEAMS_MOST; i++) {
        classes[*count] = of.team_class;
        principals[(*count)++] = of.team_watched[i];
    }
}

void live_follow_add_teams(const struct live_listener *listener, struct pg_params *params)
{
    struct bytes *classes = ARENA_ROOM(params->arena, struct bytes, TEAMS_MOST);
    struct bytes *principals = ARENA_ROOM(params->arena, struct bytes, TEAMS_MOST);
    size_t count = 0;
    bool is_ruled = listener && listener->is_ruled && has_places(listener->audience);
    const struct rules *rules = is_ruled ? live_access_rules(listener->audience->access, false) : NULL;
    size_t position = 0;
    struct bytes class;
    while (is_ruled && listener->caller && (class = rules_sight_next(rules, &position)).data)
        if (live_index_has_class(&listener->feed, class))
            add_teams_of(rules, live_caller_rules(listener->caller), params->arena, class, classes,
                         principals, &count);
    PG_PARAMS_ADD(params, PG_I64(is_ruled ? live_access_mark(listener->audience->access) : 0),
                  PG_TEXTS(classes, count), PG_TEXTS(principals, count));
}
