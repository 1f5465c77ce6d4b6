/* keyed_digest: digests that are stored and compared, which nobody can compute without a key.  Whoever has a
 * dump of an encrypted namespace could confirm guesses of what a plain digest was computed from. */
#ifndef STAMPD_OPERATION_KEYED_DIGEST_H
#define STAMPD_OPERATION_KEYED_DIGEST_H

#include "operation/attempt.h"

/* The HMAC-SHA256 of a text of this kind, 64 hexadecimal digits, in the arena: of an encrypted namespace
 * under its first data key, of others under the secret that signs cursors.  The same text of another kind, or
 * of another namespace, has another digest. */
MUST_USE enum fault keyed_digest(struct attempt *attempt, const char *kind, struct bytes text,
                                 struct bytes *digest_r);

#endif
