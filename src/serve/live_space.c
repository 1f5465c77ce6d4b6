/* live_space: a connection of which nobody waits for anything, and a list of those who want to ask by it in
 * turn. */
#include "serve/live_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "document/session.h"

enum {
    LINGER_MS = 60000,   /* a connection that nobody needs is kept: to listen anew is to move all stamps */
    ECHO_MOST_MS = 30000 /* then something is wrong with notifications */
};

static const struct live_asking *const askings[JOBS] = {
    [JOB_LISTEN] = &live_asks_listen, [JOB_SECRET] = &live_asks_secret, [JOB_RULES] = &live_asks_rules,
    [JOB_NEWS] = &live_asks_news,     [JOB_OPEN] = &live_asks_open,     [JOB_GAP] = &live_asks_gap,
    [JOB_ROUND] = &live_asks_round,
};

static void on_socket(void *context)
{
    struct live_space *space = context;
    space->is_ready = true;
    live_space_go_on(space);
}

/* One that is no namespace, and that nobody needs any more: so many names, so little memory. */
static struct live_space *find_refused(const struct live *live)
{
    for (struct live_space *space = live->spaces; space; space = space->next)
        if (space->space < 0 && !space->listener_count && !space->rules.is_asked)
            return space;
    return NULL;
}

static struct live_space *rename_space(struct live_space *space, struct bytes code, struct bytes database)
{
    memset(space->code, 0, sizeof space->code);
    memset(space->database, 0, sizeof space->database);
    memcpy(space->code, code.data, code.size);
    memcpy(space->database, database.data, database.size);
    space->space = -1;
    space->rules.is_known = false;
    space->rules.is_wanted = true;
    return space;
}

bool live_space_enter(struct live_space *space)
{
    if (space->space < 0)
        space->space = stamps_space(space->live->stamps, bytes_of(space->database));
    return space->space >= 0;
}

struct live_space *live_space_get(struct live *live, struct bytes code, struct bytes database)
{
    for (struct live_space *space = live->spaces; space; space = space->next)
        if (bytes_equal(bytes_of(space->code), code) && bytes_equal(bytes_of(space->database), database))
            return space;
    if (code.size >= LIVE_CODE_BYTES || database.size > STAMPS_DATABASE_BYTES)
        return NULL;
    struct live_space *space = find_refused(live);
    if (space)
        return rename_space(space, code, database);
    space = calloc(1, sizeof *space);
    if (!space)
        log_fatal("out of memory");
    space->live = live;
    rename_space(space, code, database);
    space->index = live_index_create();
    space->watch = watch_create(live->events, on_socket, space);
    space->arena = arena_create("live space");
    for (size_t i = 0; i < COUNT_OF(space->news); i++)
        space->news[i].arena = arena_create("live news");
    space->options = (struct pg_options){
        .conninfo = live->settings->database,
        .database = space->database,
        .role_settings = "-c search_path=stampd -c enable_seqscan=off -c enable_hashjoin=off"
                         " -c enable_mergejoin=off -c jit=off -c synchronous_commit=off"
                         " -c application_name=stampd\\ live",
        .connect_timeout_s = (int)live->settings->connect_timeout_s,
        .statement_timeout_ms = live->settings->statement_timeout_ms,
        .lock_timeout_ms = live->settings->lock_timeout_ms,
    };
    space->next = live->spaces;
    live->spaces = space;
    return space;
}

static bool is_needed(const struct live_space *space)
{
    return space->admitted_count || (space == space->live->z && space->live->listener_count);
}

/* --- the connection --- */

static void want_news(struct live_space *space, bool is_wanted)
{
    if (strcmp(space->live->settings->hosts, "many") != 0) /* else notifications tell everything */
        ear_want(space->live->ear, space->space, is_wanted);
}

/* What was going on is begun anew by the next connection; nobody who is open is told. */
static void drop_connection(struct live_space *space)
{
    watch_set(space->watch, -1, false);
    arena_reset(space->arena);
    pg_close(space->pg);
    space->pg = NULL;
    space->link = LINK_CLOSED;
    space->is_listening = false;
    *space->secret = '\0';
    space->round = ROUND_RESTS;
    space->gap = NULL;
    space->gap_count = 0;
    live_news_clear(space);
    if (space == space->live->z)
        live_rules_forget(space->live);
}

