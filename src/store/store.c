/* store: the sessions of this process, one per namespace, and snapshots. store_load.c reads documents,
 * store_commit.c writes and verifies them, store_list.c lists them. */
#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "segment/namespaces.h"
#include "store/session.h"
#include "store/store_private.h"

enum { RECENT_MS = 10000 }; /* a session used within this time counts as in use */

struct store *store_create(const struct settings *settings, struct segment *segment)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store)
        log_fatal("out of memory store");
    store->settings = settings;
    store->segment = segment;
    store->visitor = NO_VISITOR;
    return store;
}

void store_destroy(struct store *store)
{
    if (!store)
        return;
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        store_close(store, ns);
    free(store);
}

void store_close(struct store *store, int ns)
{
    struct store_session *session = &store->sessions[ns];
    if (!session->pg)
        return;
    pg_close(session->pg);
    store_forget_schema(session);
    store_forget_statements(session);
    store_forget_searches(session);
    session->pg = NULL;
    session->in_snapshot = session->is_held = false;
    store->open_count--;
}

int64_t store_pipeline_ms(const struct store *store)
{
    return 2 * store->settings->statement_timeout_ms;
}

/* --- opening ------------------------------------------------------------------------------------- */

/* The least recently used session, except those with an open snapshot; -1: none. */
static int find_oldest(const struct store *store)
{
    int oldest = -1;
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        const struct store_session *session = &store->sessions[ns];
        if (session->pg && !session->in_snapshot && !session->is_held &&
            (oldest < 0 || session->used < store->sessions[oldest].used))
            oldest = ns;
    }
    return oldest;
}

/* Closes the least recently used sessions beyond the limit. */
static void make_room(struct store *store)
{
    int oldest;
    while (store->open_count >= store->settings->connections && (oldest = find_oldest(store)) >= 0)
        store_close(store, oldest);
}

void store_set_visitor(struct store *store, int ns)
{
    store->visitor = ns;
}

void store_clear_visitor(struct store *store)
{
    store->visitor = NO_VISITOR;
}

/* Whether opening one more session would close one that is in use. */
static bool is_crowded(const struct store *store)
{
    if (store->open_count < store->settings->connections)
        return false;
    int oldest = find_oldest(store);
    return oldest < 0 || clock_monotonic_ms() - store->sessions[oldest].used_ms < RECENT_MS;
}

static void note_use(struct store *store, struct store_session *session)
{
    session->used = ++store->turn;
    session->used_ms = clock_monotonic_ms();
}

static enum fault open_session(struct store *store, int ns)
{
    struct store_session *session = &store->sessions[ns];
    make_room(store);
    enum fault fault = session_open(store->settings, store->segment, ns, &session->pg);
    if (!fault)
        fault = store_read_schema(session);
    namespaces_set_health(store->segment, ns, !fault);
    if (fault) {
        pg_close(session->pg);
        session->pg = NULL;
        session->reason = fault;
        session->failures++;
        session->retry_ms = clock_monotonic_ms() + session_pause_ms(session->failures);
        return fault;
    }
    store->open_count++;
    session->failures = 0;
    session->in_snapshot = false;
    note_use(store, session);
    return FAULT_NONE;
}

static enum fault open_when_due(struct store *store, int ns)
{
    const struct store_session *session = &store->sessions[ns];
    if (session->failures && clock_monotonic_ms() < session->retry_ms)
        return session->reason;
    if (ns == store->visitor && is_crowded(store))
        return FAULT_ELSEWHERE;
    return open_session(store, ns);
}

enum fault store_use(struct store *store, int ns, struct pg **pg_r)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    struct store_session *session = &store->sessions[ns];
    *pg_r = NULL;
    if (!session->pg) {
        enum fault fault = open_when_due(store, ns);
        if (fault)
            return fault;
    }
    note_use(store, session);
    *pg_r = session->pg;
    return FAULT_NONE;
}

enum fault store_connect(struct store *store, int ns)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    struct store_session *session = &store->sessions[ns];
    if (session->pg && !session->in_snapshot && !pg_is_alive(session->pg))
        store_close(store, ns);
    struct pg *pg;
    return store_use(store, ns, &pg);
}

enum fault store_reconnect(struct store *store, int ns, int64_t patience_ms)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    store_close(store, ns);
    int64_t deadline_ms = clock_monotonic_ms() + patience_ms;
    for (;;) {
        enum fault fault = open_session(store, ns);
        if (!fault)
            return FAULT_NONE;
        int64_t now_ms = clock_monotonic_ms(), pause_ms = store->sessions[ns].retry_ms - now_ms;
        if (now_ms >= deadline_ms)
            return fault;
        if (pause_ms > deadline_ms - now_ms)
            pause_ms = deadline_ms - now_ms;
        clock_sleep_ms(pause_ms > 0 ? pause_ms : 0);
    }
}

/* --- snapshots ----------------------------------------------------------------------------------- */

static enum fault begin_snapshot(struct store *store, int ns, void *context UNUSED)
{
    return pg_execute(store->sessions[ns].pg, "begin isolation level repeatable read read only");
}

enum fault store_snapshot_begin(struct store *store, int ns)
{
    enum fault fault = store_run(store, ns, begin_snapshot, NULL);
    if (!fault)
        store->sessions[ns].in_snapshot = true;
    return fault;
}

void store_snapshot_end(struct store *store, int ns)
{
    struct store_session *session = &store->sessions[ns];
    if (!session->in_snapshot)
        return;
    session->in_snapshot = false;
    if (pg_execute(session->pg, "rollback") || !pg_is_usable(session->pg))
        store_close(store, ns);
}
