/* store: the sessions of this process, one per namespace: opened on use, closed when there are too many,
 * or when nobody uses them. */
#include "store/store.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "segment/beats.h"
#include "segment/lineage.h"
#include "segment/namespaces.h"
#include "segment/counts/waits.h"
#include "store/session.h"
#include "store/store_cache.h"
#include "store/store_private.h"
#include "store/store_reading.h"
#include "store/store_session.h"

static const struct store_cache *const caches[] = {
#define CACHE(name) &store_cache_##name,
#include "store/store_cache_table.h"
#undef CACHE
};

enum { REPLICA_PAUSE_MS = 30000 }; /* a standby that is away is not waited for by every other request */
enum { REPLICA_SLOW_MS = 1000 };   /* a read of it that fails later makes it one that is away */
enum { RECENT_MS = 10000 };        /* a session used within this time counts as in use */

struct store *store_create(const struct settings *settings, struct segment *segment)
{
    struct store *store = calloc(1, sizeof *store);
    if (!store || !(store->reading = calloc(1, sizeof *store->reading)))
        log_fatal("out of memory store");
    store->settings = settings;
    store->segment = segment;
    store->visitor = NO_VISITOR;
    return store;
}

struct store *store_create_replica(const struct settings *settings, struct segment *segment)
{
    struct store *store = store_create(settings, segment);
    store->is_of_replica = true;
    return store;
}

void store_destroy(struct store *store)
{
    if (!store)
        return;
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        store_close(store, ns);
    free(store->reading);
    free(store);
}

static void close_caches(struct store_session *session)
{
    for (size_t i = 0; i < COUNT_OF(caches); i++) {
        if (session->caches[i])
            caches[i]->close(session->caches[i]);
        free(session->caches[i]);
        session->caches[i] = NULL;
    }
}

static enum fault open_caches(struct store_session *session)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < COUNT_OF(caches) && !fault; i++) {
        if (!(session->caches[i] = calloc(1, caches[i]->size)))
            log_fatal("out of memory store");
        if (caches[i]->open)
            fault = caches[i]->open(session->caches[i], session->pg);
    }
    return fault;
}

void store_close(struct store *store, int ns)
{
    struct store_session *session = &store->sessions[ns];
    if (!session->pg)
        return;
    close_caches(session);
    pg_close(session->pg);
    session->pg = NULL;
    session->in_snapshot = session->is_held = false;
    store->open_count--;
}

/* --- access -------------------------------------------------------------------------------------- */

const struct settings *store_settings(const struct store *store)
{
    return store->settings;
}

struct segment *store_segment(const struct store *store)
{
    return store->segment;
}

int64_t store_pipeline_ms(const struct store *store)
{
    return 2 * store->settings->statement_timeout_ms;
}

bool store_gives_up(void *whose)
{
    struct store *store = whose;
    return waits_gives_up(store->segment, store->settings->workers, clock_monotonic_ms());
}

struct store_reading *store_reading(const struct store *store)
{
    return store->reading;
}

struct pg *store_pg(const struct store *store, int ns)
{
    return store->sessions[ns].pg;
}

void *store_cache_of(const struct store *store, int ns, enum store_cache_kind kind)
{
    return store->sessions[ns].caches[kind];
}

bool store_in_snapshot(const struct store *store, int ns)
{
    return store->sessions[ns].in_snapshot;
}

void store_set_snapshot(struct store *store, int ns, bool in_snapshot)
{
    store->sessions[ns].in_snapshot = in_snapshot;
}

bool store_is_held(const struct store *store, int ns)
{
    return store->sessions[ns].is_held;
}

void store_set_held(struct store *store, int ns, bool is_held)
{
    store->sessions[ns].is_held = is_held;
}

