/* task_counts: a table of names with open addressing; entries are never freed. */
#include "segment/task_counts.h"

#include <string.h>

#include "base/hash.h"

/* Those who complete it at once write the same. */
static void complete(struct task_counts_entry *entry, struct bytes name)
{
    uint64_t words[TASK_COUNTS_WORDS] = {0};
    memcpy(words, name.data, name.size);
    for (size_t i = 0; i < TASK_COUNTS_WORDS; i++)
        atomic_store(&entry->name[i], words[i]);
    atomic_store(&entry->is_named, 1);
}

static struct task_counts_entry *find(struct task_counts_board *board, struct bytes name)
{
    uint64_t hash = hash_more(HASH_START, name);
    hash = hash ? hash : 1;
    for (size_t i = 0; i < TASK_COUNTS_NAMES && name.size <= TASK_COUNTS_BYTES; i++) {
        struct task_counts_entry *entry = &board->entries[(hash + i) % TASK_COUNTS_NAMES];
        uint64_t present = 0;
        if (!atomic_compare_exchange_strong(&entry->hash, &present, hash) && present != hash)
            continue;
        if (!atomic_load(&entry->is_named))
            complete(entry, name);
        return entry;
    }
    return &board->entries[TASK_COUNTS_NAMES];
}

void task_counts_add(struct segment *segment, struct bytes operation, bool is_done, bool is_failed,
                     int64_t us)
{
    struct task_counts_entry *entry = find(segment->task_counts, operation);
    atomic_fetch_add(&entry->done, is_done);
    atomic_fetch_add(&entry->failed, is_failed);
    atomic_fetch_add(&entry->us, us > 0 ? (uint64_t)us : 0);
}

bool task_counts_read(const struct segment *segment, size_t place, struct task_counts *counts_r)
{
    const struct task_counts_entry *entry = &segment->task_counts->entries[place];
    uint64_t words[TASK_COUNTS_WORDS];
    if (place < TASK_COUNTS_NAMES &&
        !atomic_load(&entry->is_named)) /* first: the name is whole from then on */
        return false;
    for (size_t i = 0; i < TASK_COUNTS_WORDS; i++)
        words[i] = atomic_load(&entry->name[i]);
    *counts_r = (struct task_counts){.done = atomic_load(&entry->done),
                                     .failed = atomic_load(&entry->failed),
                                     .us = atomic_load(&entry->us)};
    memcpy(counts_r->name, words, sizeof words);
    return place < TASK_COUNTS_NAMES || counts_r->done || counts_r->failed || counts_r->us;
}

size_t task_counts_size(const struct board_sizes *sizes UNUSED)
{
    return sizeof(struct task_counts_board);
}

void task_counts_init(struct segment *segment, void *memory, const struct board_sizes *sizes UNUSED)
{
    segment->task_counts = memory;
}
