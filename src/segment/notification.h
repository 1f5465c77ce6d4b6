/* notification: what the channel `stampd` of a database says: "Class.id", a document that was changed by
 * others than the workers of this host; whatever else is said, anything may have changed. */
#ifndef STAMPD_SEGMENT_NOTIFICATION_H
#define STAMPD_SEGMENT_NOTIFICATION_H

#include "base/bytes.h"
#include "segment/segment.h"

/* Moves the stamp of the document, or all stamps: from the return on nobody answers with what was before.
 * False: all; else its name, slices of the payload. */
bool notification_publish(struct segment *segment, int ns, struct bytes payload, struct bytes *class_r,
                          struct bytes *id_r);

#endif
