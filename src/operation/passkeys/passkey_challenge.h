/* passkey_challenge: challenges for authenticators: signed texts (operation/signed_text.h) that the server
 * does not store.
 *
 * A challenge is of one namespace, purpose and account, and expires after 5 to 6 minutes.  The account
 * remembers those that it has used (model/account/passkey.h), in the commit that they lead to: each is used
 * once, on whichever host. */
#ifndef STAMPD_OPERATION_PASSKEYS_PASSKEY_CHALLENGE_H
#define STAMPD_OPERATION_PASSKEYS_PASSKEY_CHALLENGE_H

#include "operation/accounts/account_gate.h"

enum passkey_purpose {
    PASSKEY_FOR_LOGIN,    /* of nobody's account yet */
    PASSKEY_FOR_REGISTER, /* a new account, whose id the challenge holds */
    PASSKEY_FOR_ADDING,   /* one more key of the account */
    PASSKEY_FOR_PROOF     /* the account confirms a change */
};

struct passkey_challenge {
    struct bytes text;    /* in base64url: as it is sent and comes back */
    int64_t issued;       /* milliseconds since 1970 */
    struct bytes account; /* of PASSKEY_FOR_REGISTER: the id of the account to make */
};

/* A new one; `account`: whose it is, NO_BYTES for a login. */
MUST_USE enum fault passkey_challenge_make(struct attempt *attempt, enum passkey_purpose purpose,
                                           struct bytes account, struct bytes *text_r);
/* Was it made for this, and has it not expired?  `account`: as above, NO_BYTES also for a registration. */
MUST_USE enum fault passkey_challenge_read(struct attempt *attempt, enum passkey_purpose purpose,
                                           struct bytes account, struct bytes text,
                                           struct passkey_challenge *challenge_r, bool *is_ours_r);
/* Marks it as used in the account; false: it was used before. */
MUST_USE bool passkey_challenge_use(struct attempt *attempt, struct draft *account,
                                    const struct passkey_challenge *challenge);

#endif
