/* judge_losses: matches with the definitions of a subscription (subscriptions.md) by which its account has
 * lost a document: its owner, its members or a team have changed, it was deleted, or it has left a
 * collection.  And definitions of which the account may see more or less since its own roles or memberships
 * have changed.  doc/explanation/sight.md describes what discloses nothing. */
#ifndef STAMPD_OPERATION_JUDGE_JUDGE_LOSSES_H
#define STAMPD_OPERATION_JUDGE_JUDGE_LOSSES_H

#include "operation/attempt.h"
#include "store/documents/store_commit.h"

/* Of matches that were taken for the session, those of one definition beside each other.  versions_r: 0 for
 * those to be judged, as judge_matches leaves them; set where the caller may know of a departure. */
MUST_USE enum fault judge_losses(struct attempt *attempt, const struct matched_definition *matches,
                                 size_t count, int64_t *versions_r);

#endif
