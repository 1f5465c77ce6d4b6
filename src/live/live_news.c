/* live_news: changes of single documents, completed from the database: the versions of those changed outside
 * the workers, and the collections that they are or were in.
 *
 * The slot stamp is advanced before a change is sent, so a client that reads right after the event never gets
 * the old value.  Workers advance stamps for their own commits; this file does so for all notifications of
 * the database, since the relay may receive them later. */
#include "live/live_private.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/log.h"
#include "segment/notification.h"

enum {
    NEWS_AT_ONCE = 500, /* documents in one query */
    NEWS_MOST = 2000,   /* if more are waiting, they are handled as a gap */
};
enum { NEWS_KIND, NEWS_CLASS, NEWS_NAME, NEWS_TEXT, NEWS_VERSION }; /* columns of NEWS */

const struct pg_statement live_statements[LIVE_STATEMENTS] = {
#define STATEMENT(word, label, count, text) [LIVE_STATEMENT_##word] = {label, text, count},
#include "live/live_statement_table.h"
#include "segment/slots.h"
#undef STATEMENT
};

/* --- LISTEN --- */

static bool listen_is_due(struct live_namespace *ns)
{
    return !ns->is_listening;
}

static enum fault listen_ask(struct live_namespace *ns)
{
    struct pg_params params;
    pg_params_start(&params, ns->arena);
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_LISTEN], &params);
}

/* Earlier changes were not received.  All stamps are advanced, so a client that gets an event or reads
 * everything from now on never gets an old value. */
static void listen_take(struct live_namespace *ns)
{
    ns->is_listening = true;
    slots_move_all(ns->live->segment);
    if (ns->known.horizon || ns == ns->live->z)
        live_namespace_miss(ns);
    log_debug("live listens database=%s", ns->database);
}

const struct live_asking live_asks_listen = {listen_is_due, listen_ask, listen_take, NULL};

/* --- the secret, needed before any work on ids --- */

static bool secret_is_due(struct live_namespace *ns)
{
    return !*ns->secret;
}

static enum fault secret_ask(struct live_namespace *ns)
{
    struct pg_params params;
    pg_params_start(&params, ns->arena);
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_SECRET], &params);
}

/* Without a secret, which only an administrator can have removed, ids are valid only for this process. */
static void secret_take(struct live_namespace *ns)
{
    struct bytes secret = pg_rows(ns->result) ? pg_get_text(ns->result, 0, 0) : NO_BYTES;
    if (secret.size && secret.size < LIVE_SECRET_BYTES) {
        memcpy(ns->secret, secret.data, secret.size);
        ns->secret[secret.size] = '\0';
        return;
    }
    log_error("live database=%s: its table namespace has no secret", ns->database);
    snprintf(ns->secret, sizeof ns->secret, "%016" PRIx64, ns->live->nonce);
}

const struct live_asking live_asks_secret = {secret_is_due, secret_ask, secret_take, NULL};

/* --- the queues of news, in order of arrival; the front one is queried --- */

static bool news_is_due(struct live_namespace *ns)
{
    return ns->news_heard != ns->news_asked;
}

void live_news_clear(struct live_namespace *ns)
{
    for (size_t i = 0; i < COUNT_OF(ns->news); i++) {
        arena_reset(ns->news[i].arena);
        ns->news[i] = (struct live_queue){.arena = ns->news[i].arena};
    }
    ns->news_asked = ns->news_told = ns->news_heard;
}

/* The front queue is queried until it is empty, while the other is filled. */
static struct live_queue *front_queue(struct live_namespace *ns)
{
    struct live_queue *front = &ns->news[0], *back = &ns->news[1];
    if (front->next == front->count) {
        struct live_queue empty = {.arena = front->arena};
        arena_reset(empty.arena);
        *front = *back;
        *back = empty;
    }
    return front;
}

