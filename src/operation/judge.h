/* judge: applies the rules of the namespace (model/rules.h) to a caller: the only place where operations ask
 * what it may read and change.  Where no rules apply (call->rules NULL), everything is allowed that the
 * access of the namespace allows (access.h).
 *
 * A decision may depend on another document, a team.  During the work of an operation that document is
 * verified with the transaction: the decision, what was read and what is written were true at one instant,
 * and a member who is removed from a team before the commit cannot write.  After the work
 * (synchronisations), the team is the newest at the moment of the decision, each decision by itself. */
#ifndef STAMPD_OPERATION_JUDGE_H
#define STAMPD_OPERATION_JUDGE_H

#include "model/rules.h"
#include "operation/attempt.h"

/* May the caller read the document, and what of it?  What it may not read is answered as if it did not exist.
 */
MUST_USE enum fault judge_read(struct attempt *attempt, const struct document *document, bool *may_r,
                               struct rules_view *view_r);
/* May it learn of the document from a list or a search? */
MUST_USE enum fault judge_list(struct attempt *attempt, const struct document *document, bool *may_r,
                               struct rules_view *view_r);
/* May it name items of this class (NO_BYTES: the document alone) in order to set or remove them, whether that
 * changes anything or not?  For every item that a request names; what changes is judged by judge_changes. */
MUST_USE enum fault judge_name(struct attempt *attempt, const struct draft *draft, struct bytes item_class,
                               bool *may_r);
/* After the work of an operation that obeys rules: may the caller make every change of the transaction?
 * FAULT_SRULE, recorded in the reply with class and id. */
MUST_USE enum fault judge_changes(struct attempt *attempt);

#endif
