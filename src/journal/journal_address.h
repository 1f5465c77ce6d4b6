/* journal_address: an address in numbers and a port, as settings and the list of hosts have them. */
#ifndef STAMPD_JOURNAL_JOURNAL_ADDRESS_H
#define STAMPD_JOURNAL_JOURNAL_ADDRESS_H

#include <netdb.h>

#include "base/base.h"

enum { JOURNAL_ADDRESS_MOST = 64 }; /* bytes of an address as text, with the zero at its end */

/* "ADDRESS:PORT" or "[ADDRESS]:PORT"; to be freed by freeaddrinfo. */
MUST_USE bool journal_address_resolve(const char *text, struct addrinfo **found_r);
/* Listens there, without blocking.  -1: one line in `problem`, which begins with the setting. */
MUST_USE int journal_address_listen(const char *setting, const char *text, int backlog, char *problem,
                                    size_t problem_size);
/* Who is connected: the address as text, and the client that it stands for (base/address.h).  False: it is
 * none in numbers. */
MUST_USE bool journal_address_client(const struct sockaddr *address, socklen_t size,
                                     char text_r[JOURNAL_ADDRESS_MOST], uint64_t *client_r);

#endif
