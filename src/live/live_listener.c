/* live_listener: one connection.  Changes are marks at its definitions, written when the connection accepts
 * output: a slow client gets fewer and larger events; one that reads nothing is closed by the endpoint's
 * timeout. */
#include "live/live_private.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/crypto.h"
#include "edge/json.h"
#include "operation/seal.h"
#include "operation/reply.h"
#include "segment/metrics.h"
#include "serve/cors.h"

enum {
    BUFFER_MOST = 16 * 1024, /* no more is written until the client has read */
    EVENT_MOST = 8 * 1024,   /* approximate: the last definition may exceed it */
    RETRY_LEAST_MS = 500,    /* clients reconnect after this to twice as long */
    RETRY_SPREAD_MS = 2000,
    RETRY_LATER = 4, /* times as long, when there is no room, or during a pause */
};

/* --- tokens --- */

static void make_question(struct builder *question, struct bytes ns)
{
    seal_add_part(question, BYTES("live"));
    seal_add_part(question, ns);
}

struct bytes live_token_write(struct arena *arena, struct bytes secret, struct bytes ns,
                              const struct live_horizon *known)
{
    struct builder question = {0};
    make_question(&question, ns);
    const char *payload =
        arena_printf(arena, "%" PRId64 ".%" PRId64 ".%" PRId64, known->life, known->horizon, known->floor);
    struct bytes token = seal_close(arena, secret, builder_bytes(&question), bytes_of(payload));
    builder_free(&question);
    return token;
}

static bool take_number(struct bytes *text, char end, int64_t *number_r)
{
    const char *stop = end ? memchr(text->data, end, text->size) : text->data + text->size;
    if (!stop || !bytes_to_i64((struct bytes){text->data, (size_t)(stop - text->data)}, number_r))
        return false;
    text->size -= (size_t)(stop - text->data) + (end != '\0');
    text->data = stop + (end != '\0');
    return *number_r >= 0;
}

bool live_token_read(struct arena *arena, struct bytes secret, struct bytes ns, struct bytes token,
                     struct live_horizon *known_r)
{
    struct builder question = {0};
    struct bytes payload;
    make_question(&question, ns);
    bool is_ours = seal_open(arena, secret, builder_bytes(&question), token, &payload);
    builder_free(&question);
    return is_ours && take_number(&payload, '.', &known_r->life) &&
           take_number(&payload, '.', &known_r->horizon) && take_number(&payload, '\0', &known_r->floor) &&
           known_r->horizon > 0;
}

/* --- creation and destruction --- */

static void join_kept(struct live_listener *listener)
{
    struct live *live = listener->live;
    listener->former_kept = live->last_kept;
    listener->next_kept = NULL;
    *(live->last_kept ? &live->last_kept->next_kept : &live->first_kept) = listener;
    live->last_kept = listener;
}

static void leave_kept(struct live_listener *listener)
{
    struct live *live = listener->live;
    *(listener->former_kept ? &listener->former_kept->next_kept : &live->first_kept) = listener->next_kept;
    *(listener->next_kept ? &listener->next_kept->former_kept : &live->last_kept) = listener->former_kept;
}

static void count(struct live *live)
{
    atomic_store(&subscriber_slot(live->subscriber)->listeners, live->listener_count);
}

static void count_memory(struct live_listener *listener, size_t bytes)
{
    listener->live->memory += bytes - listener->bytes;
    listener->ns->memory += bytes - listener->bytes;
    if (listener->share)
        listener->share->memory += bytes - listener->bytes;
    listener->bytes = bytes;
}

static void free_opening(struct live_listener *listener)
{
    if (listener->opening)
        arena_destroy(listener->opening->arena); /* the opening is inside this arena */
    listener->opening = NULL;
}

static void destroy(struct live_listener *listener)
{
    struct live_namespace *ns = listener->ns;
    struct live *live = listener->live;
    count_memory(listener, 0);
    if (listener->share)
        live_shares_leave(live->shares, listener->share);
    if (listener->session)
        feed_session_remove(live->subscriber, listener->session);
    live->listener_count--;
    ns->listener_count--;
    ns->admitted_count -= listener->state != LIVE_WAITS_FOR_RULES;
    *(listener->previous ? &listener->previous->next : &ns->listeners) = listener->next;
    if (listener->next)
        listener->next->previous = listener->previous;
    leave_kept(listener);
    live_index_remove(ns->index, &listener->feed);
    live_namespace_forget(ns, listener);
    free_opening(listener);
    free(listener);
    count(live);
}

static void on_gone(void *context)
{
    destroy(context);
}

static void on_drained(void *context)
{
    live_listener_flush(context);
}

