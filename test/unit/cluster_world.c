/* cluster_world: events in a heap, by time; z is one of those that events happen to. */
#include "cluster_world.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"

enum { TICK_MS = 50, Z_CHECK_MS = 100, LATENCY_LEAST_US = 100, LATENCY_US = 900 };

enum event_kind { EVENT_MESSAGE, EVENT_TICK, EVENT_BEAT, EVENT_AT_Z, EVENT_VIEW };

struct event {
    int64_t at_us;
    uint64_t order;
    enum event_kind kind;
    uint32_t host;
    uint64_t life;                   /* of the host: an event for a former one is dropped */
    struct cluster_message *message; /* its texts are behind it */
    struct cluster_map *map;         /* VIEW */
    struct cluster_view view;
    struct cluster_report report; /* AT_Z */
    int64_t sent_ms;              /* AT_Z, VIEW: by the host's clock */
};

struct host {
    struct cluster_host *cluster; /* NULL: dead */
    struct cluster_bounds bounds;
    uint64_t life;
    uint32_t number; /* 0: z does not know it yet */
    double drift;
    int64_t offset_ms, wall_us;
    int64_t stopped_until_us, delay_us, delayed_until_us;
    bool is_leaving;
    uint64_t groups[CLUSTER_LEVELS_MOST];
    /* What z knows of it. */
    struct cluster_member member; /* number 0: not a member */
    int64_t beat_us;
    uint64_t seen, swept;
    uint64_t alone_since; /* version since which it has a bit of `alone` */
    bool is_short, was_member;
};

struct world {
    struct world_settings settings;
    world_answer *answer;
    void *context;
    struct host *hosts;
    int64_t *cuts; /* from each host to each, and to z and back in the last row and column */
    struct event **events;
    size_t event_count, event_room;
    uint64_t order;
    int64_t now_us;
    uint32_t random;
    uint32_t running; /* host whose code runs */
    struct world_counts counts;
    /* z */
    struct cluster_map *map;
    uint64_t version, lives;
    uint32_t last_number, lost, left;
    uint32_t in_order;       /* hosts in the order when both were 0 */
    bool is_short;           /* some had no room for all copies since then */
    uint64_t missed_version; /* of the last of them: all are forgotten when all have swept it */
    int64_t doubt_until_us;
    int64_t checked_us; /* who is silent, and the least of what members report */
    uint64_t least_seen, least_swept;
};

uint32_t world_random(struct world *world, uint32_t below)
{
    world->random = world->random * 1664525u + 1013904223u;
    return (uint32_t)((uint64_t)world->random * below >> 32);
}

int64_t world_now(const struct world *world)
{
    return world->now_us;
}

/* The heap. */

static bool is_before(const struct event *a, const struct event *b)
{
    return a->at_us != b->at_us ? a->at_us < b->at_us : a->order < b->order;
}

static struct event *push(struct world *world, struct event event)
{
    struct event *copy = memory_zeroed(1, sizeof *copy, "event");
    *copy = event;
    copy->order = ++world->order;
    if (world->event_count == world->event_room) {
        world->event_room = world->event_room ? 2 * world->event_room : 1024;
        world->events = memory_grown(world->events, world->event_room, sizeof(void *), "events");
    }
    size_t at = world->event_count++;
    for (; at > 0 && is_before(copy, world->events[(at - 1) / 2]); at = (at - 1) / 2)
        world->events[at] = world->events[(at - 1) / 2];
    world->events[at] = copy;
    return copy;
}

static struct event *pop(struct world *world)
{
    struct event *first = world->events[0], *last = world->events[--world->event_count];
    size_t at = 0;
    for (size_t child; (child = 2 * at + 1) < world->event_count; at = child) {
        if (child + 1 < world->event_count && is_before(world->events[child + 1], world->events[child]))
            child++;
        if (!is_before(world->events[child], last))
            break;
        world->events[at] = world->events[child];
    }
    if (world->event_count > 0)
        world->events[at] = last;
    return first;
}

static void drop(struct event *event)
{
    free(event->message);
    cluster_map_destroy(event->map);
    free(event);
}

/* Clocks and ways. */

