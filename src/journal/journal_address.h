/* journal_address: an address in numbers and a port, as settings and the list of hosts have them. */
#ifndef STAMPD_JOURNAL_JOURNAL_ADDRESS_H
#define STAMPD_JOURNAL_JOURNAL_ADDRESS_H

#include <netdb.h>

#include "base/base.h"

/* "ADDRESS:PORT" or "[ADDRESS]:PORT"; to be freed by freeaddrinfo. */
MUST_USE bool journal_address_resolve(const char *text, struct addrinfo **found_r);

#endif
