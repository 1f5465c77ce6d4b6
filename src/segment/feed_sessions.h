/* feed_sessions: which sessions listen now, in the segment: a table with one writer, the process that they
 * listen to, and many readers, who never wait and may be as late as it takes to read. */
#ifndef STAMPD_SEGMENT_FEED_SESSIONS_H
#define STAMPD_SEGMENT_FEED_SESSIONS_H

#include <stdatomic.h>

#include "base/base.h"

enum { FEED_SESSIONS = 16384, FEED_SESSIONS_MOST = FEED_SESSIONS / 4 * 3 };

/* Lies in the segment; zero is a valid beginning.  Keys are hashes with a seed: two sessions of one key are
 * so rare that they count as one. */
struct feed_sessions {
    _Atomic uint64_t keys[FEED_SESSIONS]; /* 0: free, and the end of a chain; 1: left free in a chain */
};

/* The writer's: how many connections each has. */
struct subscriber_counts {
    uint32_t counts[FEED_SESSIONS], used;
};

/* One connection more, one less; false: the table is full, and it is not in it. */
MUST_USE bool feed_sessions_add(struct feed_sessions *sessions, struct subscriber_counts *counts,
                                uint64_t key);
void feed_sessions_remove(struct feed_sessions *sessions, struct subscriber_counts *counts, uint64_t key);
/* By the writer, or when it is gone. */
void feed_sessions_clear(struct feed_sessions *sessions);

bool feed_sessions_has(const struct feed_sessions *sessions, uint64_t key);

#endif
