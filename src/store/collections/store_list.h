/* store_list: pages of the documents of a class, and of classes. */
#ifndef STAMPD_STORE_COLLECTIONS_STORE_LIST_H
#define STAMPD_STORE_COLLECTIONS_STORE_LIST_H

#include "model/document/document.h"
#include "store/store.h"

/* Headers of living documents of a class in the order of ids, above `cursor`, whose id starts with `prefix`
 * and whose version is above `after`.  Reads a bounded number of rows: `more_r` is where to continue
 * (NO_BYTES: the end). */
struct list_query {
    struct bytes class, prefix, cursor; /* empty: from the start */
    int64_t after;
    int64_t minute; /* the present: expired documents are omitted */
    int32_t limit;
};
MUST_USE enum fault store_list(struct store *store, int ns, struct arena *arena,
                               const struct list_query *query, struct header **headers_r, size_t *count_r,
                               struct bytes *more_r);

/* The first `limit` classes above `cursor` (empty: from the start) that have documents or zombies, in
 * order. */
MUST_USE enum fault store_list_classes(struct store *store, int ns, struct arena *arena, struct bytes cursor,
                                       int32_t limit, struct bytes **classes_r, size_t *count_r);

/* The living documents of a class. */
struct volume {
    struct bytes class; /* NO_BYTES: all classes */
    int64_t documents;
    int64_t v1, v2; /* sums of those of the documents */
};
/* The sums of the namespace, then of at most `limit` classes, the largest first: exact at one instant.  Reads
 * every header: for administrators. */
MUST_USE enum fault store_list_volumes(struct store *store, int ns, struct arena *arena, int32_t limit,
                                       struct volume **volumes_r, size_t *count_r);

#endif
