/* live_namespace: the list of namespaces, the changes that arrive, and what happens to a link. */
#include "live/live_namespace.h"

#include <stdlib.h>

#include "base/log.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "live/access/live_admission.h"
#include "live/live_listener.h"
#include "live/live_namespace_private.h"
#include "segment/notification.h"

static bool is_z(const struct live_namespace *ns)
{
    return ns == ns->all->z;
}

/* --- changes --- */

/* The state of z applies to all. */
static void doubt_access_of(struct live_namespaces *all, struct bytes code)
{
    bool is_z = bytes_equal(code, BYTES("z"));
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        if (is_z || bytes_equal(bytes_of(ns->code), code))
            live_access_doubt(ns->access);
}

/* Changes of access may have been missed too. */
static void on_gap(void *context)
{
    const struct live_namespace *ns = context;
    for (struct live_namespace *one = is_z(ns) ? ns->all->first : NULL; one; one = one->next)
        live_access_doubt(one->access);
}

/* A document was committed; version 0: unknown. */
static void live_namespace_receive(struct live_namespace *ns, struct bytes class, struct bytes id,
                                   int64_t version)
{
    live_round_wake(ns->round);
    if (is_z(ns) && bytes_equal(class, BYTES("Namespace")))
        doubt_access_of(ns->all, id);
    live_ruled_add(ns->ruled, class, id, version);
    if (live_audience_count(ns->audience) && !live_news_add(ns->news, class, id, version))
        live_catch_up_note_gap(ns->catch_up);
}

static void receive_feed(struct live_namespaces *all, const struct subscriber_news *news)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next) {
        if (live_audience_number(ns->audience) != news->ns)
            continue;
        if (news->class.data)
            live_namespace_receive(ns, news->class, news->id, news->version);
        else
            live_catch_up_note_gap(ns->catch_up);
    }
}

void live_namespaces_receive(struct live_namespaces *all)
{
    struct subscriber_news news;
    while (feed_subscriber_next(all->parts.subscriber, &news))
        receive_feed(all, &news);
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        live_listener_flush_all(ns->audience);
}

static void drain(void *context)
{
    live_namespaces_receive(context);
}

/* Workers advance slot stamps for their own commits; this is done here for all notifications of the database,
 * since the relay may receive them later. */
static void on_notification(void *context, struct bytes channel, struct bytes payload)
{
    struct live_namespace *ns = context;
    struct bytes class, id;
    if (bytes_equal(channel, BYTES("stampd_live"))) {
        if (live_round_receive(ns->round, payload))
            ns->all->parts.continue_soon(ns->all->parts.context);
        return;
    }
    struct arena *arena = arena_create("live payload");
    payload = ns->has_keys ? stored_id_open_payload(&ns->keys, arena, payload) : BYTES("all");
    if (notification_publish(ns->all->parts.segment, live_audience_number(ns->audience), payload, &class,
                             &id))
        live_namespace_receive(ns, class, id, 0);
    else
        live_catch_up_note_gap(ns->catch_up);
    arena_destroy(arena);
}

/* --- the link --- */

static bool is_needed(void *context)
{
    const struct live_namespace *ns = context;
    return live_audience_admitted(ns->audience) ||
           (is_z(ns) && live_audiences_count(ns->all->parts.audiences));
}

static void want_feed(const struct live_namespace *ns, bool is_wanted)
{
    if (ns->all->parts.settings->hosts != HOSTS_MANY) /* else notifications cover everything */
        feed_subscriber_want(ns->all->parts.subscriber, live_audience_number(ns->audience), is_wanted);
}

static void on_begin(void *context)
{
    struct live_namespace *ns = context;
    want_feed(ns, true);                               /* before any query */
    if (!live_audience_known(ns->audience)->horizon) { /* no listener is open: nothing can be missed */
        live_catch_up_forgive(ns->catch_up);
        live_round_begin(ns->round);
    }
}

/* The next connection starts the current work over; open streams are not affected. */
static void on_drop(void *context)
{
    struct live_namespace *ns = context;
    ns->is_listening = ns->has_keys = false;
    (void)live_audience_set_secret(ns->audience, NO_BYTES);
    live_round_rest(ns->round);
    live_catch_up_drop(ns->catch_up);
    live_news_clear(ns->news);
    live_ruled_drop(ns->ruled);
    live_follow_drop(ns->audience);
    for (struct live_namespace *one = is_z(ns) ? ns->all->first : NULL; one; one = one->next)
        live_access_forget(one->access);
}

static void on_failure(void *context, enum fault fault)
{
    struct live_namespace *ns = context;
    live_listener_refuse_waiting(ns->audience, fault);
    live_accounts_refuse(ns->audience, fault);
    for (struct live_namespace *one = is_z(ns) ? ns->all->first : NULL; one; one = one->next)
        live_admission_refuse_unjudged(one->audience);
}

/* There are no listeners: from now on no changes are received, and the state is dropped. */
static void forget_unneeded(struct live_namespace *ns)
{
    want_feed(ns, false);
    live_audience_set_known(ns->audience, &(struct live_horizon){0});
    for (struct live_namespace *one = is_z(ns) ? ns->all->first : NULL; one; one = one->next)
        live_access_reset(one->access);
}

static void tick(struct live_namespace *ns, int64_t now_ms)
{
    if (live_link_tick(ns->link, now_ms)) {
        forget_unneeded(ns);
        return;
    }
    if (live_link_is_open(ns->link))
        live_catch_up_check_losses(ns->catch_up);
    if (live_round_is_late(ns->round, now_ms))
        live_link_fail(ns->link, FAULT_XTIME);
    live_link_go_on(ns->link);
}

