/* archive_batch: the documents of one member of an archive, written into the database of a namespace in one
 * transaction that the caller begins and ends. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_BATCH_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_BATCH_H

#include "control/archive/archive_line.h"
#include "control/archive/import_progress.h"
#include "control/control.h"

struct archive_batch;

/* `attaches`: documents have the attachments that their lines have, and no others; else lines with
 * attachments are refused, and documents keep those that they have. */
struct archive_batch *archive_batch_create(struct control *control, struct pg *pg, bool attaches)
    __attribute__((returns_nonnull));
void archive_batch_destroy(struct archive_batch *batch);

/* Reads lines; `is_checked`: their JSON is not trusted, and is checked too.  On failure reports why. */
MUST_USE bool archive_batch_read(struct archive_batch *batch, struct bytes lines, bool is_checked);

/* Calls `change` with each document, before they are written. */
void archive_batch_each(struct archive_batch *batch, void (*change)(void *, struct archive_document *),
                        void *context);

/* Writes the rows exactly as the lines have them; there must be none of these documents.  What they amount to
 * is added to `sum`.  On failure reports why. */
MUST_USE bool archive_batch_restore(struct archive_batch *batch, struct archive_sum *sum);

/* Makes each document what its line has, with a new version if that changes it; with `deletes`, deletes those
 * that the lines have as deleted.  FAULT_STALE: the transaction must be run again; other faults have been
 * reported. */
MUST_USE enum fault archive_batch_merge(struct archive_batch *batch, bool deletes, int64_t *changed_r);

/* A transaction that merges a batch of documents and records how far the import has come. */

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
