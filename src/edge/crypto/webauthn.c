/* webauthn: libfido2's keys, credentials and assertions, within the form that browsers send. */
#include "edge/crypto/webauthn.h"

#include "config.h"

#ifdef HAVE_PASSKEYS

#include <fido.h>
#include <fido/eddsa.h>
#include <fido/es256.h>
#include <fido/rs256.h>

#include "base/coding/cbor.h"
#include "base/coding/hex.h"
#include "base/log.h"
#include "edge/crypto/crypto.h"

/* Authenticator data: the digest of the relying party's id, flags, a counter; then, as the flags say, a
 * credential and a map of extensions. */
enum { RP_DIGEST = 32, FLAGS_AT = 32, HEAD_SIZE = 37, AAGUID_SIZE = 16 };
enum {
    FLAG_PRESENT = 0x01,
    FLAG_VERIFIED = 0x04,
    FLAG_MAY_BACKUP = 0x08,
    FLAG_BACKED_UP = 0x10,
    FLAG_CREDENTIAL = 0x40,
    FLAG_EXTENSIONS = 0x80
};

bool webauthn_is_there(void)
{
    return true;
}

static void webauthn_begin(void)
{
    static bool has_begun;
    if (!has_begun)
        fido_init(0);
    has_begun = true;
}

static void *must(void *object)
{
    if (!object)
        log_fatal("out of memory");
    return object;
}

static const unsigned char *octets(struct bytes bytes)
{
    return (const unsigned char *)(bytes.data ? bytes.data : "");
}

/* --- keys --- */

enum { ES256_SIZE = 64, EDDSA_SIZE = 32, RS256_SIZE = WEBAUTHN_KEY_MOST }; /* bytes of libfido2's forms */

struct fido_key {
    es256_pk_t *es256;
    eddsa_pk_t *eddsa;
    rs256_pk_t *rs256;
    const void *any; /* the one that there is; NULL: the bytes are no key */
};

static void open_key(const struct webauthn_key *key, struct fido_key *opened)
{
    struct bytes raw = key->key;
    *opened = (struct fido_key){0};
    if (key->algorithm == WEBAUTHN_ES256 && raw.size == ES256_SIZE) {
        opened->es256 = must(es256_pk_new());
        opened->any = es256_pk_from_ptr(opened->es256, raw.data, raw.size) ? NULL : opened->es256;
    } else if (key->algorithm == WEBAUTHN_EDDSA && raw.size == EDDSA_SIZE) {
        opened->eddsa = must(eddsa_pk_new());
        opened->any = eddsa_pk_from_ptr(opened->eddsa, raw.data, raw.size) ? NULL : opened->eddsa;
    } else if (key->algorithm == WEBAUTHN_RS256 && raw.size == RS256_SIZE) {
        opened->rs256 = must(rs256_pk_new());
        opened->any = rs256_pk_from_ptr(opened->rs256, raw.data, raw.size) ? NULL : opened->rs256;
    }
}

static void close_key(struct fido_key *opened)
{
    es256_pk_free(&opened->es256);
    eddsa_pk_free(&opened->eddsa);
    rs256_pk_free(&opened->rs256);
}

bool webauthn_is_key(const struct webauthn_key *key)
{
    struct fido_key opened;
    webauthn_begin();
    open_key(key, &opened);
    EVP_PKEY *pkey = NULL; /* OpenSSL checks that the point is on its curve */
    if (opened.any)
        pkey = opened.es256   ? es256_pk_to_EVP_PKEY(opened.es256)
               : opened.eddsa ? eddsa_pk_to_EVP_PKEY(opened.eddsa)
                              : rs256_pk_to_EVP_PKEY(opened.rs256);
    bool is_one = pkey != NULL;
    EVP_PKEY_free(pkey);
    close_key(&opened);
    return is_one;
}

/* The first point of P-256 whose x is the SHA-256 of "stampd: a key of nobody " and a number: whoever knew
 * its private key would have solved a discrete logarithm. */
struct webauthn_key webauthn_key_of_nobody(void)
{
    return (struct webauthn_key){.algorithm = WEBAUTHN_ES256,
                                 .key = BYTES("\x7d\xbb\xf9\x8a\xe7\x0e\x5a\x79\x20\xf7\x4a\xcd\xe5\xea\x64"
                                              "\x96\x6a\xfe\xd0\x74\xff\xc3\x8e\x9c\x1e\xd4\x78\x59\x69\x6f"
                                              "\x48\xd8\x51\xfd\x65\xbe\x67\xd5\x85\x4f\x10\x31\x83\x86\x2b"
                                              "\x47\x61\x85\xf8\x4d\x46\x8b\xa0\xed\x87\xab\xf1\x9c\x62\x2c"
                                              "\x10\xf5\x66\x46")};
}

/* --- authenticator data --- */

static unsigned flags_of(struct bytes data)
{
    return (unsigned char)data.data[FLAGS_AT];
}

