/* live_namespace: a non-blocking database connection, and the queries that use it in turn. */
#include "live/live_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "segment/namespaces.h"
#include "store/session.h"

enum {
    LINGER_MS = 60000,   /* an unneeded connection is kept this long: a new LISTEN advances all stamps */
    ECHO_MOST_MS = 30000 /* after that, notifications are considered broken */
};

static const struct live_asking *const askings[JOBS] = {
    [JOB_LISTEN] = &live_asks_listen, [JOB_SECRET] = &live_asks_secret, [JOB_RULES] = &live_asks_rules,
    [JOB_NEWS] = &live_asks_news,     [JOB_OPEN] = &live_asks_open,     [JOB_GAP] = &live_asks_gap,
    [JOB_ROUND] = &live_asks_round,
};

static void on_socket(void *context)
{
    struct live_namespace *ns = context;
    ns->is_ready = true;
    live_namespace_go_on(ns);
}

/* Finds an unneeded entry that is not a namespace, to reuse it: unknown names must not consume memory. */
static struct live_namespace *find_refused(const struct live *live)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        if (ns->ns < 0 && !ns->listener_count && !ns->rules.is_asked)
            return ns;
    return NULL;
}

static struct live_namespace *rename_ns(struct live_namespace *ns, struct bytes code, struct bytes database)
{
    memset(ns->code, 0, sizeof ns->code);
    memset(ns->database, 0, sizeof ns->database);
    memcpy(ns->code, code.data, code.size);
    memcpy(ns->database, database.data, database.size);
    ns->ns = -1;
    ns->rules.is_known = false;
    ns->rules.is_wanted = true;
    return ns;
}

bool live_namespace_enter(struct live_namespace *ns)
{
    if (ns->ns < 0)
        ns->ns = namespaces_find(ns->live->segment, bytes_of(ns->database));
    return ns->ns >= 0;
}

struct live_namespace *live_namespace_get(struct live *live, struct bytes code, struct bytes database)
{
    for (struct live_namespace *ns = live->namespaces; ns; ns = ns->next)
        if (bytes_equal(bytes_of(ns->code), code) && bytes_equal(bytes_of(ns->database), database))
            return ns;
    if (code.size >= LIVE_CODE_BYTES || database.size > NAMESPACES_DATABASE_BYTES)
        return NULL;
    struct live_namespace *ns = find_refused(live);
    if (ns)
        return rename_ns(ns, code, database);
    ns = calloc(1, sizeof *ns);
    if (!ns)
        log_fatal("out of memory");
    ns->live = live;
    rename_ns(ns, code, database);
    ns->index = live_index_create();
    ns->watch = watch_create(live->events, on_socket, ns);
    ns->arena = arena_create("live space");
    for (size_t i = 0; i < COUNT_OF(ns->news); i++)
        ns->news[i].arena = arena_create("live news");
    ns->options = (struct pg_options){
        .conninfo = live->settings->database,
        .database = ns->database,
        .role_settings = "-c search_path=stampd -c enable_seqscan=off -c enable_hashjoin=off"
                         " -c enable_mergejoin=off -c jit=off -c synchronous_commit=off"
                         " -c application_name=stampd\\ live",
        .connect_timeout_s = (int)live->settings->connect_timeout_s,
        .statement_timeout_ms = live->settings->statement_timeout_ms,
        .lock_timeout_ms = live->settings->lock_timeout_ms,
    };
    ns->next = live->namespaces;
    live->namespaces = ns;
    return ns;
}

static bool is_needed(const struct live_namespace *ns)
{
    return ns->admitted_count || (ns == ns->live->z && ns->live->listener_count);
}

/* --- the connection --- */

static void want_news(struct live_namespace *ns, bool is_wanted)
{
    if (ns->live->settings->hosts != HOSTS_MANY) /* else notifications cover everything */
        subscriber_want(ns->live->subscriber, ns->ns, is_wanted);
}

/* The next connection starts the current work over; open streams are not affected. */
static void drop_connection(struct live_namespace *ns)
{
    watch_set(ns->watch, -1, false);
    arena_reset(ns->arena);
    pg_close(ns->pg);
    ns->pg = NULL;
    ns->link = LINK_CLOSED;
    ns->is_listening = false;
    *ns->secret = '\0';
    ns->round = ROUND_RESTS;
    ns->gap = NULL;
    ns->gap_count = 0;
    live_news_clear(ns);
    if (ns == ns->live->z)
        live_rules_forget(ns->live);
}

