/* live_link: a non-blocking connection to a database, with the queries that use it in turn.
 *
 * It is opened while it is needed, and again, after a pause, when it is lost.  One query is in progress at a
 * time; when it has ended, the next that is due follows, in turn.  Between queries the notifications of the
 * database are passed on.  It knows nothing of what it transports. */
#ifndef STAMPD_LIVE_LIVE_LINK_H
#define STAMPD_LIVE_LIVE_LINK_H

#include "base/settings.h"
#include "edge/events.h"
#include "store/stored_id.h"

struct live_link;

/* A kind of query; all functions get the owner's context. */
struct live_query {
    const struct pg_statement *statement;
    bool (*is_due)(void *context);
    /* Adds the parameters; what is in their arena is valid until the query has ended. */
    void (*add)(void *context, struct pg_params *params);
    void (*take)(void *context, const struct pg_result *result);
    /* The query itself may be the cause: the connection stays open.  NULL: it is opened again. */
    void (*failed)(void *context, enum fault fault);
};

struct live_link_owner {
    void *context;
    const struct live_query *const *queries;
    size_t count;
    size_t first_count; /* the first of them precede all others while they are due */
    bool (*is_needed)(void *context);
    void (*begins)(void *context); /* before a connection is opened */
    void (*notified)(void *context, struct bytes channel, struct bytes payload);
    void (*dropped)(void *context);                  /* it is closed; a query that was in progress is lost */
    void (*failed)(void *context, enum fault fault); /* after that, when it is opened again later */
};

/* `database` and the owner are borrowed. */
struct live_link *live_link_create(struct events *events, const struct settings *settings,
                                   const char *database, const struct live_link_owner *owner)
    __attribute__((returns_nonnull));
void live_link_destroy(struct live_link *link);

/* The ids of its statements and their rows, until it is closed; borrowed. */
void live_link_use_ids(struct live_link *link, struct stored_ids *ids);

bool live_link_is_open(const struct live_link *link);
/* Continues every step that can proceed. */
void live_link_go_on(struct live_link *link);
/* Called periodically, before live_link_go_on.  True: it was not needed for a while, and is closed now. */
bool live_link_tick(struct live_link *link, int64_t now_ms);
/* The connection does not do what it should: opens another after a pause. */
void live_link_fail(struct live_link *link, enum fault fault);

#endif
