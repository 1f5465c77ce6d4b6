/* account: the texts of accounts, sessions and tokens. */
#include "model/account/account.h"

#include <stdlib.h>

#include "base/coding/base64.h"
#include "model/rules/rules.h"
#include "model/document/stamp.h"

enum { PREFIX = 3, MINUTE_MS = 60000 };

/* --- tokens --- */

static bool has_prefix(struct bytes text, const char *prefix)
{
    return text.size >= PREFIX && memcmp(text.data, prefix, PREFIX) == 0;
}

bool account_is_token(struct bytes text)
{
    return has_prefix(text, "st_") || has_prefix(text, "sk_");
}

bool account_read_token(struct bytes text, struct account_token *token_r)
{
    unsigned char id[ACCOUNT_ID_BYTES], secret[ACCOUNT_SECRET_BYTES];
    if (!account_is_token(text) || text.size != PREFIX + ACCOUNT_ID + 1 + ACCOUNT_SECRET ||
        text.data[PREFIX + ACCOUNT_ID] != '.')
        return false;
    *token_r = (struct account_token){.is_service = has_prefix(text, "sk_"),
                                      .account = {text.data + PREFIX, ACCOUNT_ID},
                                      .secret = {text.data + PREFIX + ACCOUNT_ID + 1, ACCOUNT_SECRET}};
    bool is_one =
        base64_read(token_r->account, id, sizeof id) && base64_read(token_r->secret, secret, sizeof secret);
    explicit_bzero(secret, sizeof secret);
    return is_one;
}

struct bytes account_find_cookie(struct bytes header, struct bytes ns)
{
    const size_t prefix = sizeof ACCOUNT_COOKIE - 1;
    while (header.size) {
        struct bytes value = bytes_trim(bytes_cut(&header, ';'));
        struct bytes name = bytes_cut(&value, '=');
        if (name.size == prefix + ns.size && memcmp(name.data, ACCOUNT_COOKIE, prefix) == 0 &&
            memcmp(name.data + prefix, ns.data, ns.size) == 0)
            return value.data ? value : BYTES("");
    }
    return NO_BYTES;
}

/* --- names --- */

static bool is_visible(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] <= ' ' || text.data[i] > '~')
            return false;
    return text.size > 0;
}

bool account_normalise(struct arena *arena, struct bytes name, struct bytes *normal_r)
{
    if (name.size > ACCOUNT_NAME_MOST || !is_visible(name))
        return false;
    char *normal = arena_copy(arena, name.data, name.size);
    for (size_t i = 0; i < name.size; i++)
        if (normal[i] >= 'A' && normal[i] <= 'Z')
            normal[i] = (char)(normal[i] - 'A' + 'a');
    *normal_r = (struct bytes){normal, name.size};
    return true;
}

bool account_is_address(struct bytes address)
{
    const char *at = address.size ? memchr(address.data, '@', address.size) : NULL;
    const char *end = address.data + address.size;
    return at && address.size <= ACCOUNT_ADDRESS_MOST && is_visible(address) && at > address.data &&
           at + 1 < end && !memchr(at + 1, '@', (size_t)(end - at - 1)) &&
           !memchr(address.data, ',', address.size) && !memchr(address.data, ';', address.size) &&
           !memchr(address.data, '<', address.size) && !memchr(address.data, '>', address.size);
}

bool account_is_role(struct bytes role)
{
    for (size_t i = 0; i < role.size; i++) {
        char byte = role.data[i], letter = byte | 0x20;
        if (!(byte >= '0' && byte <= '9') && !(letter >= 'a' && letter <= 'z') && byte != '.' &&
            byte != '_' && byte != '-')
            return false;
    }
    return role.size && role.size <= ACCOUNT_ROLE_MOST;
}

bool account_are_roles(const struct json *roles)
{
    if (!roles || roles->kind != JSON_ARRAY || roles->is_shallow || roles->count > RULES_ROLES_MOST)
        return false;
    for (const struct json *role = roles->first; role; role = role->next)
        if (role->kind != JSON_STRING || !account_is_role(role->value))
            return false;
    return true;
}

bool account_is_device(struct bytes device)
{
    for (size_t i = 0; i < device.size; i++)
        if ((unsigned char)device.data[i] < ' ' || device.data[i] == 0x7f)
            return false;
    return device.size <= ACCOUNT_DEVICE_MOST;
}

/* --- documents --- */