static void fail(struct live_space *space, enum fault fault)
{
    log_warning("live database=%s: %s", space->database, fault_code(fault));
    drop_connection(space);
    space->retry_ms = clock_monotonic_ms() + session_pause_ms(++space->failures);
    live_open_failed(space, fault);
    while ((space->opening = live_space_take_waiting(space)))
        live_open_failed(space, fault);
    if (space == space->live->z)
        live_rules_failed(space->live);
}

/* Nobody listens: what happens from now on is not heard, and nothing is remembered. */
static void close_unneeded(struct live_space *space)
{
    want_news(space, false);
    drop_connection(space);
    space->known = (struct live_horizon){0};
    if (space == space->live->z)
        for (struct live_space *one = space->live->spaces; one; one = one->next) {
            one->rules.is_known = false;
            one->rules.is_wanted = true;
        }
}

static void connect(struct live_space *space)
{
    want_news(space, true);      /* before anything is asked */
    if (!space->known.horizon) { /* nobody is open: nothing can be missed */
        space->missed = ear_missed(space->live->ear, space->space);
        space->was_clean = stamps_space_is_clean(space->live->stamps, space->space);
        space->wants_gap = false;
    }
    space->pg = pg_start(&space->options);
    space->is_ready = false;
    space->progress = PG_WAITS_TO_WRITE;
    space->link = LINK_CONNECTING;
}

static void go_on_connecting(struct live_space *space)
{
    enum fault fault = FAULT_NONE;
    if (!space->is_ready) { /* libpq would wait for it */
        if (clock_monotonic_ms() >= pg_deadline_ms(space->pg))
            fail(space, FAULT_XAWAY);
        return;
    }
    space->is_ready = false;
    space->progress = pg_go_on_connecting(space->pg, &space->options, &fault);
    if (space->progress == PG_FAILED)
        fail(space, fault);
    else if (space->progress == PG_DONE)
        space->link = LINK_IDLE;
}

/* --- questions --- */

static void hear_notifications(struct live_space *space)
{
    struct bytes channel, payload;
    struct arena *arena = space->live->arena;
    while (pg_next_notification(space->pg, arena, &channel, &payload)) {
        if (bytes_equal(channel, BYTES("stampd_live")))
            live_round_hear(space, payload);
        else
            live_space_notice(space, payload);
        arena_reset(arena);
    }
    if (space->round == ROUND_WAITS_FOR_WORKERS)
        live_look_soon(space->live);
    if (!pg_is_alive(space->pg))
        fail(space, FAULT_XAWAY);
}

static void ask(struct live_space *space, enum live_job job)
{
    space->job = job;
    space->result = NULL;
    space->fault = FAULT_NONE;
    space->progress = PG_WAITS_TO_WRITE;
    space->link = LINK_ASKING;
    enum fault fault = askings[job]->ask(space);
    if (fault)
        fail(space, fault);
}

/* Without LISTEN and the secret nothing else; then those who are due, one after the other. */
static void ask_next(struct live_space *space)
{
    if (!space->is_listening || !*space->secret) {
        ask(space, space->is_listening ? JOB_SECRET : JOB_LISTEN);
        return;
    }
    for (int step = 1; step <= JOBS; step++) {
        enum live_job job = (enum live_job)(((int)space->job + step) % JOBS);
        if (askings[job]->is_due(space)) {
            ask(space, job);
            return;
        }
    }
}

/* The question may have been what was wrong: the connection goes on. */
static void fail_question(struct live_space *space)
{
    enum fault fault = space->fault ? space->fault : FAULT_XDATABASE;
    if (!askings[space->job]->failed || !pg_is_alive(space->pg)) {
        fail(space, fault);
        return;
    }
    space->link = LINK_IDLE;
    askings[space->job]->failed(space, fault);
    arena_reset(space->arena);
}

