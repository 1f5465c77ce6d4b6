/* events_private: for src/edge/events.c and exchange.c only; the only file that includes libevent. */
#ifndef STAMPD_EDGE_EVENTS_PRIVATE_H
#define STAMPD_EDGE_EVENTS_PRIVATE_H

#include <event2/buffer.h>
#include <event2/bufferevent.h>
#include <event2/event.h>
#include <event2/http.h>
#include <event2/listener.h>

#include "base/log.h"
#include "edge/events.h"

struct events {
    struct event_base *base;
};

static inline void NORETURN events_end_without_memory(void)
{
    log_fatal("out of memory in the loop of events");
}

static inline struct timeval events_time(int64_t ms)
{
    return (struct timeval){.tv_sec = ms / 1000, .tv_usec = ms % 1000 * 1000};
}

#endif
