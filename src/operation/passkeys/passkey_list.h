/* passkey_list: passkeys of an account as they are listed, for the account itself and for the administrator.
 */
#ifndef STAMPD_OPERATION_PASSKEYS_PASSKEY_LIST_H
#define STAMPD_OPERATION_PASSKEYS_PASSKEY_LIST_H

#include "operation/passkeys/passkey_credential.h"

enum { PASSKEY_LISTED = 16 }; /* characters of an item's key, as a passkey is named in the list */

/* Appends the name of the passkey whose item has this key. */
void passkey_list_write_name(struct builder *body, struct bytes key);
/* Appends [{"passkey","name","created","used","synced"}…]. */
void passkey_list_write(struct attempt *attempt, const struct draft *account);
/* The passkey of this name; NULL: there is none. */
const struct item *passkey_list_find(const struct draft *account, struct bytes listed);
/* Removes the one of this name, or all of them (NO_BYTES); returns how many. */
size_t passkey_list_remove(struct draft *account, struct bytes listed);

#endif
