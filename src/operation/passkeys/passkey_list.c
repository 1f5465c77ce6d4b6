/* passkey_list: see the header. */
#include "operation/passkeys/passkey_list.h"

void passkey_list_write_name(struct builder *body, struct bytes key)
{
    json_add_string(body, (struct bytes){key.data, key.size < PASSKEY_LISTED ? key.size : PASSKEY_LISTED});
}

static void passkey_list_write_one(struct attempt *attempt, const struct item *item)
{
    struct builder *body = attempt->reply->body;
    struct passkey passkey;
    if (!passkey_read(attempt->call->arena, item->content, &passkey))
        passkey = (struct passkey){0};
    builder_add_text(body, "{\"passkey\":");
    passkey_list_write_name(body, item->key);
    if (passkey.name.size)
        json_add_text(body, ",\"name\":", passkey.name);
    builder_printf(body, ",\"created\":%lld", (long long)passkey.created);
    if (passkey.used)
        builder_printf(body, ",\"used\":%lld", (long long)passkey.used);
    builder_printf(body, "%s}", passkey.credential.may_backup ? ",\"synced\":true" : "");
}

void passkey_list_write(struct attempt *attempt, const struct draft *account)
{
    struct builder *body = attempt->reply->body;
    const char *comma = "";
    builder_add_text(body, "[");
    for (const struct item *item = passkey_credential_next(account, BYTES("")); item;
         item = passkey_credential_next(account, item->key)) {
        builder_printf(body, "%s", comma);
        passkey_list_write_one(attempt, item);
        comma = ",";
    }
    builder_add_text(body, "]");
}

const struct item *passkey_list_find(const struct draft *account, struct bytes listed)
{
    const struct item *item = passkey_credential_next(account, BYTES(""));
    while (item && (item->key.size < PASSKEY_LISTED ||
                    !bytes_equal((struct bytes){item->key.data, PASSKEY_LISTED}, listed)))
        item = passkey_credential_next(account, item->key);
    return item;
}

size_t passkey_list_remove(struct draft *account, struct bytes listed)
{
    size_t count = 0;
    const struct item *item;
    while ((item = listed.data ? passkey_list_find(account, listed)
                               : passkey_credential_next(account, BYTES("")))) {
        draft_remove_item(account, BYTES("Key"), item->key);
        count++;
    }
    return count;
}
