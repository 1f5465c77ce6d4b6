/* versions_after: the versions of an operation's documents after its commit, for the answer of its afterwork,
 * also when a stored answer is sent again under an Idempotency-Key. */
#ifndef STAMPD_OPERATION_SYNC_VERSIONS_AFTER_H
#define STAMPD_OPERATION_SYNC_VERSIONS_AFTER_H

#include "operation/attempt.h"

/* After work: recorded in the attempt, for all documents that it fetched. */
MUST_USE enum fault versions_after_note(struct attempt *attempt);
/* The text that is stored with the answer, and its parser.  False: it is not such a text. */
struct bytes versions_after_pack(const struct attempt *attempt);
MUST_USE bool versions_after_unpack(struct attempt *attempt, struct bytes text);
/* In afterwork: the version of the document after the commit, 0: it does not exist.  False: work did not
 * fetch it, or a release that did not record it stored the answer. */
bool versions_after_find(const struct attempt *attempt, struct document_name name, int64_t *version_r);

#endif
