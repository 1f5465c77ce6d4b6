/* notification: the payload is the trigger's, notify_change() in sql/0001_documents.sql. */
#include "segment/notification.h"

#include <string.h>

#include "base/log.h"
#include "model/item.h"
#include "segment/namespaces.h"
#include "segment/slots.h"

bool notification_publish(struct segment *segment, int ns, struct bytes payload, struct bytes *class_r,
                          struct bytes *id_r)
{
    const char *dot = payload.size ? memchr(payload.data, '.', payload.size) : NULL;
    struct bytes class = dot ? (struct bytes){payload.data, (size_t)(dot - payload.data)} : NO_BYTES;
    struct bytes id = dot ? (struct bytes){dot + 1, payload.size - class.size - 1} : NO_BYTES;
    *class_r = *id_r = NO_BYTES;
    if (!dot || !id.size || !item_is_class_name(class)) {
        log_info("database=%s: all stamps moved on request", namespaces_database(segment, ns));
        slots_move_all(segment);
        return false;
    }
    uint32_t slot = slots_index(segment, slots_hash(segment, ns, class, id));
    slots_publish(segment, &slot, 1, NULL);
    *class_r = class;
    *id_r = id;
    return true;
}
