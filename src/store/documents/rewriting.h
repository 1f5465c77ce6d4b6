/* rewriting: rewrites the documents of a class in its newest release, a batch per transaction.  Used by
 * `stampctl schema apply`, and by the keeper if no other process continues. */
#ifndef STAMPD_STORE_DOCUMENTS_REWRITING_H
#define STAMPD_STORE_DOCUMENTS_REWRITING_H

#include "model/schema/schema.h"
#include "edge/pg/pg.h"

/* Prepares what rewriting_run needs.  `is_owner`: the session is that of an administrator. */
MUST_USE enum fault rewriting_prepare(struct pg *pg, bool is_owner);
/* Rewrites the next documents; `count_r` 0: none are left.  FAULT_STALE: a lock was not available; retry. */
MUST_USE enum fault rewriting_run(struct pg *pg, struct arena *arena, const struct schema_class *class,
                                  int32_t batch, int64_t *count_r);
/* All are rewritten: readers and searches no longer need to handle older contents. */
MUST_USE enum fault rewriting_end(struct pg *pg, struct arena *arena, struct bytes class);

#endif