static void fail(struct live_namespace *ns, enum fault fault)
{
    log_warning("live database=%s: %s", ns->database, fault_code(fault));
    drop_connection(ns);
    ns->retry_ms = clock_monotonic_ms() + session_pause_ms(++ns->failures);
    live_open_failed(ns, fault);
    while ((ns->opening = live_namespace_take_waiting(ns)))
        live_open_failed(ns, fault);
    if (ns == ns->live->z)
        live_rules_failed(ns->live);
}

/* There are no listeners: from now on no changes are received, and the state is dropped. */
static void close_unneeded(struct live_namespace *ns)
{
    want_news(ns, false);
    drop_connection(ns);
    ns->known = (struct live_horizon){0};
    if (ns == ns->live->z)
        for (struct live_namespace *one = ns->live->namespaces; one; one = one->next) {
            one->rules.is_known = false;
            one->rules.is_wanted = true;
        }
}

static void connect(struct live_namespace *ns)
{
    want_news(ns, true);      /* before any query */
    if (!ns->known.horizon) { /* no listener is open: nothing can be missed */
        ns->missed = subscriber_missed(ns->live->subscriber, ns->ns);
        ns->was_clean = namespaces_is_clean(ns->live->segment, ns->ns);
        ns->wants_gap = false;
    }
    ns->pg = pg_start(&ns->options);
    ns->is_ready = false;
    ns->progress = PG_WAITS_TO_WRITE;
    ns->link = LINK_CONNECTING;
}

static void go_on_connecting(struct live_namespace *ns)
{
    enum fault fault = FAULT_NONE;
    if (!ns->is_ready) { /* libpq would block */
        if (clock_monotonic_ms() >= pg_deadline_ms(ns->pg))
            fail(ns, FAULT_XAWAY);
        return;
    }
    ns->is_ready = false;
    ns->progress = pg_go_on_connecting(ns->pg, &ns->options, &fault);
    if (ns->progress == PG_FAILED)
        fail(ns, fault);
    else if (ns->progress == PG_DONE)
        ns->link = LINK_IDLE;
}

/* --- queries --- */

static void hear_notifications(struct live_namespace *ns)
{
    struct bytes channel, payload;
    struct arena *arena = ns->live->arena;
    while (pg_next_notification(ns->pg, arena, &channel, &payload)) {
        if (bytes_equal(channel, BYTES("stampd_live")))
            live_round_hear(ns, payload);
        else
            live_namespace_notice(ns, payload);
        arena_reset(arena);
    }
    if (ns->round == ROUND_WAITS_FOR_WORKERS)
        live_look_soon(ns->live);
    if (!pg_is_alive(ns->pg))
        fail(ns, FAULT_XAWAY);
}

static void ask(struct live_namespace *ns, enum live_job job)
{
    ns->job = job;
    ns->result = NULL;
    ns->fault = FAULT_NONE;
    ns->progress = PG_WAITS_TO_WRITE;
    ns->link = LINK_ASKING;
    enum fault fault = askings[job]->ask(ns);
    if (fault)
        fail(ns, fault);
}

/* LISTEN and the secret come first; then the queries that are due, in turn. */
static void ask_next(struct live_namespace *ns)
{
    if (!ns->is_listening || !*ns->secret) {
        ask(ns, ns->is_listening ? JOB_SECRET : JOB_LISTEN);
        return;
    }
    for (int step = 1; step <= JOBS; step++) {
        enum live_job job = (enum live_job)(((int)ns->job + step) % JOBS);
        if (askings[job]->is_due(ns)) {
            ask(ns, job);
            return;
        }
    }
}

/* The query itself may be the cause: the connection stays open. */
static void fail_question(struct live_namespace *ns)
{
    enum fault fault = ns->fault ? ns->fault : FAULT_XDATABASE;
    if (!askings[ns->job]->failed || !pg_is_alive(ns->pg)) {
        fail(ns, fault);
        return;
    }
    ns->link = LINK_IDLE;
    askings[ns->job]->failed(ns, fault);
    arena_reset(ns->arena);
}

