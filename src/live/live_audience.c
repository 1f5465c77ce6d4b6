/* live_audience: lists and counts of listeners. */
#include "live/live_audience.h"

#include <stdlib.h>

#include "base/memory.h"
#include "live/live_audience_private.h"

/* --- all of the process --- */

struct live_audiences *live_audiences_create(const struct settings *settings, struct subscriber *subscriber,
                                             struct live_records *records, struct live_searches *searches)
{
    struct live_audiences *audiences = memory_zeroed(1, sizeof *audiences, "live");
    audiences->settings = settings;
    audiences->subscriber = subscriber;
    audiences->records = records;
    audiences->searches = searches;
    audiences->shares = live_shares_create();
    audiences->quota_shares = live_shares_create();
    audiences->arena = arena_create("live");
    return audiences;
}

void live_audiences_destroy(struct live_audiences *audiences)
{
    live_shares_destroy(audiences->shares);
    live_shares_destroy(audiences->quota_shares);
    arena_destroy(audiences->arena);
    builder_free(&audiences->text);
    free(audiences);
}

size_t live_audiences_count(const struct live_audiences *audiences)
{
    return audiences->count;
}

size_t live_audiences_memory(const struct live_audiences *audiences)
{
    return audiences->memory;
}

const struct live_share *live_audiences_share(const struct live_audiences *audiences, uint64_t client)
{
    return client ? live_shares_find(audiences->shares, client) : NULL;
}

static void publish_count(const struct live_audiences *audiences)
{
    atomic_store(&feed_subscriber_slot(audiences->subscriber)->listeners, audiences->count);
}

/* --- a namespace --- */

struct live_audience *live_audience_create(struct live_audiences *audiences, const char *code,
                                           const char *database, const struct live_access *access)
{
    struct live_audience *audience = memory_zeroed(1, sizeof *audience, "live");
    audience->all = audiences;
    audience->code = code;
    audience->database = database;
    audience->access = access;
    audience->number = -1;
    audience->index = live_index_create();
    audience->ruled_index = live_index_create();
    return audience;
}

void live_audience_destroy(struct live_audience *audience)
{
    live_index_destroy(audience->index);
    live_index_destroy(audience->ruled_index);
    free(audience);
}

bool live_audience_enter(struct live_audience *audience, struct segment *segment)
{
    if (audience->number < 0)
        audience->number = namespaces_find(segment, bytes_of(audience->database));
    audience->segment = segment;
    return audience->number >= 0;
}

void live_audience_forget_number(struct live_audience *audience)
{
    audience->number = -1;
}

int live_audience_number(const struct live_audience *audience)
{
    return audience->number;
}

bool live_audience_set_secret(struct live_audience *audience, struct bytes secret)
{
    bool is_one = secret.size && secret.size < sizeof audience->secret;
    if (is_one)
        memcpy(audience->secret, secret.data, secret.size);
    audience->secret[is_one ? secret.size : 0] = '\0';
    return is_one;
}

bool live_audience_has_secret(const struct live_audience *audience)
{
    return *audience->secret != '\0';
}

size_t live_audience_count(const struct live_audience *audience)
{
    return audience->count;
}

size_t live_audience_admitted(const struct live_audience *audience)
{
    return audience->admitted_count;
}

size_t live_audience_memory(const struct live_audience *audience)
{
    return audience->memory;
}

struct live_index *live_audience_index(struct live_audience *audience)
{
    return audience->index;
}

const struct live_horizon *live_audience_known(const struct live_audience *audience)
{
    return &audience->known;
}

void live_audience_set_known(struct live_audience *audience, const struct live_horizon *known)
{
    audience->known = *known;
}

/* --- the order of keep-alive --- */

static void join_kept(struct live_listener *listener)
{
    struct live_audiences *all = listener->audience->all;
    listener->former_kept = all->last_kept;
    listener->next_kept = NULL;
    *(all->last_kept ? &all->last_kept->next_kept : &all->first_kept) = listener;
    all->last_kept = listener;
}

