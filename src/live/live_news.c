/* live_news: two queues, in the order of arrival: the front one is queried, the other is filled. */
#include "live/live_news.h"

#include <inttypes.h>
#include <stdlib.h>

#include "base/memory.h"
#include "live/topics/live_key.h"
#include "live/live_statement.h"

enum {
    NEWS_AT_ONCE = 500, /* documents in one query */
    NEWS_MOST = 2000,   /* more are not queued */
};
enum { NEWS_KIND, NEWS_CLASS, NEWS_NAME, NEWS_VALUE, NEWS_VERSION, NEWS_ID }; /* columns of NEWS */

/* A changed document whose details must be queried. */
struct news_change {
    struct bytes class, id;
    int64_t version; /* 0: unknown */
};

struct news_queue {
    struct arena *arena;
    struct news_change *items;
    size_t count, next;
};

struct live_news {
    struct live_index *index;
    struct news_queue queues[2];      /* the one being queried; the one being filled */
    uint64_t received, queried, sent; /* counters of all ever queued */
    struct builder key;
};

struct live_news *live_news_create(struct live_index *index)
{
    struct live_news *news = memory_zeroed(1, sizeof *news, "live");
    news->index = index;
    for (size_t i = 0; i < COUNT_OF(news->queues); i++)
        news->queues[i].arena = arena_create("live news");
    return news;
}

void live_news_destroy(struct live_news *news)
{
    for (size_t i = 0; i < COUNT_OF(news->queues); i++)
        arena_destroy(news->queues[i].arena);
    builder_free(&news->key);
    free(news);
}

void live_news_clear(struct live_news *news)
{
    for (size_t i = 0; i < COUNT_OF(news->queues); i++) {
        arena_reset(news->queues[i].arena);
        news->queues[i] = (struct news_queue){.arena = news->queues[i].arena};
    }
    news->queried = news->sent = news->received;
}

bool live_news_is_due(const struct live_news *news)
{
    return news->received != news->queried;
}

uint64_t live_news_received(const struct live_news *news)
{
    return news->received;
}

uint64_t live_news_sent(const struct live_news *news)
{
    return news->sent;
}

/* --- arrival --- */

static bool queue_change(struct live_news *news, struct bytes class, struct bytes id, int64_t version)
{
    struct news_queue *back = &news->queues[1];
    if (back->count == NEWS_MOST)
        return false;
    if (!back->items)
        back->items = ARENA_ROOM(back->arena, struct news_change, NEWS_MOST);
    back->items[back->count++] = (struct news_change){
        .class = {arena_copy(back->arena, class.data, class.size), class.size},
        .id = {arena_copy(back->arena, id.data, id.size), id.size},
        .version = version,
    };
    news->received++;
    return true;
}

static void match(struct live_news *news, struct bytes class, struct bytes id, int64_t version)
{
    live_index_match(news->index, live_key_of_class(&news->key, class), version);
    live_index_match(news->index, live_key_of_document(&news->key, class, id), version);
}

bool live_news_add(struct live_news *news, struct bytes class, struct bytes id, int64_t version)
{
    if (version) {
        match(news, class, id, version);
        if (!live_index_has_members_of(news->index, class))
            return true;
    }
    return queue_change(news, class, id, version);
}

/* --- the query --- */

/* The front queue is queried until it is empty, while the other is filled. */
static struct news_queue *front_queue(struct live_news *news)
{
    struct news_queue *front = &news->queues[0], *back = &news->queues[1];
    if (front->next == front->count) {
        struct news_queue empty = {.arena = front->arena};
        arena_reset(empty.arena);
        *front = *back;
        *back = empty;
    }
    return front;
}

void live_news_query(struct live_news *news, const struct live_horizon *known, struct pg_params *params)
{
    struct arena *arena = params->arena;
    struct news_queue *front = front_queue(news);
    size_t left = front->count - front->next, count = left < NEWS_AT_ONCE ? left : NEWS_AT_ONCE;
    const struct news_change *changes = front->items + front->next;
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, count);
    int64_t *versions = ARENA_ARRAY(arena, int64_t, count);
    for (size_t i = 0; i < count; i++) {
        classes[i] = changes[i].class;
        ids[i] = changes[i].id;
        versions[i] = changes[i].version;
    }
    front->next += count;
    news->queried += count;
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(ids, count), PG_I64S(versions, count),
                  PG_TEXT(bytes_of(arena_printf(arena, "%" PRId64, known->horizon))));
}

void live_news_take(struct live_news *news, const struct pg_result *result)
{
    for (int row = 0; row < pg_rows(result); row++) {
        struct bytes class = pg_get_text(result, row, NEWS_CLASS);
        int64_t version = pg_get_i64(result, row, NEWS_VERSION);
        if (pg_get_i64(result, row, NEWS_KIND) == LIVE_ROW_OF_COLLECTION) {
            struct bytes name = pg_get_text(result, row, NEWS_NAME),
                         value = pg_get_text(result, row, NEWS_VALUE);
            live_index_match(news->index, live_key_of_member(&news->key, class, name, value), version);
            continue;
        }
        match(news, class, pg_get_text(result, row, NEWS_ID), version);
    }
    news->sent = news->queried;
}
