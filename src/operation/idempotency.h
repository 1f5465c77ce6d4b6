/* idempotency: prevents a request from being executed twice (protocol.md, "Idempotency").
 *
 * dhop, the session's stamp of the operation, is checked here and passed to operations.  Under the header
 * Idempotency-Key an operation that may write is executed once: its commit stores the answer, and the same
 * request under that key gets it again.  Faults are not stored: nothing was committed. */
#ifndef STAMPD_OPERATION_IDEMPOTENCY_H
#define STAMPD_OPERATION_IDEMPOTENCY_H

#include "operation/attempt.h"
#include "store/documents/store_idempotency.h"
#include "operation/reply.h"

/* Parses dhop into call->dhop_stamp.  FAULT_AARG: it is not a stamp; FAULT_ADHOP: it is in the future, or too
 * old. */
MUST_USE enum fault idempotency_read_dhop(struct worker_context *worker_context, struct call *call,
                                          struct reply *reply);

/* The name under which the call's answer is stored, and the digest of the request; NULL when the call has no
 * key, or the operation only reads: repeating a read is harmless.  FAULT_AARG, FAULT_ALIMIT: the key or the
 * account cannot be such a name; FAULT_AKEYAHEAD: it is from the future. */
MUST_USE enum fault idempotency_open(struct worker_context *worker_context, struct call *call,
                                     struct reply *reply, const struct operation *operation,
                                     struct idempotency **idempotency_r);
/* Replaces the digest of the request by a keyed one, which is stored; call once, before idempotency_recall.
 */
MUST_USE enum fault idempotency_seal(struct attempt *attempt, struct idempotency *idempotency);
/* Checks the time of a key: that in a UUID of version 7, else dhop.  FAULT_AKEYOLD: the answer stored under
 * it may have been deleted.  Call only when no answer is found. */
MUST_USE enum fault idempotency_check_age(struct attempt *attempt, const struct idempotency *idempotency);
/* Looks up the stored answer.  Found: body, type and version of the attempt are as after its work and
 * validation.  FAULT_AKEYREUSED: it belongs to another request.  FAULT_BCONTENT: it cannot be read. */
MUST_USE enum fault idempotency_recall(struct attempt *attempt, const struct idempotency *idempotency,
                                       bool *found_r);
/* After work: its validation is to store the answer.  FAULT_ALIMIT: more than limit_kept_bytes. */
MUST_USE enum fault idempotency_keep(struct attempt *attempt, struct idempotency *idempotency);
/* After a try that ended with `fault`: FAULT_NONE when the answer is stored all the same, because a duplicate
 * request was faster or a commit of unknown outcome did happen; else the fault that remains, and whether the
 * operation may be run again: then nothing was committed. */
MUST_USE enum fault idempotency_settle(struct attempt *attempt, const struct idempotency *idempotency,
                                       enum fault fault, bool *again_r);

#endif
