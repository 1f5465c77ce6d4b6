/* live_index: the subscriptions of one namespace: topics by key, and the listeners of each.  Changes are
 * recorded at the listener, so a slow one never takes more memory than its definitions. */
#ifndef STAMPD_LIVE_TOPICS_LIVE_INDEX_H
#define STAMPD_LIVE_TOPICS_LIVE_INDEX_H

#include "base/bytes.h"
#include "model/schema/definition.h"

struct live_index;
struct live_topic;

/* A definition of a listener. */
struct live_mark {
    struct live_topic *topic;
    struct live_mark *next, **back;               /* in the topic */
    struct live_mark *next_member, **member_back; /* of a collection: among those of its class */
    struct live_mark *next_changed;               /* of its listener */
    struct live_feed *owner;
    int64_t version; /* to be sent */
    bool is_changed;
    struct bytes text; /* as the listener wrote it */
};

/* The definitions of one listener, and which of them have changed. */
struct live_feed {
    struct live_mark *marks;
    size_t count;
    size_t bytes;                             /* of memory, approximate */
    struct live_mark *changed, **changed_end; /* in the order in which they changed */
    struct live_feed *next_matched;           /* of the index */
    bool is_matched;
};

struct live_index *live_index_create(void) __attribute__((returns_nonnull));
void live_index_destroy(struct live_index *index);

/* Adds the listener's definitions; the index keeps copies. */
void live_index_add(struct live_index *index, struct live_feed *feed, const struct definition *definitions,
                    size_t count);
void live_index_remove(struct live_index *index, struct live_feed *feed);

/* Marks the definitions of a topic as changed; version 0: unknown.  Does nothing for a topic without
 * listeners. */
void live_index_match(struct live_index *index, struct bytes key, int64_t version);
/* Marks all definitions of the listener. */
void live_index_match_feed(struct live_index *index, struct live_feed *feed);
/* Marks those of its definitions that are of the class, with version 0. */
void live_index_match_class(struct live_index *index, struct live_feed *feed, struct bytes class);
bool live_index_has_class(const struct live_feed *feed, struct bytes class);
/* Has the topic listeners? */
bool live_index_has(const struct live_index *index, struct bytes key);
/* Calls `see` with each definition of the topic; it may be matched. */
void live_index_each_mark(const struct live_index *index, struct bytes key,
                          void (*see)(void *context, struct live_mark *mark), void *context);
void live_index_match_mark(struct live_index *index, struct live_mark *mark, int64_t version);
/* The next listener with a match since it was last taken; NULL: none. */
struct live_feed *live_index_take_matched(struct live_index *index);
/* The listener's next changed definition, to be sent; NULL: none. */
struct live_mark *live_index_take_changed(struct live_feed *feed);
/* The same of those from this one on, in the order in which they were added. */
struct live_mark *live_index_take_changed_from(struct live_feed *feed, const struct live_mark *first);

/* Are there listeners to collections of the class? */
bool live_index_has_members_of(const struct live_index *index, struct bytes class);
/* Calls `see` with each definition of a collection of the class; it may be matched. */
void live_index_each_member(const struct live_index *index, struct bytes class,
                            void (*see)(void *context, struct live_mark *mark), void *context);
const struct definition *live_index_definition(const struct live_mark *mark);

/* Calls `see` with one definition of each topic; `see` must not change the index. */
void live_index_each(const struct live_index *index,
                     void (*see)(void *context, const struct definition *definition), void *context);

#endif
