/* live_link: the states of a connection: closed, connecting, idle, asking. */
#include "live/live_link.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "store/session.h"
#include "edge/pg/pg_async.h"

enum { LINGER_MS = 60000 }; /* an unneeded connection is kept this long: a new LISTEN advances all stamps */

enum link_state { LINK_CLOSED, LINK_CONNECTING, LINK_IDLE, LINK_QUERYING };

struct live_link {
    const struct live_link_owner *owner;
    const struct settings *settings;
    const char *database;
    struct pg *pg;
    struct pg_options options;
    struct watch *watch;
    enum link_state state;
    enum pg_progress progress;
    bool is_ready; /* the socket, for the next connection step */
    int failures;
    int64_t retry_ms, unneeded_ms; /* monotonic; 0: at once, needed */
    size_t query;                  /* the present or the last one */
    struct arena *arena;           /* of the current query and its result */
    struct pg_result *result;
    enum fault fault;
    struct arena *scratch; /* of one notification */
};

static void on_socket(void *context)
{
    struct live_link *link = context;
    link->is_ready = true;
    live_link_go_on(link);
}

struct live_link *live_link_create(struct events *events, const struct settings *settings,
                                   const char *database, const struct live_link_owner *owner)
{
    struct live_link *link = memory_zeroed(1, sizeof *link, "live");
    link->owner = owner;
    link->settings = settings;
    link->database = database;
    link->watch = events_watch_create(events, on_socket, link);
    link->arena = arena_create("live query");
    link->scratch = arena_create("live notification");
    link->options = (struct pg_options){
        .database = database,
        .name = "stampd live",
        .role_settings = "-c search_path=stampd -c enable_seqscan=off -c enable_hashjoin=off"
                         " -c enable_mergejoin=off -c jit=off -c synchronous_commit=off",
        .connect_timeout_s = (int)settings->connect_timeout_s,
        .statement_timeout_ms = settings->statement_timeout_ms,
        .lock_timeout_ms = settings->lock_timeout_ms,
    };
    return link;
}

bool live_link_is_open(const struct live_link *link)
{
    return link->pg != NULL;
}

void live_link_use_ids(struct live_link *link, struct stored_ids *ids)
{
    stored_ids_use(ids, link->pg);
}

/* --- the connection --- */

static void close_connection(struct live_link *link)
{
    events_watch_set(link->watch, -1, false);
    arena_reset(link->arena);
    pg_close(link->pg);
    link->pg = NULL;
    link->state = LINK_CLOSED;
}

static void live_link_drop(struct live_link *link)
{
    close_connection(link);
    link->owner->dropped(link->owner->context);
}

void live_link_destroy(struct live_link *link)
{
    close_connection(link);
    events_watch_destroy(link->watch);
    arena_destroy(link->arena);
    arena_destroy(link->scratch);
    free(link);
}

void live_link_fail(struct live_link *link, enum fault fault)
{
    log_often(LOG_LEVEL_WARNING, link->database, "live database=%s: %s", link->database, fault_code(fault));
    live_link_drop(link);
    link->retry_ms = clock_monotonic_ms() + session_pause_ms(++link->failures);
    link->owner->failed(link->owner->context, fault);
}

static void connect(struct live_link *link)
{
    link->owner->begins(link->owner->context);
    link->options.conninfo = settings_conninfo(link->settings, link->database); /* it may have been renamed */
    link->pg = pg_async_start(&link->options);
    link->is_ready = false;
    link->progress = PG_WAITS_TO_WRITE;
    link->state = LINK_CONNECTING;
}

static void go_on_connecting(struct live_link *link)
{
    enum fault fault = FAULT_NONE;
    if (!link->is_ready && clock_monotonic_ms() < pg_async_deadline_ms(link->pg)) /* libpq would block */
        return;
    link->is_ready = false;
    link->progress = pg_async_connect(link->pg, &link->options, &fault);
    if (link->progress == PG_FAILED)
        live_link_fail(link, fault);
    else if (link->progress == PG_DONE)
        link->state = LINK_IDLE;
}

/* --- queries --- */

