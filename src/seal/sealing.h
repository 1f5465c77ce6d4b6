/* sealing: texts encrypted for a place, and opened there only (doc/explanation/encryption.md).
 *
 * A text is sealed by XAES-256-GCM with a random nonce of 192 bits; a name by AES-256-SIV, so that the same
 * name at the same place is sealed as the same text and can be found.  The place is a list of texts that is
 * authenticated but not stored: at another place, or altered, a sealed text cannot be opened.  A value is
 * hashed: it can be compared, and never be opened. */
#ifndef STAMPD_SEAL_SEALING_H
#define STAMPD_SEAL_SEALING_H

#include "base/arena.h"
#include "base/bytes.h"

enum { SEALING_KEY = 32, SEALING_NONCE = 24, SEALING_TAG = 16, SEALING_NAME_KEY = 64, SEALING_HASH = 16 };

/* Keys made of one data key. */
struct sealing_keys {
    int64_t id;
    unsigned char texts[SEALING_KEY], names[SEALING_NAME_KEY], values[SEALING_KEY], files[SEALING_KEY];
};

struct sealing_place {
    const struct bytes *parts;
    size_t count;
};

/* A place with a copy of the list of its parts, in the arena. */
struct sealing_place sealing_place_copy(struct arena *arena, const struct bytes *parts, size_t count);

/* Those of a data key, of a list; NULL: it has none. */
const struct sealing_keys *sealing_find(const struct sealing_keys *keys, size_t count, int64_t id);

void sealing_derive(int64_t id, const unsigned char secret[SEALING_KEY], struct sealing_keys *keys_r);

/* XAES-256-GCM: writes text.size + SEALING_TAG bytes.  Never use a key and nonce twice. */
void sealing_encrypt(const unsigned char key[SEALING_KEY], const unsigned char nonce[SEALING_NONCE],
                     struct bytes aad, struct bytes text, unsigned char *sealed_r);
/* Writes sealed.size - SEALING_TAG bytes; false: it was not encrypted so. */
MUST_USE bool sealing_decrypt(const unsigned char key[SEALING_KEY], const unsigned char nonce[SEALING_NONCE],
                              struct bytes aad, struct bytes sealed, unsigned char *text_r);

/* A text as "~ID.base64" and, in clear behind it, `shown`, in the arena; without data it stays so. */
struct bytes sealing_seal(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                          struct bytes text, struct bytes shown);
/* The id of the key of a sealed text; 0: it is none. */
int64_t sealing_key_id(struct bytes sealed);
/* `keys` are those of sealing_key_id. */
MUST_USE bool sealing_open(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                           struct bytes sealed, struct bytes *text_r);

/* The prefix and a name as base64, in the arena; an empty one stays empty. */
struct bytes sealing_seal_name(struct arena *arena, const struct sealing_keys *keys,
                               struct sealing_place place, struct bytes prefix, struct bytes name);
MUST_USE bool sealing_open_name(struct arena *arena, const struct sealing_keys *keys,
                                struct sealing_place place, struct bytes sealed, struct bytes *name_r);

/* The HMAC-SHA256 of the place and the value under a key, in hexadecimal, in the arena. */
struct bytes sealing_digest(struct arena *arena, struct bytes key, struct sealing_place place,
                            struct bytes value);
/* The first SEALING_HASH bytes of one under the key for values, in hexadecimal, in the arena. */
struct bytes sealing_hash(struct arena *arena, const struct sealing_keys *keys, struct sealing_place place,
                          struct bytes value);

/* Erases the keys that this process keeps between texts; it keeps those that it uses again. */
void sealing_forget(void);

#endif
