/* records_saved: a record as it is on disk.
 *
 * It stands under the first of its keys, with all of them: any other key of it, or one of a record that is
 * not persisted, has nothing.  Numbers of eight bytes, big-endian: the
 * layout, kind, end, timestamp, touch, created, modified, accessed, worked until, locked until, how many
 * keys, size of the owner, of the namespace's code, of the content, the number of its last change, digests of
 * the rule and the caller that it counts for (0: none); then for each key its size, the keys, the owner, the
 * code, the content.  The last three numbers are not in the first layout.
 */
#ifndef STAMPD_RECORDS_RECORDS_SAVED_H
#define STAMPD_RECORDS_RECORDS_SAVED_H

#include "records/records_private.h"

/* Under the lock: appends the size and the text of what is under the key and persisted; size UINT64_MAX
 * without text: nothing is to be there. */
void records_saved_write(struct records *records, int space, struct bytes key, struct builder *text);

enum records_saved_result {
    RECORDS_SAVED_READ,
    RECORDS_SAVED_THERE, /* a process that died has read it */
    RECORDS_SAVED_OVER,  /* it has expired */
    RECORDS_SAVED_MALFORMED,
    RECORDS_SAVED_NO_ROOM
};
/* Under the lock: puts it into the memory, as a change of its own; where there is little room, without its
 * content.  `is_encrypted`: the disk has it so. */
enum records_saved_result records_saved_read(struct records *records, struct bytes text, bool is_encrypted);
/* The key under which the text stands, the first of its record; false: it is damaged. */
MUST_USE bool records_saved_key(struct bytes text, struct bytes *key_r);
/* The content that is part of the text; false: it is damaged. */
MUST_USE bool records_saved_content(struct bytes text, struct bytes *content_r);

#endif
