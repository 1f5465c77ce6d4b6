/* sealing: XAES-256-GCM as C2SP specifies it, from AES-256 and AES-256-GCM of OpenSSL; AES-256-SIV of RFC
 * 5297. */
#include "seal/sealing.h"

#include <string.h>

#include "base/coding/base64.h"
#include "base/coding/hex.h"
#include "edge/crypto/crypto.h"
#include "edge/crypto/crypto_private.h"
#include "edge/crypto/gcm_private.h"
#include "seal/random_stock.h"
#include "seal/siv_private.h"

/* --- ciphers ---
 *
 * Ciphers of OpenSSL that keep their key between texts: to set a key costs more than to encrypt a small text.
 * The tables have the ciphers used last, each in the place of the first byte of its key; keys are random.
 * What is returned may be used until the next call of the same function.  For processes with one thread. */

enum { SEALING_BLOCK = SIV_BLOCK, KEPT = 16 };

/* The key of a kept cipher; one that is free has none. */
struct kept_key {
    bool is_set;
    unsigned char key[SEALING_NAME_KEY];
};

/* The place of the key, which is written there; `is_known_r`: it was there already. */
static size_t sealing_ciphers_find(struct kept_key *table, const unsigned char *key, size_t size,
                                   bool *is_known_r)
{
    struct kept_key *kept = &table[key[0] % KEPT];
    *is_known_r = kept->is_set && CRYPTO_memcmp(kept->key, key, size) == 0;
    if (!*is_known_r)
        memcpy(kept->key, key, size);
    kept->is_set = true;
    return (size_t)(kept - table);
}

static struct kept_key block_keys[KEPT];
static struct siv_block_cipher kept_blocks[KEPT];

static const struct siv_block_cipher *sealing_ciphers_block(const unsigned char key[SEALING_KEY])
{
    bool is_known;
    struct siv_block_cipher *cipher =
        &kept_blocks[sealing_ciphers_find(block_keys, key, SEALING_KEY, &is_known)];
    if (!is_known)
        siv_block_set_key(cipher, key);
    return cipher;
}

static EVP_CIPHER_CTX *gcm_context; /* AES-256-GCM, without a key.
                                     * has the key of the last text */
static EVP_CIPHER_CTX *sealing_ciphers_gcm(void)
{
    static const EVP_CIPHER *gcm;
    if (!gcm_context) {
        gcm_context = EVP_CIPHER_CTX_new();
        crypto_must(gcm_context && EVP_CipherInit_ex2(gcm_context, crypto_cipher(&gcm, "AES-256-GCM"), NULL,
                                                      NULL, 1, NULL) == 1);
    }
    return gcm_context;
}

static struct kept_key name_keys[KEPT];
static struct siv names[KEPT];

/* AES-256-SIV under a key. */
static const struct siv *sealing_ciphers_siv(const unsigned char key[SEALING_NAME_KEY])
{
    bool is_known;
    struct siv *siv = &names[sealing_ciphers_find(name_keys, key, SEALING_NAME_KEY, &is_known)];
    if (!is_known)
        siv_set_key(siv, key);
    return siv;
}

void sealing_forget(void)
{
    for (size_t i = 0; i < KEPT; i++) {
        siv_block_forget(&kept_blocks[i]);
        siv_forget(&names[i]);
    }
    OPENSSL_cleanse(block_keys, sizeof block_keys);
    OPENSSL_cleanse(name_keys, sizeof name_keys);
    EVP_CIPHER_CTX_free(gcm_context);
    gcm_context = NULL;
}

enum { DIGITS_MOST = 18, ID_MOST = 24 /* bytes of "~ID." */ };

/* --- XAES-256-GCM --- */

/* The key of one message, from the first half of its nonce: CMAC of two blocks by two encryptions. */
static void derive_message_key(const unsigned char key[SEALING_KEY], const unsigned char *nonce,
                               unsigned char derived_r[SEALING_KEY])
{
    unsigned char blocks[2 * SEALING_BLOCK];
    int size = 0;
    const struct siv_block_cipher *cipher = sealing_ciphers_block(key);
    for (int half = 0; half < 2; half++) {
        unsigned char *block = blocks + (ptrdiff_t)half * SEALING_BLOCK;
        memcpy(block, (const unsigned char[]){0, (unsigned char)(half + 1), 'X', 0}, 4);
        memcpy(block + 4, nonce, GCM_NONCE);
        for (int i = 0; i < SEALING_BLOCK; i++)
            block[i] ^= cipher->subkey[i];
    }
    crypto_must(EVP_EncryptUpdate(cipher->context, derived_r, &size, blocks, sizeof blocks) == 1 &&
                size == SEALING_KEY);
}

