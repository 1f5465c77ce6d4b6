/* waits: since when each worker waits for the answer to a commit, and whether PostgreSQL answers at all.
 *
 * While a standby is away, or the primary is cut off, each commit waits as long as its limit allows, and all
 * workers would wait: even what memory can answer would not be answered.  So a share of the workers stays
 * free: when all others have waited for a while, a worker begins no commit and opens no session, and those of
 * the share that wait already give up.
 *
 * Behind a link that drops packets nothing is answered, and nothing refused: each statement and each
 * connection would be waited for until its time is over.  The relay, which asks PostgreSQL once a second,
 * notes the silence.  While it lasts, workers open no session, and give up those that they wait for. */
#ifndef STAMPD_SEGMENT_COUNTS_WAITS_H
#define STAMPD_SEGMENT_COUNTS_WAITS_H

#include <stdatomic.h>

#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/segment.h"

enum {
    WAITS_LONG_MS = 2000,    /* a wait that counts */
    WAITS_GIVE_UP_MS = 3000, /* the least that a commit gets */
    WAITS_SHARE = 8,         /* one worker in so many stays free, and one at least */
};

struct waits {
    struct waits_slot {
        _Alignas(64) _Atomic int64_t since_ms; /* monotonic; 0: it does not wait */
    } slots[PROCESSES_MOST];
    _Atomic int64_t silent_until_ms[CELLS_MOST]; /* monotonic; of each cell */
};

/* `since_ms`, monotonic: in the future for a commit that may take until then. */
void waits_begin(struct segment *segment, int64_t since_ms);
void waits_end(struct segment *segment);
/* Whether so many of the workers of this instance wait that one that does not must not begin to. */
MUST_USE bool waits_are_crowded(const struct segment *segment, int64_t workers, int64_t now_ms);
/* Whether the process, which waits, is one of the share that gives up. */
MUST_USE bool waits_gives_up(const struct segment *segment, int64_t workers, int64_t now_ms);

/* Since when the process waits for a commit, monotonic; 0: it does not. */
int64_t waits_since_ms(const struct segment *segment, int index);

/* By the relay: PostgreSQL of the cell has not answered in time; it holds until `until_ms`, monotonic, since
 * the relay may die. */
void waits_note_silence(struct segment *segment, int cell, int64_t until_ms);
/* By the relay: it has answered, or refused. */
void waits_note_answer(struct segment *segment, int cell);
MUST_USE bool waits_is_silent(const struct segment *segment, int cell, int64_t now_ms);
/* Until when it is silent, monotonic ms. */
_Atomic int64_t *waits_silence(const struct segment *segment, int cell);

/* For board.c. */
size_t waits_size(const struct board_sizes *sizes);
void waits_init(struct segment *segment, void *memory, const struct board_sizes *sizes);
void waits_recover(struct segment *segment, int index);

#endif
