/* records_changes: readers of the ring (records_ring.c), and marks. */
#include "records/records_changes.h"

#include <string.h>

#include "records/records_private.h"

enum { SWEPT_EACH = 200 };

uint64_t records_changes(const struct records *records)
{
    return atomic_load(&records->head->changes);
}

bool records_changes_position(struct records *records, uint64_t *position_r)
{
    if (!records_enter_untimed(records))
        return false;
    *position_r = undo_long(records->head->ring.end);
    records_leave(records);
    return true;
}

bool records_changes_expire(struct records *records)
{
    if (!records_enter(records))
        return false;
    records_sweep(records, SWEPT_EACH);
    records_leave(records);
    return true;
}

enum records_changes_end records_changes_read(struct records *records, struct bytes ns, bool is_encrypted,
                                              uint64_t *position, struct builder *out)
{
    if (!records_enter(records))
        return RECORDS_CHANGES_BUSY;
    records_sweep(records, SWEPT_EACH);
    int space = records_space_for(records, ns, is_encrypted, false, false);
    enum records_changes_end end = records_ring_read(records, space, position, out);
    records_leave(records);
    return end;
}

bool records_changes_take(struct bytes *rest, struct bytes *key_r, uint64_t *position_r)
{
    uint32_t size;
    if (!rest->size)
        return false;
    memcpy(position_r, rest->data, sizeof *position_r);
    memcpy(&size, rest->data + sizeof *position_r, sizeof size);
    size_t head = sizeof *position_r + sizeof size;
    *key_r = (struct bytes){rest->data + head, size};
    rest->data += head + size;
    rest->size -= head + size;
    return true;
}

uint64_t records_changes_identity(const struct records *records)
{
    return siphash_short(&records->hash, BYTES("the memory"));
}

bool records_changes_renew(const struct records *records, uint64_t *mark)
{
    uint64_t now = *mark >> 32 << 32 | atomic_load(&records->head->changed[*mark >> 32]);
    bool has_moved = now != *mark;
    *mark = now;
    return has_moved;
}