static bool skip_credential(struct bytes *rest)
{
    struct bytes key;
    if (rest->size < AAGUID_SIZE + 2)
        return false;
    const unsigned char *size = (const unsigned char *)rest->data + AAGUID_SIZE;
    size_t id_size = (size_t)size[0] << 8 | size[1], head = AAGUID_SIZE + 2;
    if (rest->size - head < id_size)
        return false;
    *rest = (struct bytes){rest->data + head + id_size, rest->size - head - id_size};
    return cbor_take_item(rest, &key);
}

/* Has it the parts that its flags name, and nothing behind them?  libfido2 does not look behind them. */
static bool is_whole(struct bytes data, bool has_credential)
{
    struct bytes extensions;
    if (data.size < HEAD_SIZE)
        return false;
    unsigned flags = flags_of(data);
    struct bytes rest = {data.data + HEAD_SIZE, data.size - HEAD_SIZE};
    if (((flags & FLAG_CREDENTIAL) != 0) != has_credential || (has_credential && !skip_credential(&rest)) ||
        ((flags & FLAG_EXTENSIONS) && !cbor_take_item(&rest, &extensions)))
        return false;
    return !rest.size;
}

/* What no flags of a real authenticator are: a key that was copied although it may not be. */
static bool are_possible(unsigned flags)
{
    return !(flags & FLAG_BACKED_UP) || (flags & FLAG_MAY_BACKUP);
}

static bool is_of_party(struct bytes data, const char *rp)
{
    char expected[CRYPTO_SHA256_HEX + 1], found[CRYPTO_SHA256_HEX];
    crypto_sha256_hex(bytes_of(rp), expected);
    hex_write((const unsigned char *)data.data, RP_DIGEST, found);
    return memcmp(expected, found, sizeof found) == 0;
}

/* --- credentials --- */

struct attestation {
    struct bytes format, statement, data;
};

static bool read_attestation(struct bytes text, struct attestation *attestation)
{
    struct bytes name;
    uint64_t count;
    *attestation = (struct attestation){0};
    if (!cbor_take_map(&text, &count) || count != 3)
        return false;
    for (; count; count--) {
        if (!cbor_take_text(&text, &name))
            return false;
        bool is_taken =
            bytes_equal(name, BYTES("fmt")) ? cbor_take_text(&text, &attestation->format)
            : bytes_equal(name, BYTES("attStmt"))
                ? cbor_take_item(&text, &attestation->statement)
                : bytes_equal(name, BYTES("authData")) && cbor_take_octets(&text, &attestation->data);
        if (!is_taken)
            return false;
    }
    return !text.size && attestation->format.data && attestation->statement.data && attestation->data.data;
}

/* The credential in the attestation if its key is of this algorithm; NULL: it is not, or malformed. */
static fido_cred_t *open_credential(const struct attestation *attestation, const char *rp,
                                    struct bytes client_data, int algorithm)
{
    fido_cred_t *credential = must(fido_cred_new());
    if (fido_cred_set_type(credential, algorithm) == FIDO_OK &&
        fido_cred_set_rp(credential, rp, NULL) == FIDO_OK &&
        fido_cred_set_uv(credential, FIDO_OPT_TRUE) == FIDO_OK &&
        fido_cred_set_clientdata(credential, octets(client_data), client_data.size) == FIDO_OK &&
        fido_cred_set_authdata_raw(credential, octets(attestation->data), attestation->data.size) == FIDO_OK)
        return credential;
    fido_cred_free(&credential);
    return NULL;
}

static bool is_attested(const struct attestation *attestation, fido_cred_t *credential)
{
    struct bytes statement = attestation->statement;
    if (bytes_equal(attestation->format, BYTES("none")))
        return bytes_equal(statement, BYTES("\xa0"));
    return bytes_equal(attestation->format, BYTES("packed")) &&
           fido_cred_set_fmt(credential, "packed") == FIDO_OK &&
           fido_cred_set_attstmt(credential, octets(statement), statement.size) == FIDO_OK &&
           fido_cred_verify_self(credential) == FIDO_OK;
}

static struct bytes webauthn_copy(struct arena *arena, const unsigned char *data, size_t size)
{
    return (struct bytes){arena_copy(arena, data ? (const char *)data : "", size), size};
}

static const char *take_credential(struct arena *arena, const struct attestation *attestation,
                                   fido_cred_t *credential, int algorithm,
                                   struct webauthn_credential *credential_r)
{
    *credential_r = (struct webauthn_credential){
        .id = webauthn_copy(arena, fido_cred_id_ptr(credential), fido_cred_id_len(credential)),
        .key = {.algorithm = algorithm,
                .key =
                    webauthn_copy(arena, fido_cred_pubkey_ptr(credential), fido_cred_pubkey_len(credential))},
        .count = fido_cred_sigcount(credential),
        .may_backup = (flags_of(attestation->data) & FLAG_MAY_BACKUP) != 0};
    if (credential_r->id.size < WEBAUTHN_ID_LEAST || credential_r->id.size > WEBAUTHN_ID_MOST)
        return "The id of a credential has 16 to 1023 bytes.";
    if (!webauthn_is_key(&credential_r->key))
        return "The public key is malformed.";
    return is_attested(attestation, credential) ? NULL : "The attestation is none of the accepted forms.";
}

