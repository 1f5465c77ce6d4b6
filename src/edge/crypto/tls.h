/* tls: TLS 1.2 and 1.3 on non-blocking sockets, behind OpenSSL.
 *
 * No call waits.  There is no session resumption, no renegotiation and no compression. */
#ifndef STAMPD_EDGE_CRYPTO_TLS_H
#define STAMPD_EDGE_CRYPTO_TLS_H

#include "base/base.h"
#include "edge/crypto/crypto.h"

/* What all connections of a server have in common: its certificate.  Its connections may outlive it. */
struct tls_server;
/* A file with the certificate and those that lead to its authority, and a file with its key, both PEM; a key
 * with a passphrase is refused.  False: one line in `problem`. */
MUST_USE bool tls_server_create(struct tls_server **server_r, const char *certificate_path,
                                const char *key_path, char *problem, size_t problem_size);
void tls_server_destroy(struct tls_server *server); /* NULL is allowed */

enum tls_outcome {
    TLS_DONE,
    TLS_READS,  /* call it again when the socket is readable */
    TLS_WRITES, /* when it is writable */
    TLS_ENDED   /* by the other side, or by an error: only tls_destroy may follow */
};

/* What the connections of a client have in common: whom it trusts. */
struct tls_client;
/* `ca_path`: authorities, PEM; NULL: those of the system.  `is_insecure`: any certificate will do.  False:
 * one line in `problem`. */
MUST_USE bool tls_client_create(struct tls_client **client_r, const char *ca_path, bool is_insecure,
                                char *problem, size_t problem_size);
void tls_client_destroy(struct tls_client *client); /* NULL is allowed */

struct tls;
/* The descriptor is borrowed. */
struct tls *tls_create(struct tls_server *server, int fd) __attribute__((returns_nonnull));
/* `host`: a name or an address, which the certificate must have. */
struct tls *tls_create_client(struct tls_client *client, int fd, const char *host)
    __attribute__((returns_nonnull));
/* Sends that the connection ends, if the socket takes it at once. */
void tls_destroy(struct tls *tls); /* NULL is allowed */

/* The handshake; tls_receive and tls_send may follow when it is done. */
MUST_USE enum tls_outcome tls_shake(struct tls *tls);
/* Why a handshake has ended, a static text, also of a certificate that is not accepted. */
const char *tls_why(const struct tls *tls) __attribute__((returns_nonnull));
/* Reads one record at most: with room for TLS_RECORD_BYTES nothing that has arrived stays in `tls`, so the
 * socket is readable as long as there is more. */
enum { TLS_RECORD_BYTES = 16384 };
MUST_USE enum tls_outcome tls_receive(struct tls *tls, char *data, size_t most, size_t *size_r);
/* Sends some of it.  After TLS_READS or TLS_WRITES the same bytes must be sent, from any address. */
MUST_USE enum tls_outcome tls_send(struct tls *tls, const char *data, size_t size, size_t *size_r);

/* Hosts that know each other by their keys: each shows a certificate that it has made of its own key, and
 * whoever has the connection decides by the fingerprint of the other's key, after the handshake: SHA-256 of
 * the public key in DER (SubjectPublicKeyInfo).  TLS 1.3. */
struct tls_peers;
/* `key_path`: a private key in PEM, without a passphrase.  False: one line in `problem`. */
MUST_USE bool tls_peers_create(struct tls_peers **peers_r, const char *key_path,
                               char fingerprint_r[CRYPTO_SHA256_HEX + 1], char *problem, size_t problem_size);
void tls_peers_destroy(struct tls_peers *peers); /* NULL is allowed; connections may outlive it */
/* `has_called`: this host has connected to the other one. */
struct tls *tls_create_peer(struct tls_peers *peers, int fd, bool has_called)
    __attribute__((returns_nonnull));
/* Of a connection between peers whose handshake is done.  False: the other one has shown no key. */
MUST_USE bool tls_peer_fingerprint(const struct tls *tls, char fingerprint_r[CRYPTO_SHA256_HEX + 1]);

#endif
