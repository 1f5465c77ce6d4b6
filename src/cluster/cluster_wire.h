/* cluster_wire: messages between hosts, to and from bytes.
 *
 * A message is four bytes with the size of what follows, and that: a head of CLUSTER_WIRE_HEAD bytes, the
 * payer if there is one, the numbers of silent hosts, the key, the content.  Numbers have their most
 * significant byte first.  A reader accepts exactly what a writer writes, so a host that is damaged or
 * hostile can be wrong, and can make no receiver read outside a message, count beyond its tables or keep more
 * than its bounds.  Whether `from` is the host that the connection belongs to is for the caller to check.
 * Pure. */
#ifndef STAMPD_CLUSTER_CLUSTER_WIRE_H
#define STAMPD_CLUSTER_CLUSTER_WIRE_H

#include "base/builder.h"
#include "cluster/cluster.h"

enum {
    CLUSTER_WIRE_SIZE = 4, /* before each message */
    CLUSTER_WIRE_HEAD = 108,
    CLUSTER_WIRE_PAYER = 56,
    /* Of a message, beside its content. */
    CLUSTER_WIRE_MOST = CLUSTER_WIRE_SIZE + CLUSTER_WIRE_HEAD + CLUSTER_WIRE_PAYER + 4 * CLUSTER_SILENT_MOST +
                        CLUSTER_KEY_MOST
};

/* Times and durations are between this and its negative, 35 years in milliseconds: sums of some of them do
 * not overflow. */
#define CLUSTER_WIRE_MS_MOST (INT64_C(1) << 40)

enum cluster_reading {
    CLUSTER_WHOLE,
    CLUSTER_PARTIAL,  /* more bytes must come */
    CLUSTER_MALFORMED /* the connection cannot go on */
};

/* Appends it. */
void cluster_wire_write(struct builder *out, const struct cluster_message *message);
/* Reads the first message; `used_r`: its bytes.  `content_most`: bytes of its content.  The texts are slices.
 */
MUST_USE enum cluster_reading cluster_wire_read(struct bytes bytes, size_t content_most,
                                                struct cluster_message *message_r, size_t *used_r);

#endif
