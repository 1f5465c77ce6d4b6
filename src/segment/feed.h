/* feed: the change feed, from workers that commit to the processes that serve live events (live/).
 *
 * Each subscriber has a named pipe.  A worker, the publisher, writes to it without blocking; an event that
 * does not fit is counted as missed in the shared segment, and the subscriber queries the database instead.
 * For a namespace without a subscriber, a commit reads one word of the segment. */
#ifndef STAMPD_SEGMENT_FEED_H
#define STAMPD_SEGMENT_FEED_H

#include <stdatomic.h>

#include "base/base.h"
#include "segment/namespaces.h"
#include "segment/segment.h"

/* The sessions that have live-event connections now: a table in the segment with one writer,
 * the process that serves the connections, and many readers.  Readers never block; their answer is as old
 * as the read. */

enum { FEED_SESSIONS = 16384, FEED_SESSIONS_MOST = FEED_SESSIONS / 4 * 3 };

/* Lies in the segment; zero is a valid initial state.  Keys are seeded hashes: two sessions with the same
 * key are so rare that they count as one. */
struct feed_sessions {
    _Atomic uint64_t keys[FEED_SESSIONS]; /* 0: free, and the end of a chain; 1: left free in a chain */
};

/* The writer's own: connections of each session. */
struct subscriber_counts {
    uint32_t counts[FEED_SESSIONS], used;
};

/* Adds or removes one connection; false: the table is full, and the connection was not added. */
MUST_USE bool feed_sessions_add(struct feed_sessions *sessions, struct subscriber_counts *counts,
                                uint64_t key);
void feed_sessions_remove(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key);
/* Called by the writer, or after it is gone. */
void feed_sessions_clear(struct feed_sessions *sessions);

bool feed_sessions_has(const struct feed_sessions *sessions, uint64_t key);

enum { FEED_MOST = 16, FEED_PATH_BYTES = 256 };

struct feed_subscriber_slot {
    _Alignas(64) _Atomic uint32_t owner;       /* process; 0: free */
    _Atomic uint32_t turn;                     /* odd: open; moves when the pipe opens or closes */
    _Atomic uint64_t listeners, sent, refused; /* metrics: connections open, events sent, refusals (full) */
    _Atomic uint64_t held,
        overflows; /* changes that wait to be judged; how often there was no room for more */
    _Atomic uint32_t missed[NAMESPACES_MOST];
    char path[FEED_PATH_BYTES];    /* of the pipe; unchanged while `turn` is */
    struct feed_sessions sessions; /* connected to this subscriber */
};

/* Lies in the segment; zero is a valid initial state. */
struct feed_board {
    _Atomic uint32_t wanted[NAMESPACES_MOST]; /* a bit for each subscriber */
    struct feed_subscriber_slot slots[FEED_MOST];
};

/* --- queries --- */
/* Whether the session (model/schema/definition.h) has a live-event connection in the namespace now.  A dead
 * connection counts until it is detected. */
bool feed_session_listens(const struct segment *segment, int ns, struct bytes session);

/* --- publishers --- */
struct publisher; /* a process's open pipes */
struct publisher *feed_publisher_create(struct segment *segment) __attribute__((returns_nonnull));
void feed_publisher_destroy(struct publisher *publisher); /* NULL is allowed */

static inline bool feed_are_wanted(const struct segment *segment, int ns)
{
    return atomic_load(&segment->feed->wanted[ns]) != 0;
}

struct subscriber_change {
    struct bytes class, id;
};
/* These documents were committed at `version`.  Called between the commit and slots_end: a subscriber that
 * finds no commit in flight has then been sent every event. */
void feed_publisher_send(struct publisher *publisher, int ns, int64_t version,
                         const struct subscriber_change *changes, size_t count);
/* Something may have been committed, but it is not known what. Called before slots_end, too. */
void feed_publisher_miss(struct publisher *publisher, int ns);

/* --- subscribers --- */
struct subscriber;

/* Takes a slot that is free or whose process is gone, and creates the pipe in `folder`.  On failure NULL
 * with one line in `problem`. */
struct subscriber *feed_subscriber_open(struct segment *segment, const char *folder, char *problem,
                                        size_t problem_size);
void feed_subscriber_close(struct subscriber *subscriber); /* NULL is allowed */
int feed_subscriber_descriptor(const struct subscriber *subscriber);
struct feed_subscriber_slot *feed_subscriber_slot(const struct subscriber *subscriber);
/* After it returns, every commit in the namespace is sent, or counted as missed. */
void feed_subscriber_want(struct subscriber *subscriber, int ns, bool is_wanted);
uint32_t feed_subscriber_missed(const struct subscriber *subscriber, int ns);

/* Adds a connection of the session; returns the key that removes it, 0: too many connections. */
MUST_USE uint64_t feed_session_add(struct subscriber *subscriber, int ns, struct bytes session);
void feed_session_remove(struct subscriber *subscriber, uint64_t key);
/* The process is gone: closes its slot. */
void feed_retire(struct segment *segment, uint32_t process);

struct subscriber_news {
    int ns;
    int64_t version;
    struct bytes class, id; /* class without data: something was missed; valid until the next call */
};
/* The next event received; false: none. */
bool feed_subscriber_next(struct subscriber *subscriber, struct subscriber_news *news_r);

/* For board.c. */
size_t feed_size(const struct board_sizes *sizes);
void feed_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