static struct cluster_time time_of(const struct world *world, uint32_t host)
{
    const struct host *clock = &world->hosts[host];
    return (struct cluster_time){.now_ms = clock->offset_ms +
                                           (int64_t)((double)world->now_us * (1 + clock->drift) / WORLD_MS),
                                 .wall_us = world->now_us + clock->wall_us};
}

static int64_t *cut_of(const struct world *world, uint32_t from, uint32_t to)
{
    uint32_t most = world->settings.hosts_most;
    return &world->cuts[(size_t)(from == WORLD_Z ? most : from) * (most + 1) + (to == WORLD_Z ? most : to)];
}

void world_cut(struct world *world, uint32_t from, uint32_t to, int64_t until_us)
{
    int64_t *cut = cut_of(world, from, to);
    if (*cut < until_us)
        *cut = until_us;
}

static bool is_cut(const struct world *world, uint32_t from, uint32_t to)
{
    return world->cuts && *cut_of(world, from, to) > world->now_us;
}

static int64_t arrival(struct world *world, uint32_t from)
{
    int64_t at_us = world->now_us + LATENCY_LEAST_US + world_random(world, LATENCY_US);
    const struct host *host = from == WORLD_Z ? NULL : &world->hosts[from];
    return host && host->delayed_until_us > world->now_us
               ? at_us + world_random(world, (uint32_t)host->delay_us + 1)
               : at_us;
}

void world_stop(struct world *world, uint32_t host, int64_t until_us)
{
    world->hosts[host].stopped_until_us = until_us;
}

void world_delay(struct world *world, uint32_t host, int64_t by_us, int64_t until_us)
{
    world->hosts[host].delay_us = by_us;
    world->hosts[host].delayed_until_us = until_us;
}

void world_step_wall(struct world *world, uint32_t host, int64_t by_us)
{
    world->hosts[host].wall_us += by_us;
}

/* Hosts.  A number names the place of the host in its low part. */

static uint32_t place_of(const struct world *world, uint32_t number)
{
    return number % world->settings.hosts_most;
}

static void send_message(void *context, const struct cluster_message *message)
{
    struct world *world = context;
    uint32_t to = place_of(world, message->to), from = world->running;
    world->counts.messages[message->kind] += to != from;
    world->counts.bytes += to != from ? message->key.size + message->content.size : 0;
    if (to != from && is_cut(world, from, to))
        return;
    struct cluster_message *copy =
        memory_zeroed(1, sizeof *copy + message->key.size + message->content.size, "message");
    char *texts = (char *)(copy + 1);
    *copy = *message;
    if (message->key.size)
        memcpy(texts, message->key.data, message->key.size);
    if (message->content.size)
        memcpy(texts + message->key.size, message->content.data, message->content.size);
    copy->key = (struct bytes){texts, message->key.size};
    copy->content = (struct bytes){texts + message->key.size, message->content.size};
    push(world, (struct event){.at_us = to == from ? world->now_us : arrival(world, from),
                               .kind = EVENT_MESSAGE,
                               .host = to,
                               .life = world->hosts[to].life,
                               .message = copy});
}

static void pass_answer(void *context, uint64_t cookie, const struct cluster_answer *answer)
{
    struct world *world = context;
    world->answer(world->context, cookie, answer);
}

bool world_is_alive(const struct world *world, uint32_t host)
{
    return world->hosts[host].cluster;
}

struct cluster_host *world_host(struct world *world, uint32_t host)
{
    return world->hosts[host].cluster;
}

bool world_ask(struct world *world, uint32_t host, const struct cluster_request *request, uint64_t cookie)
{
    world->running = host;
    return cluster_ask(world->hosts[host].cluster, request, cookie, time_of(world, host));
}

