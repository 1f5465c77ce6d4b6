/* archive_rows: the documents of a namespace as lines (archive_line.h), in the order of class and id, as they
 * are in one snapshot of its database.
 *
 * Documents and items are read by a connection each, and joined here.  Both are in a read-only transaction of
 * the same snapshot, for as long as the reading takes; writers go on meanwhile. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_ROWS_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_ROWS_H

#include "control/archive/archive_line.h"
#include "control/control.h"
#include "store/data_keys.h"

/* Which documents of a namespace an archive has, as conditions of a COPY. */

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

/* The snapshot, and the database that it is of. */
struct archive_snapshot {
    struct pg *documents, *items; /* connections */
    int64_t at;                   /* stamp of the database's clock */
    int64_t floor;                /* no zombie purged so far had a higher version */
    const char *snapshot;         /* pg_snapshot: which transactions it sees */
    const char *database;  /* identity of the database: numbers of transactions mean the same in it only */
    int64_t document_rows; /* an estimate */
};
/* Begins the transaction in `pg`, which is connected to this database, and in another connection; on failure
 * reports why. */
MUST_USE bool archive_rows_begin_snapshot(struct control *control, struct pg *pg, const char *database,
                                          struct archive_snapshot *snapshot_r);

/* Ends both transactions; on failure reports why. */
MUST_USE bool archive_rows_end_snapshot(const struct archive_snapshot *snapshot);

struct archive_rows;

/* On failure reports why. */
MUST_USE bool archive_rows_open(struct control *control, const struct archive_snapshot *snapshot,
                                const struct archive_filter *filter, struct archive_rows **rows_r);
enum archive_rows_event { ARCHIVE_ROWS_LINE, ARCHIVE_ROWS_END, ARCHIVE_ROWS_FAILED };
/* Appends the next line, and counts it in `sum`; failures are reported. */
MUST_USE enum archive_rows_event archive_rows_next(struct archive_rows *rows, struct builder *text,
                                                   struct archive_sum *sum);
/* What the database has as the sizes of the document of the last line. */
void archive_rows_volumes(const struct archive_rows *rows, int64_t *v1_r, int64_t *v2_r);
void archive_rows_close(struct archive_rows *rows); /* NULL is allowed */

#endif
