/* live_endpoint: requests from nginx: parses them, checks the limits, and answers or opens a stream. */
#ifndef STAMPD_LIVE_LIVE_ENDPOINT_H
#define STAMPD_LIVE_LIVE_ENDPOINT_H

#include "base/settings.h"
#include "edge/events.h"
#include "live/live_audience.h"
#include "segment/segment.h"

struct live_endpoint;
struct live_namespaces;

/* What it uses of the process; all of it is borrowed. */
struct live_endpoint_parts {
    const struct settings *settings;
    struct segment *segment;
    struct subscriber *subscriber;
    struct events *events;
    struct live_audiences *audiences;
    struct live_namespaces *namespaces;
    size_t connections_most;
};

/* `listener`: the socket. */
struct live_endpoint *live_endpoint_open(const struct live_endpoint_parts *parts, int listener)
    __attribute__((returns_nonnull));
/* New requests are refused from now on. */
void live_endpoint_stop(struct live_endpoint *endpoint);
void live_endpoint_close(struct live_endpoint *endpoint);

#endif
