/* resealing: seals the items of an encrypted namespace again, under its newest data key and with what the
 * schema shows of them, a batch of documents per transaction, while workers serve.  No version changes.  For
 * stampctl. */
#ifndef STAMPD_STORE_DOCUMENTS_RESEALING_H
#define STAMPD_STORE_DOCUMENTS_RESEALING_H

#include "edge/pg/pg.h"
#include "model/schema/schema.h"
#include "store/data_keys.h"

struct resealing {
    const struct data_keys *keys;
    const struct schema *schema; /* that is applied */
    struct bytes only;           /* documents of this class; empty: of all */
    struct bytes class, id;      /* the last document that is done; empty at first; in `kept` */
    struct arena *kept;
    int64_t documents, items; /* done; sealed again */
    bool is_done;
    const char *problem; /* after FAULT_BCONTENT: which document is not what was stored */
};

MUST_USE enum fault resealing_prepare(struct pg *pg);
/* The next documents.  FAULT_STALE: a lock was not available; retry.  FAULT_BCONTENT: `problem`. */
MUST_USE enum fault resealing_run(struct resealing *resealing, struct pg *pg, struct arena *arena,
                                  int32_t batch);

#endif
