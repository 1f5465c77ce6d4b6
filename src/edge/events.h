/* events: an event loop, behind libevent.
 *
 * For a process with thousands of connections and no worker for each.  All callbacks run in one thread; a
 * callback may destroy the object that it was called for. */
#ifndef STAMPD_EDGE_EVENTS_H
#define STAMPD_EDGE_EVENTS_H

#include "base/base.h"

struct events;
struct events *events_create(void) __attribute__((returns_nonnull));
/* All objects of the loop must have been destroyed before. */
void events_destroy(struct events *events);
/* Runs until events_stop. */
void events_run(struct events *events);
void events_stop(struct events *events);

/* Waits for a borrowed descriptor to be ready. */
struct watch;
struct watch *events_watch_create(struct events *events, void (*ready)(void *context), void *context)
    __attribute__((returns_nonnull));
void events_watch_destroy(struct watch *watch); /* NULL is allowed */
/* Watches this descriptor from now on; fd -1: none.  Must be called again when the descriptor was closed. */
void events_watch_set(struct watch *watch, int fd, bool for_writing);

struct events_timer;
struct events_timer *events_timer_create(struct events *events, void (*ready)(void *context), void *context)
    __attribute__((returns_nonnull));
void events_timer_destroy(struct events_timer *timer); /* NULL is allowed */
/* Fires once, after this time; replaces an earlier start. */
void events_timer_start(struct events_timer *timer, int64_t after_ms);
void events_timer_stop(struct events_timer *timer);

#endif
