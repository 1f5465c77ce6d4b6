/* key_set: the public keys of an issuer: a JWK set (RFC 7517), of which only the keys that can check a
 * signature are read.
 *
 * Left out: keys of another kind (`oct` above all), curve or size, for encryption (`use`, `key_ops`), for
 * another algorithm (`alg`), with a private half.  Pure: no I/O. */
#ifndef STAMPD_MODEL_ACCOUNT_KEY_SET_H
#define STAMPD_MODEL_ACCOUNT_KEY_SET_H

#include "base/arena.h"
#include "base/builder.h"
#include "edge/json/json.h"
#include "edge/crypto/signature.h"

enum {
    KEY_SET_BYTES_MOST = 65536, /* of the text */
    KEY_SET_KEYS_MOST = 32,     /* also those that are left out */
    KEY_SET_NAME_MOST = 255     /* bytes of a key's name, `kid` */
};

struct key_set_key {
    struct bytes name; /* NO_BYTES: none */
    struct signature_numbers numbers;
};
struct key_set {
    struct key_set_key keys[KEY_SET_KEYS_MOST];
    size_t count;
};

/* Decoded in the arena.  NULL: read; otherwise why it is refused, a clause. */
MUST_USE const char *key_set_read(struct arena *arena, struct bytes text, struct key_set *set_r);
/* The same from a parsed object with the member `keys`. */
MUST_USE const char *key_set_take(struct arena *arena, const struct json *object, struct key_set *set_r);
/* Appends the array of keys, as key_set_take reads it: only what is needed to check signatures. */
void key_set_write(struct builder *out, const struct key_set *set);

enum { KEY_SET_NONE = -1, KEY_SET_AMBIGUOUS = -2 };
/* The place of the only key with this name and algorithm; `name` NO_BYTES: of the only one with the
 * algorithm.
 */
int key_set_find(const struct key_set *set, struct bytes name, enum signature_algorithm algorithm);

#endif
