/* records_fetch: what is to be read, and whether what was read is the content as it is now. */
#include "records/records_fetch.h"

#include <string.h>

#include "records/records_private.h"

static uint32_t first_key(const struct records *records, uint32_t value)
{
    return records_value(records, value)->keys;
}

static uint64_t mark_of(const struct records *records, uint32_t key)
{
    const struct key_piece *piece = records_key(records, key);
    return records_mark(records, (int)(piece->place >> 16), records_key_text(piece));
}

void records_note_away(struct records *records, uint32_t value)
{
    uint32_t key = first_key(records, value);
    struct records_wanted *wanted = &records->read.wanted;
    struct bytes text = records_key_text(records_key(records, key));
    memcpy(wanted->key, text.data, text.size);
    wanted->key_size = (uint32_t)text.size;
    wanted->space = records_key(records, key)->place >> 16;
    wanted->size = records_size(records_value(records, value));
    wanted->digest = records_away_digest(records, value);
    wanted->mark = mark_of(records, key);
    wanted->changes = atomic_load(&records->head->changes);
    records->read.has_ended = false;
}

/* Each change of what is under a key moves its mark, a number of 32 bits, and `changes`, one of 64.  As long
 * as fewer changes of all keys have been noted than bring a mark round, a mark that is the same has not
 * moved: the content is not that of another version, however long the reading process stood still.  (Half of
 * them: a process that dies may have moved a mark alone.) */
static bool records_fetch_is_current(const struct records *records, const struct records_wanted *wanted,
                                     uint32_t value)
{
    uint32_t key = first_key(records, value);
    return wanted->space == records_key(records, key)->place >> 16 &&
           bytes_equal((struct bytes){wanted->key, wanted->key_size},
                       records_key_text(records_key(records, key))) &&
           wanted->mark == mark_of(records, key) &&
           atomic_load(&records->head->changes) - wanted->changes < UINT32_MAX / 2;
}

bool records_find_read(struct records *records, uint32_t value)
{
    struct room_read *read = &records->read;
    if (read->has_ended && records_fetch_is_current(records, &read->wanted, value))
        return true;
    for (size_t i = 0; i < read->offered_count; i++) {
        const struct records_fetched *one = &read->offered[i];
        if (one->has_ended && records_fetch_is_current(records, &one->wanted, value)) {
            read->content = one->is_read ? builder_bytes(&one->content) : NO_BYTES;
            read->problem = *one->problem ? one->problem : NULL;
            return true;
        }
    }
    return false;
}

void records_fetch_elsewhere(struct records *records)
{
    records->read.is_elsewhere = true;
}

void records_fetch_wanted(const struct records *records, struct records_wanted *wanted_r)
{
    *wanted_r = records->read.wanted;
}

void records_fetch_offer(struct records *records, const struct records_fetched *list, size_t count)
{
    records->read.offered = list;
    records->read.offered_count = count;
}

struct bytes records_fetch(struct records *records, const struct records_wanted *wanted,
                           const char **problem_r)
{
    records->read.wanted = *wanted;
    records_fetch_content(records);
    *problem_r = records->read.problem;
    return records->read.content;
}
