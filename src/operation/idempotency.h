/* idempotency: what keeps a request from being done twice (doc/protocol.md, "Sending a request again").
 *
 * dhop, the session's stamp of the operation, is checked here and given to operations.  Under the header
 * Idempotency-Key an operation that may write is done once: its commit keeps the answer, and whoever sends
 * the same request again under that key gets it.  Faults are not kept: nothing was committed. */
#ifndef STAMPD_OPERATION_IDEMPOTENCY_H
#define STAMPD_OPERATION_IDEMPOTENCY_H

#include "operation/registry.h"

/* Reads dhop into call->dhop_stamp.  FAULT_AARG: it is no stamp; FAULT_ADHOP: it is in the future, or too
 * old. */
MUST_USE enum fault idempotency_read_dhop(struct worker_context *worker_context, struct call *call,
                                          struct reply *reply);

/* The name under which the call's answer is kept, and the digest of what is asked for; NULL when the call has
 * no key, or the operation only reads: to read again does no harm.  FAULT_AARG, FAULT_ALIMIT: the key or the
 * account cannot be such a name; FAULT_AKEYAHEAD: it is from the future. */
MUST_USE enum fault idempotency_open(struct worker_context *worker_context, struct call *call,
                                     struct reply *reply, const struct operation *operation,
                                     struct idempotency **idempotency_r);
/* The time of a key: a UUID of version 7 has it, else dhop is it.  FAULT_AKEYOLD: what was done under it may
 * be forgotten.  Only when no answer is there. */
MUST_USE enum fault idempotency_check_age(struct attempt *attempt, const struct idempotency *idempotency);
/* Looks for the answer.  Found: body, type and version of the attempt are as after its work and validation.
 * FAULT_AKEYREUSED: it answers another request.  FAULT_BCONTENT: it cannot be read. */
MUST_USE enum fault idempotency_recall(struct attempt *attempt, const struct idempotency *idempotency,
                                       bool *found_r);
/* After work: its validation is to keep what it gave.  FAULT_ALIMIT: more than limit_kept_bytes. */
MUST_USE enum fault idempotency_keep(struct attempt *attempt, struct idempotency *idempotency);
/* After a try that ended with `fault`: FAULT_NONE when the answer is there all the same, because a twin was
 * quicker or a commit of unknown outcome did happen; else what remains of the fault, and whether the
 * operation may be run again: nothing was committed then. */
MUST_USE enum fault idempotency_settle(struct attempt *attempt, const struct idempotency *idempotency,
                                       enum fault fault, bool *again_r);

#endif
