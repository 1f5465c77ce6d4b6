/* losses: a ring of notes, one writer at a time. */
#include "segment/counts/losses.h"
#include "base/coding/hash.h"
#include "segment/processes.h"

/* A note's words: cause, flags, detail. */
enum { FINAL_BIT = 8, FAILURE_BIT = 9, DETAIL_SHIFT = 32 };

static uint64_t pack(const struct loss *loss)
{
    return (uint64_t)loss->cause | (uint64_t)loss->is_final << FINAL_BIT |
           (uint64_t)loss->is_failure << FAILURE_BIT | (uint64_t)loss->detail << DETAIL_SHIFT;
}

static struct loss unpack(uint64_t words, uint64_t at_work)
{
    uint64_t cause = words & 0xff;
    return (struct loss){.cause = cause <= LOSS_UNRECORDED ? (enum loss_cause)cause : LOSS_UNKNOWN,
                         .detail = (uint32_t)(words >> DETAIL_SHIFT),
                         .is_final = words >> FINAL_BIT & 1,
                         .is_failure = words >> FAILURE_BIT & 1,
                         .at_work = at_work};
}

uint64_t losses_hash(struct bytes task)
{
    uint64_t hash = hash_more(HASH_START, task);
    return hash == LOSSES_ANY ? 1 : hash;
}

void losses_show(struct losses *losses, uint64_t task)
{
    atomic_store(&losses->at_work, task);
}

uint64_t losses_shown(const struct losses *losses)
{
    return atomic_load(&losses->at_work);
}

void losses_note(struct losses *losses, int64_t claim, const struct loss *loss)
{
    struct loss joined = *loss;
    struct loss_note *note = NULL;
    for (int i = 0; i < LOSSES_KEPT && !note; i++)
        if (atomic_load(&losses->notes[i].claim) == claim)
            note = &losses->notes[i];
    if (note) {
        struct loss former = unpack(atomic_load(&note->words), atomic_load(&note->at_work));
        joined.at_work = former.at_work == loss->at_work ? loss->at_work : LOSSES_ANY;
        joined.is_final |= former.is_final;
        joined.is_failure |= former.is_failure;
    } else {
        note = &losses->notes[atomic_fetch_add(&losses->next, 1) % LOSSES_KEPT];
    }
    atomic_store(&note->claim, 0);
    atomic_store(&note->at_work, joined.at_work);
    atomic_store(&note->words, pack(&joined));
    atomic_store(&note->claim, claim);
}

struct loss losses_find(const struct losses *losses, int64_t claim)
{
    for (int i = 0; i < LOSSES_KEPT && claim; i++) {
        const struct loss_note *note = &losses->notes[i];
        if (atomic_load(&note->claim) != claim)
            continue;
        struct loss loss = unpack(atomic_load(&note->words), atomic_load(&note->at_work));
        if (atomic_load(&note->claim) == claim)
            return loss;
    }
    return (struct loss){.is_failure = true};
}

size_t losses_size(const struct board_sizes *sizes UNUSED)
{
    return PROCESSES_MOST * sizeof(struct losses);
}

void losses_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->losses = memory;
}

struct losses *losses_of(const struct segment *segment, int index)
{
    assert(index >= 0 && index < PROCESSES_MOST);
    return &segment->losses[index];
}
