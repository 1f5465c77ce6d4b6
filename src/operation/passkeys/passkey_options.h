/* passkey_options: what a page passes to its browser: the JSON forms of PublicKeyCredentialCreationOptions
 * and PublicKeyCredentialRequestOptions, in the answer's member `options`. */
#ifndef STAMPD_OPERATION_PASSKEYS_PASSKEY_OPTIONS_H
#define STAMPD_OPERATION_PASSKEYS_PASSKEY_OPTIONS_H

#include "operation/passkeys/passkey_challenge.h"

/* For a new passkey of the account, or (`draft` NULL) of the one that a registration makes; an authenticator
 * that has one already makes no second. */
MUST_USE enum fault passkey_options_write_new(struct attempt *attempt, enum passkey_purpose purpose,
                                              struct bytes id, struct bytes name, const struct draft *draft);
/* For a signature by a passkey of the account; `draft` NULL, for a login: of any, whose list is disclosed to
 * nobody. */
MUST_USE enum fault passkey_options_write(struct attempt *attempt, enum passkey_purpose purpose,
                                          struct bytes id, const struct draft *draft);

#endif
