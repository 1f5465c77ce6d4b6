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

void task_holder_begin(struct stamps *stamps, int64_t claim)
{
    show(stamps, claim);
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

bool task_holder_is_lost(const struct settings *settings, struct stamps *stamps, struct bytes holder,
                         int64_t claim)
{
    char text[64];
    unsigned installation;
    unsigned long long generation;
    int index, end = 0;
    if (holder.size >= sizeof text)
        return is_old(settings, claim);
    memcpy(text, holder.data, holder.size);
    text[holder.size] = '\0';
    if (sscanf(text, "%8x-%20llu-%9d%n", &installation, &generation, &index, &end) != 3 ||
        (size_t)end != holder.size || installation != stamps_installation(stamps))
        return is_old(settings, claim);
    if (generation != stamps_generation(stamps) || index < 0 || index >= STAMPS_PROCESSES)
        return true; /* a new generation begins when all processes of the one before are gone */
    return stamps_entry_state(stamps, index) != ENTRY_HELD ||
           atomic_load(&stamps_pulse(stamps, index)->task_claim) != claim;
}
