/* password: digests of passwords by Argon2id (RFC 9106), behind libargon2.
 *
 * A digest is a text that names its parameters and its random salt.  Computing one takes 19 MiB and about 25
 * ms of a processor, on purpose: call it only inside a share of the workers (segment/counts/hashers.h). */
#ifndef STAMPD_EDGE_CRYPTO_PASSWORD_H
#define STAMPD_EDGE_CRYPTO_PASSWORD_H

#include "base/base.h"
#include "base/bytes.h"

enum { PASSWORD_DIGEST_MOST = 128 };

/* Ends the process when memory runs out. */
void password_digest(struct bytes password, char digest_r[PASSWORD_DIGEST_MOST]);
/* Does the digest, NUL-terminated, belong to the password?  False also if the text is no digest. */
bool password_is(struct bytes password, const char *digest);
/* A digest that belongs to no password: comparing with it takes the time of a real one. */
const char *password_of_nobody(void);

#endif
