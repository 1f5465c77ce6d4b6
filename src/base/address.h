/* address: classifies IP addresses (public, loopback, network) and identifies the client behind one.
 *
 * Used for requests to addresses given by clients, which must not reach hosts that only this server can
 * reach, and for per-client limits. */
#ifndef STAMPD_BASE_ADDRESS_H
#define STAMPD_BASE_ADDRESS_H

#include <sys/socket.h>

#include "base/base.h"
#include "base/bytes.h"

/* Is the address routed on the internet?  An IPv6 address that stands for an IPv4 address is judged by the
 * latter.  Other address families are not public. */
bool address_is_public(const struct sockaddr *address);
bool address_is_loopback(const struct sockaddr *address);

/* The client at an address in text form, for per-client limits: the whole IPv4 address, or the first 64 bits
 * of an IPv6 address, the smallest network that a customer gets.  Different clients have different numbers.
 * 0: not an address. */
uint64_t address_client(struct bytes text);
/* The site of such a client: the first 48 bits of an IPv6 address, the largest network that a customer
 * usually gets; of an IPv4 address the client itself. */
uint64_t address_site(uint64_t client);
/* Is it an IPv4 or IPv6 address, or a network as ADDRESS/BITS? */
bool address_is_network(struct bytes text);

#endif
