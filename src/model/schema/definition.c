/* definition: strict, because a subscriber that receives nothing cannot see why. */
#include "model/schema/definition.h"

#include "model/document/item.h"
#include "model/schema/schema.h"
#include "model/document/value.h"

enum { DIGEST_SIZE = 64 }; /* SHA-256 in hexadecimal */

static int digit_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    if (digit >= 'a' && digit <= 'f')
        return digit - 'a' + 10;
    return digit >= 'A' && digit <= 'F' ? digit - 'A' + 10 : -1;
}

/* Reads an id or a value: decoded and well-formed. */
static bool take_piece(struct arena *arena, struct bytes text, struct bytes *piece_r)
{
    char *decoded = arena_alloc(arena, text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            int high = text.size - i > 2 ? digit_value(text.data[i + 1]) : -1;
            int low = high < 0 ? -1 : digit_value(text.data[i + 2]);
            if (low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (!byte)
            return false;
        decoded[size++] = byte;
    }
    *piece_r = (struct bytes){decoded, size};
    return bytes_is_utf8(*piece_r);
}

/* Reads #SIZE:SHA256, which stands for a value that is too long to be written. */
static bool take_digest(struct arena *arena, struct bytes text, struct bytes *value_r)
{
    const char *colon = memchr(text.data, ':', text.size);
    struct bytes digits = {text.data + 1, colon ? (size_t)(colon - text.data - 1) : 0};
    int64_t size;
    if (!digits.size || digits.data[0] < '1' || digits.data[0] > '9' || !bytes_to_i64(digits, &size) ||
        size <= VALUE_MEMBER_MOST)
        return false;
    struct bytes hex = {colon + 1, text.size - digits.size - 2};
    for (size_t i = 0; i < hex.size; i++)
        if (digit_value(hex.data[i]) < 0 || (hex.data[i] >= 'A' && hex.data[i] <= 'F'))
            return false;
    if (hex.size != DIGEST_SIZE)
        return false;
    *value_r = value_of_digest(arena, size, hex);
    return true;
}

static bool definition_take_value(struct arena *arena, struct bytes text, struct bytes *value_r)
{
    if (text.size && text.data[0] == '#')
        return take_digest(arena, text, value_r);
    if (!take_piece(arena, text, value_r))
        return false;
    *value_r = value_of_member(arena, *value_r);
    return true;
}

/* Same as the SQL function stampd.property_joined(). */
static bool take_values(struct arena *arena, struct bytes text, struct definition *definition)
{
    struct builder joined = {0};
    struct bytes value = NO_BYTES;
    bool is_right = true, is_last = false;
    while (is_right && !is_last) {
        const char *end = text.size ? memchr(text.data, '@', text.size) : NULL;
        struct bytes piece = {text.data, end ? (size_t)(end - text.data) : text.size};
        is_last = !end;
        is_right =
            definition->value_count < DEFINITION_VALUES_MOST && definition_take_value(arena, piece, &value);
        if (!is_right)
            break;
        definition->value_count++;
        value_join(&joined, value);
        text.data += piece.size + !is_last;
        text.size -= piece.size + !is_last;
    }
    if (definition->value_count > 1)
        value = arena_keep(arena, builder_bytes(&joined));
    definition->value = value;
    builder_free(&joined);
    return is_right;
}

bool definition_read(struct arena *arena, struct bytes text, struct definition *definition_r)
{
    *definition_r = (struct definition){.text = text, .class = text};
    if (!text.size || !bytes_is_utf8(text))
        return false;
    const char *slash = memchr(text.data, '/', text.size);
    if (slash)
        definition_r->class.size = (size_t)(slash - text.data);
    if (!item_is_class_name(definition_r->class))
        return false;
    if (!slash)
        return true;
    struct bytes rest = {slash + 1, text.size - definition_r->class.size - 1};
    const char *at = rest.size ? memchr(rest.data, '@', rest.size) : NULL;
    if (!at)
        return take_piece(arena, rest, &definition_r->id) && definition_r->id.size &&
               definition_r->id.size <= DEFINITION_ID_MOST;
    definition_r->collection = (struct bytes){rest.data, (size_t)(at - rest.data)};
    struct bytes values = {at + 1, rest.size - definition_r->collection.size - 1};
    return schema_is_field_name(definition_r->collection) && take_values(arena, values, definition_r);
}

static const struct bytes record_word = {"record:", 7}, prefix_word = {"records:", 8};

bool definition_is_of_records(struct bytes text)
{
    return bytes_has_prefix(text, record_word) || bytes_has_prefix(text, prefix_word);
}

/* A key, or the beginning of one.  '/' and '@', which encodeURIComponent escapes, divide definitions. */
static bool take_key(struct arena *arena, struct bytes text, struct bytes *key_r)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] == '/' || text.data[i] == '@')
            return false;
    return take_piece(arena, text, key_r) && key_r->size <= DEFINITION_KEY_MOST;
}