void sealing_encrypt(const unsigned char key[SEALING_KEY], const unsigned char nonce[SEALING_NONCE],
                     struct bytes aad, struct bytes text, unsigned char *sealed_r)
{
    unsigned char derived[SEALING_KEY];
    derive_message_key(key, nonce, derived);
    gcm_encrypt(sealing_ciphers_gcm(), NULL, derived, nonce + GCM_NONCE, aad, text, sealed_r);
    OPENSSL_cleanse(derived, sizeof derived);
}

bool sealing_decrypt(const unsigned char key[SEALING_KEY], const unsigned char nonce[SEALING_NONCE],
                     struct bytes aad, struct bytes sealed, unsigned char *text_r)
{
    unsigned char derived[SEALING_KEY];
    derive_message_key(key, nonce, derived);
    bool is_whole = gcm_decrypt(sealing_ciphers_gcm(), NULL, derived, nonce + GCM_NONCE, aad, sealed, text_r);
    OPENSSL_cleanse(derived, sizeof derived);
    return is_whole;
}

/* --- texts --- */

const struct sealing_keys *sealing_find(const struct sealing_keys *keys, size_t count, int64_t id)
{
    while (count-- > 0) /* mostly it is the last */
        if (keys[count].id == id)
            return &keys[count];
    return NULL;
}

void sealing_derive(int64_t id, const unsigned char secret[SEALING_KEY], struct sealing_keys *keys_r)
{
    struct bytes key = {(const char *)secret, SEALING_KEY};
    keys_r->id = id;
    crypto_derive(BYTES(""), key, BYTES("stampd texts"), keys_r->texts, sizeof keys_r->texts);
    crypto_derive(BYTES(""), key, BYTES("stampd names"), keys_r->names, sizeof keys_r->names);
    crypto_derive(BYTES(""), key, BYTES("stampd values"), keys_r->values, sizeof keys_r->values);
    crypto_derive(BYTES(""), key, BYTES("stampd files"), keys_r->files, sizeof keys_r->files);
}

struct sealing_place sealing_place_copy(struct arena *arena, const struct bytes *parts, size_t count)
{
    struct bytes *copy = ARENA_ROOM(arena, struct bytes, count);
    memcpy(copy, parts, count * sizeof *copy);
    return (struct sealing_place){copy, count};
}

/* Each part after its size, so that no two places have the same bytes. */
static struct bytes write_place(struct arena *arena, struct sealing_place place)
{
    size_t size = 0;
    for (size_t i = 0; i < place.count; i++)
        size += sizeof(uint32_t) + place.parts[i].size;
    char *text = ARENA_ROOM(arena, char, size + 1), *at = text;
    for (size_t i = 0; i < place.count; i++) {
        uint32_t part = (uint32_t)place.parts[i].size;
        const unsigned char order[] = {(unsigned char)(part >> 24), (unsigned char)(part >> 16),
                                       (unsigned char)(part >> 8), (unsigned char)part};
        memcpy(at, order, sizeof order);
        at += sizeof order;
        if (part)
            memcpy(at, place.parts[i].data, part);
        at += part;
    }
    return (struct bytes){text, size};
}

/* The prefix, the data as base64, and what follows. */
static struct bytes encode(struct arena *arena, struct bytes prefix, const void *data, size_t size,
                           struct bytes rest)
{
    char *text = ARENA_ROOM(arena, char, prefix.size + BASE64_SIZE(size) + rest.size + 1), *at = text;
    memcpy(at, prefix.data, prefix.size);
    at += prefix.size;
    at += base64_write((struct bytes){data, size}, at);
    memcpy(at, rest.data, rest.size);
    at += rest.size;
    *at = '\0';
    return (struct bytes){text, (size_t)(at - text)};
}

/* NULL: it is not what encode wrote. */
static unsigned char *sealing_decode(struct arena *arena, struct bytes text, size_t *size_r)
{
    *size_r = text.size / 4 * 3 + text.size % 4 * 3 / 4;
    unsigned char *bytes = ARENA_ROOM(arena, unsigned char, *size_r + 1);
    return base64_read_strict(text, bytes, *size_r) ? bytes : NULL;
}

