/* value: SHA-256 in place of long values. */
#include "model/document/value.h"

#include <stdio.h>
#include <string.h>

#include "edge/crypto/crypto.h"

enum { MEMBER_SIZE = VALUE_MEMBER_MOST + 1 }; /* so it is not a value stored as itself */

static const char mark[] = "\xf4\x8f\xbf\xbf"; /* U+10FFFF, sorts after all others */

struct bytes value_of_field(struct arena *arena, struct bytes text)
{
    if (text.size <= VALUE_FIELD_MOST)
        return text;
    char hex[CRYPTO_SHA256_HEX + 1];
    size_t head = VALUE_FIELD_MOST;
    while (head && ((unsigned char)text.data[head] & 0xC0) == 0x80)
        head--;
    crypto_sha256_hex(text, hex);
    return bytes_of(arena_printf(arena, "%.*s%s%s", (int)head, text.data, mark, hex));
}

struct bytes value_of_member(struct arena *arena, struct bytes text)
{
    if (text.size <= VALUE_MEMBER_MOST)
        return text;
    char hex[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(text, hex);
    return value_of_digest(arena, (int64_t)text.size, bytes_of(hex));
}

bool value_of_json(struct arena *arena, const struct json *json, struct bytes *text_r)
{
    bool is_text = json->kind == JSON_STRING || json->kind == JSON_NUMBER;
    if (!is_text && json->kind != JSON_TRUE && json->kind != JSON_FALSE)
        return false;
    *text_r =
        is_text ? value_of_member(arena, json->value) : bytes_of(json->kind == JSON_TRUE ? "true" : "false");
    return true;
}

struct bytes value_of_digest(struct arena *arena, int64_t size, struct bytes hex)
{
    char words[MEMBER_SIZE + 1];
    int used =
        snprintf(words, sizeof words, "%lld bytes, sha256 %.*s", (long long)size, (int)hex.size, hex.data);
    return bytes_of(arena_printf(arena, "%s%*s", words, MEMBER_SIZE - used, ""));
}

void value_join(struct builder *joined, struct bytes value)
{
    builder_printf(joined, "%zu:", value.size);
    builder_add_bytes(joined, value);
}
