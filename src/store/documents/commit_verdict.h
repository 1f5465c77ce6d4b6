/* commit_verdict: why the database has refused a commit. */
#ifndef STAMPD_STORE_DOCUMENTS_COMMIT_VERDICT_H
#define STAMPD_STORE_DOCUMENTS_COMMIT_VERDICT_H

#include "edge/pg/pg.h"
#include "edge/pg/pg_pipeline.h"
#include "store/data_keys.h"
#include "store/documents/store_commit.h"

/* The fault of a refused commit; flags what has moved or is lost. */
MUST_USE enum fault commit_verdict_judge(struct store *store, int ns, const struct pg_verdict *verdict,
                                         struct arena *arena, struct commit *commit);
/* The detail of a refused commit is a JSON list [[class, id, version], …] of the documents that moved,
 * with ids as they are stored: flags those documents of the commit and returns their number; 0 also if it is
 * not such a list. */
size_t commit_verdict_flag_listed(struct commit *commit, const struct data_keys *keys, struct arena *arena,
                                  const char *detail);

#endif
