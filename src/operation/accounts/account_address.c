/* account_address: see the header. */
#include "operation/accounts/account_address.h"

#include "base/coding/hex.h"
#include "edge/crypto/crypto.h"

enum { KEY_BYTES = 32, HEX = 2 * CRYPTO_SHA256 };

/* The key; NO_BYTES: there is none yet, and none was to be made. */
static enum fault fetch_key(struct attempt *attempt, bool may_create, struct bytes *key_r)
{
    const struct document_name name = {BYTES("Login"), BYTES("address key")};
    struct draft *draft;
    enum fault fault = transaction_fetch(attempt->transaction, name, &draft);
    *key_r = NO_BYTES;
    if (fault)
        return fault;
    const struct item *item = draft_exists(draft) ? draft_find_item(draft, BYTES("Secret"), BYTES("")) : NULL;
    if (!item && may_create) {
        unsigned char bytes[KEY_BYTES];
        char *text = ARENA_ROOM(attempt->call->arena, char, 2 * KEY_BYTES);
        crypto_random(bytes, sizeof bytes);
        hex_write(bytes, sizeof bytes, text);
        draft_set_item(draft, BYTES("Secret"), BYTES(""), true, (struct bytes){text, (size_t)2 * KEY_BYTES});
        item = draft_find_item(draft, BYTES("Secret"), BYTES(""));
    }
    *key_r = item ? item->content : NO_BYTES;
    return FAULT_NONE;
}

static enum fault name_address(struct attempt *attempt, struct bytes address, bool may_create,
                               struct document_name *name_r)
{
    struct arena *arena = attempt->call->arena;
    unsigned char digest[CRYPTO_SHA256];
    char hex[HEX];
    struct bytes key;
    enum fault fault = fetch_key(attempt, may_create, &key);
    if (fault)
        return fault;
    char *lower = arena_copy(arena, address.data, address.size);
    for (size_t i = 0; i < address.size; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z')
            lower[i] = (char)(lower[i] | 0x20);
    crypto_hmac(key, (struct bytes){lower, address.size}, digest);
    hex_write(digest, sizeof digest, hex);
    *name_r = (struct document_name){BYTES("Login"), bytes_of(arena_printf(arena, "address %.*s", HEX, hex))};
    return FAULT_NONE;
}

enum fault account_address_name(struct attempt *attempt, struct bytes address, struct document_name *name_r)
{
    return name_address(attempt, address, false, name_r);
}

enum fault account_address_take(struct attempt *attempt, struct bytes address, struct bytes id)
{
    struct document_name name;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(name_address(attempt, address, true, &name),
                                   transaction_fetch(attempt->transaction, name, &draft));
    if (fault)
        return fault;
    draft_create(draft);
    draft_set_item(
        draft, BYTES("Acc"), BYTES(""), false,
        bytes_of(arena_printf(attempt->call->arena, "{\"account\":\"%.*s\"}", (int)id.size, id.data)));
    return FAULT_NONE;
}

enum fault account_address_leave(struct attempt *attempt, struct bytes address, struct bytes id)
{
    struct document_name name;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(name_address(attempt, address, false, &name),
                                   transaction_fetch(attempt->transaction, name, &draft));
    if (!fault && bytes_equal(account_gate_find_id(attempt, draft), id))
        draft_delete(draft);
    return fault;
}
