/* tls: OpenSSL's connections, which read and write their socket by themselves. */
#include "edge/crypto/tls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "edge/crypto/crypto_private.h"

static const char CIPHERS_OF_1_2[] = "ECDHE+AESGCM:ECDHE+CHACHA20";

struct tls {
    SSL *ssl;
    bool is_shaken, is_broken;
    const char *why; /* NULL: nothing has gone wrong */
};

/* OpenSSL would ask for the passphrase on the terminal. */
static int refuse_passphrase(char *text, int size, int for_writing, void *context)
{
    (void)text, (void)size, (void)for_writing, (void)context;
    return -1;
}

static SSL_CTX *context_of(const struct tls_server *server)
{
    return (SSL_CTX *)server;
}

static SSL_CTX *create_context(const SSL_METHOD *method)
{
    SSL_CTX *context = SSL_CTX_new(method);
    crypto_must(context != NULL);
    crypto_must(SSL_CTX_set_min_proto_version(context, TLS1_2_VERSION) == 1);
    crypto_must(SSL_CTX_set_cipher_list(context, CIPHERS_OF_1_2) == 1);
    SSL_CTX_set_options(context, SSL_OP_NO_RENEGOTIATION | SSL_OP_NO_COMPRESSION | SSL_OP_NO_TICKET |
                                     SSL_OP_CIPHER_SERVER_PREFERENCE | SSL_OP_CLEANSE_PLAINTEXT);
    crypto_must(SSL_CTX_set_num_tickets(context, 0) == 1);
    SSL_CTX_set_session_cache_mode(context, SSL_SESS_CACHE_OFF);
    SSL_CTX_set_mode(context, SSL_MODE_ENABLE_PARTIAL_WRITE | SSL_MODE_ACCEPT_MOVING_WRITE_BUFFER |
                                  SSL_MODE_RELEASE_BUFFERS);
    /* A client could keep a call busy by records without data. */
    SSL_CTX_clear_mode(context, SSL_MODE_AUTO_RETRY);
    SSL_CTX_set_default_passwd_cb(context, refuse_passphrase);
    return context;
}

/* The system's reason for a file that cannot be opened, which OpenSSL reports first. */
static const char *find_reason(void)
{
    unsigned long first = ERR_peek_error();
    const char *reason = ERR_SYSTEM_ERROR(first) ? strerror(ERR_GET_REASON(first))
                                                 : ERR_reason_error_string(ERR_peek_last_error());
    return reason ? reason : "cannot be read";
}

bool tls_server_create(struct tls_server **server_r, const char *certificate_path, const char *key_path,
                       char *problem, size_t problem_size)
{
    ERR_clear_error();
    SSL_CTX *context = create_context(TLS_server_method());
    const char *path = certificate_path;
    bool is_done = SSL_CTX_use_certificate_chain_file(context, path) == 1;
    if (is_done) {
        path = key_path;
        is_done = SSL_CTX_use_PrivateKey_file(context, path, SSL_FILETYPE_PEM) == 1 &&
                  SSL_CTX_check_private_key(context) == 1;
    }
    if (!is_done) {
        snprintf(problem, problem_size, "%s: %s", path, find_reason());
        SSL_CTX_free(context);
        context = NULL;
    }
    ERR_clear_error();
    *server_r = (struct tls_server *)context;
    return is_done;
}

void tls_server_destroy(struct tls_server *server)
{
    if (server)
        SSL_CTX_free(context_of(server));
}

bool tls_client_create(struct tls_client **client_r, const char *ca_path, bool is_insecure, char *problem,
                       size_t problem_size)
{
    ERR_clear_error();
    SSL_CTX *context = create_context(TLS_client_method());
    bool is_done = ca_path ? SSL_CTX_load_verify_file(context, ca_path) == 1
                           : SSL_CTX_set_default_verify_paths(context) == 1;
    if (!is_done) {
        snprintf(problem, problem_size, "%s: %s", ca_path ? ca_path : "the system's authorities",
                 find_reason());
        SSL_CTX_free(context);
        context = NULL;
    } else {
        SSL_CTX_set_verify(context, is_insecure ? SSL_VERIFY_NONE : SSL_VERIFY_PEER, NULL);
    }
    ERR_clear_error();
    *client_r = (struct tls_client *)context;
    return is_done;
}

