/* disk_entries: open addressing; a place has 32 bits of the hash and where the entry begins. */
#include "log/disk_entries.h"

#include <stdlib.h>

#include "base/memory.h"

enum { SIZES = 8, PLACES_LEAST = 1024 };

struct entry_place {
    uint32_t hash, at; /* 0: free; no entry begins at 0 */
};

struct disk_entries {
    struct bytes log;
    struct siphash_key key;
    struct entry_place *places;
    size_t mask, count;
};

void disk_entries_write(struct builder *change, const struct disk_entry *entry)
{
    const uint32_t sizes[] = {(uint32_t)entry->key.size,
                              entry->text.data ? (uint32_t)entry->text.size : UINT32_MAX};
    builder_add(change, sizes, sizeof sizes);
    builder_add_bytes(change, entry->key);
    builder_add_bytes(change, entry->text);
}

bool disk_entries_cut(struct bytes *rest, struct disk_entry *entry_r)
{
    uint32_t key_size, text_size;
    if (rest->size < SIZES)
        return false;
    memcpy(&key_size, rest->data, sizeof key_size);
    memcpy(&text_size, rest->data + sizeof key_size, sizeof text_size);
    size_t left = rest->size - SIZES, size = text_size == UINT32_MAX ? 0 : text_size;
    if (!key_size || key_size > left || size > left - key_size)
        return false;
    entry_r->key = (struct bytes){rest->data + SIZES, key_size};
    entry_r->text = text_size == UINT32_MAX ? NO_BYTES : (struct bytes){rest->data + SIZES + key_size, size};
    rest->data += SIZES + key_size + size;
    rest->size = left - key_size - size;
    return true;
}

static struct entry_place *make_places(size_t count)
{
    struct entry_place *places = memory_zeroed(count, sizeof *places, "reading a log");
    return places;
}

struct disk_entries *disk_entries_create(struct bytes log)
{
    struct disk_entries *entries = memory_zeroed(1, sizeof *entries, "opening a log");
    entries->log = log;
    entries->places = make_places(PLACES_LEAST);
    entries->mask = PLACES_LEAST - 1;
    return entries;
}

void disk_entries_destroy(struct disk_entries *entries)
{
    if (entries)
        free(entries->places);
    free(entries);
}

void disk_entries_clear(struct disk_entries *entries, const struct siphash_key *key)
{
    entries->key = *key;
    if (entries->count)
        memset(entries->places, 0, (entries->mask + 1) * sizeof *entries->places);
    entries->count = 0;
}

static bool read_place(const struct disk_entries *entries, uint32_t at, struct disk_entry *entry_r)
{
    struct bytes rest = {entries->log.data + at, entries->log.size - at};
    return disk_entries_cut(&rest, entry_r);
}

static struct entry_place *find_disk_entries(const struct disk_entries *entries, struct bytes key,
                                             uint32_t hash)
{
    size_t i = hash & entries->mask;
    for (;; i = (i + 1) & entries->mask) {
        struct entry_place *place = &entries->places[i];
        struct disk_entry entry;
        if (!place->at ||
            (place->hash == hash && read_place(entries, place->at, &entry) && bytes_equal(entry.key, key)))
            return place;
    }
}

static void grow(struct disk_entries *entries)
{
    size_t count = (entries->mask + 1) * 2;
    struct entry_place *former = entries->places, *places = make_places(count);
    for (size_t i = 0; i <= entries->mask; i++) {
        size_t to = former[i].hash & (count - 1);
        while (former[i].at && places[to].at)
            to = (to + 1) & (count - 1);
        if (former[i].at)
            places[to] = former[i];
    }
    free(former);
    entries->places = places;
    entries->mask = count - 1;
}

bool disk_entries_add(struct disk_entries *entries, struct bytes change)
{
    for (struct disk_entry entry; change.size;) {
        uint32_t at = (uint32_t)(change.data - entries->log.data);
        if (!disk_entries_cut(&change, &entry))
            return false;
        if (entries->count > entries->mask / 2)
            grow(entries);
        uint32_t hash = (uint32_t)siphash_short(&entries->key, entry.key);
        struct entry_place *place = find_disk_entries(entries, entry.key, hash);
        entries->count += !place->at;
        *place = (struct entry_place){hash, at};
    }
    return true;
}

bool disk_entries_find(const struct disk_entries *entries, struct bytes key, struct disk_entry *entry_r)
{
    const struct entry_place *place =
        find_disk_entries(entries, key, (uint32_t)siphash_short(&entries->key, key));
    return place->at && read_place(entries, place->at, entry_r);
}

bool disk_entries_next(const struct disk_entries *entries, size_t *place, struct disk_entry *entry_r)
{
    while (*place <= entries->mask) {
        uint32_t at = entries->places[(*place)++].at;
        if (at)
            return read_place(entries, at, entry_r);
    }
    return false;
}

size_t disk_entries_count(const struct disk_entries *entries)
{
    return entries->count;
}
