/* account_address: confirmed addresses.  Login/address <SHA-256 of the address in lower case> names the
 * account that has confirmed an address last; no name of an account has a blank. */
#ifndef STAMPD_OPERATION_ACCOUNTS_ACCOUNT_ADDRESS_H
#define STAMPD_OPERATION_ACCOUNTS_ACCOUNT_ADDRESS_H

#include "operation/accounts/account_gate.h"

struct document_name account_address_name(struct attempt *attempt, struct bytes address);
/* The account has confirmed the address; it no longer has it. */
MUST_USE enum fault account_address_take(struct attempt *attempt, struct bytes address, struct bytes id);
MUST_USE enum fault account_address_leave(struct attempt *attempt, struct bytes address, struct bytes id);

#endif
