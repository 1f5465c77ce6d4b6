/* quota: counts what a caller does against the quotas of the namespace (model/quotas.h), by the limiter of
 * the shared segment.
 *
 * A quota is counted for the address, then the account, then the namespace: what a narrower quota refuses
 * does not use the wider one.  What is refused for another reason later stays counted.  Numbers of what is
 * there at the same time are looked at in the same order.  Without effect: the administrator, tasks (but for
 * bytes and further commits, those of clients), the address of a client without limits (setting
 * exempt_clients), a namespace without quotas. */
#ifndef STAMPD_OPERATION_QUOTA_H
#define STAMPD_OPERATION_QUOTA_H

#include "operation/attempt.h"
#include "operation/operation.h"
#include "operation/reply.h"
#include "operation/worker_context.h"

/* Counts one event of this kind.  FAULT_XBUSY, recorded in the reply with the name of the quota, its rate and
 * the time to wait.  Valid after access_enter. `ns`: index of the namespace. */
MUST_USE enum fault quota_take(struct segment *segment, struct call *call, struct reply *reply, int ns,
                               enum quota_kind kind);
/* Counts a further commit of a task that a client has requested, as one of the `writes`; the request itself
 * has counted for the first.  FAULT_XBUSY as above. */
MUST_USE enum fault quota_take_commit(struct segment *segment, struct call *call, struct reply *reply,
                                      int ns);
/* Counts a request that runs this operation; NULL: an unknown one. */
MUST_USE enum fault quota_enter(struct segment *segment, struct call *call, struct reply *reply, int ns,
                                const struct operation *operation);

/* --- numbers --- */

/* The numbers of this kind that apply to the call; 0: not limited. */
void quota_find_numbers(const struct call *call, enum quota_number number, int64_t most_r[QUOTA_SUBJECTS]);
/* Whom a quota counts; NO_BYTES: it does not apply to the call. */
struct bytes quota_subject(const struct call *call, enum quota_subject subject);
/* The key of what the subject has, for tables of what there is at the same time; 0: there is no subject. */
uint64_t quota_number_key(const struct segment *segment, const struct call *call, int ns,
                          enum quota_subject subject, enum quota_number number);
/* May the subject, which has `present` of them, have one more?  FAULT_XBUSY, recorded in the reply with the
 * name of the quota and its value. */
MUST_USE enum fault quota_check_number(struct segment *segment, struct call *call, struct reply *reply,
                                       int ns, enum quota_subject subject, enum quota_number number,
                                       int64_t present);

/* This worker is going to send a streamed collection, until quota_end_stream. */
MUST_USE enum fault quota_begin_stream(struct attempt *attempt);
void quota_end_stream(struct attempt *attempt);

/* The same for the accounts that own documents: declares the owners to the database, whose commit counts and
 * refuses them.  Without effect in a snapshot. */
MUST_USE enum fault quota_limit_owners(struct attempt *attempt);
/* The same for the tasks that the caller and all callers have requested. */
void quota_limit_tasks(struct attempt *attempt);
/* The commit was refused by the limit that is named. */
void quota_count_refusal(const struct attempt *attempt, const char *limit);

/* After the work of an operation: may the transaction make the namespace, and its classes, grow?
 * FAULT_ALIMIT, recorded in the reply with the name of the quota, its value and the sum.  What makes it
 * smaller is always allowed. */
MUST_USE enum fault quota_check_bytes(struct attempt *attempt);
/* Does any quota of bytes apply to the call? */
bool quota_limits_bytes(const struct call *call);
/* For a transaction that changes no member that names an owner: has the account for which each of its
 * documents counts room for what they grow?  The commit, which alone is exact, refuses the same.
 * FAULT_ALIMIT, recorded in the reply. */
MUST_USE enum fault quota_check_owners(struct attempt *attempt);

#endif
