/* store_reading: whom the present request is from, and what is left of its time; for store_long.c. */
#ifndef STAMPD_STORE_STORE_READING_H
#define STAMPD_STORE_STORE_READING_H

#include "store/store.h"

/* All zero: no limit. */
struct store_reading {
    bool is_limited;
    enum { READING_NOT, READING_ON_TRIAL, READING_FULLY } state; /* of this worker in long_requests.h */
    struct store_requester requester;
    int64_t left_ms, trial_ms;
    size_t loads;        /* documents loaded for it */
    const char *refused; /* the limit that has refused it, with this fault; NULL: none */
    enum fault refused_fault;
    int64_t refused_value;
};

struct store_reading *store_reading(const struct store *store);

#endif
