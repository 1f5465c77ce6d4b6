/* live_rules: the configuration of a namespace, read from the database of z, and again whenever its document
 * changes there. */
#include "live/live_private.h"

#include "base/log.h"

static struct live_namespace *find_wanted(struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        if (ns->rules.is_wanted && (ns->listener_count || ns->rules.is_known))
            return ns;
    return NULL;
}

void live_rules_doubt_one(struct live *live, struct bytes code)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        if (bytes_equal(bytes_of(ns->code), code))
            ns->rules.is_wanted = true;
}

void live_rules_doubt(struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        ns->rules.is_wanted = true;
}

void live_rules_forget(struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next) {
        ns->rules.is_wanted |= ns->rules.is_asked;
        ns->rules.is_asked = false;
    }
}

static bool allow(const struct live_namespace *ns, bool is_administrator, enum fault *fault_r)
{
    const struct ns_conf *conf = &ns->rules.conf;
    const struct settings *settings = ns->live->settings;
    struct bytes database = bytes_of(ns->database);
    *fault_r = FAULT_NONE;
    if (!access_is_namespace(settings, conf, bytes_of(ns->code), database))
        *fault_r = FAULT_NNAMESPACE;
    else if (ns->ns < 0)
        *fault_r = FAULT_BINTERNAL; /* no room in the segment */
    else if (conf->off.size && !is_administrator)
        *fault_r = FAULT_OOFF;
    else if (access_level(settings, conf, database, is_administrator) < LEVEL_READ)
        *fault_r = FAULT_SCLOSED;
    return !*fault_r;
}

static void refuse(struct live_listener *listener, enum fault fault)
{
    const char *argument = fault == FAULT_SCLOSED      ? "live"
                           : fault == FAULT_NNAMESPACE ? listener->ns->code
                                                       : NULL;
    live_listener_refuse(listener, fault, argument, NULL);
}

void live_rules_apply(struct live_listener *listener)
{
    enum fault fault;
    if (listener->opening && listener->opening->is_settled)
        live_listener_answer(listener);
    else if (!allow(listener->ns, listener->is_administrator, &fault))
        refuse(listener, fault);
    else if (listener->state == LIVE_WAITS_FOR_RULES)
        live_listener_admit(listener);
}

/* Admits or refuses waiting listeners; closes open ones that may no longer listen. */
static void apply(struct live_namespace *ns)
{
    for (struct live_listener *listener = ns->listeners, *next; listener; listener = next) {
        next = listener->next;
        live_rules_apply(listener);
    }
}

void live_rules_failed(struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        for (struct live_listener *listener = ns->listeners, *next; listener; listener = next) {
            next = listener->next;
            if (listener->opening && listener->opening->is_settled)
                live_listener_answer(listener);
            else if (listener->state == LIVE_WAITS_FOR_RULES)
                live_listener_refuse(listener, FAULT_XAWAY, NULL, NULL);
        }
}

/* --- the query --- */

static bool is_due(struct live_namespace *ns)
{
    return ns == ns->live->z && find_wanted(ns->live);
}

static enum fault ask(struct live_namespace *ns)
{
    struct pg_params params;
    ns->ruled = find_wanted(ns->live);
    ns->ruled->rules.is_wanted = false;
    ns->ruled->rules.is_asked = true;
    pg_params_start(&params, ns->arena);
    pg_add_text(&params, bytes_of(ns->ruled->code));
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_RULES], &params);
}

static void take(struct live_namespace *ns)
{
    struct live_namespace *ruled = ns->ruled;
    struct live_rules *rules = &ruled->rules;
    struct bytes content = pg_rows(ns->result) ? pg_get_text(ns->result, 0, 0) : NO_BYTES;
    if (!rules->arena)
        rules->arena = arena_create("live rules");
    arena_reset(rules->arena);
    if (content.data)
        content = (struct bytes){arena_copy(rules->arena, content.data, content.size), content.size};
    rules->conf = access_read(rules->arena, content);
    rules->is_known = true;
    rules->is_asked = false;
    if (access_is_namespace(ns->live->settings, &rules->conf, bytes_of(ruled->code),
                            bytes_of(ruled->database)) &&
        !live_namespace_enter(ruled))
        log_error("live: the table of namespaces is full");
    if (!rules->is_wanted) /* else they have changed again: the next result counts */
        apply(ruled);
    if (ruled != ns)
        live_namespace_go_on(ruled);
}

const struct live_asking live_asks_rules = {is_due, ask, take, NULL};