void tls_client_destroy(struct tls_client *client)
{
    if (client)
        SSL_CTX_free((SSL_CTX *)client);
}

static struct tls *create_tls(SSL_CTX *context, int fd)
{
    struct tls *tls = calloc(1, sizeof *tls);
    crypto_must(tls && (tls->ssl = SSL_new(context)) && SSL_set_fd(tls->ssl, fd) == 1);
    return tls;
}

struct tls *tls_create(struct tls_server *server, int fd)
{
    struct tls *tls = create_tls(context_of(server), fd);
    SSL_set_accept_state(tls->ssl);
    return tls;
}

struct tls *tls_create_client(struct tls_client *client, int fd, const char *host)
{
    struct tls *tls = create_tls((SSL_CTX *)client, fd);
    SSL_set_connect_state(tls->ssl);
    if (X509_VERIFY_PARAM_set1_ip_asc(SSL_get0_param(tls->ssl), host) != 1) { /* it is a name */
        ERR_clear_error();
        crypto_must(SSL_set1_host(tls->ssl, host) == 1);
        crypto_must(SSL_set_tlsext_host_name(tls->ssl, host) == 1);
    }
    return tls;
}

const char *tls_why(const struct tls *tls)
{
    return tls->why ? tls->why : "the connection was closed";
}

void tls_destroy(struct tls *tls)
{
    if (!tls)
        return;
    ERR_clear_error();
    if (tls->is_shaken && !tls->is_broken)
        (void)SSL_shutdown(tls->ssl);
    ERR_clear_error();
    SSL_free(tls->ssl);
    free(tls);
}

/* OpenSSL decides by its queue of errors, which must have been empty before the call. */
static enum tls_outcome outcome_of(struct tls *tls, int result)
{
    if (result > 0)
        return TLS_DONE;
    int error = SSL_get_error(tls->ssl, result);
    long verified = SSL_get_verify_result(tls->ssl);
    tls->why = verified == X509_V_OK || SSL_is_server(tls->ssl)
                   ? ERR_reason_error_string(ERR_peek_last_error())
                   : X509_verify_cert_error_string(verified);
    ERR_clear_error();
    if (error == SSL_ERROR_WANT_READ)
        return TLS_READS;
    if (error == SSL_ERROR_WANT_WRITE)
        return TLS_WRITES;
    tls->is_broken = error != SSL_ERROR_ZERO_RETURN;
    return TLS_ENDED;
}

enum tls_outcome tls_shake(struct tls *tls)
{
    ERR_clear_error();
    enum tls_outcome outcome = outcome_of(tls, SSL_do_handshake(tls->ssl));
    tls->is_shaken = outcome == TLS_DONE;
    return outcome;
}

enum tls_outcome tls_receive(struct tls *tls, char *data, size_t most, size_t *size_r)
{
    *size_r = 0;
    ERR_clear_error();
    return outcome_of(tls, SSL_read_ex(tls->ssl, data, most, size_r));
}

enum tls_outcome tls_send(struct tls *tls, const char *data, size_t size, size_t *size_r)
{
    *size_r = 0;
    ERR_clear_error();
    return outcome_of(tls, SSL_write_ex(tls->ssl, data, size, size_r));
}

/* --- peers --- */

enum { SERIAL_BYTES = 8, VALID_S = 100 * 365 * 86400L };

struct tls_peers {
    SSL_CTX *server, *client;
};

/* Whose key it is decides the owner of the connection, by the fingerprint: a certificate only carries it. */
static int accept_any(X509_STORE_CTX *store, void *context)
{
    (void)store, (void)context;
    return 1;
}

static void write_fingerprint(EVP_PKEY *key, char fingerprint_r[CRYPTO_SHA256_HEX + 1])
{
    unsigned char *text = NULL;
    int size = i2d_PUBKEY(key, &text);
    crypto_must(size > 0);
    crypto_sha256_hex((struct bytes){(const char *)text, (size_t)size}, fingerprint_r);
    OPENSSL_free(text);
}

