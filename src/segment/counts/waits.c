/* waits: a word for each process.  That of a dead one is cleared by its recovery, and does not count when its
 * entry is free. */
#include "segment/counts/waits.h"

/* Of the workers, at least one waits and one stays; of a single one none stays. */
static int64_t most_of(int64_t workers)
{
    int64_t share = workers / WAITS_SHARE ? workers / WAITS_SHARE : 1;
    return workers > 1 ? workers - share : INT64_MAX;
}

void waits_begin(struct segment *segment, int64_t since_ms)
{
    atomic_store(&segment->waits->slots[segment_index(segment)].since_ms, since_ms);
}

void waits_end(struct segment *segment)
{
    atomic_store(&segment->waits->slots[segment_index(segment)].since_ms, 0);
}

int64_t waits_since_ms(const struct segment *segment, int index)
{
    return atomic_load(&segment->waits->slots[index].since_ms);
}

static bool waits_long(const struct segment *segment, int index, int64_t since_ms, int64_t now_ms)
{
    return now_ms - since_ms >= WAITS_LONG_MS &&
           processes_state(segment, index) != PROCESS_FREE && /* a dead process may have left its word */
           processes_instance(segment, index) == processes_instance(segment, segment_index(segment));
}

/* Those that wait so long, without the process itself; `before_r`: of them those with a lower index.  Each
 * commit counts them, and most processes do not wait. */
static int64_t count_others(const struct segment *segment, int64_t now_ms, int64_t *before_r)
{
    int64_t count = 0;
    int processes = processes_count(segment), own = segment_index(segment);
    *before_r = 0;
    for (int i = 0; i < processes; i++) {
        int64_t since_ms = atomic_load(&segment->waits->slots[i].since_ms);
        if (!since_ms || i == own || !waits_long(segment, i, since_ms, now_ms))
            continue;
        count++;
        *before_r += i < own;
    }
    return count;
}

bool waits_are_crowded(const struct segment *segment, int64_t workers, int64_t now_ms)
{
    int64_t before;
    return count_others(segment, now_ms, &before) >= most_of(workers);
}

bool waits_gives_up(const struct segment *segment, int64_t workers, int64_t now_ms)
{
    int64_t before, since_ms = atomic_load(&segment->waits->slots[segment_index(segment)].since_ms);
    int64_t others = count_others(segment, now_ms, &before);
    return since_ms && now_ms - since_ms >= WAITS_GIVE_UP_MS && others >= most_of(workers) &&
           before < others + 1 - most_of(workers);
}

_Atomic int64_t *waits_silence(const struct segment *segment, int cell)
{
    assert(cell >= 0 && cell < CELLS_MOST);
    return &segment->waits->silent_until_ms[cell];
}

void waits_note_silence(struct segment *segment, int cell, int64_t until_ms)
{
    atomic_store(waits_silence(segment, cell), until_ms);
}

void waits_note_answer(struct segment *segment, int cell)
{
    if (atomic_load(waits_silence(segment, cell))) /* the line of the cache is that of all readers */
        atomic_store(waits_silence(segment, cell), 0);
}

bool waits_is_silent(const struct segment *segment, int cell, int64_t now_ms)
{
    return now_ms < atomic_load(waits_silence(segment, cell));
}

size_t waits_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct waits);
}

void waits_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->waits = memory;
}

void waits_recover(struct segment *segment, int index)
{
    atomic_store(&segment->waits->slots[index].since_ms, 0);
}
