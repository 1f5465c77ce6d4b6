/* task_owner: names of owners, and their slots. */
#include "operation/tasks/task_owner.h"

#include <stdio.h>

#include "model/document/stamp.h"
#include "segment/counts/losses.h"
#include "segment/counts/metrics.h"
#include "segment/processes.h"

struct bytes task_owner_name(const struct segment *segment, struct arena *arena)
{
    return bytes_of(arena_printf(arena, "%08x-%llu-%d", (unsigned)segment_installation(segment),
                                 (unsigned long long)segment_generation(segment), segment_index(segment)));
}

static void task_owner_show(struct segment *segment, int64_t claim)
{
    atomic_store(&metrics_pulse(segment, segment_index(segment))->task_claim, claim);
}

static struct losses *own(const struct segment *segment)
{
    return losses_of(segment, segment_index(segment));
}

void task_owner_begin(struct segment *segment, int64_t claim)
{
    losses_show(own(segment), LOSSES_ANY);
    task_owner_show(segment, claim);
}

void task_owner_work(struct segment *segment, struct bytes task)
{
    losses_show(own(segment), task.data ? losses_hash(task) : LOSSES_ANY);
}

void task_owner_note(struct segment *segment, int64_t claim, struct bytes task, const struct loss *loss)
{
    struct loss noted = *loss;
    noted.at_work = losses_hash(task);
    losses_note(own(segment), claim, &noted);
}

void task_owner_end(struct segment *segment)
{
    task_owner_show(segment, 0);
}

/* An owner of another installation, or an invalid name: time alone decides where several serve.  Sessions of
 * a host that has lost its lease have ended before this one had a session. */
static bool is_old(const struct settings *settings, int64_t claim)
{
    return settings->hosts != HOSTS_MANY || claim < stamp_add_ms(stamp_now(), -1000 * settings->task_lost_s);
}

static void task_owner_explain(const struct segment *segment, int index, int64_t claim, struct bytes task,
                               struct task_loss *loss)
{
    loss->loss = losses_find(losses_of(segment, index), claim);
    loss->was_begun = loss->loss.at_work == LOSSES_ANY || loss->loss.at_work == losses_hash(task);
}

bool task_owner_is_lost(const struct settings *settings, struct segment *segment, struct bytes owner,
                        int64_t claim, struct bytes task, struct task_loss *loss_r)
{
    char text[64];
    unsigned installation;
    unsigned long long generation;
    int index, end = 0;
    *loss_r = (struct task_loss){.loss = {.is_failure = true}, .was_begun = true, .is_foreign = true};
    if (owner.size >= sizeof text)
        return is_old(settings, claim);
    memcpy(text, owner.data, owner.size);
    text[owner.size] = '\0';
    if (sscanf(text, "%8x-%20llu-%9d%n", &installation, &generation, &index, &end) != 3 ||
        (size_t)end != owner.size || installation != segment_installation(segment))
        return is_old(settings, claim);
    loss_r->is_foreign = false;
    loss_r->is_former = true;
    if (generation != segment_generation(segment) || index < 0 || index >= PROCESSES_MOST)
        return true; /* a new generation begins after all processes of the previous one have ended */
    loss_r->is_former = false;
    if (processes_state(segment, index) == PROCESS_HELD &&
        atomic_load(&metrics_pulse(segment, index)->task_claim) == claim)
        return false;
    task_owner_explain(segment, index, claim, task, loss_r);
    return true;
}
