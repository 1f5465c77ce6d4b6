/* events: the loop is an event_base of libevent. */
#include "edge/events.h"

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>

#include "edge/events_private.h"

struct events *events_create(void)
{
    struct events *events = calloc(1, sizeof *events);
    if (!events || !(events->base = event_base_new()))
        events_end_without_memory();
    return events;
}

void events_destroy(struct events *events)
{
    event_base_free(events->base);
    free(events);
}

void events_run(struct events *events)
{
    if (event_base_dispatch(events->base) < 0)
        log_fatal("cannot poll: %m");
}

void events_stop(struct events *events)
{
    (void)event_base_loopbreak(events->base);
}

struct watch {
    struct events *events;
    struct event *event; /* NULL: waits for nothing */
    int fd;
    bool for_writing;
    void (*ready)(void *context);
    void *context;
};

struct watch *events_watch_create(struct events *events, void (*ready)(void *context), void *context)
{
    struct watch *watch = calloc(1, sizeof *watch);
    if (!watch)
        events_end_without_memory();
    *watch = (struct watch){.events = events, .fd = -1, .ready = ready, .context = context};
    return watch;
}

static void on_watch(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct watch *watch = context;
    watch->ready(watch->context);
}

void events_watch_set(struct watch *watch, int fd, bool for_writing)
{
    if (watch->fd == fd && watch->for_writing == for_writing)
        return;
    if (watch->event)
        event_free(watch->event);
    watch->event = NULL;
    watch->fd = fd;
    watch->for_writing = for_writing;
    if (fd < 0)
        return;
    short what = (short)((for_writing ? EV_WRITE : EV_READ) | EV_PERSIST);
    watch->event = event_new(watch->events->base, fd, what, on_watch, watch);
    if (!watch->event || event_add(watch->event, NULL))
        events_end_without_memory();
}

void events_watch_destroy(struct watch *watch)
{
    if (!watch)
        return;
    events_watch_set(watch, -1, false);
    free(watch);
}

struct events_timer {
    struct event *event;
    void (*ready)(void *context);
    void *context;
};

static void on_timer(evutil_socket_t fd, short what, void *context)
{
    (void)fd, (void)what;
    struct events_timer *timer = context;
    timer->ready(timer->context);
}

struct events_timer *events_timer_create(struct events *events, void (*ready)(void *context), void *context)
{
    struct events_timer *timer = calloc(1, sizeof *timer);
    if (!timer || !(timer->event = evtimer_new(events->base, on_timer, timer)))
        events_end_without_memory();
    timer->ready = ready;
    timer->context = context;
    return timer;
}

void events_timer_destroy(struct events_timer *timer)
{
    if (!timer)
        return;
    event_free(timer->event);
    free(timer);
}

void events_timer_start(struct events_timer *timer, int64_t after_ms)
{
    struct timeval after = events_time(after_ms);
    if (evtimer_add(timer->event, &after))
        events_end_without_memory();
}

void events_timer_stop(struct events_timer *timer)
{
    (void)evtimer_del(timer->event);
}
