/* archive_merge: begin, merge, record, commit; again after a conflict. */
#include "control/archive/archive_merge.h"

#include "base/clock.h"
#include "control/message.h"

/* The plans of a session of stampd (commit.md 1.6), which serve all documents: else PostgreSQL plans the
 * functions of a commit again and again, which takes more than running them. */
const char archive_merge_begin[] =
    "begin; set local plan_cache_mode = force_generic_plan; set local enable_seqscan = off;"
    " set local enable_hashjoin = off; set local enable_mergejoin = off; set local jit = off";

enum { MERGE_TRIES = 100, MERGE_PAUSE_MS = 50 };

bool archive_merge_recorded(struct pg *pg, struct archive_batch *batch, bool deletes,
                            archive_recorder *record, void *context)
{
    int64_t changed;
    for (int try = 0; try < MERGE_TRIES; try++) {
        if (!control_execute(pg, "storing documents", archive_merge_begin))
            return false;
        enum fault fault = archive_batch_merge(batch, deletes, &changed);
        if (fault == FAULT_NONE)
            return record(context, changed) && control_execute(pg, "storing documents", "commit");
        if (!control_execute(pg, "storing documents", "rollback") || fault != FAULT_STALE)
            return false;
        clock_sleep_ms(MERGE_PAUSE_MS); /* others hold its documents */
    }
    message_print("documents are locked by others for too long");
    return false;
}

struct recorded_merge {
    struct pg *pg;
    struct import_progress *done;
};

static bool move(void *context, int64_t changed)
{
    const struct recorded_merge *merge = context;
    merge->done->sum.documents += changed;
    return import_progress_move(merge->pg, merge->done);
}

bool archive_merge_run(struct pg *pg, struct archive_batch *batch, bool deletes, struct import_progress *done)
{
    struct recorded_merge merge = {pg, done};
    return archive_merge_recorded(pg, batch, deletes, move, &merge);
}
