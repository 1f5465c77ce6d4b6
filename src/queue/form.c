/* form: name=value pairs, and JSON. */
#include "queue/form.h"

#include <string.h>
#include <strings.h>

#include "base/names.h"

static const char arguments[] = "op key param";
static const struct json_limits limits = {.depth = 8, .tree_depth = 8, .nodes = 1000};

static int hex_value(char digit)
{
    if (digit >= '0' && digit <= '9')
        return digit - '0';
    digit |= 0x20;
    return digit >= 'a' && digit <= 'f' ? digit - 'a' + 10 : -1;
}

/* Decodes escapes; false: one is malformed, or the text is not UTF-8 without NUL. */
static bool decode(struct arena *arena, struct bytes text, struct bytes *decoded_r)
{
    char *decoded = arena_alloc(arena, text.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < text.size; i++) {
        char byte = text.data[i];
        if (byte == '%') {
            int high = text.size - i > 2 ? hex_value(text.data[i + 1]) : -1;
            int low = text.size - i > 2 ? hex_value(text.data[i + 2]) : -1;
            if (high < 0 || low < 0)
                return false;
            byte = (char)(high << 4 | low);
            i += 2;
        }
        if (!byte)
            return false;
        decoded[size++] = byte == '+' && text.data[i] == '+' ? ' ' : byte;
    }
    *decoded_r = (struct bytes){decoded, size};
    return bytes_is_utf8(*decoded_r);
}

static struct bytes next_pair(struct bytes *rest, struct bytes *name_r)
{
    const char *end = memchr(rest->data, '&', rest->size);
    struct bytes pair = {rest->data, end ? (size_t)(end - rest->data) : rest->size};
    size_t used = pair.size + (end != NULL);
    *rest = (struct bytes){rest->data + used, rest->size - used};
    const char *equal = pair.size ? memchr(pair.data, '=', pair.size) : NULL;
    *name_r = (struct bytes){pair.data, equal ? (size_t)(equal - pair.data) : pair.size};
    return equal ? (struct bytes){equal + 1, pair.size - name_r->size - 1} : BYTES("");
}

enum fault form_check_name(struct arena *arena, struct form *form, const char *known, const char *parent,
                           struct bytes name)
{
    struct builder text = {0};
    if (names_have(known, name) || !bytes_is_utf8(name))
        return names_have(known, name) ? FAULT_NONE : FAULT_AARG;
    names_explain(known, "member", name, &text);
    form->detail = arena_copy(arena, text.data, text.size);
    text.size = 0;
    builder_add_bytes(&text, bytes_of(parent));
    json_add_pointer_name(&text, name);
    form->at = arena_copy(arena, text.data, text.size);
    builder_free(&text);
    form->name = name;
    form->nearest = names_nearest(known, name);
    return FAULT_AARG;
}

static enum fault read_param(struct arena *arena, struct bytes text, struct form *form)
{
    struct json_problem problem;
    struct json *root;
    enum fault fault = json_read(arena, text, &limits, &root, &problem);
    form->param = fault ? NULL : root;
    return fault ? fault : root->kind == JSON_OBJECT ? FAULT_NONE : FAULT_AARG;
}

static enum fault read_pairs(struct arena *arena, struct bytes rest, bool is_query, struct form *form)
{
    while (rest.size) {
        struct bytes name, value, text = next_pair(&rest, &name);
        if (!decode(arena, text, &value) || !decode(arena, name, &name))
            return FAULT_AARG;
        if (bytes_equal(name, BYTES("op")))
            form->op = value;
        else if (bytes_equal(name, BYTES("key")) && is_query)
            return FAULT_SKEY;
        else if (bytes_equal(name, BYTES("key")))
            form->key = value;
        else if (bytes_equal(name, BYTES("param"))) {
            enum fault fault = read_param(arena, value, form);
            if (fault)
                return fault;
        } else if (form_check_name(arena, form, arguments, "", name))
            return FAULT_AARG;
    }
    return FAULT_NONE;
}

static enum fault read_json(struct arena *arena, struct bytes body, struct form *form)
{
    struct json_problem problem;
    struct json *root;
    enum fault fault = json_read(arena, body, &limits, &root, &problem);
    if (fault)
        return fault;
    for (const struct json *member = root->first; member; member = member->next)
        if (root->kind == JSON_OBJECT && form_check_name(arena, form, arguments, "", member->name))
            return FAULT_AARG;
    const struct json *op = json_member(root, "op"), *key = json_member(root, "key");
    if (root->kind != JSON_OBJECT || (op && op->kind != JSON_STRING) || (key && key->kind != JSON_STRING))
        return FAULT_AARG;
    form->param = json_member(root, "param");
    form->op = op ? op->value : form->op;
    form->key = key ? key->value : NO_BYTES;
    return form->param && form->param->kind != JSON_OBJECT ? FAULT_AARG : FAULT_NONE;
}

static bool is_type(struct bytes type, const char *expected)
{
    size_t size = strlen(expected);
    return type.size >= size && strncasecmp(type.data, expected, size) == 0 &&
           (type.size == size || type.data[size] == ';' || type.data[size] == ' ');
}

enum fault form_read(struct arena *arena, struct bytes query, struct bytes content_type, struct bytes body,
                     struct form *form_r)
{
    *form_r = (struct form){0};
    enum fault fault = read_pairs(arena, query, true, form_r);
    if (fault || !body.size)
        return fault;
    if (is_type(content_type, "application/json"))
        return read_json(arena, body, form_r);
    if (is_type(content_type, "application/x-www-form-urlencoded"))
        return read_pairs(arena, body, false, form_r);
    return FAULT_ATYPE;
}