static void go_on_asking(struct live_namespace *ns)
{
    ns->progress = pg_receive(ns->pg, ns->arena, &ns->result, &ns->fault);
    if (ns->progress == PG_WAITS_TO_READ || ns->progress == PG_WAITS_TO_WRITE)
        return;
    if (ns->progress == PG_FAILED || !ns->result) {
        fail_question(ns);
        return;
    }
    ns->link = LINK_IDLE;
    if (ns->job != JOB_LISTEN) /* else a failure after LISTEN would be retried without a pause */
        ns->failures = 0;
    askings[ns->job]->take(ns);
    ns->result = NULL;
    arena_reset(ns->arena);
}

static void set_watch(struct live_namespace *ns)
{
    if (!ns->pg)
        return;
    bool waits = ns->link == LINK_CONNECTING || ns->link == LINK_ASKING;
    if (ns->link == LINK_CONNECTING) /* each step may have another socket, even with the same number */
        watch_set(ns->watch, -1, false);
    watch_set(ns->watch, pg_socket(ns->pg), waits && ns->progress == PG_WAITS_TO_WRITE);
}

void live_namespace_go_on(struct live_namespace *ns)
{
    if (ns->link == LINK_CLOSED && is_needed(ns) && clock_monotonic_ms() >= ns->retry_ms)
        connect(ns);
    if (ns->link == LINK_CONNECTING)
        go_on_connecting(ns);
    if (ns->link == LINK_ASKING)
        go_on_asking(ns);
    for (int before = -1; ns->link == LINK_IDLE && before != LINK_IDLE;) {
        hear_notifications(ns);
        if (ns->link == LINK_IDLE)
            ask_next(ns);
        before = (int)ns->link;
        if (ns->link == LINK_ASKING) /* sends the query */
            go_on_asking(ns);
    }
    set_watch(ns);
}

void live_namespace_miss(struct live_namespace *ns)
{
    ns->wants_gap = true;
    if (ns == ns->live->z) /* changes of rules may have been missed too */
        live_rules_doubt(ns->live);
}

/* --- listeners that wait for a horizon --- */

void live_namespace_queue(struct live_namespace *ns, struct live_listener *listener)
{
    listener->next_waiting = NULL;
    *(ns->last_waiting ? &ns->last_waiting->next_waiting : &ns->first_waiting) = listener;
    ns->last_waiting = listener;
}

struct live_listener *live_namespace_take_waiting(struct live_namespace *ns)
{
    struct live_listener *listener = ns->first_waiting;
    if (listener && !(ns->first_waiting = listener->next_waiting))
        ns->last_waiting = NULL;
    return listener;
}

void live_namespace_forget(struct live_namespace *ns, struct live_listener *listener)
{
    if (ns->opening == listener)
        ns->opening = NULL;
    struct live_listener *former = NULL, **place = &ns->first_waiting;
    if (listener->state != LIVE_WAITS_FOR_HORIZON)
        return;
    for (; *place && *place != listener; place = &former->next_waiting)
        former = *place;
    if (!*place)
        return;
    *place = listener->next_waiting;
    if (ns->last_waiting == listener)
        ns->last_waiting = former;
}

/* --- periodic work --- */

void live_namespace_tick(struct live_namespace *ns, int64_t now_ms)
{
    if (is_needed(ns))
        ns->unneeded_ms = 0;
    else if (!ns->unneeded_ms)
        ns->unneeded_ms = now_ms;
    if (ns->pg && ns->link != LINK_ASKING && ns->unneeded_ms && now_ms - ns->unneeded_ms >= LINGER_MS) {
        close_unneeded(ns);
        return;
    }
    if (ns->pg && subscriber_missed(ns->live->subscriber, ns->ns) != ns->missed) {
        ns->missed = subscriber_missed(ns->live->subscriber, ns->ns);
        live_namespace_miss(ns);
    }
    if (ns->round == ROUND_WAITS_FOR_ECHO && now_ms - ns->round_ms >= ECHO_MOST_MS)
        fail(ns, FAULT_XTIME);
    live_namespace_go_on(ns);
}

void live_namespace_destroy(struct live_namespace *ns)
{
    drop_connection(ns);
    live_index_destroy(ns->index);
    watch_destroy(ns->watch);
    arena_destroy(ns->arena);
    for (size_t i = 0; i < COUNT_OF(ns->news); i++)
        arena_destroy(ns->news[i].arena);
    if (ns->gap_arena)
        arena_destroy(ns->gap_arena);
    if (ns->rules.arena)
        arena_destroy(ns->rules.arena);
    free(ns);
}
