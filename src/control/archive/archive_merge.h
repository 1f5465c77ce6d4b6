/* archive_merge: a transaction that merges a batch of documents and records how far the import has come. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_MERGE_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_MERGE_H

#include "control/archive/archive_batch.h"
#include "control/archive/import_progress.h"

/* Writes what the batch has read, and with `deletes` deletes; runs again while others hold its documents.
 * Documents that have changed are counted in `done->sum.documents`.  On failure reports why. */
MUST_USE bool archive_merge_run(struct pg *pg, struct archive_batch *batch, bool deletes,
                                struct import_progress *done);

#endif
