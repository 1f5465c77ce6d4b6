/* live_news: changes of single documents, completed from the database: the versions of those changed outside
 * the workers, and the collections that they are or were in.
 *
 * They wait in a queue; a query takes the front of it.  When there is no room, the change is not recorded,
 * and the caller queries everything instead (live_catch_up.h). */
#ifndef STAMPD_LIVE_LIVE_NEWS_H
#define STAMPD_LIVE_LIVE_NEWS_H

#include "live/live_horizon.h"
#include "live/topics/live_index.h"

struct live_news;

/* The changes match the definitions in this index, which is borrowed. */
struct live_news *live_news_create(struct live_index *index) __attribute__((returns_nonnull));
void live_news_destroy(struct live_news *news);
/* Empties the queue: all news received counts as sent. */
void live_news_clear(struct live_news *news);

/* A document was committed; version 0: unknown.  Marks what matches, and queues what must be queried.  False:
 * there is no room. */
MUST_USE bool live_news_add(struct live_news *news, struct bytes class, struct bytes id, int64_t version);

/* The query: is one due, its parameters, its result. */
bool live_news_is_due(const struct live_news *news);
void live_news_query(struct live_news *news, const struct live_horizon *known, struct pg_params *params);
void live_news_take(struct live_news *news, const struct pg_result *result);

/* All news ever queued, and those of them that were matched. */
uint64_t live_news_received(const struct live_news *news);
uint64_t live_news_sent(const struct live_news *news);

#endif
