/* signed_text: texts that clients keep and send back: cursors, tokens, ids of events.  Signing binds such a
 * text to its question and to the namespace's secret, and encrypts it.  A client cannot read in it what
 * concerns others (numbers of transactions are those of all databases of a cluster) and cannot forge one.  A
 * text that was altered, or belongs to another question, is refused.  It grants nothing: access is checked at
 * each request.
 *
 * With FUZZING_BUILD_MODE_UNSAFE_FOR_PRODUCTION a signed text is "!" and the payload, so that fuzzers reach
 * the code that reads payloads. */
#ifndef STAMPD_OPERATION_SIGNED_TEXT_H
#define STAMPD_OPERATION_SIGNED_TEXT_H

#include "base/arena.h"
#include "base/builder.h"

/* Appends a part of a question so that different lists of parts never give the same text. */
void signed_text_add_part(struct builder *question, struct bytes part);

/* Signs the payload with the secret of the namespace: letters, digits, "-" and "_", in the arena.  The result
 * differs each time. */
struct bytes signed_text_make(struct arena *arena, struct bytes secret, struct bytes question,
                              struct bytes payload);
/* Recovers the payload, in the arena; false: it was not signed for this question with this secret. */
MUST_USE bool signed_text_read(struct arena *arena, struct bytes secret, struct bytes question,
                               struct bytes text, struct bytes *payload_r);

#endif
