/* forwarder: sends the records of a spool to the server until it is stopped: a lane for each namespace. */
#ifndef STAMPD_FORWARD_FORWARDER_H
#define STAMPD_FORWARD_FORWARDER_H

#include "forward/forward_settings.h"

/* Can the key, the authorities and the spool be read?  Returns the exit status. */
int forwarder_check(const struct forward_settings *settings);
/* Returns the exit status.  `until_empty`: ends when nothing waits. */
int forwarder_run(const struct forward_settings *settings, bool until_empty);

#endif
