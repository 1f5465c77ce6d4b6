/* explain_cases: the part of `explain` that runs a table of cases, by the rules of the namespace or by a
 * draft of them. */
#ifndef STAMPD_OPERATION_ADMINISTRATION_EXPLAIN_CASES_H
#define STAMPD_OPERATION_ADMINISTRATION_EXPLAIN_CASES_H

#include "operation/attempt.h"
#include "operation/reader.h"

struct rules;

/* param {"cases":[…],"documents":[…],"rules":{…}}, as in the file of `stampctl rules test`; `own`: the rules
 * of the namespace, NULL: it has none → out {"cases":[{"may","rule","good"}…],"failed"}.  Documents that are
 * not in the table do not exist.  What a table costs is bounded by its number of cases and of documents. */
MUST_USE enum fault explain_cases_run(struct attempt *attempt, const struct reader *reader,
                                      const struct rules *own);

#endif
