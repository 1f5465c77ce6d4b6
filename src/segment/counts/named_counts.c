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

enum { PROBES_MOST = 64 }; /* of a large table that is nearly full */

size_t named_counts_place_in(struct named_counts_entry *entries, size_t names, struct bytes name)
{
    uint64_t hash = hash_more(HASH_START, name);
    hash = hash ? hash : 1;
    for (size_t i = 0; i < PROBES_MOST && i < names && name.size <= NAMED_COUNTS_BYTES; i++) {
        size_t place = (hash + i) % names;
        struct named_counts_entry *entry = &entries[place];
        uint64_t present = atomic_load(&entry->hash);
        if (present != hash && (present || !atomic_compare_exchange_strong(&entry->hash, &present, hash)) &&
            present != hash)
            continue;
        if (!atomic_load(&entry->is_named))
            named_counts_complete(entry, name);
        return place;
    }
    return names;
}

bool named_counts_read_in(const struct named_counts_entry *entries, size_t names, size_t place,
                          char name_r[NAMED_COUNTS_BYTES + 1], uint64_t counts_r[NAMED_COUNTS_MOST])
{
    const struct named_counts_entry *entry = &entries[place];
    uint64_t words[NAMED_COUNTS_WORDS], sum = 0;
    if (place < names && !atomic_load(&entry->is_named)) /* first: the name is whole from then on */
        return false;
    for (size_t i = 0; i < NAMED_COUNTS_WORDS; i++)
        words[i] = atomic_load(&entry->name[i]);
    memcpy(name_r, words, sizeof words);
    name_r[NAMED_COUNTS_BYTES] = '\0';
    for (size_t i = 0; i < NAMED_COUNTS_MOST; i++)
        sum += counts_r[i] = atomic_load(&entry->counts[i]);
    return place < names || sum;
}
