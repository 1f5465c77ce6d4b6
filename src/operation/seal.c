/* seal: the first half of a SHA-256 over question and payload, in front of the payload. */
#include "operation/seal.h"

#include "edge/crypto.h"

enum { MARK_SIZE = 32 };

void seal_add_part(struct builder *question, struct bytes part)
{
    builder_printf(question, "%zu:", part.size);
    builder_add_bytes(question, part);
}

static void make_mark(struct bytes question, struct bytes payload, char mark_r[CRYPTO_SHA256_HEX + 1])
{
    struct builder text = {0};
    seal_add_part(&text, question);
    seal_add_part(&text, payload);
    crypto_sha256_hex(builder_bytes(&text), mark_r);
    builder_free(&text);
}

struct bytes seal_close(struct arena *arena, struct bytes question, struct bytes payload)
{
    char mark[CRYPTO_SHA256_HEX + 1];
    make_mark(question, payload, mark);
    char *sealed = arena_alloc(arena, MARK_SIZE + 1 + payload.size);
    memcpy(sealed, mark, MARK_SIZE);
    sealed[MARK_SIZE] = '.';
    if (payload.size)
        memcpy(sealed + MARK_SIZE + 1, payload.data, payload.size);
    return (struct bytes){sealed, MARK_SIZE + 1 + payload.size};
}

bool seal_open(struct bytes question, struct bytes sealed, struct bytes *payload_r)
{
    if (sealed.size <= MARK_SIZE || sealed.data[MARK_SIZE] != '.')
        return false;
    char mark[CRYPTO_SHA256_HEX + 1];
    *payload_r = (struct bytes){sealed.data + MARK_SIZE + 1, sealed.size - MARK_SIZE - 1};
    make_mark(question, *payload_r, mark);
    return memcmp(mark, sealed.data, MARK_SIZE) == 0;
}
