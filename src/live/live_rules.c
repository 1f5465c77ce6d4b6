/* live_rules: the rules of one namespace. */
#include "live/live_rules.h"

#include <stdlib.h>

#include "base/log.h"
#include "operation/access.h"
#include "serve/cors.h"

struct live_rules {
    bool is_known, is_wanted, is_requested; /* valid if only the first is true */
    struct arena *arena;
    struct ns_conf conf; /* with the effective state */
    const char *message;
};

struct live_rules *live_rules_create(void)
{
    struct live_rules *rules = calloc(1, sizeof *rules);
    if (!rules)
        log_fatal("out of memory live");
    rules->arena = arena_create("live rules");
    rules->is_wanted = true;
    return rules;
}

void live_rules_destroy(struct live_rules *rules)
{
    arena_destroy(rules->arena);
    free(rules);
}

void live_rules_reset(struct live_rules *rules)
{
    rules->is_known = false;
    rules->is_wanted = true;
}

void live_rules_doubt(struct live_rules *rules)
{
    rules->is_wanted = true;
}

bool live_rules_are_known(const struct live_rules *rules)
{
    return rules->is_known;
}

bool live_rules_are_wanted(const struct live_rules *rules)
{
    return rules->is_wanted;
}

bool live_rules_are_requested(const struct live_rules *rules)
{
    return rules->is_requested;
}

void live_rules_begin(struct live_rules *rules)
{
    rules->is_wanted = false;
    rules->is_requested = true;
}

void live_rules_forget(struct live_rules *rules)
{
    rules->is_wanted |= rules->is_requested;
    rules->is_requested = false;
}

static struct ns_conf read_conf(struct arena *arena, struct bytes content)
{
    if (content.data)
        content = (struct bytes){arena_copy(arena, content.data, content.size), content.size};
    return namespace_read(arena, content);
}

void live_rules_take(struct live_rules *rules, struct bytes content, struct bytes z)
{
    arena_reset(rules->arena);
    rules->conf = read_conf(rules->arena, content);
    const struct ns_conf conf_of_z = read_conf(rules->arena, z);
    access_add_state_of_z(&rules->conf, &conf_of_z);
    if (!rules->conf.quotas)
        rules->conf.quotas = conf_of_z.quotas;
    struct bytes message = rules->conf.message;
    rules->message = message.size ? arena_copy(rules->arena, message.data, message.size) : NULL;
    rules->is_known = true;
    rules->is_requested = false;
}

bool live_rules_are_of(const struct live_rules *rules, const struct settings *settings, struct bytes code,
                       struct bytes database)
{
    return access_is_namespace(settings, &rules->conf, code, database);
}

enum fault live_rules_judge(const struct live_rules *rules, const struct settings *settings,
                            struct bytes code, struct bytes database, bool is_administrator)
{
    const struct ns_conf *conf = &rules->conf;
    if (!access_is_namespace(settings, conf, code, database))
        return FAULT_NNAMESPACE;
    enum fault fault = access_refuse_state(settings, conf, database, is_administrator);
    if (fault)
        return fault;
    return access_level(settings, conf, database, is_administrator) < LEVEL_READ ? FAULT_SCLOSED : FAULT_NONE;
}

const struct quotas *live_rules_quotas(const struct live_rules *rules)
{
    return rules->conf.quotas;
}

const char *live_rules_message(const struct live_rules *rules)
{
    return rules->message;
}

bool live_rules_find_origin(const struct live_rules *rules, struct arena *arena, struct bytes origin,
                            const char **found_r)
{
    if (!origin.size || !rules->is_known || !rules->conf.origins)
        return false;
    *found_r = cors_find(arena, rules->conf.origins, origin);
    return true;
}
