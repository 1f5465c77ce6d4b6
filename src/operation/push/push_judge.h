/* push_judge: what may the caller that declared a subscription know of the noted matches at this moment?
 *
 * A message is sent to a browser that is closed, for an account that may have lost its rights since.  Where
 * access rules decide, each match is judged before anything is sent, with the present roles of the account: a
 * definition of a document by that document, one of a class by the documents of the class that were written.
 * A change that the caller may not see, a document that it may no longer read, and one that is gone wake
 * nobody.  Collections are not judged: they match nothing. */
#ifndef STAMPD_OPERATION_PUSH_PUSH_JUDGE_H
#define STAMPD_OPERATION_PUSH_PUSH_JUDGE_H

#include "operation/attempt.h"
#include "store/collections/store_subscriptions.h"

/* Reduces the list to what may be sent, each definition once, with a version that the caller may know. */
MUST_USE enum fault push_judge(struct attempt *attempt, const struct subscription *subscription,
                               struct matched_list *list);

#endif