static X509 *sign_own(EVP_PKEY *key)
{
    X509 *certificate = X509_new();
    unsigned char serial[SERIAL_BYTES];
    const EVP_MD *digest = EVP_PKEY_is_a(key, "ED25519") || EVP_PKEY_is_a(key, "ED448") ? NULL : EVP_sha256();
    crypto_random(serial, sizeof serial);
    serial[0] = (unsigned char)(serial[0] & 0x7f) | 1;
    BIGNUM *number = BN_bin2bn(serial, sizeof serial, NULL);
    crypto_must(certificate && number && BN_to_ASN1_INTEGER(number, X509_get_serialNumber(certificate)));
    BN_free(number);
    X509_NAME *name = X509_get_subject_name(certificate);
    bool is_signed = X509_set_version(certificate, X509_VERSION_3) == 1 &&
                     X509_gmtime_adj(X509_getm_notBefore(certificate), -86400) &&
                     X509_gmtime_adj(X509_getm_notAfter(certificate), VALID_S) &&
                     X509_NAME_add_entry_by_txt(name, "CN", MBSTRING_ASC, (const unsigned char *)"stampd", -1,
                                                -1, 0) == 1 &&
                     X509_set_issuer_name(certificate, name) == 1 && X509_set_pubkey(certificate, key) == 1 &&
                     X509_sign(certificate, key, digest) > 0;
    if (is_signed)
        return certificate;
    X509_free(certificate);
    return NULL;
}

/* NULL: OpenSSL does not accept the key, for example since it is too short. */
static SSL_CTX *create_peer_context(const SSL_METHOD *method, X509 *certificate, EVP_PKEY *key)
{
    SSL_CTX *context = create_context(method);
    crypto_must(SSL_CTX_set_min_proto_version(context, TLS1_3_VERSION) == 1);
    if (SSL_CTX_use_certificate(context, certificate) != 1 || SSL_CTX_use_PrivateKey(context, key) != 1) {
        SSL_CTX_free(context);
        return NULL;
    }
    SSL_CTX_set_verify(context, SSL_VERIFY_PEER | SSL_VERIFY_FAIL_IF_NO_PEER_CERT, NULL);
    SSL_CTX_set_cert_verify_callback(context, accept_any, NULL);
    return context;
}

bool tls_peers_create(struct tls_peers **peers_r, const char *key_path,
                      char fingerprint_r[CRYPTO_SHA256_HEX + 1], char *problem, size_t problem_size)
{
    ERR_clear_error();
    *peers_r = NULL;
    BIO *file = BIO_new_file(key_path, "r");
    EVP_PKEY *key = file ? PEM_read_bio_PrivateKey(file, NULL, refuse_passphrase, NULL) : NULL;
    X509 *certificate = key ? sign_own(key) : NULL;
    SSL_CTX *server = certificate ? create_peer_context(TLS_server_method(), certificate, key) : NULL;
    SSL_CTX *client = server ? create_peer_context(TLS_client_method(), certificate, key) : NULL;
    if (client) {
        struct tls_peers *peers = calloc(1, sizeof *peers);
        crypto_must(peers != NULL);
        *peers = (struct tls_peers){server, client};
        write_fingerprint(key, fingerprint_r);
        *peers_r = peers;
    } else {
        snprintf(problem, problem_size, "%s: %s", key_path, find_reason());
        SSL_CTX_free(server);
    }
    BIO_free(file);
    X509_free(certificate);
    EVP_PKEY_free(key);
    ERR_clear_error();
    return *peers_r != NULL;
}

void tls_peers_destroy(struct tls_peers *peers)
{
    if (!peers)
        return;
    SSL_CTX_free(peers->server);
    SSL_CTX_free(peers->client);
    free(peers);
}

struct tls *tls_create_peer(struct tls_peers *peers, int fd, bool has_called)
{
    struct tls *tls = create_tls(has_called ? peers->client : peers->server, fd);
    if (has_called)
        SSL_set_connect_state(tls->ssl);
    else
        SSL_set_accept_state(tls->ssl);
    return tls;
}

bool tls_peer_fingerprint(const struct tls *tls, char fingerprint_r[CRYPTO_SHA256_HEX + 1])
{
    X509 *certificate = SSL_get1_peer_certificate(tls->ssl);
    EVP_PKEY *key = certificate ? X509_get0_pubkey(certificate) : NULL;
    if (key)
        write_fingerprint(key, fingerprint_r);
    X509_free(certificate);
    ERR_clear_error();
    return key != NULL;
}
