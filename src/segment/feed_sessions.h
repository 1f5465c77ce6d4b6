/* feed_sessions: the sessions that have live-event connections now: a table in the segment with one writer,
 * the process that serves the connections, and many readers.  Readers never block; their answer is as old
 * as the read. */
#ifndef STAMPD_SEGMENT_FEED_SESSIONS_H
#define STAMPD_SEGMENT_FEED_SESSIONS_H

#include <stdatomic.h>

#include "base/base.h"

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

#endif
