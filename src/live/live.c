/* live: the process: its loop, and shutdown. */
#include "live/live.h"

#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/stop.h"
#include "edge/events.h"
#include "live/live_audience.h"
#include "live/live_endpoint.h"
#include "live/live_listener.h"
#include "live/live_namespace.h"
#include "live/live_searches.h"
#include "live/topics/live_records.h"
#include "segment/feed.h"

enum {
    TICK_MS = 250,
    SOON_MS = 3,         /* between two checks of commits in flight */
    LEAVE_MS = 20,       /* between two groups of streams that are ended */
    LEAVE_GROUPS = 100,  /* number of groups, so that clients reconnect gradually */
    LEAVE_LAST_MS = 300, /* for the last output of the last group */
    DESCRIPTORS = 320,   /* for other than listeners: database sessions, the log, refused requests */
};

struct live {
    const struct settings *settings;
    struct events *events;
    struct subscriber *subscriber;
    struct watch *subscriber_watch, *signal_watch;
    struct events_timer *tick, *soon, *leave, *look;
    bool is_soon, is_leaving;
    int signals;
    struct live_records *records;
    struct live_searches *searches;
    struct live_audiences *audiences;
    struct live_namespaces *namespaces;
    struct live_endpoint *endpoint;
};

/* --- events --- */

static void on_subscriber(void *context)
{
    const struct live *live = context;
    live_namespaces_receive(live->namespaces);
    live_namespaces_go_on(live->namespaces);
}

static void continue_soon(void *context)
{
    struct live *live = context;
    if (live->is_soon)
        return;
    live->is_soon = true;
    events_timer_start(live->soon, SOON_MS);
}

static void on_soon(void *context)
{
    struct live *live = context;
    live->is_soon = false;
    if (live_namespaces_go_on_rounds(live->namespaces))
        continue_soon(live);
    live_namespaces_go_on(live->namespaces);
}

static void on_tick(void *context)
{
    struct live *live = context;
    live_namespaces_receive(live->namespaces);
    live_namespaces_tick(live->namespaces, clock_monotonic_ms());
    log_flush(clock_monotonic_ms());
    live_listener_keep_alive(live->audiences);
    events_timer_start(live->tick, TICK_MS);
}

static void look_soon(void *context)
{
    const struct live *live = context;
    events_timer_start(live->look, LIVE_RECORDS_STEP_MS);
}

/* Rests when no listener names records. */
static void on_look(void *context)
{
    struct live *live = context;
    if (live_records_look(live->records))
        live_namespaces_receive(live->namespaces);
    if (live_records_are_followed(live->records))
        look_soon(live);
}

/* --- shutdown --- */

static void on_leave(void *context)
{
    struct live *live = context;
    size_t count = live_audiences_count(live->audiences);
    if (!count) {
        events_stop(live->events);
        return;
    }
    live_listener_end_some(live->audiences, count / LEAVE_GROUPS + 1);
    events_timer_start(live->leave, live_audiences_count(live->audiences) ? LEAVE_MS : LEAVE_LAST_MS);
}

static void on_signal(void *context)
{
    struct live *live = context;
    enum stop stop = stop_requested();
    if (stop == STOP_NOW)
        events_stop(live->events);
    if (stop == STOP_NOT || live->is_leaving)
        return;
    live->is_leaving = true;
    live_endpoint_stop(live->endpoint);
    on_leave(live);
}

/* --- the process --- */

/* The number of connections that the limit of descriptors allows, which the master has raised. */
static size_t most_connections(const struct settings *settings)
{
    struct rlimit limit;
    rlim_t wanted = (rlim_t)settings->live_connections + DESCRIPTORS;
    if (getrlimit(RLIMIT_NOFILE, &limit))
        return (size_t)settings->live_connections;
    if (limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= wanted)
        return (size_t)settings->live_connections;
    size_t limits = (size_t)limit.rlim_cur,
           most = limits - (limits > 2 * DESCRIPTORS ? DESCRIPTORS : limits / 2);
    log_warning("live: %zu connections in place of live_connections = %lld: the limit of open files is %llu",
                most, (long long)settings->live_connections, (unsigned long long)limit.rlim_cur);
    return most;
}

static bool open_live(struct live *live, const struct heritage *heritage)
{
    char problem[512];
    size_t connections_most = most_connections(heritage->settings);
    *live = (struct live){.settings = heritage->settings, .signals = stop_open()};
    live->subscriber =
        feed_subscriber_open(heritage->segment, live->settings->run_directory, problem, sizeof problem);
    if (!live->subscriber) {
        log_error("live: %s", problem);
        return false;
    }
    live->events = events_create();
    live->subscriber_watch = events_watch_create(live->events, on_subscriber, live);
    live->signal_watch = events_watch_create(live->events, on_signal, live);
    live->tick = events_timer_create(live->events, on_tick, live);
    live->soon = events_timer_create(live->events, on_soon, live);
    live->leave = events_timer_create(live->events, on_leave, live);
    live->look = events_timer_create(live->events, on_look, live);
    live->records = live_records_create(heritage->segment->records, look_soon, live);
    live->searches = live_searches_create(&(struct live_searches_parts){
        .settings = live->settings, .events = live->events, .flush = live_listener_flush});
    live->audiences = live_audiences_create(live->settings, live->subscriber, live->records, live->searches);
    live->namespaces = live_namespaces_create(&(struct live_namespaces_parts){.settings = live->settings,
                                                                              .segment = heritage->segment,
                                                                              .subscriber = live->subscriber,
                                                                              .events = live->events,
                                                                              .audiences = live->audiences,
                                                                              .continue_soon = continue_soon,
                                                                              .context = live});
    if (!live->namespaces)
        return false;
    live->endpoint = live_endpoint_open(&(struct live_endpoint_parts){.settings = live->settings,
                                                                      .segment = heritage->segment,
                                                                      .subscriber = live->subscriber,
                                                                      .events = live->events,
                                                                      .audiences = live->audiences,
                                                                      .namespaces = live->namespaces,
                                                                      .connections_most = connections_most},
                                        heritage->listener);
    events_watch_set(live->subscriber_watch, feed_subscriber_descriptor(live->subscriber), false);
    events_watch_set(live->signal_watch, live->signals, false);
    events_timer_start(live->tick, TICK_MS);
    return true;
}

/* Closes the remaining connections. */
static void close_live(struct live *live)
{
    live_listener_end_some(live->audiences, SIZE_MAX);
    live_endpoint_close(live->endpoint);
    live_namespaces_destroy(live->namespaces);
    live_audiences_destroy(live->audiences);
    live_searches_destroy(live->searches);
    live_records_destroy(live->records);
    feed_subscriber_close(live->subscriber);
    events_watch_destroy(live->subscriber_watch);
    events_watch_destroy(live->signal_watch);
    events_timer_destroy(live->tick);
    events_timer_destroy(live->soon);
    events_timer_destroy(live->leave);
    events_timer_destroy(live->look);
    events_destroy(live->events);
}

int live_run(const struct heritage *heritage)
{
    struct live live;
    (void)prctl(PR_SET_NAME, "stampd-live"); /* for administrators */
    if (!open_live(&live, heritage))
        return 1;
    heritage_notify(heritage, MESSAGE_READY);
    log_debug("live serves pipe=%s", feed_subscriber_slot(live.subscriber)->path);
    events_run(live.events);
    close_live(&live);
    return 0;
}
