/* live_namespace: the namespaces in which clients listen: each connects a link to its database with its
 * audience, rules, news, catch-up and rounds. */
#ifndef STAMPD_LIVE_LIVE_NAMESPACE_H
#define STAMPD_LIVE_LIVE_NAMESPACE_H

#include "base/settings.h"
#include "edge/events.h"
#include "live/live_audience.h"
#include "segment/feed.h"
#include "segment/segment.h"

struct live_listener;
struct live_namespace;
struct live_namespaces;

/* What they use of the process; all of it is borrowed. */
struct live_namespaces_parts {
    const struct settings *settings;
    struct segment *segment;
    struct subscriber *subscriber;
    struct events *events;
    struct live_audiences *audiences;
    void (*continue_soon)(void *context); /* requests live_namespaces_go_on_rounds in some milliseconds */
    void *context;
};

/* With the namespace z.  NULL: there is no room for it, which has been logged. */
struct live_namespaces *live_namespaces_create(const struct live_namespaces_parts *parts);
void live_namespaces_destroy(struct live_namespaces *all); /* NULL is allowed */

/* Handles all events of the change feed, and writes what has changed. */
void live_namespaces_receive(struct live_namespaces *all);
/* Continues every step that can proceed. */
void live_namespaces_go_on(struct live_namespaces *all);
/* The same for rounds that wait for workers.  True: call it again in some milliseconds. */
bool live_namespaces_go_on_rounds(struct live_namespaces *all);
/* Called periodically. */
void live_namespaces_tick(struct live_namespaces *all, int64_t now_ms);

/* Finds or creates it; NULL: the names are too long.  It need not be a namespace: its rules will show. */
struct live_namespace *live_namespace_get(struct live_namespaces *all, struct bytes code,
                                          struct bytes database);
struct live_audience *live_namespace_audience(struct live_namespace *ns);
/* The listener is judged by the rules as soon as they are known, and goes on. */
void live_namespace_admit(struct live_namespace *ns, struct live_listener *listener);

#endif