const char *webauthn_read_credential(struct arena *arena, const char *rp, struct bytes client_data,
                                     struct bytes text, struct webauthn_credential *credential_r)
{
    static const int algorithms[] = {WEBAUTHN_ES256, WEBAUTHN_EDDSA, WEBAUTHN_RS256};
    struct attestation attestation;
    webauthn_begin();
    if (!read_attestation(text, &attestation) || !is_whole(attestation.data, true))
        return "The attestation object is malformed.";
    unsigned flags = flags_of(attestation.data);
    if (!is_of_party(attestation.data, rp))
        return "The passkey was made for another relying party.";
    if (!(flags & FLAG_PRESENT) || !(flags & FLAG_VERIFIED) || !are_possible(flags))
        return "The authenticator has not verified its user.";
    for (size_t i = 0; i < COUNT_OF(algorithms); i++) {
        fido_cred_t *credential = open_credential(&attestation, rp, client_data, algorithms[i]);
        if (!credential)
            continue;
        const char *wrong = take_credential(arena, &attestation, credential, algorithms[i], credential_r);
        fido_cred_free(&credential);
        return wrong;
    }
    return "A key of ES256, EdDSA or RS256 with 2048 bits is expected.";
}

/* --- assertions --- */

static bool set_assertion(fido_assert_t *statement, const char *rp,
                          const struct webauthn_assertion *assertion)
{
    return fido_assert_set_rp(statement, rp) == FIDO_OK &&
           fido_assert_set_up(statement, FIDO_OPT_TRUE) == FIDO_OK &&
           fido_assert_set_uv(statement, FIDO_OPT_TRUE) == FIDO_OK &&
           fido_assert_set_count(statement, 1) == FIDO_OK &&
           fido_assert_set_clientdata(statement, octets(assertion->client_data),
                                      assertion->client_data.size) == FIDO_OK &&
           fido_assert_set_authdata_raw(statement, 0, octets(assertion->authenticator_data),
                                        assertion->authenticator_data.size) == FIDO_OK &&
           fido_assert_set_sig(statement, 0, octets(assertion->signature), assertion->signature.size) ==
               FIDO_OK;
}

/* libfido2 expects the extensions that were asked for.  A page may ask for one, `prf`, which is hmac-secret
 * to the authenticator. */
static bool is_signed(fido_assert_t *statement, const struct webauthn_key *key, const void *opened)
{
    static const int extensions[] = {0, FIDO_EXT_HMAC_SECRET};
    for (size_t i = 0; i < COUNT_OF(extensions); i++)
        if (fido_assert_set_extensions(statement, extensions[i]) == FIDO_OK &&
            fido_assert_verify(statement, 0, (int)key->algorithm, opened) == FIDO_OK)
            return true;
    return false;
}

bool webauthn_verify(const char *rp, const struct webauthn_key *key,
                     const struct webauthn_assertion *assertion, int64_t *count_r, bool *may_backup_r)
{
    struct bytes data = assertion->authenticator_data;
    struct fido_key opened;
    webauthn_begin();
    if (!is_whole(data, false) || !are_possible(flags_of(data)))
        return false;
    open_key(key, &opened);
    fido_assert_t *statement = must(fido_assert_new());
    bool is_verified =
        opened.any && set_assertion(statement, rp, assertion) && is_signed(statement, key, opened.any);
    *count_r = fido_assert_sigcount(statement, 0);
    *may_backup_r = (flags_of(data) & FLAG_MAY_BACKUP) != 0;
    fido_assert_free(&statement);
    close_key(&opened);
    return is_verified;
}

#else

bool webauthn_is_there(void)
{
    return false;
}

bool webauthn_is_key(const struct webauthn_key *key)
{
    (void)key;
    return false;
}

const char *webauthn_read_credential(struct arena *arena, const char *rp, struct bytes client_data,
                                     struct bytes attestation, struct webauthn_credential *credential_r)
{
    (void)arena, (void)rp, (void)client_data, (void)attestation, (void)credential_r;
    return WEBAUTHN_MISSING;
}

bool webauthn_verify(const char *rp, const struct webauthn_key *key,
                     const struct webauthn_assertion *assertion, int64_t *count_r, bool *may_backup_r)
{
    (void)rp, (void)key, (void)assertion, (void)count_r, (void)may_backup_r;
    return false;
}

struct webauthn_key webauthn_key_of_nobody(void)
{
    return (struct webauthn_key){0};
}

#endif