/* "~ID." at the end of the buffer. */
static struct bytes write_id(int64_t id, char buffer[ID_MOST])
{
    char *at = buffer + ID_MOST;
    *--at = '.';
    for (; id; id /= 10)
        *--at = (char)('0' + id % 10);
    *--at = '~';
    return (struct bytes){at, (size_t)(buffer + ID_MOST - at)};
}

struct bytes sealing_seal(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                          struct bytes text, struct bytes shown)
{
    char id[ID_MOST];
    if (!text.data)
        return text;
    size_t size = SEALING_NONCE + text.size + SEALING_TAG;
    unsigned char *sealed = ARENA_ROOM(arena, unsigned char, size);
    random_stock_take(sealed, SEALING_NONCE);
    sealing_encrypt(keys->texts, sealed, write_place(arena, place), text, sealed + SEALING_NONCE);
    return encode(arena, write_id(keys->id, id), sealed, size, shown);
}

/* "~ID." and the rest; 0: it is no sealed text. */
static int64_t sealing_read_id(struct bytes *text)
{
    int64_t id = 0;
    size_t at = 1;
    if (text->size < 3 || text->data[0] != '~')
        return 0;
    while (at < text->size && at <= DIGITS_MOST && text->data[at] >= '0' && text->data[at] <= '9')
        id = id * 10 + (text->data[at++] - '0');
    if (at == text->size || text->data[at] != '.')
        return 0;
    text->data += at + 1;
    text->size -= at + 1;
    return id;
}

int64_t sealing_key_id(struct bytes sealed)
{
    return sealing_read_id(&sealed);
}

bool sealing_open(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                  struct bytes sealed, struct bytes *text_r)
{
    size_t size;
    *text_r = NO_BYTES;
    if (sealing_read_id(&sealed) != keys->id)
        return false;
    const unsigned char *bytes = sealing_decode(arena, sealed, &size);
    if (!bytes || size < SEALING_NONCE + SEALING_TAG)
        return false;
    unsigned char *text = ARENA_ROOM(arena, unsigned char, size);
    const struct bytes body = {(const char *)bytes + SEALING_NONCE, size - SEALING_NONCE};
    if (!sealing_decrypt(keys->texts, bytes, write_place(arena, place), body, text))
        return false;
    size -= SEALING_NONCE + SEALING_TAG;
    text[size] = '\0';
    *text_r = (struct bytes){(const char *)text, size};
    return true;
}

/* --- names --- */

struct bytes sealing_seal_name(struct arena *arena, const struct sealing_keys *keys,
                               struct sealing_place place, struct bytes prefix, struct bytes name)
{
    if (!name.size)
        return prefix;
    size_t size = SEALING_TAG + name.size;
    unsigned char *sealed = ARENA_ROOM(arena, unsigned char, size);
    siv_encrypt(sealing_ciphers_siv(keys->names), write_place(arena, place), name, sealed);
    return encode(arena, prefix, sealed, size, BYTES(""));
}

bool sealing_open_name(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                       struct bytes sealed, struct bytes *name_r)
{
    size_t size;
    *name_r = sealed;
    if (!sealed.size)
        return true;
    unsigned char *bytes = sealing_decode(arena, sealed, &size);
    if (!bytes || size <= SEALING_TAG)
        return false;
    const struct bytes whole = {(const char *)bytes, size};
    size -= SEALING_TAG;
    unsigned char *name = ARENA_ROOM(arena, unsigned char, size + 1);
    bool is_whole = siv_decrypt(sealing_ciphers_siv(keys->names), write_place(arena, place), whole, name);
    name[size] = '\0';
    *name_r = (struct bytes){(const char *)name, size};
    return is_whole;
}

/* --- values --- */

struct bytes sealing_digest(struct arena *arena, struct bytes key, struct sealing_place place,
                            struct bytes value)
{
    unsigned char digest[CRYPTO_SHA256];
    struct bytes *parts = ARENA_ROOM(arena, struct bytes, place.count + 1);
    memcpy(parts, place.parts, place.count * sizeof *parts);
    parts[place.count] = value;
    crypto_hmac(key, write_place(arena, (struct sealing_place){parts, place.count + 1}), digest);
    char *hex = ARENA_ROOM(arena, char, 2 * sizeof digest + 1);
    hex_write(digest, sizeof digest, hex);
    return (struct bytes){hex, 2 * sizeof digest};
}

struct bytes sealing_hash(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                          struct bytes value)
{
    struct bytes key = {(const char *)keys->values, sizeof keys->values};
    return (struct bytes){sealing_digest(arena, key, place, value).data, (size_t)2 * SEALING_HASH};
}
