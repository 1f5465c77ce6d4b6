/* archive_merge: a transaction that merges a batch of documents and records how far the import has come. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_MERGE_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_MERGE_H

#include "control/archive/archive_batch.h"
#include "control/archive/import_progress.h"

/* Statements that begin a transaction which stores documents. */
extern const char archive_merge_begin[];

/* Records, within the transaction, that `changed` documents have changed.  On failure reports why. */
typedef bool archive_recorder(void *context, int64_t changed);
/* Writes what the batch has read, and with `deletes` deletes; runs again while others hold its documents.  On
 * failure reports why. */
MUST_USE bool archive_merge_recorded(struct pg *pg, struct archive_batch *batch, bool deletes,
                                     archive_recorder *record, void *context);
/* The same with the record of an import: documents that have changed are counted in `done->sum.documents`. */
MUST_USE bool archive_merge_run(struct pg *pg, struct archive_batch *batch, bool deletes,
                                struct import_progress *done);

#endif
