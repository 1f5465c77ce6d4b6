/* kept: what the keepers of the segment have deleted, counted in it for the metrics. */
#ifndef STAMPD_DOCUMENT_KEPT_H
#define STAMPD_DOCUMENT_KEPT_H

#include "base/base.h"

/* KEPT(NAME, "name"): as the function keep() of the database calls it. */
#define KEPT_KINDS(KEPT)                                                                                     \
    KEPT(ENDED, "ended")                                                                                     \
    KEPT(DEPARTURES, "departures")                                                                           \
    KEPT(ZOMBIES, "zombies")                                                                                 \
    KEPT(SUBSCRIPTIONS, "subscriptions")                                                                     \
    KEPT(ANSWERS, "answers")                                                                                 \
    KEPT(ATTEMPTS, "attempts")                                                                               \
    KEPT(VALUES, "values")

#define KEPT_ENUM(name, text) KEPT_##name,
enum kept_kind { KEPT_KINDS(KEPT_ENUM) KEPT_COUNT };
#undef KEPT_ENUM

struct kept_board {
    _Alignas(64) _Atomic uint64_t deleted[8]; /* by kind */
    _Atomic uint64_t rounds;                  /* through all namespaces */
    _Atomic int64_t round_s;                  /* of the epoch: when the last one ended; 0: none has */
    _Atomic uint64_t reserved[6];
};
_Static_assert(KEPT_COUNT <= 8, "each kind has its place");

#endif
