/* tickets: numbers from a counter. */
#include "segment/counts/tickets.h"

#include <sched.h>
#include <unistd.h>

#include "segment/processes.h"

/* A ticket is being assigned: this process comes first. */
static const uint64_t CHOOSING = 1;
enum { FIRST_TICKET = 2, PATIENCE = 1000 };

void tickets_take(struct tickets_slot *slot, _Atomic uint64_t *next)
{
    atomic_store(&slot->pid, (uint32_t)getpid());
    atomic_store(&slot->ticket, CHOOSING);
    atomic_store(&slot->ticket, atomic_fetch_add(next, 1) + FIRST_TICKET);
}

void tickets_leave(struct tickets_slot *slot)
{
    atomic_store(&slot->ticket, 0);
}

/* The slot of a dead process does not count. */
bool tickets_is_taken(const struct segment *segment, int index, const struct tickets_slot *slot)
{
    return atomic_load(&slot->ticket) != 0 && processes_state(segment, index) == PROCESS_HELD &&
           processes_pid(segment, index) == atomic_load(&slot->pid) &&
           processes_instance(segment, index) == processes_instance(segment, segment_index(segment));
}

bool tickets_is_before(const struct segment *segment, int index, const struct tickets_slot *slot,
                       const struct tickets_slot *own)
{
    uint64_t ticket = atomic_load(&slot->ticket);
    for (int i = 0; i < PATIENCE && slot != own && ticket == CHOOSING; i++) {
        sched_yield();
        ticket = atomic_load(&slot->ticket);
    }
    return slot != own && ticket && ticket < atomic_load(&own->ticket) &&
           tickets_is_taken(segment, index, slot);
}
