/* servers: waits until all servers obey what was committed in a database: the state of a namespace in z, a
 * restore in its own. */
#ifndef STAMPD_CONTROL_SERVERS_H
#define STAMPD_CONTROL_SERVERS_H

#include "control/control.h"

/* After the return, no request is answered by anything older than what was committed before, in this
 * database; requests under way excepted.  A server that is not connected is left out after a few seconds, and
 * forgotten: it has died, or obeys when it connects.  False: a server that is connected does not acknowledge
 * for half a minute, or the database failed; reported. */
MUST_USE bool servers_await(struct control *control, struct pg *pg);

#endif
