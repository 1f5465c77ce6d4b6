/* matches: the session that a request names, and what its answer tells it: which of its definitions the
 * commit has touched (doc/subscriptions.md). */
#ifndef STAMPD_OPERATION_MATCHES_H
#define STAMPD_OPERATION_MATCHES_H

#include "operation/registry.h"

/* FAULT_AARG: what is named is no session. */
MUST_USE enum fault matches_check_session(struct call *call, struct reply *reply);
/* Appends the member `subs` to the object in the body, when there is something to tell. */
void matches_write(const struct attempt *attempt, struct builder *body);

#endif