/* --- one namespace --- */

/* Finds an unneeded entry that is not a namespace, to reuse it: unknown names must not consume memory. */
static struct live_namespace *find_refused(const struct live_namespaces *all)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        if (live_audience_number(ns->audience) < 0 && !live_audience_count(ns->audience) &&
            !live_access_is_requested(ns->access))
            return ns;
    return NULL;
}

static struct live_namespace *rename_ns(struct live_namespace *ns, struct bytes code, struct bytes database)
{
    memset(ns->code, 0, sizeof ns->code);
    memset(ns->database, 0, sizeof ns->database);
    memcpy(ns->code, code.data, code.size);
    memcpy(ns->database, database.data, database.size);
    live_audience_forget_number(ns->audience);
    live_access_reset(ns->access);
    return ns;
}

static struct live_namespace *live_namespace_create(struct live_namespaces *all)
{
    const struct live_namespaces_parts *parts = &all->parts;
    struct live_namespace *ns = memory_zeroed(1, sizeof *ns, "live");
    ns->all = all;
    ns->access = live_access_create();
    ns->audience = live_audience_create(parts->audiences, ns->code, ns->database, ns->access);
    ns->news = live_news_create(live_audience_index(ns->audience));
    ns->ruled = live_ruled_create(ns->audience, drain, all);
    ns->snapshot = live_snapshot_create(ns->database);
    ns->catch_up = live_catch_up_create(parts->segment, parts->subscriber, ns->audience, ns->ruled,
                                        ns->database, on_gap, ns);
    ns->round = live_round_create(&(struct live_round_parts){.segment = parts->segment,
                                                             .audience = ns->audience,
                                                             .news = ns->news,
                                                             .ruled = ns->ruled,
                                                             .catch_up = ns->catch_up,
                                                             .nonce = all->nonce,
                                                             .drain = drain,
                                                             .context = all});
    ns->owner = (struct live_link_owner){.context = ns,
                                         .queries = live_namespace_queries,
                                         .count = LIVE_QUERIES,
                                         .first_count = LIVE_FIRST_QUERIES,
                                         .is_needed = is_needed,
                                         .begins = on_begin,
                                         .notified = on_notification,
                                         .dropped = on_drop,
                                         .failed = on_failure};
    ns->link = live_link_create(parts->events, parts->settings, ns->database, &ns->owner);
    ns->next = all->first;
    all->first = ns;
    return ns;
}

static void live_namespace_destroy(struct live_namespace *ns)
{
    live_link_destroy(ns->link);
    live_round_destroy(ns->round);
    live_catch_up_destroy(ns->catch_up);
    live_news_destroy(ns->news);
    live_ruled_destroy(ns->ruled);
    live_snapshot_destroy(ns->snapshot);
    live_audience_destroy(ns->audience);
    live_access_destroy(ns->access);
    data_keys_free(&ns->keys);
    free(ns);
}

struct live_namespace *live_namespace_get(struct live_namespaces *all, struct bytes code,
                                          struct bytes database)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        if (bytes_equal(bytes_of(ns->code), code) && bytes_equal(bytes_of(ns->database), database))
            return ns;
    if (code.size >= LIVE_CODE_BYTES || database.size > NAMESPACES_DATABASE_BYTES)
        return NULL;
    struct live_namespace *ns = find_refused(all);
    return rename_ns(ns ? ns : live_namespace_create(all), code, database);
}

struct live_audience *live_namespace_audience(struct live_namespace *ns)
{
    return ns->audience;
}

/* Access is valid while the process listens to its documents. */
void live_namespace_admit(struct live_namespace *ns, struct live_listener *listener)
{
    struct live_namespace *z = ns->all->z;
    if (!live_access_is_known(ns->access) || !z->is_listening)
        live_access_doubt(ns->access);
    if (live_access_is_wanted(ns->access) || live_access_is_requested(ns->access))
        live_link_go_on(z->link);
    else
        live_admission_judge(listener);
    live_link_go_on(ns->link);
}

/* --- all --- */

struct live_namespaces *live_namespaces_create(const struct live_namespaces_parts *parts)
{
    struct live_namespaces *all = memory_zeroed(1, sizeof *all, "live");
    all->parts = *parts;
    crypto_random(&all->nonce, sizeof all->nonce);
    all->z = live_namespace_get(all, BYTES("z"), bytes_of(parts->settings->z_database));
    if (all->z && live_audience_enter(all->z->audience, parts->segment))
        return all;
    log_error("live: the table of namespaces has no room for the database %s", parts->settings->z_database);
    live_namespaces_destroy(all);
    return NULL;
}

void live_namespaces_destroy(struct live_namespaces *all)
{
    for (struct live_namespace *ns; all && (ns = all->first);) {
        all->first = ns->next; /* no longer reachable */
        live_namespace_destroy(ns);
    }
    free(all);
}

void live_namespaces_go_on(struct live_namespaces *all)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        live_link_go_on(ns->link);
}

bool live_namespaces_go_on_rounds(struct live_namespaces *all)
{
    bool is_again = false;
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        is_again |= live_round_go_on(ns->round);
    return is_again;
}

void live_namespaces_tick(struct live_namespaces *all, int64_t now_ms)
{
    for (struct live_namespace *ns = all->first; ns; ns = ns->next)
        tick(ns, now_ms);
}
