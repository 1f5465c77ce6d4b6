/* purge_counts: the numbers of rows that keepers have deleted, for the metrics, and the namespaces that may
 * have documents that expire (serve/upkeep/keeper.c). */
#ifndef STAMPD_SEGMENT_COUNTS_PURGE_COUNTS_H
#define STAMPD_SEGMENT_COUNTS_PURGE_COUNTS_H

#include <stdatomic.h>

#include "base/base.h"
#include "segment/segment.h"

/* KEPT(NAME, "name"): the name used by the database function keep(). */
#define KEPT_KINDS(KEPT)                                                                                     \
    KEPT(ENDED, "ended")                                                                                     \
    KEPT(DEPARTURES, "departures")                                                                           \
    KEPT(ZOMBIES, "zombies")                                                                                 \
    KEPT(SUBSCRIPTIONS, "subscriptions")                                                                     \
    KEPT(ANSWERS, "answers")                                                                                 \
    KEPT(ATTEMPTS, "attempts")                                                                               \
    KEPT(VALUES, "values")                                                                                   \
    KEPT(REFERENCES, "references")

#define KEPT_ENUM(name, text) KEPT_##name,
enum kept_kind { KEPT_KINDS(KEPT_ENUM) KEPT_COUNT };
#undef KEPT_ENUM

enum { KEPT_WORDS = 4 };

/* What the mover of files has done: files sent to object stores, brought back, and attempts that failed. */
enum moved_kind { MOVED_SENT, MOVED_BROUGHT, MOVED_FAILURES, MOVED_KINDS };

/* Spans that the exporter has sent to the collector, and those that were dropped (serve/tracing). */
enum spans_kind { SPANS_SENT, SPANS_DROPPED, SPANS_KINDS };

struct purge_counts {
    _Alignas(64) _Atomic uint64_t deleted[8]; /* by kind */
    _Atomic uint64_t rounds;                  /* completed passes over all namespaces */
    _Atomic int64_t round_s;              /* seconds since the epoch: when the last pass ended; 0: none has */
    _Atomic uint64_t may_end[KEPT_WORDS]; /* a bit for each namespace: to be checked each minute */
    _Atomic uint64_t files;               /* of attachments, removed */
    _Atomic uint64_t moved[MOVED_KINDS];  /* of files, by kind */
    _Atomic uint64_t spans[SPANS_KINDS];
};
_Static_assert(KEPT_COUNT <= 8, "each kind has its counter");

static inline void purge_counts_note_ends(struct purge_counts *board, int ns, bool may_end)
{
    uint64_t bit = UINT64_C(1) << (ns % 64);
    if (may_end)
        atomic_fetch_or(&board->may_end[ns / 64], bit);
    else
        atomic_fetch_and(&board->may_end[ns / 64], ~bit);
}

static inline bool purge_counts_may_end(const struct purge_counts *board, int ns)
{
    return atomic_load(&board->may_end[ns / 64]) >> (ns % 64) & 1;
}

static inline bool purge_counts_any_ends(const struct purge_counts *board)
{
    bool any = false;
    for (int word = 0; word < KEPT_WORDS; word++)
        any |= atomic_load(&board->may_end[word]) != 0;
    return any;
}

/* For board.c. */
size_t purge_counts_size(const struct board_sizes *sizes);
void purge_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes);

#endif
