/* audited: which requests are administration, and what the record of it (base/logging/audit.h) has of them:
 * the operations for administrators, in any namespace, but for those that change nothing; whatever changes
 * something in the namespace z; and each attempt without the right, or with a wrong key of an administrator.
 *
 * Of a request the record has the name of the operation, the first member of its param, which says what it
 * does, and the id that this is about: no contents, no keys, nothing at all that a stranger has written. */
#ifndef STAMPD_OPERATION_ACCESS_AUDITED_H
#define STAMPD_OPERATION_ACCESS_AUDITED_H

#include "operation/reply.h"
#include "base/settings.h"

/* When the outcome is known, before the answer is sent. */
void audited_note(const struct settings *settings, const struct call *call, const struct reply *reply);

#endif
