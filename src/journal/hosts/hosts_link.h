/* hosts_link: kept connections between hosts, over TLS: each host connects to all others, and sends on the
 * connections that it has made.
 *
 * A host is recognised by the fingerprint of its key: whoever shows another key than those of the list is
 * refused after the handshake, and a message counts only under the number of the key's host.  What a peer
 * does not take is kept up to a bound for each peer, and then dropped, as if the peer could not be reached.
 * One look at a connection reads one TLS record.  Strangers are limited in number and in handshakes, by their
 * address; the addresses of the list have a rate of their own. */
#ifndef STAMPD_JOURNAL_HOSTS_HOSTS_LINK_H
#define STAMPD_JOURNAL_HOSTS_HOSTS_LINK_H

#include "edge/crypto/tls.h"
#include "edge/events.h"
#include "journal/hosts/hosts_beat.h"

/* Bytes of the content of a message.  Hosts agree on less (hosts.c), but a record may have been stored before
 * a host with a smaller limit came. */
enum { HOSTS_CONTENT_MOST = RECORDS_CONTENT_MOST + 1 };

struct hosts_links;

struct hosts_links_owner {
    /* The number of the member with this key; 0: there is none. */
    uint32_t (*number)(void *context, const char *fingerprint);
    void (*received)(void *context, const struct cluster_message *message);
    void *context;
};

/* Listens at cluster_listen, with the key in cluster_key_file, whose fingerprint it returns.  False: one line
 * in `problem`. */
MUST_USE bool hosts_links_open(struct hosts_links **links_r, struct events *events,
                               const struct settings *settings, const struct hosts_links_owner *owner,
                               char fingerprint_r[CRYPTO_SHA256_HEX + 1], char *problem, size_t problem_size);
void hosts_links_close(struct hosts_links *links); /* NULL is allowed */
/* The members that there are from now on; connections to others end. */
void hosts_links_follow(struct hosts_links *links, const struct hosts_member *members, uint32_t count,
                        uint32_t self);
/* Drops it if the member is not known, or does not take what it was sent. */
void hosts_links_send(struct hosts_links *links, const struct cluster_message *message);
/* How many of the other members are connected now. */
uint32_t hosts_links_connected(const struct hosts_links *links);

#endif
