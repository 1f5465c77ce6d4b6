/* records_rekey: records of both keys stand at different places, so that each part leaves the others alone.
 */
#include "records/records_rekey.h"

#include <string.h>

#include "base/crash.h"
#include "base/log.h"
#include "log/disk_table.h"
#include "records/records_saved.h"
#include "records/records_seal.h"

enum { KEPT_BYTES = 1 << 20, NARROWED_MOST = 3, NARROWED_BITS = 3 };

size_t records_rekey_part = 64 << 20;

struct rekey_walk {
    struct records_rekey *rekey;
    struct records_seal *present, *next; /* the first may be NULL */
    uint64_t entries;                    /* of this change */
    bool is_cut;
    const char *problem;
};

/* Adds to the changes: the new place, eight bytes of size, and the text. */
static const char *seal_again(struct rekey_walk *walk, struct bytes place, struct bytes text)
{
    struct records_rekey *rekey = walk->rekey;
    unsigned char own[RECORDS_PLACE_BYTES];
    struct bytes clear, key, at = {(char *)own, sizeof own};
    if (!walk->present)
        return "a record is encrypted, and the file key is missing";
    builder_clear(&rekey->opened, KEPT_BYTES);
    builder_add_bytes(&rekey->opened, text);
    const char *problem =
        records_seal_explain(records_seal_open(walk->present, place, &rekey->opened, &clear));
    if (problem)
        return problem;
    if (!records_saved_key(clear, &key))
        return records_seal_explain(RECORDS_SEAL_DAMAGED);
    memcpy(own, place.data, RECORDS_CODE_MOST);
    records_seal_place(walk->next, key, own);
    builder_clear(&rekey->sealed, KEPT_BYTES);
    records_seal_text(walk->next, at, clear, &rekey->sealed);
    builder_add_bytes(&rekey->changes, at);
    bytes_put_u64((unsigned char *)builder_reserve(&rekey->changes, sizeof(uint64_t)), rekey->sealed.size);
    rekey->changes.size += sizeof(uint64_t);
    builder_add_bytes(&rekey->changes, builder_bytes(&rekey->sealed));
    walk->entries++;
    return NULL;
}

static enum disk_table_next records_rekey_take(void *context, struct bytes place, struct bytes text)
{
    struct rekey_walk *walk = context;
    if (!records_seal_is_place(place) || records_seal_has(walk->next, text))
        return DISK_TABLE_KEEP;
    size_t most = records_rekey_part >> walk->rekey->narrowed * NARROWED_BITS;
    walk->is_cut = walk->rekey->changes.size >= most;
    if (walk->is_cut)
        builder_add_bytes(&walk->rekey->from, place);
    else
        walk->problem = seal_again(walk, place, text);
    return walk->is_cut || walk->problem ? DISK_TABLE_STOP : DISK_TABLE_REMOVE;
}

static const char *put_all(struct disk_table *disk, struct bytes changes)
{
    const char *error = NULL;
    while (changes.size && !error) {
        const char *place = changes.data, *text = place + RECORDS_PLACE_BYTES + sizeof(uint64_t);
        size_t size = (size_t)bytes_get_u64((const unsigned char *)place + RECORDS_PLACE_BYTES);
        error = disk_table_put(disk, (struct bytes){place, RECORDS_PLACE_BYTES}, (struct bytes){text, size});
        changes.data = text + size;
        changes.size -= (size_t)(text + size - place);
    }
    return error;
}

/* Nothing is under the present key any more. */
static const char *replace(const struct records_rekey *rekey, const char *folder)
{
    crash_at(CRASH_RECORDS_REKEY_OVER);
    const char *error = records_seal_replace(folder);
    crash_at(CRASH_RECORDS_KEY_REPLACED);
    if (!error)
        log_info("records: those of encrypted namespaces in %s have another key records=%llu", folder,
                 (unsigned long long)rekey->count);
    return error;
}

/* The key is replaced only after a walk over all records that has found none. */
static const char *walk_on(struct rekey_walk *walk, struct disk_table *disk, const char *folder)
{
    struct records_rekey *rekey = walk->rekey;
    char place[DISK_TABLE_KEY_MOST];
    struct bytes from = {place, rekey->from.size};
    if (from.size)
        memcpy(place, rekey->from.data, from.size);
    builder_clear(&rekey->from, KEPT_BYTES);
    builder_clear(&rekey->changes, KEPT_BYTES);
    const char *error = disk_table_each_from(disk, from.size ? from : NO_BYTES, records_rekey_take, walk);
    error = error ? error : walk->problem;
    if (!error && !from.size && !walk->entries)
        return replace(rekey, folder);
    if (!error)
        error = put_all(disk, builder_bytes(&rekey->changes));
    rekey->last = walk->entries;
    rekey->count += rekey->last;
    crash_at(CRASH_RECORDS_REKEYED);
    return error;
}

const char *records_rekey_some(struct records_rekey *rekey, struct disk_table *disk, const char *folder,
                               bool *is_more_r)
{
    struct rekey_walk walk = {.rekey = rekey};
    const char *error = records_seal_read(&walk.next, folder, RECORDS_SEAL_NEXT);
    *is_more_r = walk.next;
    if (!error && walk.next && !rekey->count) /* before anything is under the next key */
        error = records_seal_wrap(folder);
    if (!error && walk.next)
        error = records_seal_read(&walk.present, folder, RECORDS_SEAL_PRESENT);
    if (!error && walk.next)
        error = walk_on(&walk, disk, folder);
    records_seal_free(walk.present);
    records_seal_free(walk.next);
    return error;
}

const char *records_rekey_retry(struct records_rekey *rekey, const char *error)
{
    if (!disk_table_is_full(error) || rekey->narrowed == NARROWED_MOST)
        return error;
    rekey->narrowed++;
    rekey->count -= rekey->last;
    rekey->last = 0;
    builder_clear(&rekey->from, KEPT_BYTES); /* those that are done are passed */
    return NULL;
}

void records_rekey_free(struct records_rekey *rekey)
{
    builder_free(&rekey->from);
    builder_free(&rekey->opened);
    builder_free(&rekey->sealed);
    builder_free(&rekey->changes);
}
