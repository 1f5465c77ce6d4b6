/* account_address: see the header. */
#include "operation/accounts/account_address.h"

#include "edge/crypto/crypto.h"

struct document_name account_address_name(struct attempt *attempt, struct bytes address)
{
    struct arena *arena = attempt->call->arena;
    char digest[CRYPTO_SHA256_HEX + 1];
    char *lower = arena_copy(arena, address.data, address.size);
    for (size_t i = 0; i < address.size; i++)
        if (lower[i] >= 'A' && lower[i] <= 'Z')
            lower[i] = (char)(lower[i] | 0x20);
    crypto_sha256_hex((struct bytes){lower, address.size}, digest);
    return (struct document_name){BYTES("Login"), bytes_of(arena_printf(arena, "address %s", digest))};
}

enum fault account_address_take(struct attempt *attempt, struct bytes address, struct bytes id)
{
    struct draft *draft;
    enum fault fault =
        transaction_fetch(attempt->transaction, account_address_name(attempt, address), &draft);
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
    struct draft *draft;
    enum fault fault =
        transaction_fetch(attempt->transaction, account_address_name(attempt, address), &draft);
    if (!fault && bytes_equal(account_gate_find_id(attempt, draft), id))
        draft_delete(draft);
    return fault;
}