static const struct json *account_read_object(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 2, .nodes = 256};
    struct json *root;
    struct json_problem problem;
    bool is_one = text.data && json_read(arena, text, &limits, &root, &problem) == FAULT_NONE &&
                  root->kind == JSON_OBJECT;
    return is_one ? root : NULL;
}

static int account_compare(const void *a, const void *b)
{
    const struct bytes *one = a, *other = b;
    return bytes_compare(*one, *other);
}

/* Sorted, each once. */
static bool account_read_roles(struct arena *arena, struct bytes text, struct account *account)
{
    const struct json *object = account_read_object(arena, text), *roles = json_member(object, "roles");
    if (!account_are_roles(roles))
        return false;
    struct bytes *list = ARENA_ARRAY(arena, struct bytes, roles->count + 1);
    size_t count = 0, kept = 0;
    for (const struct json *role = roles->first; role; role = role->next)
        list[count++] = role->value;
    if (count)
        qsort(list, count, sizeof *list, account_compare);
    for (size_t i = 0; i < count; i++)
        if (!i || !bytes_equal(list[i], list[kept - 1]))
            list[kept++] = list[i];
    account->roles = list;
    account->role_count = kept;
    return true;
}

bool account_read(struct arena *arena, struct bytes self, struct bytes roles, struct account *account_r)
{
    const struct json *object = account_read_object(arena, self);
    *account_r = (struct account){.name = json_text_of(object, "name", BYTES("")),
                                  .address = json_text_of(object, "address", BYTES("")),
                                  .issuer = json_text_of(object, "issuer", BYTES("")),
                                  .subject = json_text_of(object, "subject", BYTES("")),
                                  .is_confirmed = json_is_true(object, "confirmed"),
                                  .is_disabled = json_is_true(object, "disabled"),
                                  .is_hidden = json_is_true(object, "hidden"),
                                  .created = json_i64_of(object, "created", 0)};
    return object && (!roles.data || account_read_roles(arena, roles, account_r));
}

struct bytes account_write_self(struct arena *arena, const struct account *account)
{
    struct builder text = {0};
    builder_printf(&text, "{\"created\":%lld", (long long)account->created);
    json_add_filled(&text, "name", account->name);
    json_add_filled(&text, "address", account->address);
    json_add_filled(&text, "issuer", account->issuer);
    json_add_filled(&text, "subject", account->subject);
    if (account->is_confirmed)
        builder_add_text(&text, ",\"confirmed\":true");
    if (account->is_disabled)
        builder_add_text(&text, ",\"disabled\":true");
    if (account->is_hidden)
        builder_add_text(&text, ",\"hidden\":true");
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

struct bytes account_write_roles(struct arena *arena, const struct json *roles)
{
    struct builder text = {0};
    builder_add_text(&text, "{\"roles\":[");
    for (const struct json *role = roles ? roles->first : NULL; role; role = role->next) {
        json_add_string(&text, role->value);
        if (role->next)
            builder_add_text(&text, ",");
    }
    builder_add_text(&text, "]}");
    return builder_take(&text, arena);
}

bool account_read_session(struct arena *arena, struct bytes content, struct account_session *session_r)
{
    const struct json *object = account_read_object(arena, content);
    *session_r = (struct account_session){.created = json_i64_of(object, "created", 0),
                                          .expires = json_i64_of(object, "expires", 0),
                                          .is_service = json_is_true(object, "service"),
                                          .device = json_text_of(object, "device", BYTES(""))};
    return object && (session_r->is_service || stamp_is_valid(session_r->expires));
}

struct bytes account_write_session(struct arena *arena, const struct account_session *session)
{
    struct builder text = {0};
    builder_printf(&text, "{\"created\":%lld", (long long)session->created);
    if (session->is_service)
        builder_add_text(&text, ",\"service\":true");
    else
        builder_printf(&text, ",\"expires\":%lld", (long long)session->expires);
    json_add_filled(&text, "device", session->device);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

bool account_is_over(int64_t expires, int64_t minute)
{
    return expires && stamp_to_epoch_ms(expires) <= minute * MINUTE_MS;
}

int64_t account_stamp_of(int64_t minute)
{
    return stamp_from_epoch_ms(minute * MINUTE_MS);
}

struct bytes account_find(const struct document *document, struct bytes iclass, struct bytes key)
{
    const struct item *item = document_find_item(document, iclass, key);
    return item && !item_is_tombstone(item) ? item->content : NO_BYTES;
}
