/* password: libargon2, and the parameters. */
#include "edge/crypto/password.h"

#include <argon2.h>

#include "base/log.h"
#include "edge/crypto/crypto.h"

/* What OWASP recommends for Argon2id (Password Storage Cheat Sheet): 19 MiB, 2 passes, 1 lane. */
enum { MEMORY_KIB = 19456, PASSES = 2, LANES = 1, SALT_BYTES = 16, DIGEST_BYTES = 32 };

/* Digests with other parameters are none of ours: what they would cost is unknown. */
#define PARAMETERS "$argon2id$v=19$m=19456,t=2,p=1$"

void password_digest(struct bytes password, char digest_r[PASSWORD_DIGEST_MOST])
{
    unsigned char salt[SALT_BYTES];
    crypto_random(salt, sizeof salt);
    int problem = argon2id_hash_encoded(PASSES, MEMORY_KIB, LANES, password.data, password.size, salt,
                                        sizeof salt, DIGEST_BYTES, digest_r, PASSWORD_DIGEST_MOST);
    if (problem != ARGON2_OK)
        log_fatal("cannot compute the digest of a password: %s", argon2_error_message(problem));
}

bool password_is(struct bytes password, const char *digest)
{
    if (strncmp(digest, PARAMETERS, sizeof PARAMETERS - 1) != 0 || strlen(digest) >= PASSWORD_DIGEST_MOST)
        return false;
    int problem = argon2id_verify(digest, password.data, password.size);
    if (problem == ARGON2_MEMORY_ALLOCATION_ERROR)
        log_fatal("cannot compute the digest of a password: %s", argon2_error_message(problem));
    return problem == ARGON2_OK;
}

const char *password_of_nobody(void)
{
    return PARAMETERS "AAAAAAAAAAAAAAAAAAAAAA$AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA";
}