static void leave_kept(struct live_listener *listener)
{
    struct live_audiences *all = listener->audience->all;
    *(listener->former_kept ? &listener->former_kept->next_kept : &all->first_kept) = listener->next_kept;
    *(listener->next_kept ? &listener->next_kept->former_kept : &all->last_kept) = listener->former_kept;
}

void live_audience_keep(struct live_listener *listener)
{
    leave_kept(listener);
    join_kept(listener);
}

/* --- listeners that wait for a horizon --- */

void live_audience_queue(struct live_listener *listener)
{
    struct live_audience *audience = listener->audience;
    listener->next_waiting = NULL;
    *(audience->last_waiting ? &audience->last_waiting->next_waiting : &audience->first_waiting) = listener;
    audience->last_waiting = listener;
}

struct live_listener *live_audience_take_waiting(struct live_audience *audience)
{
    struct live_listener *listener = audience->first_waiting;
    if (listener && !(audience->first_waiting = listener->next_waiting))
        audience->last_waiting = NULL;
    return listener;
}

static void leave_queue(struct live_listener *listener)
{
    struct live_audience *audience = listener->audience;
    struct live_listener *former = NULL, **link = &audience->first_waiting;
    if (audience->queried == listener)
        audience->queried = NULL;
    if (listener->state != LIVE_WAITS_FOR_HORIZON)
        return;
    for (; *link && *link != listener; link = &former->next_waiting)
        former = *link;
    if (!*link)
        return;
    *link = listener->next_waiting;
    if (audience->last_waiting == listener)
        audience->last_waiting = former;
}

/* --- listeners under rules --- */

void live_audience_rule(struct live_listener *listener, const struct definition *definitions, size_t count)
{
    struct live_audience *audience = listener->audience;
    live_index_remove(audience->index, &listener->feed);
    live_index_add(audience->ruled_index, &listener->feed, definitions, count);
    listener->is_ruled = true;
    audience->ruled_count++;
}

void live_audience_trust(struct live_listener *listener, enum live_trust trust)
{
    struct live_audience *audience = listener->audience;
    audience->doubted_count += trust == LIVE_DOUBTED;
    audience->doubted_count -= listener->trust == LIVE_DOUBTED;
    listener->trust = trust;
}

/* --- all lists --- */

void live_audience_count_memory(struct live_listener *listener, size_t bytes)
{
    listener->audience->all->memory += bytes - listener->bytes;
    listener->audience->memory += bytes - listener->bytes;
    if (listener->share)
        listener->share->memory += bytes - listener->bytes;
    listener->bytes = bytes;
}

void live_audience_join(struct live_audience *audience, struct live_listener *listener)
{
    listener->audience = audience;
    listener->trust = LIVE_TRUSTED;
    listener->serial = ++audience->serials;
    listener->next = audience->listeners;
    if (listener->next)
        listener->next->previous = listener;
    audience->listeners = listener;
    audience->count++;
    audience->all->count++;
    join_kept(listener);
    publish_count(audience->all);
}

void live_audience_leave(struct live_listener *listener)
{
    struct live_audience *audience = listener->audience;
    live_audience_count_memory(listener, 0);
    if (listener->share)
        live_shares_leave(audience->all->shares, listener->share);
    for (int i = 0; i < QUOTA_SUBJECTS; i++)
        if (listener->quota_shares[i])
            live_shares_leave(audience->all->quota_shares, listener->quota_shares[i]);
    audience->all->count--;
    audience->count--;
    audience->admitted_count -= listener->state != LIVE_WAITS_FOR_ACCESS;
    *(listener->previous ? &listener->previous->next : &audience->listeners) = listener->next;
    if (listener->next)
        listener->next->previous = listener->previous;
    leave_kept(listener);
    live_audience_trust(listener, LIVE_TRUSTED);
    audience->ruled_count -= listener->is_ruled;
    live_index_remove(listener->is_ruled ? audience->ruled_index : audience->index, &listener->feed);
    leave_queue(listener);
    publish_count(audience->all);
}
