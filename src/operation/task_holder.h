/* task_holder: who holds a claim, and whether he still works at it (doc/tasks.md, "Lost attempts").
 *
 * The row of a task that runs names its holder: installation, generation, slot.  In its slot of shared memory
 * a worker shows the stamp of the claim that it works at, from before the claim is sent until its end is
 * known.  So whoever has read the row, and then finds another stamp there, knows that nobody works at it. */
#ifndef STAMPD_OPERATION_TASK_HOLDER_H
#define STAMPD_OPERATION_TASK_HOLDER_H

#include "base/arena.h"
#include "base/settings.h"
#include "document/stamps.h"

/* This process as a holder. */
struct bytes task_holder_name(const struct stamps *stamps, struct arena *arena);
/* It works at the claim of this stamp; at none any more. */
void task_holder_begin(struct stamps *stamps, int64_t claim);
void task_holder_end(struct stamps *stamps);
/* Of what is claimed, this task is begun now; NO_BYTES: several together. */
void task_holder_work(struct stamps *stamps, struct bytes task);
/* How its attempt ended could not be recorded in the database. */
void task_holder_note(struct stamps *stamps, int64_t claim, struct bytes task, const struct loss *loss);

/* Why the claim is lost. */
struct task_loss {
    struct loss loss;
    bool was_begun;  /* else another task of its request was at work */
    bool is_former;  /* its server has ended since */
    bool is_foreign; /* another installation's */
};
/* Is the claim of a task lost?  To be asked after its row was read. */
bool task_holder_is_lost(const struct settings *settings, struct stamps *stamps, struct bytes holder,
                         int64_t claim, struct bytes task, struct task_loss *loss_r);

#endif
