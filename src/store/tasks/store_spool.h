/* store_spool: the names of records of spools that are stored, each by the commit that creates its task
 * (doc/reference/spool.md). */
#ifndef STAMPD_STORE_TASKS_STORE_SPOOL_H
#define STAMPD_STORE_TASKS_STORE_SPOOL_H

#include "store/store.h"

/* Records of one series. */
struct spool_batch {
    struct bytes account; /* of the forwarder; empty: the administrator */
    struct bytes series;  /* 32 digits */
    const int64_t *sequences;
    const struct bytes *digests;
    size_t count;
};

struct spool_known {
    bool is_stored;
    struct bytes digest; /* of the stored one */
};
/* `known_r` has room for the records of the batch; a record up to `forgotten_r` that is not stored may have
 * been. */
MUST_USE enum fault store_spool_find(struct store *store, int ns, struct arena *arena,
                                     const struct spool_batch *batch, struct spool_known *known_r,
                                     int64_t *forgotten_r);

#endif