static void go_on_asking(struct live_space *space)
{
    space->progress = pg_receive(space->pg, space->arena, &space->result, &space->fault);
    if (space->progress == PG_WAITS_TO_READ || space->progress == PG_WAITS_TO_WRITE)
        return;
    if (space->progress == PG_FAILED || !space->result) {
        fail_question(space);
        return;
    }
    space->link = LINK_IDLE;
    if (space->job !=
        JOB_LISTEN) /* else what fails behind it would be tried again and again without a pause */
        space->failures = 0;
    askings[space->job]->take(space);
    space->result = NULL;
    arena_reset(space->arena);
}

static void set_watch(struct live_space *space)
{
    if (!space->pg)
        return;
    bool waits = space->link == LINK_CONNECTING || space->link == LINK_ASKING;
    if (space->link == LINK_CONNECTING) /* each step may have another socket, of the same number even */
        watch_set(space->watch, -1, false);
    watch_set(space->watch, pg_socket(space->pg), waits && space->progress == PG_WAITS_TO_WRITE);
}

void live_space_go_on(struct live_space *space)
{
    if (space->link == LINK_CLOSED && is_needed(space) && clock_monotonic_ms() >= space->retry_ms)
        connect(space);
    if (space->link == LINK_CONNECTING)
        go_on_connecting(space);
    if (space->link == LINK_ASKING)
        go_on_asking(space);
    for (int before = -1; space->link == LINK_IDLE && before != LINK_IDLE;) {
        hear_notifications(space);
        if (space->link == LINK_IDLE)
            ask_next(space);
        before = (int)space->link;
        if (space->link == LINK_ASKING) /* sends it */
            go_on_asking(space);
    }
    set_watch(space);
}

void live_space_miss(struct live_space *space)
{
    space->wants_gap = true;
    if (space == space->live->z) /* rules too are among what was missed */
        live_rules_doubt(space->live);
}

/* --- who waits for a horizon --- */

void live_space_queue(struct live_space *space, struct live_listener *listener)
{
    listener->next_waiting = NULL;
    *(space->last_waiting ? &space->last_waiting->next_waiting : &space->first_waiting) = listener;
    space->last_waiting = listener;
}

struct live_listener *live_space_take_waiting(struct live_space *space)
{
    struct live_listener *listener = space->first_waiting;
    if (listener && !(space->first_waiting = listener->next_waiting))
        space->last_waiting = NULL;
    return listener;
}

void live_space_forget(struct live_space *space, struct live_listener *listener)
{
    if (space->opening == listener)
        space->opening = NULL;
    struct live_listener *former = NULL, **place = &space->first_waiting;
    if (listener->state != LIVE_WAITS_FOR_HORIZON)
        return;
    for (; *place && *place != listener; place = &former->next_waiting)
        former = *place;
    if (!*place)
        return;
    *place = listener->next_waiting;
    if (space->last_waiting == listener)
        space->last_waiting = former;
}

/* --- now and then --- */

void live_space_tick(struct live_space *space, int64_t now_ms)
{
    if (is_needed(space))
        space->unneeded_ms = 0;
    else if (!space->unneeded_ms)
        space->unneeded_ms = now_ms;
    if (space->pg && space->link != LINK_ASKING && space->unneeded_ms &&
        now_ms - space->unneeded_ms >= LINGER_MS) {
        close_unneeded(space);
        return;
    }
    if (space->pg && ear_missed(space->live->ear, space->space) != space->missed) {
        space->missed = ear_missed(space->live->ear, space->space);
        live_space_miss(space);
    }
    if (space->round == ROUND_WAITS_FOR_ECHO && now_ms - space->round_ms >= ECHO_MOST_MS)
        fail(space, FAULT_XTIME);
    live_space_go_on(space);
}

void live_space_destroy(struct live_space *space)
{
    drop_connection(space);
    live_index_destroy(space->index);
    watch_destroy(space->watch);
    arena_destroy(space->arena);
    for (size_t i = 0; i < COUNT_OF(space->news); i++)
        arena_destroy(space->news[i].arena);
    if (space->gap_arena)
        arena_destroy(space->gap_arena);
    if (space->rules.arena)
        arena_destroy(space->rules.arena);
    free(space);
}
