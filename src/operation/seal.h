/* seal: texts that clients keep and bring back: cursors, tokens.  A seal ties such a text to the question it
 * was the answer to, so one that was altered, or belongs to another question, is refused.  It is no secret:
 * it protects the client from its own mistakes, not the server, which checks rights at each request. */
#ifndef STAMPD_OPERATION_SEAL_H
#define STAMPD_OPERATION_SEAL_H

#include "base/arena.h"
#include "base/bytes.h"

/* Appends a part of a question so that no two lists of parts give the same text. */
void seal_add_part(struct builder *question, struct bytes part);

/* The payload (UTF-8), sealed, in the arena. */
struct bytes seal_close(struct arena *arena, struct bytes question, struct bytes payload);
/* Finds the payload, within `sealed`; false: it was not sealed for this question. */
MUST_USE bool seal_open(struct bytes question, struct bytes sealed, struct bytes *payload_r);

#endif