/* A range without any key is refused, and one of all keys, which is written as a prefix. */
static bool take_range(struct arena *arena, struct bytes from, struct bytes to, struct definition *definition)
{
    definition->kind = DEFINITION_OF_RANGE;
    if (!take_key(arena, from, &definition->value) || !take_key(arena, to, &definition->to))
        return false;
    int order = definition->to.size ? bytes_compare(definition->value, definition->to) : -1;
    if (order == 0)
        definition->kind = DEFINITION_OF_RECORD;
    if (order == 0 || !definition->to.size)
        definition->to = NO_BYTES;
    return order <= 0 && (definition->value.size || definition->to.size);
}

bool definition_read_records(struct arena *arena, struct bytes text, struct definition *definition_r)
{
    bool is_of_many = bytes_has_prefix(text, prefix_word);
    size_t head = is_of_many ? prefix_word.size : record_word.size;
    *definition_r =
        (struct definition){.text = text, .kind = is_of_many ? DEFINITION_OF_PREFIX : DEFINITION_OF_RECORD};
    if (!definition_is_of_records(text) || !bytes_is_utf8(text))
        return false;
    struct bytes rest = {text.data + head, text.size - head};
    const char *slash = is_of_many && rest.size ? memchr(rest.data, '/', rest.size) : NULL;
    if (slash) {
        struct bytes from = {rest.data, (size_t)(slash - rest.data)};
        return take_range(arena, from, (struct bytes){slash + 1, rest.size - from.size - 1}, definition_r);
    }
    return take_key(arena, rest, &definition_r->value) && (is_of_many || definition_r->value.size);
}

void definition_add_key(const struct definition *definition, struct builder *key)
{
    bool is_member = definition->collection.data != NULL;
    bool is_of_records = definition->kind != DEFINITION_OF_DOCUMENTS;
    const char *letter = definition->kind == DEFINITION_OF_RECORD   ? "r"
                         : definition->kind == DEFINITION_OF_PREFIX ? "p"
                         : definition->kind == DEFINITION_OF_RANGE  ? "i"
                         : is_member                                ? "m"
                         : definition->id.data                      ? "d"
                                                                    : "c";
    builder_add(key, letter, 1);
    builder_add_bytes(key, definition->class);
    builder_add(key, "/", 1);
    builder_add_bytes(key, definition->collection);
    builder_add(key, "@", 1);
    builder_add_bytes(key, is_member || is_of_records ? definition->value : definition->id);
    if (definition->kind == DEFINITION_OF_RANGE) {
        builder_add(key, "", 1); /* NUL is part of no key */
        builder_add_bytes(key, definition->to);
    }
}

bool definition_is_session(struct bytes name)
{
    if (name.size < SESSION_LEAST || name.size > SESSION_MOST)
        return false;
    for (size_t i = 0; i < name.size; i++) {
        char c = name.data[i];
        if (!((c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
              c == '_'))
            return false;
    }
    return true;
}
