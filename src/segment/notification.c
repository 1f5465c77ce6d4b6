/* notification: the payload is the trigger's, notify_change() in sql/0001_documents.sql. */
#include "segment/notification.h"

#include <string.h>

#include "base/log.h"
#include "model/document/item.h"
#include "segment/lineage.h"
#include "segment/namespaces.h"
#include "segment/slots.h"

void notification_move(struct segment *segment, int ns, struct bytes class, struct bytes id)
{
    const uint32_t slots[] = {slots_index(segment, slots_hash(segment, ns, class, id)),
                              slots_of_class(segment, ns, class)};
    slots_publish(segment, slots, slots[0] == slots[1] ? 1 : 2, NULL);
}

bool notification_publish(struct segment *segment, int ns, struct bytes payload, struct bytes *class_r,
                          struct bytes *id_r)
{
    const char *dot = payload.size ? memchr(payload.data, '.', payload.size) : NULL;
    struct bytes class = dot ? (struct bytes){payload.data, (size_t)(dot - payload.data)} : NO_BYTES;
    struct bytes id = dot ? (struct bytes){dot + 1, payload.size - class.size - 1} : NO_BYTES;
    *class_r = *id_r = NO_BYTES;
    if (!dot || !id.size || !item_is_class_name(class)) {
        log_info("database=%s: all copies dropped on request", namespaces_database(segment, ns));
        lineage_drop(segment);
        return false;
    }
    notification_move(segment, ns, class, id);
    *class_r = class;
    *id_r = id;
    return true;
}
