/* named_counts: names with open addressing; entries are never freed. */
#include "segment/counts/named_counts.h"

#include <string.h>

#include "base/coding/hash.h"

/* Those who complete it at once write the same. */
static void named_counts_complete(struct named_counts_entry *entry, struct bytes name)
{
    uint64_t words[NAMED_COUNTS_WORDS] = {0};
    memcpy(words, name.data, name.size);
    for (size_t i = 0; i < NAMED_COUNTS_WORDS; i++)
        atomic_store(&entry->name[i], words[i]);
    atomic_store(&entry->is_named, 1);
}

size_t named_counts_place(struct named_counts *table, struct bytes name)
{
    uint64_t hash = hash_more(HASH_START, name);
    hash = hash ? hash : 1;
    for (size_t i = 0; i < NAMED_COUNTS_NAMES && name.size <= NAMED_COUNTS_BYTES; i++) {
        size_t place = (hash + i) % NAMED_COUNTS_NAMES;
        struct named_counts_entry *entry = &table->entries[place];
        uint64_t present = 0;
        if (!atomic_compare_exchange_strong(&entry->hash, &present, hash) && present != hash)
            continue;
        if (!atomic_load(&entry->is_named))
            named_counts_complete(entry, name);
        return place;
    }
    return NAMED_COUNTS_NAMES;
}

bool named_counts_read(const struct named_counts *table, size_t place, char name_r[NAMED_COUNTS_BYTES + 1],
                       uint64_t counts_r[NAMED_COUNTS_MOST])
{
    const struct named_counts_entry *entry = &table->entries[place];
    uint64_t words[NAMED_COUNTS_WORDS], sum = 0;
    if (place < NAMED_COUNTS_NAMES &&
        !atomic_load(&entry->is_named)) /* first: the name is whole from then on */
        return false;
    for (size_t i = 0; i < NAMED_COUNTS_WORDS; i++)
        words[i] = atomic_load(&entry->name[i]);
    memcpy(name_r, words, sizeof words);
    name_r[NAMED_COUNTS_BYTES] = '\0';
    for (size_t i = 0; i < NAMED_COUNTS_MOST; i++)
        sum += counts_r[i] = atomic_load(&entry->counts[i]);
    return place < NAMED_COUNTS_NAMES || sum;
}
