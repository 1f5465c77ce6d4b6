/* lost: answers a request whose worker ended before it answered: why, and whether anything may have been
 * done.  It states only what is certain (protocol.md, "Faults"). */
#ifndef STAMPD_SERVE_LOST_H
#define STAMPD_SERVE_LOST_H

#include "operation/reply.h"
#include "serve/in_flight.h"

/* Records XCRASH, XTIME, OSTOPPING or XUNKNOWN in the reply, with its status.  The phase is "work" if nothing
 * was changed, else unknown. */
void lost_explain(struct call *call, struct reply *reply, const struct fate *fate);

#endif
