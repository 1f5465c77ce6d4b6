/* task_owner: who holds a claim, and whether he still works at it (doc/tasks.md, "Lost attempts").
 *
 * The row of a task that runs names its holder: installation, generation, slot.  In its slot of shared memory
 * a worker shows the stamp of the claim that it works at, from before the claim is sent until its end is
 * known.  So whoever has read the row, and then finds another stamp there, knows that nobody works at it. */
#ifndef STAMPD_OPERATION_TASKS_TASK_OWNER_H
#define STAMPD_OPERATION_TASKS_TASK_OWNER_H

#include "base/arena.h"
#include "base/settings.h"
#include "segment/losses.h"
#include "segment/segment.h"

/* This process as a holder. */
struct bytes task_owner_name(const struct segment *segment, struct arena *arena);
/* It works at the claim of this stamp; at none any more. */
void task_owner_begin(struct segment *segment, int64_t claim);
void task_owner_end(struct segment *segment);
/* Of what is claimed, this task is begun now; NO_BYTES: several together. */
void task_owner_work(struct segment *segment, struct bytes task);
/* How its attempt ended could not be recorded in the database. */
void task_owner_note(struct segment *segment, int64_t claim, struct bytes task, const struct loss *loss);

/* Why the claim is lost. */
struct task_loss {
    struct loss loss;
    bool was_begun;  /* else another task of its request was at work */
    bool is_former;  /* its server has ended since */
    bool is_foreign; /* another installation's */
};
/* Is the claim of a task lost?  To be asked after its row was read. */
bool task_owner_is_lost(const struct settings *settings, struct segment *segment, struct bytes owner,
                        int64_t claim, struct bytes task, struct task_loss *loss_r);

#endif
