/* archive_filter: which documents of a namespace an archive has, as conditions of a COPY. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_FILTER_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_FILTER_H

#include "control/control.h"
#include "store/data_keys.h"

/* Which documents; all members may be empty: all. */
struct archive_filter {
    const char *const *classes; /* of documents */
    size_t class_count;
    const char *const *ids; /* of documents of any of the classes */
    size_t id_count;
    int64_t since_version;      /* only documents of a later version; 0: of any */
    const char *since_snapshot; /* only documents changed by transactions that this one does not see */
    const char *configuration;  /* of the database of z: only what configures the namespace of this code */
};

/* Begins `start and … order by order`, a COPY out of the database that ends with conditions; those of the
 * filter, about a document `d`, with ids as they are stored, are added.  On failure reports why. */
MUST_USE bool archive_filter_copy(struct control *control, struct pg *pg, const struct archive_filter *filter,
                                  const char *start, const char *order);

/* The same filter with ids as they are stored; on failure reports why. */
MUST_USE bool archive_filter_store(struct control *control, const struct data_keys *keys,
                                   const struct archive_filter *filter, struct archive_filter *stored_r);

#endif
