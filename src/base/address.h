/* address: whom an internet address belongs to: the whole world, this host, or a network of its own.
 *
 * For requests to addresses that strangers name: they must not reach what only we can reach. */
#ifndef STAMPD_BASE_ADDRESS_H
#define STAMPD_BASE_ADDRESS_H

#include <sys/socket.h>

#include "base/base.h"

/* Is it one of those that are routed in the internet?  Those that stand for an address of version 4 are
 * judged as that; what is neither version 4 nor 6 is not. */
bool address_is_public(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);

#endif
