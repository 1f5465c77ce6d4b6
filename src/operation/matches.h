/* matches: the session that a request names, and the list in its answer of the definitions that the commit
 * has matched (subscriptions.md). */
#ifndef STAMPD_OPERATION_MATCHES_H
#define STAMPD_OPERATION_MATCHES_H

#include "operation/attempt.h"
#include "operation/reply.h"

/* FAULT_AARG: the argument does not name a session. */
MUST_USE enum fault matches_check_session(struct call *call, struct reply *reply);
/* Appends the member `subs` to the object in the body, when there are matches. */
void matches_write(const struct attempt *attempt, struct builder *body);

#endif
