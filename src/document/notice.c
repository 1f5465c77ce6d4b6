/* notice: the payload is the trigger's, tell_change() in sql/0001_documents.sql. */
#include "document/notice.h"

#include <string.h>

#include "base/log.h"
#include "document/item.h"

bool notice_publish(struct stamps *stamps, int space, struct bytes payload, struct bytes *class_r,
                    struct bytes *id_r)
{
    const char *dot = payload.size ? memchr(payload.data, '.', payload.size) : NULL;
    struct bytes class = dot ? (struct bytes){payload.data, (size_t)(dot - payload.data)} : NO_BYTES;
    struct bytes id = dot ? (struct bytes){dot + 1, payload.size - class.size - 1} : NO_BYTES;
    *class_r = *id_r = NO_BYTES;
    if (!dot || !id.size || !item_is_class_name(class)) {
        log_info("database=%s: all stamps moved on request", stamps_space_database(stamps, space));
        stamps_move_all(stamps);
        return false;
    }
    uint32_t slot = stamps_slot(stamps, stamps_hash(stamps, space, class, id));
    stamps_publish(stamps, &slot, 1, NULL);
    *class_r = class;
    *id_r = id;
    return true;
}
