/* archive_rows: the documents of a namespace as lines (archive_line.h), in the order of class and id, as they
 * are in one snapshot of its database.
 *
 * Documents and items are read by a connection each, and joined here.  Both are in a read-only transaction of
 * the same snapshot, for as long as the reading takes; writers go on meanwhile. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_ROWS_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_ROWS_H

#include "control/archive/archive_filter.h"
#include "control/archive/archive_line.h"
#include "control/control.h"

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