void world_start(struct world *world, uint32_t host, uint32_t fan, const struct cluster_bounds *bounds)
{
    struct host *one = &world->hosts[host];
    struct cluster_settings settings = world->settings.cluster;
    settings.bounds = *bounds;
    one->cluster = cluster_create(&settings, &(struct cluster_hooks){world, send_message, pass_answer});
    one->life = ++world->lives;
    one->number = 0;
    one->is_leaving = false;
    one->offset_ms = 1 + world_random(world, 1000000);
    one->drift = ((double)world_random(world, 2000) - 1000) / 10e6;
    uint32_t rest = host;
    for (unsigned level = world->settings.depth; level-- > 0; rest /= fan)
        one->groups[level] = level == 0 ? rest + 1 : rest % fan + 1;
    push(world, (struct event){world->now_us, .kind = EVENT_TICK, .host = host, .life = one->life});
    push(world, (struct event){world->now_us, .kind = EVENT_BEAT, .host = host, .life = one->life});
}

void world_kill(struct world *world, uint32_t host)
{
    cluster_destroy(world->hosts[host].cluster);
    world->hosts[host].cluster = NULL;
    world->hosts[host].life = 0;
    world->hosts[host].stopped_until_us = 0;
}

void world_leave(struct world *world, uint32_t host)
{
    world->hosts[host].is_leaving = true;
}

/* z: one table, one transaction at a time. */

static void z_publish(struct world *world)
{
    uint32_t count = 0;
    struct cluster_member *members = memory_zeroed(world->settings.hosts_most, sizeof *members, "members");
    for (uint32_t host = 0; host < world->settings.hosts_most; host++)
        if (world->hosts[host].member.number)
            members[count++] = world->hosts[host].member;
    cluster_map_destroy(world->map);
    world->map = cluster_map_create(members, count, world->settings.depth, world->version);
    free(members);
}

static void z_look(struct world *world)
{
    world->checked_us = world->now_us;
    world->least_seen = world->least_swept = UINT64_MAX;
    for (uint32_t host = 0; host < world->settings.hosts_most; host++) {
        const struct host *one = &world->hosts[host];
        if (!one->member.number)
            continue;
        if (one->seen < world->least_seen)
            world->least_seen = one->seen;
        if (one->swept < world->least_swept)
            world->least_swept = one->swept;
    }
}

/* May so many hosts be all that have a record? */
static bool is_all(const struct world *world, uint32_t count)
{
    return count > (world->is_short ? 0 : world->settings.cluster.copies) ||
           (count > 0 && count >= world->in_order);
}

/* The order is without a host from the next version on, and what it has is not yet where that wants it. */
static void z_miss(struct world *world, uint32_t *count)
{
    z_look(world);
    if (world->least_swept >= world->missed_version)
        world->lost = world->left = 0;
    if (world->lost + world->left == 0) {
        world->in_order = 0;
        world->is_short = false;
        for (uint32_t host = 0; host < world->settings.hosts_most; host++)
            world->in_order += world->hosts[host].member.number && !world->hosts[host].member.is_guest;
    }
    for (uint32_t host = 0; host < world->settings.hosts_most; host++)
        world->is_short |= world->hosts[host].member.number && world->hosts[host].is_short;
    world->missed_version = world->version + 1;
    ++*count;
}

/* May what hosts of the group had be elsewhere, when this host is not in it?  `is_lost`: it has just been
 * lost, and what it had counts.  The bits are for all of the group that are left, or for the host, which
 * joins. */
static uint8_t z_alone(struct world *world, const struct host *host, bool is_lost)
{
    uint8_t bits = 0;
    z_look(world);
    for (unsigned level = 1; level < world->settings.depth; level++) {
        bool is_known = false, was_there = false;
        size_t same = (world->settings.depth - level) * sizeof host->groups[0];
        for (uint32_t at = 0; at < world->settings.hosts_most; at++) {
            const struct host *other = &world->hosts[at];
            if (memcmp(other->groups, host->groups, same) != 0)
                continue;
            was_there |= other->was_member;
            is_known |= other != host && other->member.number && !other->member.is_guest &&
                        (!is_lost || other->member.joined <= world->least_swept);
        }
        if (!is_known && was_there)
            bits |= (uint8_t)(1u << (level - 1));
    }
    return bits;
}

