/* task_holder: names of holders, and their slots. */
#include "operation/task_holder.h"

#include <stdio.h>

#include "document/stamp.h"

struct bytes task_holder_name(const struct stamps *stamps, struct arena *arena)
{
    return bytes_of(arena_printf(arena, "%08x-%llu-%d", (unsigned)stamps_installation(stamps),
                                 (unsigned long long)stamps_generation(stamps), stamps_index(stamps)));
}

static void show(struct stamps *stamps, int64_t claim)
{
    atomic_store(&stamps_pulse(stamps, stamps_index(stamps))->task_claim, claim);
}

static struct losses *own(const struct stamps *stamps)
{
    return stamps_losses(stamps, stamps_index(stamps));
}

void task_holder_begin(struct stamps *stamps, int64_t claim)
{
    losses_show(own(stamps), LOSSES_ANY);
    show(stamps, claim);
}

void task_holder_work(struct stamps *stamps, struct bytes task)
{
    losses_show(own(stamps), task.data ? losses_hash(task) : LOSSES_ANY);
}

void task_holder_note(struct stamps *stamps, int64_t claim, struct bytes task, const struct loss *loss)
{
    struct loss noted = *loss;
    noted.at_work = losses_hash(task);
    losses_note(own(stamps), claim, &noted);
}

void task_holder_end(struct stamps *stamps)
{
    show(stamps, 0);
}

/* A holder of another installation, or one that is no holder's name: time alone tells. */
static bool is_old(const struct settings *settings, int64_t claim)
{
    return strcmp(settings->hosts, "one") == 0 ||
           claim < stamp_add_ms(stamp_now(), -1000 * settings->task_lost_s);
}

static void explain(const struct stamps *stamps, int index, int64_t claim, struct bytes task,
                    struct task_loss *loss)
{
    loss->loss = losses_find(stamps_losses(stamps, index), claim);
    loss->was_begun = loss->loss.at_work == LOSSES_ANY || loss->loss.at_work == losses_hash(task);
}

bool task_holder_is_lost(const struct settings *settings, struct stamps *stamps, struct bytes holder,
                         int64_t claim, struct bytes task, struct task_loss *loss_r)
{
    char text[64];
    unsigned installation;
    unsigned long long generation;
    int index, end = 0;
    *loss_r = (struct task_loss){.loss = {.is_failure = true}, .was_begun = true, .is_foreign = true};
    if (holder.size >= sizeof text)
        return is_old(settings, claim);
    memcpy(text, holder.data, holder.size);
    text[holder.size] = '\0';
    if (sscanf(text, "%8x-%20llu-%9d%n", &installation, &generation, &index, &end) != 3 ||
        (size_t)end != holder.size || installation != stamps_installation(stamps))
        return is_old(settings, claim);
    loss_r->is_foreign = false;
    loss_r->is_former = true;
    if (generation != stamps_generation(stamps) || index < 0 || index >= STAMPS_PROCESSES)
        return true; /* a new generation begins when all processes of the one before are gone */
    loss_r->is_former = false;
    if (stamps_entry_state(stamps, index) == ENTRY_HELD &&
        atomic_load(&stamps_pulse(stamps, index)->task_claim) == claim)
        return false;
    explain(stamps, index, claim, task, loss_r);
    return true;
}
