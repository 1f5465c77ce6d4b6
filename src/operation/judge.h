/* judge: applies the rules of the namespace (model/rules.h) to a caller: the only place where operations ask
 * what it may read and change.  Where no rules apply (call->rules NULL), everything is allowed that the
 * access of the namespace allows (access.h). */
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
/* After the work of an operation that obeys rules: may the caller make every change of the transaction?
 * FAULT_SRULE, recorded in the reply with class and id. */
MUST_USE enum fault judge_changes(struct attempt *attempt);

#endif
