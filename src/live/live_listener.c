/* live_listener: the states of a connection, and its events.  One that reads nothing is closed by the
 * endpoint's timeout. */
#include "live/live_listener.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/memory.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"
#include "live/live_audience_private.h"
#include "live/access/live_follow.h"
#include "live/live_opening.h"
#include "live/topics/live_records.h"
#include "operation/reply.h"
#include "segment/counts/metrics.h"

enum {
    BUFFER_MOST = 16 * 1024, /* no more is written until the client has read */
    EVENT_MOST = 8 * 1024,   /* approximate: the last definition may exceed it */
    RETRY_LEAST_MS = 500,    /* clients reconnect after this to twice as long */
    RETRY_SPREAD_MS = 2000,
    RETRY_LATER = 4, /* times as long, when there is no room, or during a pause */
    STATUS_UNAUTHORIZED = 401
};

/* --- creation and destruction --- */

static void free_opening(struct live_listener *listener)
{
    if (listener->opening)
        arena_destroy(listener->opening->arena); /* the opening is inside this arena */
    listener->opening = NULL;
}

static void live_listener_destroy(struct live_listener *listener)
{
    if (listener->session)
        feed_session_remove(listener->audience->all->subscriber, listener->session);
    live_records_leave(listener);
    live_searches_leave(listener);
    live_audience_leave(listener);
    live_caller_destroy(listener->caller);
    free_opening(listener);
    free(listener);
}

static void on_gone(void *context)
{
    live_listener_destroy(context);
}

static void on_drained(void *context)
{
    live_listener_flush(context);
}

void live_listener_count_memory(struct live_listener *listener)
{
    live_audience_count_memory(
        listener, listener->feed.bytes + listener->records.bytes + exchange_size(listener->exchange) +
                      live_caller_bytes(listener->caller) + live_searcher_bytes(listener->searcher) +
                      (listener->opening ? arena_used(listener->opening->arena) : 0));
}

struct live_listener *live_listener_create(struct live_audience *audience, struct exchange *exchange,
                                           struct live_opening *opening, const struct live_visitor *visitor)
{
    struct live_listener *listener = memory_zeroed(1, sizeof *listener, "live");
    listener->exchange = exchange;
    listener->opening = opening;
    listener->is_administrator = visitor->is_administrator;
    listener->caller = visitor->caller;
    listener->searcher = live_searcher_create(&opening->question, &visitor->credential);
    if (visitor->client)
        listener->share = live_shares_join(audience->all->shares, visitor->client);
    listener->kept_ms = clock_monotonic_ms();
    live_audience_join(audience, listener);
    live_index_add(audience->index, &listener->feed, opening->question.definitions, opening->question.count);
    live_records_join(listener, opening->question.records, opening->question.record_count);
    live_listener_count_memory(listener);
    exchange_own(exchange,
                 &(struct exchange_owner){.gone = on_gone, .drained = on_drained, .context = listener});
    return listener;
}

/* --- answers that are no stream --- */

static void find_origin(struct live_listener *listener)
{
    struct live_opening *opening = listener->opening;
    const char *found;
    if (!live_access_find_origin(listener->audience->access, opening->arena, opening->origin, &found))
        return;
    opening->form.has_origins = true;
    opening->form.origin = found;
}

/* Random, so that clients disconnected together do not reconnect together. */
static int64_t choose_retry(void)
{
    uint16_t chance;
    crypto_random(&chance, sizeof chance);
    return RETRY_LEAST_MS + RETRY_SPREAD_MS * (int64_t)chance / UINT16_MAX;
}

/* Should the client wait longer than after a broken connection? */
static bool is_later(enum fault fault)
{
    return fault == FAULT_OOFF || fault == FAULT_OGONE || fault == FAULT_XCROWDED || fault == FAULT_XBUSY;
}

/* The last event of a stream. */
static void write_closed(struct builder *text, enum fault fault, const char *detail)
{
    builder_printf(text, "event: closed\ndata: {\"code\":\"%s\"", fault_code(fault));
    if (detail)
        json_add_text(text, ",\"detail\":", bytes_of(detail));
    builder_add_text(text, "}\n\n");
}

/* A temporary failure must not make a client give up that would reconnect by itself. */
static void answer_later(struct reply *reply)
{
    enum fault fault = reply->fault;
    reply->fault = FAULT_NONE;
    reply->mime = MIME_EVENTS;
    int64_t retry_ms = choose_retry() * (is_later(fault) ? RETRY_LATER : 1);
    if (retry_ms < reply->retry_after_s * 1000)
        retry_ms = reply->retry_after_s * 1000;
    builder_printf(reply->body, "retry: %lld\n", (long long)retry_ms);
    write_closed(reply->body, fault, reply->detail);
}

