/* matches: the session that a request names, and the list in its answer of the definitions that the commit
 * has matched (subscriptions.md). */
#ifndef STAMPD_OPERATION_JUDGE_MATCHES_H
#define STAMPD_OPERATION_JUDGE_MATCHES_H

#include "operation/attempt.h"
#include "operation/reply.h"
#include "store/documents/store_commit.h"

/* FAULT_AARG: the argument does not name a session. */
MUST_USE enum fault matches_check_session(struct call *call, struct reply *reply);
/* Who uses the session's subscription. */
struct subscription_caller matches_caller(const struct call *call);
/* After the work of a try: notes the documents that it has changed, if the caller may not know of all of
 * them: access rules decide, and the operation does not obey them. */
void matches_note(struct attempt *attempt);
/* Appends the member `subs` to the object in the body, when there are matches.  Where rules decide, a
 * definition matches only a document that the caller may read after the commit (of a class: that it may also
 * list), unless it has changed it itself. */
MUST_USE enum fault matches_write(struct attempt *attempt, struct builder *body);

#endif