static void pass_notifications(struct live_link *link)
{
    struct bytes channel, payload;
    while (pg_next_notification(link->pg, link->scratch, &channel, &payload)) {
        link->owner->notified(link->owner->context, channel, payload);
        arena_reset(link->scratch);
    }
    if (!pg_is_alive(link->pg))
        live_link_fail(link, FAULT_XAWAY);
}

static void send_query(struct live_link *link, size_t index)
{
    const struct live_query *query = link->owner->queries[index];
    struct pg_params params;
    link->query = index;
    link->result = NULL;
    link->fault = FAULT_NONE;
    link->progress = PG_WAITS_TO_WRITE;
    link->state = LINK_QUERYING;
    pg_params_start(&params, link->arena);
    query->add(link->owner->context, &params);
    enum fault fault = pg_async_send(link->pg, query->statement, &params);
    if (fault)
        live_link_fail(link, fault);
}

static bool is_due(const struct live_link *link, size_t index)
{
    return link->owner->queries[index]->is_due(link->owner->context);
}

static void query_next(struct live_link *link)
{
    size_t count = link->owner->count;
    for (size_t i = 0; i < link->owner->first_count; i++)
        if (is_due(link, i)) {
            send_query(link, i);
            return;
        }
    for (size_t step = 1; step <= count; step++) {
        size_t index = (link->query + step) % count;
        if (is_due(link, index)) {
            send_query(link, index);
            return;
        }
    }
}

static void fail_query(struct live_link *link)
{
    const struct live_query *query = link->owner->queries[link->query];
    enum fault fault = link->fault ? link->fault : FAULT_XDATABASE;
    if (!query->failed || !pg_is_alive(link->pg)) {
        live_link_fail(link, fault);
        return;
    }
    link->state = LINK_IDLE;
    query->failed(link->owner->context, fault);
    arena_reset(link->arena);
}

static void continue_query(struct live_link *link)
{
    link->progress = pg_async_receive(link->pg, link->arena, &link->result, &link->fault);
    if (link->progress == PG_WAITS_TO_READ || link->progress == PG_WAITS_TO_WRITE)
        return;
    if (link->progress == PG_FAILED || !link->result) {
        fail_query(link);
        return;
    }
    link->state = LINK_IDLE;
    if (link->query) /* else a failure after the first query would be retried without a pause */
        link->failures = 0;
    link->owner->queries[link->query]->take(link->owner->context, link->result);
    link->result = NULL;
    arena_reset(link->arena);
}

static void set_watch(struct live_link *link)
{
    if (!link->pg)
        return;
    bool waits = link->state == LINK_CONNECTING || link->state == LINK_QUERYING;
    if (link->state == LINK_CONNECTING) /* each step may have another socket, even with the same number */
        events_watch_set(link->watch, -1, false);
    events_watch_set(link->watch, pg_socket(link->pg), waits && link->progress == PG_WAITS_TO_WRITE);
}

void live_link_go_on(struct live_link *link)
{
    if (link->state == LINK_CLOSED && link->owner->is_needed(link->owner->context) &&
        clock_monotonic_ms() >= link->retry_ms)
        connect(link);
    if (link->state == LINK_CONNECTING)
        go_on_connecting(link);
    if (link->state == LINK_QUERYING)
        continue_query(link);
    for (int before = -1; link->state == LINK_IDLE && before != LINK_IDLE;) {
        pass_notifications(link);
        if (link->state == LINK_IDLE)
            query_next(link);
        before = (int)link->state;
        if (link->state == LINK_QUERYING) /* sends the query */
            continue_query(link);
    }
    set_watch(link);
}

bool live_link_tick(struct live_link *link, int64_t now_ms)
{
    if (link->owner->is_needed(link->owner->context))
        link->unneeded_ms = 0;
    else if (!link->unneeded_ms)
        link->unneeded_ms = now_ms;
    if (!link->pg || link->state == LINK_QUERYING || !link->unneeded_ms ||
        now_ms - link->unneeded_ms < LINGER_MS)
        return false;
    live_link_drop(link);
    return true;
}
