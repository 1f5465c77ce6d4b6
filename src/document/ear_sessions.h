/* ear_sessions: which sessions listen now, in the segment: a table with one writer, the process that they
 * listen to, and many readers, who never wait and may be as late as it takes to read. */
#ifndef STAMPD_DOCUMENT_EAR_SESSIONS_H
#define STAMPD_DOCUMENT_EAR_SESSIONS_H

#include <stdatomic.h>

#include "base/base.h"

enum { EAR_SESSIONS = 16384, EAR_SESSIONS_MOST = EAR_SESSIONS / 4 * 3 };

/* Lies in the segment; zero is a valid beginning.  Keys are hashes with a seed: two sessions of one key are
 * so rare that they count as one. */
struct ear_sessions {
    _Atomic uint64_t keys[EAR_SESSIONS]; /* 0: free, and the end of a chain; 1: left free in a chain */
};

/* The writer's: how many connections each has. */
struct ear_counts {
    uint32_t counts[EAR_SESSIONS], used;
};

/* One connection more, one less; false: the table is full, and it is not in it. */
MUST_USE bool ear_sessions_add(struct ear_sessions *sessions, struct ear_counts *counts, uint64_t key);
void ear_sessions_remove(struct ear_sessions *sessions, struct ear_counts *counts, uint64_t key);
/* By the writer, or when it is gone. */
void ear_sessions_clear(struct ear_sessions *sessions);

bool ear_sessions_has(const struct ear_sessions *sessions, uint64_t key);

#endif
