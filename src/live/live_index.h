/* live_index: who wants to hear of what, in one namespace: topics by key, and for each its listeners.  What
 * has changed is noted at the listener, so that a slow one costs no more memory than its definitions. */
#ifndef STAMPD_LIVE_LIVE_INDEX_H
#define STAMPD_LIVE_LIVE_INDEX_H

#include "base/bytes.h"
#include "live/live_question.h"

struct live_index;
struct live_topic;

/* A definition of a listener. */
struct live_link {
    struct live_topic *topic;
    struct live_link *next, **back; /* in the topic */
    struct live_link *next_changed; /* of its listener */
    struct live_feed *owner;
    int64_t version; /* that is to be told */
    bool is_changed;
    struct bytes text; /* as the listener wrote it */
};

/* The definitions of one listener. */
struct live_feed {
    struct live_link *links;
    size_t count;
    size_t bytes;                             /* of memory, about */
    struct live_link *changed, **changed_end; /* in the order in which they changed */
    struct live_feed *next_matched;           /* of the index */
    bool is_matched;
};

struct live_index *live_index_create(void) __attribute__((returns_nonnull));
void live_index_destroy(struct live_index *index);

/* Copies what it keeps of the definitions. */
void live_index_add(struct live_index *index, struct live_feed *feed, const struct definition *definitions,
                    size_t count);
void live_index_remove(struct live_index *index, struct live_feed *feed);

/* Version 0: unknown.  Nobody's topic: nothing. */
void live_index_match(struct live_index *index, struct bytes key, int64_t version);
/* All of the listener's. */
void live_index_match_feed(struct live_index *index, struct live_feed *feed);
void live_index_match_link(struct live_index *index, struct live_link *link, int64_t version);
/* The next listener of which something was touched since it was last taken; NULL: none. */
struct live_feed *live_index_take_matched(struct live_index *index);
/* The next definition of the listener to be told; NULL: none. */
struct live_link *live_feed_take_changed(struct live_feed *feed);

/* Does anybody listen to collections of the class? */
bool live_index_has_members_of(const struct live_index *index, struct bytes class);

/* All topics with a definition each; the function must not change the index. */
void live_index_each(const struct live_index *index,
                     void (*see)(void *context, const struct definition *definition), void *context);

#endif