void live_listener_answer_at_once(struct exchange *exchange, struct live_opening *opening,
                                  struct reply *reply)
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

/* Answers with opening->reply; frees the listener. */
static void live_listener_answer(struct live_listener *listener)
{
    struct builder body = {0};
    struct reply *reply = &listener->opening->reply;
    reply->body = &body;
    find_origin(listener);
    live_listener_answer_at_once(listener->exchange, listener->opening, reply);
    builder_free(&body);
    live_listener_destroy(listener);
}

static void end_stream(struct live_listener *listener)
{
    struct exchange *exchange = listener->exchange;
    live_listener_destroy(listener);
    exchange_end(exchange);
}

void live_listener_refuse(struct live_listener *listener, enum fault fault, struct bytes argument,
                          const char *detail)
{
    if (listener->state == LIVE_OPEN) {
        struct builder *text = &listener->audience->all->text;
        builder_clear(text, EVENT_MOST);
        if (is_later(fault))
            builder_printf(text, "retry: %lld\n", (long long)choose_retry() * RETRY_LATER);
        write_closed(text, fault, detail);
        exchange_write(listener->exchange, builder_bytes(text));
        end_stream(listener);
        return;
    }
    struct arena *arena = listener->opening->arena;
    struct call call = {.arena = arena};
    listener->opening->reply = (struct reply){0};
    (void)reply_fault(&call, &listener->opening->reply, fault, detail,
                      argument.data ? arena_copy(arena, argument.data, argument.size) : NULL, NULL);
    if (fault == FAULT_SKEY)
        listener->opening->reply.fault_status = STATUS_UNAUTHORIZED;
    live_listener_answer(listener);
}

void live_listener_end(struct live_listener *listener)
{
    if (listener->state == LIVE_OPEN)
        end_stream(listener);
    else if (listener->opening->is_settled)
        live_listener_answer(listener);
    else
        live_listener_refuse(listener, FAULT_XAWAY, NO_BYTES, NULL);
}

void live_listener_end_some(struct live_audiences *audiences, size_t count)
{
    while (count-- && audiences->first_kept)
        live_listener_end(audiences->first_kept);
}

void live_listener_refuse_key(struct live_listener *listener, const char *detail)
{
    live_listener_refuse(listener, FAULT_SKEY,
                         live_caller_is_cookie(listener->caller) ? BYTES("Cookie") : BYTES("Authorization"),
                         detail);
}

/* --- what has changed since the last id --- */

/* Is its last id, if any, one that this server made? */
static bool read_last(struct live_listener *listener)
{
    const struct live_audience *audience = listener->audience;
    struct live_opening *opening = listener->opening;
    return !opening->question.last.size ||
           live_horizon_read_id(opening->arena, bytes_of(audience->secret), bytes_of(audience->code),
                                opening->question.last, &opening->last);
}

bool live_listener_is_waiting(struct live_audience *audience)
{
    while (audience->first_waiting && !read_last(audience->first_waiting))
        live_listener_refuse(live_audience_take_waiting(audience), FAULT_AARG, BYTES("last"),
                             "An id that this namespace has given is expected.");
    return audience->first_waiting;
}

struct live_listener *live_listener_take_waiting(struct live_audience *audience)
{
    return audience->queried = live_audience_take_waiting(audience);
}

struct live_listener *live_listener_take_queried(struct live_audience *audience)
{
    struct live_listener *listener = audience->queried;
    audience->queried = NULL;
    return listener;
}

void live_listener_refuse_queried(struct live_audience *audience, enum fault fault)
{
    struct live_listener *listener = live_listener_take_queried(audience);
    if (listener)
        live_listener_refuse(listener, fault == FAULT_STALE ? FAULT_XTIME : fault, NO_BYTES, NULL);
}

void live_listener_refuse_waiting(struct live_audience *audience, enum fault fault)
{
    do
        live_listener_refuse_queried(audience, fault);
    while (live_listener_take_waiting(audience));
}

const struct live_question *live_listener_question(const struct live_listener *listener)
{
    return &listener->opening->question;
}

const struct live_horizon *live_listener_last(const struct live_listener *listener)
{
    return &listener->opening->last;
}

bool live_listener_is_ruled(const struct live_listener *listener)
{
    return listener->is_ruled;
}

uint64_t live_listener_serial(const struct live_listener *listener)
{
    return listener->serial;
}