void live_listener_create(struct live *live, struct live_namespace *ns, struct exchange *exchange,
                          struct live_opening *opening, uint64_t client, bool is_administrator)
{
    struct live_listener *listener = calloc(1, sizeof *listener);
    if (!listener)
        log_fatal("out of memory live");
    listener->live = live;
    listener->ns = ns;
    listener->exchange = exchange;
    listener->opening = opening;
    listener->is_administrator = is_administrator;
    if (client)
        listener->share = live_shares_join(live->shares, client);
    listener->kept_ms = clock_monotonic_ms();
    listener->next = ns->listeners;
    if (listener->next)
        listener->next->previous = listener;
    ns->listeners = listener;
    ns->listener_count++;
    live->listener_count++;
    join_kept(listener);
    live_index_add(ns->index, &listener->feed, opening->question.definitions, opening->question.count);
    count_memory(listener, listener->feed.bytes + exchange_size(exchange) + arena_used(opening->arena));
    count(live);
    exchange_own(exchange,
                 &(struct exchange_owner){.gone = on_gone, .drained = on_drained, .context = listener});
}

/* --- opening a stream --- */

static void find_origin(struct live_listener *listener)
{
    struct live_opening *opening = listener->opening;
    const struct live_rules *rules = &listener->ns->rules;
    if (!opening->origin.size || !rules->is_known || !rules->conf.origins)
        return;
    opening->form.has_origins = true;
    opening->form.origin = cors_find(opening->arena, rules->conf.origins, opening->origin);
}

/* Random, so that clients disconnected together do not reconnect together. */
static int64_t choose_retry(void)
{
    uint16_t chance;
    crypto_random(&chance, sizeof chance);
    return RETRY_LEAST_MS + RETRY_SPREAD_MS * (int64_t)chance / UINT16_MAX;
}

/* A temporary failure must not make a client give up that would reconnect by itself. */
static void answer_later(struct reply *reply)
{
    enum fault fault = reply->fault;
    bool is_later = fault == FAULT_OOFF || fault == FAULT_XCROWDED || fault == FAULT_XBUSY;
    reply->fault = FAULT_NONE;
    reply->mime = "text/event-stream";
    builder_printf(reply->body, "retry: %lld\nevent: closed\ndata: {\"code\":\"%s\"}\n\n",
                   (long long)choose_retry() * (is_later ? RETRY_LATER : 1), fault_code(fault));
}

void live_answer(struct exchange *exchange, struct live_opening *opening, struct reply *reply)
{
    enum { STATUS_TOO_MANY = 429, STATUS_UNAVAILABLE = 503 };
    struct builder head = {0};
    if (reply->fault)
        reply->fault_status = response_status(&opening->form, reply);
    if (opening->comes_again &&
        (reply->fault_status == STATUS_UNAVAILABLE || reply->fault_status == STATUS_TOO_MANY))
        answer_later(reply);
    response_compose(&opening->form, reply, &head);
    exchange_answer(exchange, builder_bytes(&head), response_body(&opening->form, reply));
    builder_free(&head);
}

void live_listener_answer(struct live_listener *listener)
{
    struct builder body = {0};
    struct reply *reply = &listener->opening->reply;
    reply->body = &body;
    find_origin(listener);
    live_answer(listener->exchange, listener->opening, reply);
    builder_free(&body);
    destroy(listener);
}

void live_listener_refuse(struct live_listener *listener, enum fault fault, const char *argument,
                          const char *detail)
{
    struct live *live = listener->live;
    if (listener->state == LIVE_OPEN) {
        builder_clear(&live->text, EVENT_MOST);
        builder_printf(&live->text, "event: closed\ndata: {\"code\":\"%s\"}\n\n", fault_code(fault));
        exchange_write(listener->exchange, builder_bytes(&live->text));
        live_listener_end(listener);
        return;
    }
    struct call call = {.arena = listener->opening->arena};
    listener->opening->reply = (struct reply){0};
    (void)reply_fault(&call, &listener->opening->reply, fault, detail, argument, NULL);
    live_listener_answer(listener);
}

void live_listener_end(struct live_listener *listener)
{
    struct exchange *exchange = listener->exchange;
    if (listener->state != LIVE_OPEN) {
        if (listener->opening->is_settled)
            live_listener_answer(listener);
        else
            live_listener_refuse(listener, FAULT_XAWAY, NULL, NULL);
        return;
    }
    destroy(listener);
    exchange_end(exchange);
}

void live_listener_admit(struct live_listener *listener)
{
    listener->state = LIVE_WAITS_FOR_HORIZON;
    listener->ns->admitted_count++;
    live_namespace_queue(listener->ns, listener);
}

static void add_id(struct live_listener *listener, struct builder *text)
{
    struct live *live = listener->live;
    struct bytes token = live_token_write(live->arena, bytes_of(listener->ns->secret),
                                          bytes_of(listener->ns->code), &listener->known);
    builder_add_text(text, "id: ");
    builder_add_bytes(text, token);
    builder_add_text(text, "\n");
    arena_reset(live->arena);
}

