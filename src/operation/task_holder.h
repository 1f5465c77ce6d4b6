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

/* Is the claim lost?  To be asked after its row was read. */
bool task_holder_is_lost(const struct settings *settings, struct stamps *stamps, struct bytes holder,
                         int64_t claim);

#endif