void live_listener_await(struct live_listener *listener, uint64_t judged)
{
    listener->awaited = judged;
}

void live_listener_match(struct live_listener *listener, size_t number, int64_t version)
{
    struct live_audience *audience = listener->audience;
    live_index_match_mark(listener->is_ruled ? audience->ruled_index : audience->index,
                          &listener->feed.marks[number], version);
}

/* --- events --- */

static bool has_changed(const struct live_listener *listener)
{
    return listener->feed.changed || listener->records.changed;
}

static struct live_mark *take_changed(struct live_listener *listener)
{
    struct live_mark *mark = live_index_take_changed(&listener->feed);
    return mark ? mark : live_index_take_changed(&listener->records);
}

static void forget_changed(struct live_listener *listener)
{
    while (take_changed(listener))
        ;
}

static void write_changes(struct live_listener *listener, struct builder *text)
{
    const char *comma = "";
    struct live_mark *mark;
    builder_add_text(text, "event: change\ndata: {\"changed\":[");
    while (text->size < EVENT_MOST && (mark = take_changed(listener))) {
        builder_printf(text, "%s[", comma);
        json_add_string(text, mark->text);
        builder_printf(text, ",%" PRId64 "]", mark->version);
        comma = ",";
    }
    builder_add_text(text, "]}\n\n");
}

/* Has what every caller may know of the configuration changed since it was sent? */
static bool is_unshown(const struct live_listener *listener)
{
    return listener->shown != live_access_shown_turn(listener->audience->access);
}

static void write_state(struct live_listener *listener, struct builder *text)
{
    const struct live_access *access = listener->audience->access;
    builder_add_text(text, "event: state\ndata: ");
    builder_add_bytes(text, live_access_shown(access));
    builder_add_text(text, "\n\n");
    listener->shown = live_access_shown_turn(access);
}

/* May it no longer be allowed to know what was judged, or to listen at all?  Then nothing is sent until that
 * is known: a commit behind the change of rights may be among what waits. */
static bool is_held(const struct live_listener *listener)
{
    return !live_access_is_certain(listener->audience->access) ||
           (listener->is_ruled && !live_follow_is_settled(listener->audience)) ||
           ((listener->is_ruled || listener->records.count) && listener->trust != LIVE_TRUSTED);
}

void live_listener_flush(struct live_listener *listener)
{
    struct live_audiences *all = listener->audience->all;
    struct builder *text = &all->text;
    if (listener->state != LIVE_OPEN || is_held(listener))
        return;
    live_searches_take_changed(listener);
    while ((listener->must_reset || has_changed(listener) || is_unshown(listener) ||
            live_searches_have_news(listener)) &&
           exchange_unsent(listener->exchange) < BUFFER_MOST) {
        builder_clear(text, EVENT_MOST);
        if (is_unshown(listener)) { /* no id vouches for it: it is sent again with each connection */
            write_state(listener, text);
        } else if (listener->must_reset) {
            forget_changed(listener);
            live_searches_enter(listener);
            builder_add_text(text, "event: reset\ndata: {}\n\n");
            listener->must_reset = false;
        } else if (has_changed(listener)) {
            write_changes(listener, text);
        } else {
            live_searches_write(listener, text);
        }
        listener->has_sent = true;
        exchange_write(listener->exchange, builder_bytes(text));
        pulse_count(&feed_subscriber_slot(all->subscriber)->sent, 1);
    }
}

void live_listener_flush_all(struct live_audience *audience)
{
    struct live_feed *feed;
    while ((feed = live_index_take_matched(audience->index)) ||
           (feed = live_index_take_matched(audience->ruled_index)))
        live_listener_flush((struct live_listener *)(void *)feed);
    while (audience->records.count && (feed = live_index_take_matched(audience->records.index)))
        live_listener_flush(live_audience_listener_of_records(feed));
}

void live_listener_flush_ruled(struct live_audience *audience)
{
    for (struct live_listener *listener = audience->listeners; listener; listener = listener->next)
        if (listener->is_ruled)
            live_listener_flush(listener);
}

void live_listener_reset_all(struct live_audience *audience)
{
    for (struct live_listener *listener = audience->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN) {
            listener->must_reset = true;
            live_listener_flush(listener);
        }
}

void live_listener_reset_ruled(struct live_audience *audience)
{
    for (struct live_listener *listener = audience->listeners; listener; listener = listener->next)
        if (listener->is_ruled) {
            listener->must_reset = true;
            live_listener_flush(listener);
        }
}

