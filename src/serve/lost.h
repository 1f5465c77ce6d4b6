/* lost: the answer to a request whose worker ended before it answered: why, and whether anything can have
 * been done.  Nothing is said that is not known (doc/protocol.md, "Faults"). */
#ifndef STAMPD_SERVE_LOST_H
#define STAMPD_SERVE_LOST_H

#include "operation/call.h"
#include "serve/in_flight.h"

/* Records XCRASH, XTIME, OSTOPPING or XUNKNOWN in the reply, with its status.  The phase is that of the work
 * when nothing was changed, else unknown. */
void lost_explain(struct call *call, struct reply *reply, const struct fate *fate);

#endif