static void z_mark_alone(struct world *world, const struct host *lost)
{
    uint8_t bits = z_alone(world, lost, true);
    for (unsigned level = 1; level < world->settings.depth; level++)
        for (uint32_t at = 0; at < world->settings.hosts_most; at++) {
            struct host *other = &world->hosts[at];
            size_t same = (world->settings.depth - level) * sizeof lost->groups[0];
            if (!(bits >> (level - 1) & 1) || other == lost || !other->member.number ||
                memcmp(other->groups, lost->groups, same) != 0)
                continue;
            other->member.alone |= (uint8_t)(1u << (level - 1));
            other->alone_since = world->version + 1;
        }
}

/* A host is gone without having passed on what it has. */
static void z_lose(struct world *world, struct host *host)
{
    z_miss(world, &world->lost);
    z_mark_alone(world, host);
    host->member.number = 0;
    world->counts.removed++;
    if (is_all(world, world->lost)) {
        world->counts.doubts++;
        world->doubt_until_us =
            world->now_us +
            (world->settings.cluster.ttl_most_ms + 2 * world->settings.cluster.request_ms) * WORLD_MS;
        world->lost = 0;
    }
}

void world_start_all(struct world *world, uint32_t count, uint32_t fan, const struct cluster_bounds *bounds)
{
    world->version++;
    for (uint32_t host = 0; host < count; host++) {
        world_start(world, host, fan, bounds);
        struct host *one = &world->hosts[host];
        one->number = ++world->last_number * world->settings.hosts_most + host;
        one->member = (struct cluster_member){.number = one->number, .joined = world->version};
        memcpy(one->member.groups, one->groups, sizeof one->groups);
        one->was_member = true;
    }
    z_publish(world);
    z_look(world);
}

static bool z_remove_silent(struct world *world)
{
    bool is_changed = false;
    for (uint32_t host = 0; host < world->settings.hosts_most; host++) {
        struct host *one = &world->hosts[host];
        if (one->member.number && world->now_us - one->beat_us > world->settings.lapse_ms * WORLD_MS) {
            z_lose(world, one);
            is_changed = true;
        }
    }
    return is_changed;
}

/* Returns the number that the host has from now on; 0: it has left. */
static uint32_t z_heed(struct world *world, const struct event *beat)
{
    struct host *one = &world->hosts[beat->host];
    bool is_due = world->now_us - world->checked_us >= Z_CHECK_MS * WORLD_MS;
    bool is_changed = is_due && z_remove_silent(world);
    uint32_t number = beat->view.self;
    if (number == 0 || one->member.number != number) {
        if (one->member.number)
            z_lose(world, one); /* it has started again, and says so itself */
        one->member = (struct cluster_member){.joined = world->version + 1, .is_guest = one->is_leaving};
        one->member.alone = z_alone(world, one, false);
        one->alone_since = world->version + 1;
        one->was_member = true;
        one->member.number = ++world->last_number * world->settings.hosts_most + beat->host;
        memcpy(one->member.groups, one->groups, sizeof one->groups);
        one->seen = one->swept = 0;
        one->is_short = false;
        is_changed = true;
    } else {
        one->seen = beat->report.seen;
        one->swept = beat->report.swept;
        one->is_short = beat->report.is_short;
        if (one->seen >= one->alone_since && one->member.alone & beat->report.alone_over) {
            one->member.alone &= (uint8_t)~beat->report.alone_over;
            is_changed = true;
        }
        if (one->is_leaving && !one->member.is_guest) {
            z_miss(world, &world->left);
            one->member.is_guest = is_changed = true;
        } else if (one->is_leaving && one->swept >= world->version &&
                   beat->report.records + beat->report.removed == 0) {
            one->member.number = 0;
            is_changed = true;
        }
    }
    one->beat_us = world->now_us;
    if (is_changed) {
        world->version++;
        z_publish(world);
    }
    if (is_changed || is_due)
        z_look(world);
    return one->member.number;
}

