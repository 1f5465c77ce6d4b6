/* address: whom an internet address belongs to: the whole world, this host, a network of its own, one client.
 *
 * For requests to addresses that strangers name, which must not reach what only we can reach; and for the
 * limits of what one client may take. */
#ifndef STAMPD_BASE_ADDRESS_H
#define STAMPD_BASE_ADDRESS_H

#include <sys/socket.h>

#include "base/base.h"
#include "base/bytes.h"

/* Is it one of those that are routed in the internet?  Those that stand for an address of version 4 are
 * judged as that; what is neither version 4 nor 6 is not. */
bool address_is_public(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);

/* The client at an address as text, for shares by client: an address of version 4 whole, one of version 6 by
 * its first 64 bits, the least that one customer is given.  Different clients have different numbers.  0: no
 * address. */
uint64_t address_client(struct bytes text);
/* Is it an address of version 4 or 6, or a network as ADDRESS/BITS? */
bool address_is_network(struct bytes text);

#endif
