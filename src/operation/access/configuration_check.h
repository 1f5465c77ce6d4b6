/* configuration_check: the documents `Namespace` of z, whichever operation writes them. */
#ifndef STAMPD_OPERATION_ACCESS_CONFIGURATION_CHECK_H
#define STAMPD_OPERATION_ACCESS_CONFIGURATION_CHECK_H

#include "operation/attempt.h"

/* Refuses a change that makes a member of a configuration, or the rules, malformed.  What was malformed
 * before may stay, so that the rest can be repaired.  To be called after the work. */
MUST_USE enum fault configuration_check(struct attempt *attempt);

#endif