/* --- opening a stream --- */

void live_listener_open(struct live_listener *listener, const struct live_horizon *known, bool is_reset)
{
    struct live_audience *audience = listener->audience;
    struct live_opening *opening = listener->opening;
    struct builder *text = &audience->all->text;
    const struct live_horizon last = opening->last;
    bool is_resumed = last.horizon && !is_reset;
    struct builder head = {0}, none = {0};
    struct reply reply = {.body = &none, .mime = MIME_EVENTS};
    find_origin(listener);
    response_compose(&opening->form, &reply, &head);
    exchange_begin(listener->exchange, builder_bytes(&head), false);
    builder_free(&head);
    if (opening->question.session.data)
        listener->session =
            feed_session_add(audience->all->subscriber, audience->number, opening->question.session);
    free_opening(listener);
    exchange_forget_body(listener->exchange);
    live_listener_count_memory(listener);
    listener->state = LIVE_OPEN;
    /* It gets an id once all earlier changes have been sent; an id of another incarnation is useless. */
    listener->known = is_resumed ? last : (struct live_horizon){.life = known->life};
    listener->has_sent = true;
    if (!is_resumed) { /* a new client reads everything now */
        listener->must_reset = false;
        forget_changed(listener);
    } else {
        live_records_match(listener);
    }
    live_searches_enter(listener);
    builder_clear(text, EVENT_MOST);
    builder_printf(text, "retry: %lld\n", (long long)choose_retry());
    builder_printf(text, "event: ready\ndata: {\"resumed\":%s}\n\n", is_resumed ? "true" : "false");
    exchange_write(listener->exchange, builder_bytes(text));
    if (live_access_is_plain(audience->access)) /* which clients take for granted */
        listener->shown = live_access_shown_turn(audience->access);
    live_listener_flush(listener);
}

/* --- horizons and keep-alive --- */

/* An id asserts that all earlier changes were written.  While the database is away there is no secret by
 * which one could be made. */
static bool may_have_id(const struct live_listener *listener)
{
    return listener->state == LIVE_OPEN && !listener->must_reset && !has_changed(listener) &&
           listener->awaited <= listener->audience->judged && !is_held(listener) &&
           live_audience_has_secret(listener->audience);
}

static void write_id(struct live_listener *listener)
{
    const struct live_audience *audience = listener->audience;
    listener->known.sight = live_follow_sight(listener);
    struct builder *text = &audience->all->text;
    builder_clear(text, EVENT_MOST);
    builder_add_text(text, "id: ");
    builder_add_bytes(text, live_horizon_write_id(audience->all->arena, bytes_of(audience->secret),
                                                  bytes_of(audience->code), &listener->known));
    builder_add_text(text, "\n\n");
    arena_reset(audience->all->arena);
    exchange_write(listener->exchange, builder_bytes(text));
    listener->has_sent = false;
}

static void advance(struct live_listener *listener, const struct live_horizon *known)
{
    if (!may_have_id(listener))
        return;
    if (known->life != listener->known.life || known->horizon > listener->known.horizon)
        listener->known = *known;
    write_id(listener);
}

void live_listener_advance_all(struct live_audience *audience, const struct live_horizon *known)
{
    audience->known = *known;
    for (struct live_listener *listener = audience->listeners; listener; listener = listener->next)
        if (listener->state == LIVE_OPEN && (listener->has_sent || listener->known.life != known->life))
            advance(listener, known);
}

static void keep_alive(struct live_listener *listener)
{
    const struct live_horizon *known = &listener->audience->known;
    if (listener->state != LIVE_OPEN || exchange_unsent(listener->exchange))
        return;
    if (!listener->has_sent && may_have_id(listener) && known->horizon > listener->known.horizon &&
        known->life == listener->known.life)
        advance(listener, known);
    else /* without a blank line: some readers take one for the end of an event, even of an empty one */
        exchange_write(listener->exchange, BYTES(":\n"));
}

void live_listener_keep_alive(struct live_audiences *audiences)
{
    int64_t now_ms = clock_monotonic_ms(), period_ms = audiences->settings->live_keepalive_s * 1000;
    for (struct live_listener *listener;
         (listener = audiences->first_kept) && now_ms - listener->kept_ms >= period_ms;) {
        listener->kept_ms = now_ms;
        live_audience_keep(listener);
        if (listener->state == LIVE_OPEN && listener->caller && live_caller_is_over(listener->caller))
            live_listener_refuse_key(listener, LIVE_KEY_IS_WRONG);
        else
            keep_alive(listener);
    }
}
