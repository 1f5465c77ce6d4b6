/* seal: texts that clients keep and bring back: cursors, tokens, ids of events.  A seal encrypts such a text
 * and ties it to the question it was the answer to and to the namespace's secret.  So nobody reads in it what
 * concerns others (numbers of transactions are those of all databases of a cluster), nobody makes one, and
 * one that was altered, or belongs to another question, is refused.  It grants nothing: rights are checked at
 * each request.
 *
 * With FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION a sealed text is "!" and the payload, so that fuzzers reach
 * what reads payloads. */
#ifndef STAMPD_OPERATION_SEAL_H
#define STAMPD_OPERATION_SEAL_H

#include "base/arena.h"
#include "base/bytes.h"

/* Appends a part of a question so that no two lists of parts give the same text. */
void seal_add_part(struct builder *question, struct bytes part);

/* The payload, sealed with the secret of the namespace: letters, digits, "-" and "_", in the arena.  Never
 * the same twice. */
struct bytes seal_close(struct arena *arena, struct bytes secret, struct bytes question,
                        struct bytes payload);
/* Finds the payload, in the arena; false: it was not sealed for this question with this secret. */
MUST_USE bool seal_open(struct arena *arena, struct bytes secret, struct bytes question, struct bytes sealed,
                        struct bytes *payload_r);

#endif
