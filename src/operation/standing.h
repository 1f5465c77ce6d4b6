/* standing: how the documents of an operation stand after its commit, for what its afterwork answers, also
 * when that answer is given again under an Idempotency-Key. */
#ifndef STAMPD_OPERATION_STANDING_H
#define STAMPD_OPERATION_STANDING_H

#include "operation/registry.h"

/* After work: into the attempt, of all documents that it fetched. */
MUST_USE enum fault standing_note(struct attempt *attempt);
/* As a text that is kept with the answer; and back.  False: it is no such text. */
struct bytes standing_pack(const struct attempt *attempt);
MUST_USE bool standing_unpack(struct attempt *attempt, struct bytes text);
/* In afterwork: the version that the document has since the commit, 0: it does not exist.  False: work did
 * not fetch it, or the answer was kept by a release that did not note it. */
bool standing_find(const struct attempt *attempt, struct name name, int64_t *version_r);

#endif
