/* archive_configuration: the documents of z about a namespace, out of an archive and into z, where the
 * namespace may have another name. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_CONFIGURATION_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_CONFIGURATION_H

#include "control/ns/ns_registry.h"

/* Stores the lines of a member as the configuration of `target`: its database, its state and the message
 * about it stay.  On failure reports why. */
MUST_USE bool archive_configuration_store(struct control *control, const struct ns_target *target,
                                          struct bytes lines);
/* Is it a member with such lines? */
bool archive_configuration_has(struct bytes name);

#endif