static void z_answer(struct world *world, const struct event *beat)
{
    uint32_t number = z_heed(world, beat);
    int64_t doubt_us = world->doubt_until_us - world->now_us, lease_us = world->settings.lease_ms * WORLD_MS;
    if (is_all(world, world->lost + world->left) && doubt_us < lease_us &&
        world->least_swept < world->missed_version)
        doubt_us = lease_us; /* a later view renews it, until all have swept */
    struct event event = {.at_us = arrival(world, WORLD_Z),
                          .kind = EVENT_VIEW,
                          .host = beat->host,
                          .life = beat->life,
                          .map = cluster_map_share(world->map),
                          .sent_ms = beat->sent_ms};
    event.view = (struct cluster_view){.map = event.map,
                                       .self = number,
                                       .sure_until_ms = beat->sent_ms + world->settings.lease_ms,
                                       .doubt_ms = doubt_us > 0 ? doubt_us / WORLD_MS + 1 : 0};
    event.view.seen = world->least_seen;
    event.view.swept = world->least_swept;
    if (is_cut(world, WORLD_Z, beat->host))
        cluster_map_destroy(event.map);
    else
        push(world, event);
}

/* What happens. */

static void beat(struct world *world, const struct event *event)
{
    struct host *host = &world->hosts[event->host];
    struct event at_z = {.at_us = arrival(world, event->host),
                         .kind = EVENT_AT_Z,
                         .host = event->host,
                         .life = host->life,
                         .sent_ms = time_of(world, event->host).now_ms};
    at_z.view.self = host->number;
    cluster_report(host->cluster, &at_z.report);
    if (!is_cut(world, event->host, WORLD_Z))
        push(world, at_z);
    push(world, (struct event){world->now_us + world->settings.beat_ms * WORLD_MS, .kind = EVENT_BEAT,
                               .host = event->host, .life = host->life});
}

static void happen(struct world *world, const struct event *event)
{
    struct host *host = &world->hosts[event->host];
    struct cluster_time time = time_of(world, event->host);
    world->running = event->host;
    switch (event->kind) {
    case EVENT_MESSAGE:
        cluster_receive(host->cluster, event->message, time);
        return;
    case EVENT_TICK:
        cluster_tick(host->cluster, time);
        push(world, (struct event){world->now_us + TICK_MS * WORLD_MS, .kind = EVENT_TICK,
                                   .host = event->host, .life = host->life});
        return;
    case EVENT_BEAT:
        beat(world, event);
        return;
    case EVENT_AT_Z:
        z_answer(world, event);
        return;
    case EVENT_VIEW:
        if (event->view.self == 0) {
            world_kill(world, event->host);
            return;
        }
        host->number = event->view.self;
        cluster_see(host->cluster, &event->view, time);
        return;
    }
}

void world_run(struct world *world, int64_t until_us)
{
    while (world->event_count > 0 && world->events[0]->at_us <= until_us) {
        struct event *event = pop(world);
        struct host *host = &world->hosts[event->host];
        world->now_us = event->at_us;
        if (!host->cluster || (event->life != host->life && event->life != 0)) {
            drop(event);
        } else if (host->stopped_until_us > world->now_us && event->kind != EVENT_AT_Z) {
            event->at_us = host->stopped_until_us;
            push(world, *event);
            free(event);
        } else {
            happen(world, event);
            drop(event);
        }
    }
    world->now_us = until_us;
}

void world_count(const struct world *world, struct world_counts *counts_r)
{
    *counts_r = world->counts;
}

struct world *world_create(const struct world_settings *settings, world_answer *answer, void *context)
{
    struct world *world = memory_zeroed(1, sizeof *world, "world");
    world->settings = *settings;
    world->answer = answer;
    world->context = context;
    world->random = settings->seed * 2654435761u + 1;
    world->hosts = memory_zeroed(settings->hosts_most, sizeof *world->hosts, "hosts");
    if (settings->hosts_most <= 256) /* larger worlds have no cuts */
        world->cuts = memory_zeroed((size_t)(settings->hosts_most + 1) * (settings->hosts_most + 1),
                                    sizeof *world->cuts, "cuts");
    world->map = cluster_map_create(NULL, 0, settings->depth, 0);
    return world;
}

void world_destroy(struct world *world)
{
    while (world->event_count > 0)
        drop(pop(world));
    for (uint32_t host = 0; host < world->settings.hosts_most; host++)
        cluster_destroy(world->hosts[host].cluster);
    cluster_map_destroy(world->map);
    free(world->events);
    free(world->hosts);
    free(world->cuts);
    free(world);
}
