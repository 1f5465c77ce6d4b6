/* tickets: the order in which processes began something that only a share of them may do at once, for the
 * tenants of the segment that count them.
 *
 * Each process has a slot.  A process that begins takes a ticket in its slot, then counts those that were
 * there before: no process waits, and no more than the share get in.  A slot counts while its process lives:
 * no repair is needed when the process dies. */
#ifndef STAMPD_SEGMENT_COUNTS_TICKETS_H
#define STAMPD_SEGMENT_COUNTS_TICKETS_H

#include "base/base.h"
#include "segment/segment.h"

/* In the slot of a process. */
struct tickets_slot {
    _Atomic uint64_t ticket; /* 0: free; written last */
    _Atomic uint32_t pid, reserved;
};

/* The process of this handle takes a ticket: the next number of the counter. */
void tickets_take(struct tickets_slot *slot, _Atomic uint64_t *next);
void tickets_leave(struct tickets_slot *slot);
/* Does a living process of this process's instance have the ticket in the slot of entry `index`? */
bool tickets_is_taken(const struct segment *segment, int index, const struct tickets_slot *slot);
/* The same, and it was taken before that of `own`, this process's slot.  A process that takes a ticket after
 * ours sees our slot; one whose ticket is being assigned is waited for, but not for long: then it comes
 * first, since its order is unknown. */
bool tickets_is_before(const struct segment *segment, int index, const struct tickets_slot *slot,
                       const struct tickets_slot *own);

#endif
