/* form: name=value pairs, and JSON. */
#include "queue/form.h"

#include <string.h>
#include <strings.h>

#include "base/names.h"
#include "base/coding/percent.h"

static const char arguments[] = "op key param";
static const struct json_limits limits = {.depth = 8, .tree_depth = 8, .nodes = 1000};

/* False: an escape is malformed, or the text is not UTF-8 without NUL. */
static bool form_decode(struct arena *arena, struct bytes text, struct bytes *decoded_r)
{
    const char *what;
    return percent_decode(arena, text, true, decoded_r, &what) == FAULT_NONE && bytes_is_utf8(*decoded_r);
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
    form->at = builder_take(&text, arena).data;
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
        struct bytes value = bytes_cut(&rest, '&'), name = bytes_cut(&value, '=');
        if (!form_decode(arena, value, &value) || !form_decode(arena, name, &name))
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
