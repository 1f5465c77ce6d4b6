/* resource_file: paths, media types and contents of files. */
#include "model/resource_file.h"

#include <string.h>

#include "base/coding/base64.h"
#include "edge/json/json.h"

/* --- paths --- */

#define PATH_EXPECTED                                                                                        \
    "A path is expected: 1 to 200 bytes of UTF-8, up to 16 parts between slashes, none empty, . or .., "     \
    "without control characters and any of \\ % ? #."

static bool is_part(struct bytes part)
{
    return part.size && !bytes_equal(part, BYTES(".")) && !bytes_equal(part, BYTES(".."));
}

const char *resource_file_refuse_path(struct bytes path)
{
    struct bytes rest = path;
    int depth = 1;
    if (!path.size || path.size > RESOURCE_FILE_PATH_MOST || !bytes_is_utf8(path))
        return PATH_EXPECTED;
    for (size_t i = 0; i < path.size; i++) {
        unsigned char byte = (unsigned char)path.data[i];
        if (byte < ' ' || byte == 0x7f || byte == '\\' || byte == '%' || byte == '?' || byte == '#')
            return PATH_EXPECTED;
        depth += byte == '/';
    }
    if (depth > RESOURCE_FILE_DEPTH_MOST)
        return PATH_EXPECTED;
    for (int i = 0; i < depth; i++)
        if (!is_part(bytes_cut(&rest, '/')))
            return PATH_EXPECTED;
    return NULL;
}

struct bytes resource_file_join(struct arena *arena, const struct bytes *pieces, size_t count)
{
    size_t size = count ? count - 1 : 0, place = 0;
    for (size_t i = 0; i < count; i++) {
        if (memchr(pieces[i].data, '/', pieces[i].size))
            return NO_BYTES;
        size += pieces[i].size;
    }
    if (size > RESOURCE_FILE_PATH_MOST)
        return NO_BYTES;
    char *path = arena_alloc(arena, size + 1);
    for (size_t i = 0; i < count; i++) {
        if (i)
            path[place++] = '/';
        memcpy(path + place, pieces[i].data, pieces[i].size);
        place += pieces[i].size;
    }
    struct bytes result = {path, place};
    return resource_file_refuse_path(result) ? NO_BYTES : result;
}

/* --- media types --- */

static const struct {
    const char *extension, *type;
} types[] = {
    {"avif", "image/avif"},
    {"css", "text/css; charset=utf-8"},
    {"csv", "text/csv; charset=utf-8"},
    {"gif", "image/gif"},
    {"ico", "image/x-icon"},
    {"jpeg", "image/jpeg"},
    {"jpg", "image/jpeg"},
    {"js", "text/javascript; charset=utf-8"},
    {"json", "application/json"},
    {"map", "application/json"},
    {"md", "text/markdown; charset=utf-8"},
    {"mjs", "text/javascript; charset=utf-8"},
    {"mp3", "audio/mpeg"},
    {"mp4", "video/mp4"},
    {"ogg", "audio/ogg"},
    {"otf", "font/otf"},
    {"pdf", "application/pdf"},
    {"png", "image/png"},
    {"ttf", "font/ttf"},
    {"txt", "text/plain; charset=utf-8"},
    {"wasm", "application/wasm"},
    {"webm", "video/webm"},
    {"webmanifest", "application/manifest+json"},
    {"webp", "image/webp"},
    {"woff", "font/woff"},
    {"woff2", "font/woff2"},
};

static char lower(char c)
{
    return c >= 'A' && c <= 'Z' ? (char)(c | 0x20) : c;
}

static bool is_extension(struct bytes extension, const char *name)
{
    size_t size = strlen(name);
    if (extension.size != size)
        return false;
    for (size_t i = 0; i < size; i++)
        if (lower(extension.data[i]) != name[i])
            return false;
    return true;
}

const char *resource_file_type(struct bytes path)
{
    const char *slash = memrchr(path.data, '/', path.size);
    size_t start = slash ? (size_t)(slash - path.data) + 1 : 0;
    const char *dot = memrchr(path.data + start, '.', path.size - start);
    if (!dot || dot == path.data + start) /* .css is the name of a hidden file */
        return NULL;
    struct bytes extension = {dot + 1, path.size - (size_t)(dot + 1 - path.data)};
    for (size_t i = 0; i < COUNT_OF(types); i++)
        if (is_extension(extension, types[i].extension))
            return types[i].type;
    return NULL;
}

