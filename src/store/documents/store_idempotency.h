/* store_idempotency: answers stored under an Idempotency-Key. */
#ifndef STAMPD_STORE_DOCUMENTS_STORE_IDEMPOTENCY_H
#define STAMPD_STORE_DOCUMENTS_STORE_IDEMPOTENCY_H

#include "store/store.h"

/* The answer to a request with an Idempotency-Key, a row of the table `idempotency`. */
struct idempotency {
    struct bytes account, key; /* its name; account may be empty */
    struct bytes digest; /* of the request: plain from idempotency_open, keyed from idempotency_seal on */
    struct bytes mime, answer;   /* the result of work */
    int64_t version;             /* of the commit; 0: nothing was changed */
    struct bytes versions_after; /* of its documents: versions_after.h; may be empty */
    int64_t now;                 /* time of the request, from which the age of answers is counted */
    int64_t made;                /* when the key was created; 0: unknown */
};
/* Finds the answer stored under `account` and `key`, unless it is older than idempotency_s; fills in the
 * rest. */
MUST_USE enum fault store_idempotency_find(struct store *store, int ns, struct arena *arena,
                                           struct idempotency *idempotency, bool *found_r);

/* Age at which rows are purged.  It exceeds idempotency_s: a request that was judged by them a moment ago
 * may still read them, or be about to write. */
int64_t store_idempotency_purge_s(const struct settings *settings);

#endif
