/* passkey_credential: what a browser's `PublicKeyCredential.toJSON()` gives, verified and kept.
 *
 * A refusal is FAULT_SKEY with status 401, and does not depend on whether an account exists, or has a passkey
 * that is not the one that was used. */
#ifndef STAMPD_OPERATION_PASSKEYS_PASSKEY_CREDENTIAL_H
#define STAMPD_OPERATION_PASSKEYS_PASSKEY_CREDENTIAL_H

#include "model/account/passkey.h"
#include "operation/passkeys/passkey_challenge.h"

/* A credential as it was sent, not verified. */
struct passkey_credential {
    struct bytes id;                            /* decoded, like those below */
    struct bytes client_data, attestation;      /* of a new one */
    struct bytes authenticator_data, signature; /* of one that is used */
    struct bytes account;                       /* the user handle: an account's id; empty: none was sent */
};
/* Reads the `member` of `object`, by its form alone; absent: is_given_r is false. */
MUST_USE enum fault passkey_credential_read(const struct reader *reader, const struct json *object,
                                            const char *member, enum passkey_ceremony ceremony,
                                            struct passkey_credential *credential_r, bool *is_given_r);
/* The name of a passkey for the list; absent: NO_BYTES. */
MUST_USE enum fault passkey_credential_read_name(const struct reader *reader, const struct json *object,
                                                 const char *member, struct bytes *name_r);

/* Verifies a new passkey, by itself; for a registration `account` is NO_BYTES. */
MUST_USE enum fault passkey_credential_verify(struct attempt *attempt, enum passkey_purpose purpose,
                                              struct bytes account,
                                              const struct passkey_credential *credential,
                                              struct webauthn_credential *verified_r,
                                              struct passkey_challenge *challenge_r);
/* Adds a verified passkey to the account.  FAULT_AUNIQUE: it has it; FAULT_SCLOSED: it has enough. */
MUST_USE enum fault passkey_credential_add(struct attempt *attempt, struct draft *account,
                                           const struct webauthn_credential *credential, struct bytes name,
                                           const struct passkey_challenge *challenge);
/* Is the credential a passkey of the account, used now?  Marks its challenge as used, and counts its
 * signature. `id`: of the account, for PASSKEY_FOR_PROOF; NO_BYTES for a login. */
MUST_USE enum fault passkey_credential_use(struct attempt *attempt, enum passkey_purpose purpose,
                                           struct bytes id, struct draft *account,
                                           const struct passkey_credential *credential);
/* The refusal of a passkey: the same for every reason that concerns an account. */
enum fault passkey_credential_refuse(struct attempt *attempt);
/* The refusal of a challenge that was used before. */
enum fault passkey_credential_refuse_challenge(struct attempt *attempt);

/* The account's next passkey after the item of this key, "": the first; NULL: there is none. */
const struct item *passkey_credential_next(const struct draft *account, struct bytes after);
size_t passkey_credential_count(const struct draft *account);
/* The key of the item of a credential. */
struct bytes passkey_credential_key(struct attempt *attempt, struct bytes id);

#endif
