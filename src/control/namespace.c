/* namespace: codes of namespaces, and their configurations as JSON. */
#include "control/namespace.h"

#include <string.h>

#include "edge/json.h"

enum { ORIGIN_MAX = 255 };

static const char *const reserved_codes[] = {"ping", "live", "ready", "metrics", "console", "doc"};
static const char *const access_words[] = {"closed", "read", "open"};

static bool is_lower(char c)
{
    return c >= 'a' && c <= 'z';
}

static bool is_digit(char c)
{
    return c >= '0' && c <= '9';
}

bool namespace_is_code(const char *code)
{
    size_t size = strlen(code);
    if (size < 1 || size > 16 || !is_lower(code[0]))
        return false;
    for (size_t i = 1; i < size; i++)
        if (!is_lower(code[i]) && !is_digit(code[i]))
            return false;
    return true;
}

bool namespace_is_reserved(const char *code)
{
    for (size_t i = 0; i < COUNT_OF(reserved_codes); i++)
        if (strcmp(code, reserved_codes[i]) == 0)
            return true;
    return strncmp(code, "qm", 2) == 0;
}

bool namespace_is_database(const char *name)
{
    size_t size = strlen(name);
    if (size < 1 || size > 63 || is_digit(name[0]) || name[0] == '-')
        return false;
    for (size_t i = 0; i < size; i++)
        if (!is_lower(name[i]) && !is_digit(name[i]) && !(name[i] >= 'A' && name[i] <= 'Z') &&
            name[i] != '_' && name[i] != '-')
            return false;
    return true;
}

bool namespace_is_access(const char *word)
{
    for (size_t i = 0; i < COUNT_OF(access_words); i++)
        if (strcmp(word, access_words[i]) == 0)
            return true;
    return false;
}

bool namespace_is_origin(const char *text)
{
    static const char scheme[] = "abcdefghijklmnopqrstuvwxyz0123456789+-.";
    static const char host[] = "abcdefghijklmnopqrstuvwxyz0123456789-.", digits[] = "0123456789";
    if (strcmp(text, "*") == 0)
        return true;
    size_t size = is_lower(*text) ? strspn(text, scheme) : 0;
    if (!size || strlen(text) > ORIGIN_MAX || strncmp(text + size, "://", 3) != 0)
        return false;
    text += size + 3;
    bool is_six = *text == '[';
    size = is_six ? 1 + strspn(text + 1, "0123456789abcdef:.") : strspn(text, host);
    if (!size || (is_six && (size == 1 || text[size++] != ']')))
        return false;
    text += size;
    size = *text == ':' ? strspn(text + 1, digits) : 0;
    return !*text || (size >= 1 && size <= 5 && !text[1 + size]);
}

/* A text member, or the default when it is absent or null; false when it has another type. */
static bool text_member(struct arena *arena, const struct json *object, const char *name,
                        const char *standard, const char **text_r)
{
    const struct json *member = json_member(object, name);
    *text_r = standard;
    if (!member || member->kind == JSON_NULL)
        return true;
    if (member->kind != JSON_STRING)
        return false;
    *text_r = arena_copy(arena, member->value.data, member->value.size);
    return true;
}

static const struct json *read_object(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 1};
    struct json_problem problem;
    struct json *root;
    if (json_read(arena, text, &limits, &root, &problem) != FAULT_NONE || root->kind != JSON_OBJECT)
        return NULL;
    return root;
}

bool namespace_read_conf(struct arena *arena, const char *code, struct bytes text,
                         struct namespace_conf *conf_r)
{
    const struct json *object = read_object(arena, text);
    *conf_r = (struct namespace_conf){.code = code, .text = text};
    conf_r->database = conf_r->off = "";
    conf_r->access = "closed";
    conf_r->is_malformed = !object || !text_member(arena, object, "database", "", &conf_r->database) ||
                           !namespace_is_database(conf_r->database);
    if (conf_r->is_malformed)
        conf_r->database = "";
    if (object &&
        (!text_member(arena, object, "access", "closed", &conf_r->access) ||
         !text_member(arena, object, "off", "", &conf_r->off) || !namespace_is_access(conf_r->access))) {
        conf_r->is_malformed = true;
        conf_r->access = "?";
    }
    return !conf_r->is_malformed;
}

static void add_member(struct builder *builder, struct bytes name, struct bytes value)
{
    if (builder->size > 1)
        builder_add_text(builder, ",");
    json_add_string(builder, name);
    builder_add_text(builder, ":");
    builder_add_bytes(builder, value);
}

struct bytes namespace_set_json(struct arena *arena, struct bytes text, const char *name, struct bytes value)
{
    const struct json *object = text.data ? read_object(arena, text) : NULL;
    struct builder builder = {0};
    bool is_set = !value.data;
    builder_add_text(&builder, "{");
    for (const struct json *member = object ? object->first : NULL; member; member = member->next) {
        if (!bytes_equal(member->name, bytes_of(name))) {
            add_member(&builder, member->name, member->text);
        } else if (!is_set) {
            add_member(&builder, member->name, value);
            is_set = true;
        }
    }
    if (!is_set)
        add_member(&builder, bytes_of(name), value);
    builder_add_text(&builder, "}");
    struct bytes result = {arena_copy(arena, builder.data, builder.size), builder.size};
    builder_free(&builder);
    return result;
}

struct bytes namespace_set_member(struct arena *arena, struct bytes text, const char *name, const char *value)
{
    struct builder string = {0};
    if (value)
        json_add_string(&string, bytes_of(value));
    struct bytes result = namespace_set_json(arena, text, name, value ? builder_bytes(&string) : NO_BYTES);
    builder_free(&string);
    return result;
}

const char *namespace_escape(const char *code)
{
    bool is_word = strcmp(code, "default") == 0 || strcmp(code, "hostnames") == 0 ||
                   strcmp(code, "include") == 0 || strcmp(code, "volatile") == 0;
    return is_word ? "\\" : "";
}