static void add_news(struct live_namespace *ns, struct bytes class, struct bytes id, int64_t version)
{
    struct live_queue *back = &ns->news[1];
    if (back->count == NEWS_MOST) {
        live_namespace_miss(ns);
        return;
    }
    if (!back->items)
        back->items = ARENA_ROOM(back->arena, struct live_news, NEWS_MOST);
    back->items[back->count++] = (struct live_news){
        .class = {arena_copy(back->arena, class.data, class.size), class.size},
        .id = {arena_copy(back->arena, id.data, id.size), id.size},
        .version = version,
    };
    ns->news_heard++;
}

void live_namespace_hear(struct live_namespace *ns, struct bytes class, struct bytes id, int64_t version)
{
    struct builder *key = &ns->live->key;
    ns->is_told_of = true;
    if (ns == ns->live->z && bytes_equal(class, BYTES("Namespace")))
        live_rules_doubt_one(ns->live, id);
    if (!ns->listener_count)
        return;
    if (version) {
        live_index_match(ns->index, live_key_of_class(key, class), version);
        live_index_match(ns->index, live_key_of_document(key, class, id), version);
        if (!live_index_has_members_of(ns->index, class))
            return;
    }
    add_news(ns, class, id, version);
}

void live_namespace_notice(struct live_namespace *ns, struct bytes payload)
{
    struct bytes class, id;
    if (notification_publish(ns->live->segment, ns->ns, payload, &class, &id))
        live_namespace_hear(ns, class, id, 0);
    else
        live_namespace_miss(ns);
}

/* --- the query --- */

static enum fault news_ask(struct live_namespace *ns)
{
    struct live_queue *front = front_queue(ns);
    size_t left = front->count - front->next, count = left < NEWS_AT_ONCE ? left : NEWS_AT_ONCE;
    const struct live_news *news = front->items + front->next;
    struct bytes *classes = ARENA_ARRAY(ns->arena, struct bytes, count);
    struct bytes *ids = ARENA_ARRAY(ns->arena, struct bytes, count);
    int64_t *versions = ARENA_ARRAY(ns->arena, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = news[i].class;
        ids[i] = news[i].id;
        versions[i] = news[i].version;
    }
    front->next += count;
    ns->news_asked += count;
    struct pg_params params;
    pg_params_start(&params, ns->arena);
    pg_add_text_array(&params, classes, count);
    pg_add_text_array(&params, ids, count);
    pg_add_i64_array(&params, versions, count);
    pg_add_text(&params, live_number_text(ns->arena, ns->known.horizon));
    return pg_send(ns->pg, &live_statements[LIVE_STATEMENT_NEWS], &params);
}

static void news_take(struct live_namespace *ns)
{
    struct builder *key = &ns->live->key;
    for (int row = 0; row < pg_rows(ns->result); row++) {
        struct bytes class = pg_get_text(ns->result, row, NEWS_CLASS);
        struct bytes text = pg_get_text(ns->result, row, NEWS_TEXT);
        int64_t version = pg_get_i64(ns->result, row, NEWS_VERSION);
        if (pg_get_i64(ns->result, row, NEWS_KIND) == LIVE_ROW_OF_COLLECTION) {
            struct bytes name = pg_get_text(ns->result, row, NEWS_NAME);
            live_index_match(ns->index, live_key_of_member(key, class, name, text), version);
            continue;
        }
        live_index_match(ns->index, live_key_of_class(key, class), version);
        live_index_match(ns->index, live_key_of_document(key, class, text), version);
    }
    ns->news_told = ns->news_asked;
    live_flush(ns);
    if (ns->round == ROUND_WAITS_FOR_NEWS)
        (void)live_round_go_on(ns);
}

/* A gap queries everything. */
static void news_failed(struct live_namespace *ns, enum fault fault)
{
    (void)fault;
    live_news_clear(ns);
    live_namespace_miss(ns);
}

const struct live_asking live_asks_news = {news_is_due, news_ask, news_take, news_failed};
