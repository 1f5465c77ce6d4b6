/* limiter: counters of rates in the shared segment, one for each subject of a limit: an address, an account,
 * a namespace, a name with an address.
 *
 * A counter is a debt (GCRA): each event adds the time that one event takes at the rate, time pays it off,
 * and an event is refused that would make it exceed the burst.  A counter whose debt is paid is as good as
 * none, so it may be given to another subject.
 *
 * The table has lines of one cache line each: a ticket and LIMITER_CELLS cells.  The keyed hash of a subject
 * selects its line and its tag; a subject that has a cell of the line is found by its tag.  All steps are
 * compare-and-swap of one word: no process waits for another, and a process can die at any of them.
 *
 * Promises, as long as no counter in debt is evicted:
 *
 * - A subject has at most one cell.  It enters a line only through the ticket, one subject at a time, and
 *   only if the ticket is the one that was read before the search for the subject.
 * - Every event that is admitted is in the debt.  In any time t at most burst + rate * t are admitted.  An
 *   event that is refused adds nothing.  A process that dies between an entry and its answer has counted an
 *   event for nothing.
 *
 * When all cells of a line are in debt, the one that is paid first is evicted, and its subject begins anew.
 * So a subject is evicted only by those that owe longer, LIMITER_CELLS of them on one line.  An attacker
 * cannot select subjects of one line, since the hash has a secret key: to erase counters it needs as many
 * subjects in debt as there are cells, so the limits themselves allow it that many times the rate.  An
 * eviction favours a subject, never refuses one.
 *
 * Two subjects of one line have the same tag, and share a counter, with a probability of 2^-24. */
#ifndef STAMPD_SEGMENT_COUNTS_LIMITER_H
#define STAMPD_SEGMENT_COUNTS_LIMITER_H

#include "base/base.h"
#include "base/bytes.h"
#include "segment/segment.h"

/* `count` events in `period_ms`, and `burst` of them at once.  From 1 in a day to LIMITER_RATE_MOST in a
 * millisecond; a rate between two that can be counted is rounded down.  The whole burst takes at most six
 * days: a longer one is cut. */
struct limiter_rate {
    int64_t count, period_ms, burst;
};
enum { LIMITER_RATE_MOST = 8 };

/* What is counted: the quotas of operation/quota.h from 0 on, attempts to sign in and the like from
 * LIMITER_ATTEMPTS on, events of modules. */
enum { LIMITER_ATTEMPTS = 64, LIMITER_MODULES = 128 };

/* The key of a counter; others cannot compute it.  `ns`: index of the namespace. */
uint64_t limiter_key(const struct segment *segment, int ns, int kind, struct bytes subject);
/* Counts `cost` events (1 or more; more than the burst: the burst) unless they exceed the rate.  0: counted;
 * otherwise the milliseconds until they are admitted, and nothing is counted.  `now_ms`: monotonic. */
MUST_USE int64_t limiter_take(struct segment *segment, uint64_t key, const struct limiter_rate *rate,
                              int64_t cost, int64_t now_ms);
/* The same without counting. */
MUST_USE int64_t limiter_look(struct segment *segment, uint64_t key, const struct limiter_rate *rate,
                              int64_t cost, int64_t now_ms);
/* An event that limiter_take has counted, at this rate, did not happen after all. */
void limiter_give_back(struct segment *segment, uint64_t key, const struct limiter_rate *rate,
                       int64_t now_ms);
/* The subject owes nothing any more. */
void limiter_forget(struct segment *segment, uint64_t key, int64_t now_ms);

/* Counters in debt, those there are, and evictions of counters in debt since the segment was created. */
struct limiter_use {
    uint64_t used, most, evicted;
};
struct limiter_use limiter_use(const struct segment *segment, int64_t now_ms);

/* --- layout in the segment --- */
enum { LIMITER_CELLS = 7 };
/* cell:   tag (24 bits; 0: free), time at which the debt is paid (40 bits, in ticks, wraps around)
 * ticket: number (6), is an entry unfinished (1), place (3), tag (24), charge in ticks (30) */
struct limiter_line {
    _Alignas(64) _Atomic uint64_t ticket;
    _Atomic uint64_t cells[LIMITER_CELLS];
};
struct limiter_board {
    _Alignas(64) _Atomic uint64_t evicted;
    struct limiter_line lines[]; /* a line for each 8 slots */
};

/* For board.c. */
size_t limiter_size(const struct board_sizes *sizes);
void limiter_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
