/* request_id: a digest of the token. */
#include "http/request_id.h"

#include "base/coding/hex.h"
#include "base/coding/siphash.h"
#include "edge/crypto/crypto.h"

enum { DIGITS = 32 };

static struct siphash_key key;

void request_id_draw_key(void)
{
    crypto_random(&key, sizeof key);
}

const char *request_id_make(struct arena *arena, struct bytes token)
{
    uint64_t digest[2];
    char *id = arena_alloc(arena, DIGITS + 1);
    siphash(&key, token, digest);
    hex_write_u64(digest[0], id);
    hex_write_u64(digest[1], id + DIGITS / 2);
    id[DIGITS] = '\0';
    return id;
}
