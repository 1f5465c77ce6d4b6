/* tls: TLS 1.2 and 1.3 on non-blocking sockets, behind OpenSSL.
 *
 * No call waits.  There is no session resumption, no renegotiation and no compression. */
#ifndef STAMPD_EDGE_CRYPTO_TLS_H
#define STAMPD_EDGE_CRYPTO_TLS_H

#include "base/base.h"

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

#endif
