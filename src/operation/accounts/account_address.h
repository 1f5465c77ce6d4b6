/* account_address: confirmed addresses.  Login/address <HMAC-SHA256 of the address in lower case> names the
 * account that has confirmed an address last; no name of an account has a blank.
 *
 * The key of the HMAC is the content of Login/address key, which the first confirmed address of a namespace
 * creates.  So it is encrypted where contents are, a dump confirms no guess of an address there, and an
 * archive has the key of its ids. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_ADDRESS_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_ADDRESS_H

#include "operation/accounts/account_gate.h"

/* The document of an address; of one that nobody can have confirmed, a document that does not exist. */
MUST_USE enum fault account_address_name(struct attempt *attempt, struct bytes address,
                                         struct document_name *name_r);
/* The account has confirmed the address; it no longer has it. */
MUST_USE enum fault account_address_take(struct attempt *attempt, struct bytes address, struct bytes id);
MUST_USE enum fault account_address_leave(struct attempt *attempt, struct bytes address, struct bytes id);

#endif
