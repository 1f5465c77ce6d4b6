/* notification: payloads of the channel `stampd` of a database: "Class.id" is a document that was not
 * changed by the workers of this host; any other payload means that any document may have changed. */
#ifndef STAMPD_SEGMENT_NOTIFICATION_H
#define STAMPD_SEGMENT_NOTIFICATION_H

#include "base/bytes.h"
#include "segment/segment.h"

/* Moves the stamp of the document, or all stamps: after it returns, no worker serves the previous state.
 * False: all stamps; else the document's name, slices of the payload. */
bool notification_publish(struct segment *segment, int ns, struct bytes payload, struct bytes *class_r,
                          struct bytes *id_r);
/* The same for a document whose change is known otherwise, before its notification has arrived. */
void notification_move(struct segment *segment, int ns, struct bytes class, struct bytes id);

#endif
