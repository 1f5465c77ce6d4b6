/* task_owner: the owner of a claim, and whether it still works on it (tasks.md, "Lost attempts").
 *
 * The row of a running task names its owner: installation, generation, slot.  In its slot of shared memory a
 * worker publishes the stamp of the claim it works on, from before the claim is sent until its end is known.
 * If a process reads the row, and then finds another stamp in the slot, no worker works on that claim. */
#ifndef STAMPD_OPERATION_TASKS_TASK_OWNER_H
#define STAMPD_OPERATION_TASKS_TASK_OWNER_H

#include "base/arena.h"
#include "base/settings.h"
#include "segment/counts/losses.h"
#include "segment/segment.h"

/* The name of this process as an owner. */
struct bytes task_owner_name(const struct segment *segment, struct arena *arena);
/* It works on the claim of this stamp; on none any more. */
void task_owner_begin(struct segment *segment, int64_t claim);
void task_owner_end(struct segment *segment);
/* The claimed task that begins now; NO_BYTES: several together. */
void task_owner_work(struct segment *segment, struct bytes task);
/* The outcome of its attempt could not be recorded in the database. */
void task_owner_note(struct segment *segment, int64_t claim, struct bytes task, const struct loss *loss);

/* Why the claim is lost. */
struct task_loss {
    struct loss loss;
    bool was_begun;  /* false: another task of its request was running */
    bool is_former;  /* its server has ended since */
    bool is_claim;   /* an external worker has let its claim end */
    bool is_foreign; /* it belongs to another installation */
};
/* Is the claim of a task lost?  Call after its row was read. */
bool task_owner_is_lost(const struct settings *settings, struct segment *segment, struct bytes owner,
                        int64_t claim, struct bytes task, struct task_loss *loss_r);

#endif
