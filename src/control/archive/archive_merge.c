/* archive_merge: begin, merge, record, commit; again after a conflict. */
#include "control/archive/archive_merge.h"

#include "base/clock.h"
#include "control/message.h"

enum { MERGE_TRIES = 100, MERGE_PAUSE_MS = 50 };

static bool complete(struct pg *pg, int64_t changed, struct import_progress *done)
{
    done->sum.documents += changed;
    return import_progress_move(pg, done) && control_execute(pg, "storing documents", "commit");
}

bool archive_merge_run(struct pg *pg, struct archive_batch *batch, bool deletes, struct import_progress *done)
{
    int64_t changed;
    for (int try = 0; try < MERGE_TRIES; try++) {
        if (!control_execute(pg, "storing documents", "begin"))
            return false;
        enum fault fault = archive_batch_merge(batch, deletes, &changed);
        if (fault == FAULT_NONE)
            return complete(pg, changed, done);
        if (!control_execute(pg, "storing documents", "rollback") || fault != FAULT_STALE)
            return false;
        clock_sleep_ms(MERGE_PAUSE_MS); /* others hold its documents */
    }
    message_print("documents are locked by others for too long");
    return false;
}