void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset)
{
    struct live_opening *opening = listener->opening;
    struct live *live = listener->live;
    const struct live_horizon last = opening->last;
    bool is_resumed = last.horizon && !is_reset;
    struct builder head = {0}, none = {0};
    struct reply reply = {.body = &none, .mime = "text/event-stream"};
    find_origin(listener);
    response_compose(&opening->form, &reply, &head);
    exchange_begin(listener->exchange, builder_bytes(&head));
    builder_free(&head);
    if (opening->question.session.data)
        listener->session = feed_session_add(live->subscriber, listener->ns->ns, opening->question.session);
    free_opening(listener);
    exchange_forget_body(listener->exchange);
    count_memory(listener, listener->feed.bytes + exchange_size(listener->exchange));
    listener->state = LIVE_OPEN;
    /* It gets an id once all earlier changes have been sent; an id of another incarnation is useless. */
    listener->known = is_resumed ? last : (struct live_horizon){.life = known->life};
    listener->was_told = true;
    listener->ns->is_told_of = true;
    if (!is_resumed) /* a new client reads everything now */
        while (live_feed_take_changed(&listener->feed))
            ;
    builder_clear(&live->text, EVENT_MOST);
    builder_printf(&live->text, "retry: %lld\n", (long long)choose_retry());
    builder_printf(&live->text, "event: ready\ndata: {\"resumed\":%s}\n\n", is_resumed ? "true" : "false");
    exchange_write(listener->exchange, builder_bytes(&live->text));
    live_listener_flush(listener);
}

/* --- events --- */

static void write_changes(struct live_listener *listener, struct builder *text)
{
    const char *comma = "";
    struct live_link *link;
    builder_add_text(text, "event: change\ndata: {\"changed\":[");
    while (text->size < EVENT_MOST && (link = live_feed_take_changed(&listener->feed))) {
        builder_printf(text, "%s[", comma);
        json_add_string(text, link->text);
        builder_printf(text, ",%" PRId64 "]", link->version);
        comma = ",";
    }
    builder_add_text(text, "]}\n\n");
}

void live_listener_flush(struct live_listener *listener)
{
    struct live *live = listener->live;
    struct builder *text = &live->text;
    if (listener->state != LIVE_OPEN)
        return;
    while ((listener->must_reset || listener->feed.changed) &&
           exchange_unsent(listener->exchange) < BUFFER_MOST) {
        builder_clear(text, EVENT_MOST);
        if (listener->must_reset) {
            while (live_feed_take_changed(&listener->feed))
                ;
            builder_add_text(text, "event: reset\ndata: {}\n\n");
            listener->must_reset = false;
        } else {
            write_changes(listener, text);
        }
        listener->was_told = true;
        exchange_write(listener->exchange, builder_bytes(text));
        pulse_count(&subscriber_slot(live->subscriber)->told, 1);
    }
}

void live_flush(struct live_namespace *ns)
{
    struct live_feed *feed;
    while ((feed = live_index_take_matched(ns->index)))
        live_listener_flush((struct live_listener *)(void *)feed);
}

/* --- horizons and keep-alive --- */

static bool knows_all_that_is_told(const struct live_listener *listener)
{
    return listener->state == LIVE_OPEN && !listener->must_reset && !listener->feed.changed;
}

static void write_id(struct live_listener *listener)
{
    struct builder *text = &listener->live->text;
    builder_clear(text, EVENT_MOST);
    add_id(listener, text);
    builder_add_text(text, "\n");
    exchange_write(listener->exchange, builder_bytes(text));
    listener->was_told = false;
}

void live_listener_know(struct live_listener *listener, const struct live_horizon *known)
{
    if (!knows_all_that_is_told(listener))
        return; /* an id asserts that all earlier changes were written */
    if (known->life != listener->known.life || known->horizon > listener->known.horizon)
        listener->known = *known;
    write_id(listener);
}

static void keep_alive(struct live_listener *listener)
{
    const struct live_horizon *known = &listener->ns->known;
    if (listener->state != LIVE_OPEN || exchange_unsent(listener->exchange))
        return;
    if (!listener->was_told && knows_all_that_is_told(listener) && known->horizon > listener->known.horizon &&
        known->life == listener->known.life)
        live_listener_know(listener, known);
    else
        exchange_write(listener->exchange, BYTES(":\n\n"));
}

void live_keep_alive(struct live *live)
{
    int64_t now_ms = clock_monotonic_ms(), period_ms = live->settings->live_keepalive_s * 1000;
    for (struct live_listener *listener;
         (listener = live->first_kept) && now_ms - listener->kept_ms >= period_ms;) {
        listener->kept_ms = now_ms;
        leave_kept(listener);
        join_kept(listener);
        keep_alive(listener);
    }
}