static bool resource_file_is_token(struct bytes text)
{
    static const char others[] = "!#$&^_.+-";
    for (size_t i = 0; i < text.size; i++) {
        char c = text.data[i];
        bool is_one = (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || (c && strchr(others, c));
        if (!is_one)
            return false;
    }
    return text.size > 0;
}

#define TYPE_EXPECTED                                                                                        \
    "A media type is expected, in lower case: type/subtype, with parameters as \"; charset=utf-8\" or "      \
    "none; "                                                                                                 \
    "not multipart."

static bool is_parameter(struct bytes text)
{
    while (text.size && *text.data == ' ')
        text = (struct bytes){text.data + 1, text.size - 1};
    struct bytes name = bytes_cut(&text, '=');
    return resource_file_is_token(name) && resource_file_is_token(text);
}

const char *resource_file_refuse_type(struct bytes type)
{
    struct bytes rest = type, essence = bytes_cut(&rest, ';'), subtype = essence;
    bool has_slash = essence.size && memchr(essence.data, '/', essence.size);
    struct bytes main = bytes_cut(&subtype, '/');
    if (type.size > RESOURCE_FILE_TYPE_MOST || !has_slash || !resource_file_is_token(main) ||
        !resource_file_is_token(subtype) || bytes_equal(main, BYTES("multipart")))
        return TYPE_EXPECTED;
    if (essence.size == type.size)
        return NULL;
    while (rest.size) {
        size_t left = rest.size;
        struct bytes parameter = bytes_cut(&rest, ';');
        if (!is_parameter(parameter) || parameter.size + 1 == left) /* ends with a semicolon */
            return TYPE_EXPECTED;
    }
    return essence.size + 1 == type.size ? TYPE_EXPECTED : NULL;
}

static bool ends_with(struct bytes text, struct bytes end)
{
    return text.size >= end.size && memcmp(text.data + text.size - end.size, end.data, end.size) == 0;
}

bool resource_file_is_active(struct bytes type)
{
    struct bytes rest = type, essence = bytes_cut(&rest, ';');
    return bytes_equal(essence, BYTES("text/html")) || bytes_equal(essence, BYTES("text/xsl")) ||
           ends_with(essence, BYTES("/xml")) || ends_with(essence, BYTES("+xml"));
}

const char *resource_file_refuse_policy(struct bytes policy)
{
    bool is_one = policy.size <= RESOURCE_FILE_POLICY_MOST;
    for (size_t i = 0; i < policy.size && is_one; i++)
        is_one = policy.data[i] >= ' ' && policy.data[i] <= '~';
    return is_one ? NULL : "A Content-Security-Policy is expected: at most 1000 bytes of printable ASCII.";
}

/* --- contents of items --- */

struct bytes resource_file_write(struct arena *arena, const struct resource_file *file)
{
    struct builder json = {0};
    json_add_text(&json, "{\"type\":", file->type);
    builder_printf(&json, ",\"size\":%lld,\"sha256\":", (long long)file->size);
    json_add_string(&json, file->sha256);
    if (file->policy.data)
        json_add_text(&json, ",\"policy\":", file->policy);
    builder_add_text(&json, "}");
    return builder_take(&json, arena);
}

static bool resource_file_is_digest(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (!strchr("0123456789abcdef", text.data[i]) || !text.data[i])
            return false;
    return text.size == RESOURCE_FILE_SHA256;
}

bool resource_file_read(struct arena *arena, struct bytes content, struct resource_file *file_r)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 1, .nodes = 16};
    struct json *object;
    struct json_problem problem;
    *file_r = (struct resource_file){0};
    if (!content.data || json_read(arena, content, &limits, &object, &problem))
        return false;
    const struct json *type = json_member(object, "type"), *size = json_member(object, "size");
    const struct json *sha256 = json_member(object, "sha256"), *policy = json_member(object, "policy");
    bool is_one = type && size && sha256 && json_is_i64(size, &file_r->size) && file_r->size >= 0 &&
                  type->kind == JSON_STRING && !resource_file_refuse_type(type->value) &&
                  sha256->kind == JSON_STRING && resource_file_is_digest(sha256->value) &&
                  (!policy || (policy->kind == JSON_STRING && !resource_file_refuse_policy(policy->value)));
    if (!is_one)
        return false;
    file_r->type = type->value;
    file_r->sha256 = sha256->value;
    file_r->policy = policy ? policy->value : NO_BYTES;
    return true;
}

struct bytes resource_file_id(struct arena *arena, struct bytes code, struct bytes path)
{
    const char *id = arena_printf(arena, "%.*s/%.*s", (int)code.size, code.data, (int)path.size, path.data);
    return (struct bytes){id, code.size + 1 + path.size};
}

struct bytes resource_file_part_key(struct arena *arena, size_t number)
{
    return bytes_of(arena_printf(arena, "%04zu", number));
}

size_t resource_file_part_bytes(int64_t limit_content_bytes)
{
    int64_t most = limit_content_bytes / 4 * 3;
    return most < RESOURCE_FILE_PART_BYTES ? (size_t)most : RESOURCE_FILE_PART_BYTES;
}

struct bytes resource_file_encode(struct arena *arena, struct bytes piece)
{
    struct builder text = {0};
    base64_add(&text, piece);
    struct bytes result = {arena_copy(arena, text.data ? text.data : "", text.size), text.size};
    builder_free(&text);
    return result;
}

struct bytes resource_file_decode(struct arena *arena, struct bytes text)
{
    while (text.size && text.data[text.size - 1] == '=')
        text.size--;
    size_t size = text.size / 4 * 3 + (text.size % 4 ? text.size % 4 - 1 : 0);
    char *plain = (char *)text.data, *bytes = arena_alloc(arena, size + 1);
    if (text.size % 4 == 1)
        return NO_BYTES;
    if (text.size && (memchr(text.data, '+', text.size) || memchr(text.data, '/', text.size))) {
        plain = arena_copy(arena, text.data, text.size);
        for (size_t i = 0; i < text.size; i++)
            plain[i] = plain[i] == '+' ? '-' : plain[i] == '/' ? '_' : plain[i];
    }
    if (!base64_read((struct bytes){plain, text.size}, bytes, size))
        return NO_BYTES;
    bytes[size] = '\0';
    return (struct bytes){bytes, size};
}
