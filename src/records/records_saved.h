/* records_saved: a record as it is on disk.
 *
 * Under each key of a record stands all of it, with all its keys.  Numbers of eight bytes, big-endian: the
 * layout, kind, end, timestamp, touch, created, modified, accessed, worked until, locked until, how many
 * keys, size of the owner, size of the content; then for each key its size, the keys, the owner, the content.
 */
#ifndef STAMPD_RECORDS_RECORDS_SAVED_H
#define STAMPD_RECORDS_RECORDS_SAVED_H

#include "records/records_private.h"

/* Under the lock: appends the size and the text of what is under the key and persisted; size UINT64_MAX
 * without text: nothing. */
void records_saved_write(const struct records *records, int space, struct bytes key, struct builder *text);

enum records_saved_result {
    RECORDS_SAVED_READ,
    RECORDS_SAVED_THERE, /* it was read under another of its keys */
    RECORDS_SAVED_OVER,  /* it has expired */
    RECORDS_SAVED_MALFORMED,
    RECORDS_SAVED_NO_ROOM
};
/* Under the lock: puts it into the memory, as a change of its own. */
enum records_saved_result records_saved_read(struct records *records, struct bytes text);

#endif
