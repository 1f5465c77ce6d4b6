/* put: changes of documents in the commit of another operation: its member `docs`, as of `put`. */
#ifndef STAMPD_OPERATION_DOCUMENTS_PUT_H
#define STAMPD_OPERATION_DOCUMENTS_PUT_H

#include "operation/attempt.h"

/* The call of the put: its param has the member docs alone, and no files.  NULL: param has none. */
struct call *put_beside_find(const struct attempt *attempt);
/* May the caller change documents, and can they be stored?  `put` NULL: nothing is asked. */
MUST_USE enum fault put_beside_check(struct attempt *attempt, struct call *put);
/* In work: applies the changes, and leaves {"v":…} from `out` on, to which members may be added. */
MUST_USE enum fault put_beside_work(struct attempt *attempt, struct call *put);
/* In afterwork: completes what it has left, with the members that were added. */
MUST_USE enum fault put_beside_afterwork(struct attempt *attempt);
/* Did work leave what put_beside_afterwork completes?  Of a stored answer, too. */
bool put_beside_is_left(const struct attempt *attempt);

#endif
