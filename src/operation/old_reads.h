/* old_reads: what decides and answers a read with an age while PostgreSQL cannot be reached.
 *
 * A request with an age accepts what is that old.  Its decisions rest on other documents: the namespace's
 * configuration, the caller's account, the keys of a provider of tokens, teams that rules name.  They are
 * always the newest, but when nothing newer can be had they may be as old as the answer, and at most
 * configuration_age_s: for so long a right that was taken away meanwhile may still be used on a host that is
 * cut off.  Where rules or filters decide, that bounds the document itself too.  A document that is known to
 * have changed since decides nothing. */
#ifndef STAMPD_OPERATION_OLD_READS_H
#define STAMPD_OPERATION_OLD_READS_H

#include "document/documents.h"
#include "operation/call.h"
#include "operation/worker_context.h"

/* In seconds, after `fault` of a read of the newest; 0: nothing old may be used, and the fault stands. */
int64_t old_reads_age(const struct worker_context *worker_context, const struct call *call, enum fault fault);

/* After documents_newest returned `fault` for these names: as it, or, if the call accepts that, with copies
 * of that age; then is_by_old of the call is set. */
MUST_USE enum fault old_reads_settle(const struct worker_context *worker_context, struct call *call, int ns,
                                     enum fault fault, const struct document_name *names, size_t count,
                                     const struct document **documents_r);

#endif
