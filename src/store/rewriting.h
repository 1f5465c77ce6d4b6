/* rewriting: the documents of a class in its newest release, some in a transaction; by `stampctl schema
 * apply`, and by the keeper when nobody else goes on. */
#ifndef STAMPD_STORE_REWRITING_H
#define STAMPD_STORE_REWRITING_H

#include "model/schema.h"
#include "edge/pg.h"

/* Prepares what rewriting_run needs.  `is_owner`: the session is that of an administrator. */
MUST_USE enum fault rewriting_prepare(struct pg *pg, bool is_owner);
/* The next documents; `count_r` 0: there are none left.  FAULT_STALE: a lock was not to be had; again. */
MUST_USE enum fault rewriting_run(struct pg *pg, struct arena *arena, const struct schema_class *class,
                                  int32_t batch, int64_t *count_r);
/* All are rewritten: readers and searches need not look for older contents any more. */
MUST_USE enum fault rewriting_end(struct pg *pg, struct arena *arena, struct bytes class);

#endif
