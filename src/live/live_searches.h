/* live_searches: searches that listeners follow (live.md, "Searches").
 *
 * Equal searches of listeners with equal rights are one: a worker evaluates it, as the operation `find` of
 * one of them, after a change of what it follows; changes in the pause behind that are taken together.  The
 * page is compared with the former one, and each listener gets the difference, or the whole page when it has
 * none of the last ones.  A listener that reads slowly costs no memory: what it has not got is written when
 * it reads.  What is found counts for the client of its first listener; what finds no room in the memory is
 * an event with XCROWDED.
 *
 * A namespace has so many evaluations in a second; those of several namespaces take turns, and few are under
 * way at once. */
#ifndef STAMPD_LIVE_LIVE_SEARCHES_H
#define STAMPD_LIVE_LIVE_SEARCHES_H

#include "base/builder.h"
#include "base/settings.h"
#include "edge/events.h"
#include "live/topics/live_question.h"
#include "segment/segment.h"

struct live_audience;
struct live_listener;

/* --- all of the process --- */
struct live_searches;

struct live_searches_parts {
    const struct settings *settings;
    struct events *events;
    void (*flush)(struct live_listener *listener); /* something is to be written; it stays alive */
};
/* All are borrowed. */
struct live_searches *live_searches_create(const struct live_searches_parts *parts)
    __attribute__((returns_nonnull));
void live_searches_destroy(struct live_searches *searches); /* when no listeners are left */

/* --- of a namespace; cleared with the audience that it is in --- */
struct live_search;
struct live_search_list {
    struct live_search *first, *last;
};
struct live_search_queue {
    struct live_search_list due, resting; /* in the order of their times */
    double tokens;                        /* evaluations that it may begin */
    int64_t filled_ms;
    bool is_listed;
    size_t count; /* of all searches */
    struct live_search_queue *next, *previous;
};

/* --- of a listener (live_searcher.h) --- */

/* With a listener that has no searches all of these do nothing. */

/* It is open, or what it may see may have changed: it follows its searches by its present rights, and gets
 * each page. */
void live_searches_enter(struct live_listener *listener);
/* Its searcher is freed. */
void live_searches_leave(struct live_listener *listener);
/* Takes the changes of what its searches follow out of its feed. */
void live_searches_take_changed(struct live_listener *listener);
bool live_searches_have_news(const struct live_listener *listener);
/* Writes one event. */
void live_searches_write(struct live_listener *listener, struct builder *text);

#endif
