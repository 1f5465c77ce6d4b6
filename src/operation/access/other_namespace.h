/* other_namespace: documents of another namespace, to read, with a tolerance, where both sides agree in their
 * configurations: this one has the code of the other in `reads`, the other has the code of this one in
 * `readers`.  Otherwise the other namespace is answered as if it did not exist. */
#ifndef STAMPD_OPERATION_ACCESS_OTHER_NAMESPACE_H
#define STAMPD_OPERATION_ACCESS_OTHER_NAMESPACE_H

#include "operation/attempt.h"

/* A copy at most `age_s` (1 or more) old.  The caller of this function decides who may read what this
 * namespace may.  FAULT_NNAMESPACE: there is no such namespace, they do not agree, its rules or accounts
 * decide who reads, or it is z; OOFF, OGONE: its state.  Recorded in the reply. */
MUST_USE enum fault other_namespace_read(struct attempt *attempt, struct bytes code,
                                         struct document_name name, int64_t age_s,
                                         const struct document **document_r);

#endif