void store_renew(struct store *store, int ns)
{
    store->sessions[ns].used = ++store->turn;
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
static void store_make_room(struct store *store)
{
    int oldest;
    while (store->open_count >= store->settings->connections && (oldest = find_oldest(store)) >= 0)
        store_close(store, oldest);
}

static bool is_idle(const struct store *store, const struct store_session *session, int64_t now_ms)
{
    return session->pg && !session->in_snapshot && !session->is_held &&
           now_ms - session->used_ms >= store->settings->connection_idle_s * 1000;
}

bool store_rest(struct store *store)
{
    bool has_closed = false;
    int64_t now_ms = clock_monotonic_ms();
    if (!store->open_count || !store->settings->connection_idle_s)
        return false;
    for (int ns = 0; ns < NAMESPACES_MOST; ns++)
        if (is_idle(store, &store->sessions[ns], now_ms)) {
            store_close(store, ns);
            has_closed = true;
        }
    return has_closed;
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

static void note_use(struct store *store, int ns)
{
    store_renew(store, ns);
    store->sessions[ns].used_ms = clock_monotonic_ms();
}

/* A silent standby would hold a worker once for each namespace of its cell. */
static void put_off_cell(struct store *store, int ns, enum fault fault)
{
    int64_t retry_ms = clock_monotonic_ms() + REPLICA_PAUSE_MS;
    for (int each = 0; each < NAMESPACES_MOST; each++) {
        struct store_session *session = &store->sessions[each];
        if (!namespaces_database(store->segment, each) ||
            namespaces_cell(store->segment, each) != namespaces_cell(store->segment, ns))
            continue;
        session->reason = fault;
        session->failures++;
        session->retry_ms = retry_ms;
    }
}

static enum fault open_session(struct store *store, int ns)
{
    struct store_session *session = &store->sessions[ns];
    store_make_room(store);
    waits_begin(store->segment, clock_monotonic_ms());
    session->as_of_ms = 0;
    enum fault fault =
        store->is_of_replica
            ? session_open_replica(store->settings, store->segment, ns, &session->pg)
            : session_open(store->settings, store->segment, ns, &session->pg, &session->timeline);
    waits_end(store->segment);
    if (!fault)
        fault = open_caches(session);
    if (!store->is_of_replica)
        namespaces_set_health(store->segment, ns, !fault);
    if (fault) {
        close_caches(session);
        pg_close(session->pg);
        session->pg = NULL;
        session->reason = fault;
        session->failures++;
        session->retry_ms = clock_monotonic_ms() +
                            (store->is_of_replica ? REPLICA_PAUSE_MS : session_pause_ms(session->failures));
        if (store->is_of_replica && fault == FAULT_XAWAY)
            put_off_cell(store, ns, fault);
        return fault;
    }
    store->open_count++;
    session->failures = 0;
    session->in_snapshot = false;
    note_use(store, ns);
    return FAULT_NONE;
}

/* To open a session would last long, or would hold the last workers. */
static bool must_not_wait(const struct store *store, int ns)
{
    int64_t now_ms = clock_monotonic_ms();
    return waits_is_silent(store->segment, namespaces_cell(store->segment, ns), now_ms) ||
           waits_are_crowded(store->segment, store->settings->workers, now_ms);
}

static enum fault open_when_due(struct store *store, int ns)
{
    const struct store_session *session = &store->sessions[ns];
    if (session->failures && clock_monotonic_ms() < session->retry_ms)
        return session->reason;
    if (must_not_wait(store, ns))
        return FAULT_XAWAY;
    if (ns == store->visitor && is_crowded(store))
        return FAULT_ELSEWHERE;
    return open_session(store, ns);
}

uint32_t store_timeline(const struct store *store, int ns)
{
    return store->sessions[ns].timeline;
}

bool store_is_former(const struct store *store, int ns)
{
    return !store->is_of_replica && /* of which nothing is believed that was not proven */
           store->sessions[ns].timeline != lineage_timeline(store->segment, ns);
}

enum fault store_use(struct store *store, int ns, struct pg **pg_r)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    struct store_session *session = &store->sessions[ns];
    *pg_r = NULL;
    if (session->pg && store_is_former(store, ns)) {
        if (session->in_snapshot || session->is_held) /* what it shows is over */
            return FAULT_XAWAY;
        store_close(store, ns);
    }
    if (!session->pg) {
        enum fault fault = open_when_due(store, ns);
        if (fault)
            return fault;
    }
    if (ns == store->visitor) /* from now on the request may commit: should the session be lost, it stays */
        store_clear_visitor(store);
    note_use(store, ns);
    *pg_r = session->pg;
    return FAULT_NONE;
}

/* --- standbys ------------------------------------------------------------------------------------ */

static enum fault find_standing(struct store *store, int ns, struct arena *arena)
{
    struct pg *pg;
    struct store_session *session = &store->sessions[ns];
    enum fault fault = FAULT_FIRST(store_connect(store, ns), store_use(store, ns, &pg));
    if (fault)
        return fault;
    session->drops = lineage_drops(store->segment); /* before: a drop meanwhile makes it worthless */
    fault = session_standing(store->segment, ns, pg, arena, &session->as_of_ms);
    if (fault)
        put_off_cell(store, ns, fault);
    if (fault && !pg_is_usable(pg))
        store_close(store, ns);
    return fault;
}

void store_note_failure(struct store *store, int ns, int64_t since_ms)
{
    if (clock_monotonic_ms() - since_ms >= REPLICA_SLOW_MS)
        put_off_cell(store, ns, FAULT_XAWAY);
}

bool store_is_young(struct store *store, int ns, struct arena *arena, int64_t tolerance_ms,
                    int64_t *as_of_ms_r)
{
    const struct store_session *session = &store->sessions[ns];
    int64_t now_ms = clock_boot_ms();
    *as_of_ms_r = 0;
    if (session->failures && clock_monotonic_ms() < session->retry_ms)
        return false;
    beats_want(store->segment, ns, now_ms);
    bool is_young = session->pg && session->as_of_ms && now_ms - session->as_of_ms <= tolerance_ms &&
                    session->drops == lineage_drops(store->segment);
    if (!is_young)
        is_young = !find_standing(store, ns, arena) && session->as_of_ms &&
                   now_ms - session->as_of_ms <= tolerance_ms;
    *as_of_ms_r = clock_monotonic_ms() - (clock_boot_ms() - session->as_of_ms);
    return is_young;
}

bool store_stands(const struct store *store, int ns)
{
    return store->sessions[ns].pg && store->sessions[ns].as_of_ms;
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

enum fault store_reconnect(struct store *store, int ns, int64_t limit_ms)
{
    assert(ns >= 0 && ns < NAMESPACES_MOST);
    store_close(store, ns);
    int64_t deadline_ms = clock_monotonic_ms() + limit_ms;
    for (;;) {
        enum fault fault = open_session(store, ns);
        if (!fault)
            return FAULT_NONE;
        int64_t now_ms = clock_monotonic_ms(), pause_ms = store->sessions[ns].retry_ms - now_ms;
        if (now_ms >= deadline_ms || must_not_wait(store, ns))
            return fault;
        if (pause_ms > deadline_ms - now_ms)
            pause_ms = deadline_ms - now_ms;
        clock_sleep_ms(pause_ms > 0 ? pause_ms : 0);
    }
}
