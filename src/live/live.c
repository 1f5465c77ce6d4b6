/* live: the process: its loop, the change feed, and shutdown. */
#include "live/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/crypto.h"
#include "live/live_private.h"

enum {
    SOON_MS = 3,         /* between two checks of commits in flight */
    LEAVE_MS = 20,       /* between two groups of streams that are ended */
    LEAVE_GROUPS = 100,  /* number of groups, so that clients reconnect gradually */
    LEAVE_LAST_MS = 300, /* for the last output of the last group */
    DESCRIPTORS = 320,   /* for other than listeners: database sessions, the log, refused requests */
};

/* --- the change feed --- */

static void hear(struct live *live, const struct subscriber_news *news)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next) {
        if (ns->ns != news->ns)
            continue;
        if (news->class.data)
            live_namespace_hear(ns, news->class, news->id, news->version);
        else
            live_namespace_miss(ns);
    }
}

void live_hear(struct live *live)
{
    struct subscriber_news news;
    while (subscriber_next(live->subscriber, &news))
        hear(live, &news);
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        live_flush(ns);
}

static void go_on(struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        live_namespace_go_on(ns);
}

static void on_subscriber(void *context)
{
    live_hear(context);
    go_on(context);
}

void live_look_soon(struct live *live)
{
    if (live->is_soon)
        return;
    live->is_soon = true;
    event_timer_start(live->soon, SOON_MS);
}

static void on_soon(void *context)
{
    struct live *live = context;
    bool is_again = false;
    live->is_soon = false;
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        is_again |= live_round_go_on(ns);
    if (is_again)
        live_look_soon(live);
    go_on(live);
}

static void on_tick(void *context)
{
    struct live *live = context;
    int64_t now_ms = clock_monotonic_ms();
    live_hear(live);
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        live_namespace_tick(ns, now_ms);
    live_keep_alive(live);
    event_timer_start(live->tick, LIVE_TICK_MS);
}

/* --- shutdown --- */

static void send_away(struct live *live, size_t count)
{
    while (count-- && live->first_kept)
        live_listener_end(live->first_kept);
}

static void on_leave(void *context)
{
    struct live *live = context;
    if (!live->listener_count) {
        events_stop(live->events);
        return;
    }
    send_away(live, live->listener_count / LEAVE_GROUPS + 1);
    event_timer_start(live->leave, live->listener_count ? LEAVE_MS : LEAVE_LAST_MS);
}

static void on_signal(void *context)
{
    struct live *live = context;
    enum stop asked = stop_asked();
    if (asked == STOP_NOW)
        events_stop(live->events);
    if (asked == STOP_NOT || live->is_leaving)
        return;
    live->is_leaving = true;
    event_endpoint_stop(live->endpoint);
    on_leave(live);
}

/* --- the process --- */

/* The number of connections that the limit of descriptors allows. */
static size_t most_connections(const struct settings *settings)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)settings->live_connections + DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return (size_t)settings->live_connections;
    limit.rlim_cur = limit.rlim_max;
    (void)setrlimit(RLIMIT_NOFILE, &limit);
    if (limit.rlim_max == RLIM_INFINITY || limit.rlim_max >= wanted)
        return (size_t)settings->live_connections;
    size_t limits = (size_t)limit.rlim_max,
           most = limits - (limits > 2 * DESCRIPTORS ? DESCRIPTORS : limits / 2);
    log_warning("live: %zu connections in place of live_connections = %lld: the limit of open files is %llu",
                most, (long long)settings->live_connections, (unsigned long long)limit.rlim_max);
    return most;
}

static bool open_live(struct live *live, const struct heritage *heritage)
{
    char problem[512];
    *live = (struct live){.settings = heritage->settings, .segment = heritage->segment};
    live->signals = stop_open();
    live->connections_most = most_connections(live->settings);
    crypto_random(&live->nonce, sizeof live->nonce);
    live->subscriber = subscriber_open(live->segment, live->settings->run_directory, problem, sizeof problem);
    if (!live->subscriber) {
        log_error("live: %s", problem);
        return false;
    }
    live->arena = arena_create("live");
    live->shares = live_shares_create();
    live->events = events_create();
    live->subscriber_watch = watch_create(live->events, on_subscriber, live);
    live->signal_watch = watch_create(live->events, on_signal, live);
    live->tick = event_timer_create(live->events, on_tick, live);
    live->soon = event_timer_create(live->events, on_soon, live);
    live->leave = event_timer_create(live->events, on_leave, live);
    live->z = live_namespace_get(live, BYTES("z"), bytes_of(live->settings->z_database));
    if (!live->z || !live_namespace_enter(live->z)) {
        log_error("live: the table of namespaces has no room for the database %s",
                  live->settings->z_database);
        return false;
    }
    live->endpoint =
        event_endpoint_open(live->events, &(struct endpoint_options){
                                              .listener = heritage->listener,
                                              .body_most = (size_t)settings_live_body(live->settings),
                                              .stall_ms = live->settings->live_stall_s * 1000,
                                              .request = live_serve,
                                              .context = live,
                                          });
    watch_set(live->subscriber_watch, subscriber_descriptor(live->subscriber), false);
    watch_set(live->signal_watch, live->signals, false);
    event_timer_start(live->tick, LIVE_TICK_MS);
    return true;
}

/* Closes the remaining connections. */
static void close_live(struct live *live)
{
    while (live->first_kept)
        live_listener_end(live->first_kept);
    event_endpoint_close(live->endpoint);
    for (struct live_namespace *ns; (ns = live->namespaces);) {
        live->namespaces = ns->next; /* no longer reachable */
        live_namespace_destroy(ns);
    }
    subscriber_close(live->subscriber);
    watch_destroy(live->subscriber_watch);
    watch_destroy(live->signal_watch);
    event_timer_destroy(live->tick);
    event_timer_destroy(live->soon);
    event_timer_destroy(live->leave);
    events_destroy(live->events);
    arena_destroy(live->arena);
    live_shares_destroy(live->shares);
    builder_free(&live->text);
    builder_free(&live->key);
}

int live_run(const struct heritage *heritage)
{
    struct live live;
    (void)prctl(PR_SET_NAME, "stampd-live"); /* for administrators */
    if (!open_live(&live, heritage))
        return 1;
    struct message message = {.kind = MESSAGE_READY, .pid = getpid()};
    if (write(heritage->messages, &message, sizeof message) != sizeof message)
        log_warning("cannot reach the master: %m");
    log_debug("live serves pipe=%s", subscriber_slot(live.subscriber)->path);
    events_run(live.events);
    close_live(&live);
    return 0;
}
