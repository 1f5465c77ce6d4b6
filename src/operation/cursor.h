/* cursor: where the next page of a list or search begins, for a caller to which rules apply: after the last
 * row read, which it may not be allowed to know.  Encrypted, of one length whatever the row, and bound to the
 * caller's account and to the question. */
#ifndef STAMPD_OPERATION_CURSOR_H
#define STAMPD_OPERATION_CURSOR_H

#include "operation/attempt.h"

/* A text in the arena.  `key` may be empty. */
MUST_USE enum fault cursor_make(struct attempt *attempt, struct bytes question, struct bytes id,
                                struct bytes key, struct bytes *text_r);
/* is_ours_r false: it is of another caller or question, or not of this server. */
MUST_USE enum fault cursor_read(struct attempt *attempt, struct bytes question, struct bytes text,
                                struct bytes *id_r, struct bytes *key_r, bool *is_ours_r);

#endif
