/* attachment: the content has one form, so its end is where the digest and the size are found. */
#include "model/document/attachment.h"

#include <inttypes.h>
#include <string.h>

#include "base/builder.h"
#include "edge/json/json.h"

#define BEFORE_MIME "{\"mime\":"
#define BEFORE_SIZE ",\"size\":"
#define BEFORE_SHA  ",\"sha\":\""
#define AFTER_SHA   "\"}"
enum {
    SHA_BYTES = sizeof BEFORE_SHA - 1 + BLOB_HEX + sizeof AFTER_SHA - 1,
    DIGITS_MOST = 18, /* far above any file */
};

bool attachment_is_mime(struct bytes mime)
{
    const char *slash =
        mime.size && mime.size <= ATTACHMENT_MIME_MOST ? memchr(mime.data, '/', mime.size) : NULL;
    if (!slash || slash == mime.data || slash + 1 == mime.data + mime.size || slash[1] == ';')
        return false;
    for (size_t i = 0; i < mime.size; i++) {
        unsigned char c = (unsigned char)mime.data[i];
        bool is_name = &mime.data[i] > slash ? c >= ' ' : c > ' ';
        if (!is_name || c >= 0x7f)
            return false;
    }
    return slash[1] != ' ';
}

struct bytes attachment_write(struct arena *arena, const struct attachment *attachment)
{
    char sha[BLOB_HEX + 1];
    struct builder text = {0};
    blob_store_write_digest(&attachment->digest, sha);
    builder_add_text(&text, BEFORE_MIME);
    json_add_string(&text, attachment->mime);
    builder_printf(&text, BEFORE_SIZE "%" PRId64 BEFORE_SHA "%s" AFTER_SHA, attachment->size, sha);
    return builder_take(&text, arena);
}

static bool ends_with(struct bytes text, const char *end)
{
    size_t size = strlen(end);
    return text.size >= size && memcmp(text.data + text.size - size, end, size) == 0;
}

/* Reads from the end; `rest_r`: what stands before the size. */
static bool read_end(struct bytes content, struct bytes *rest_r, int64_t *size_r, struct bytes *sha_r)
{
    struct bytes rest = content;
    if (rest.size < SHA_BYTES || !ends_with(rest, AFTER_SHA))
        return false;
    *sha_r = (struct bytes){rest.data + rest.size - BLOB_HEX - (sizeof AFTER_SHA - 1), BLOB_HEX};
    rest.size -= BLOB_HEX + sizeof AFTER_SHA - 1;
    if (!ends_with(rest, BEFORE_SHA))
        return false;
    rest.size -= sizeof BEFORE_SHA - 1;
    size_t digits = 0;
    while (digits < rest.size && digits < DIGITS_MOST && rest.data[rest.size - digits - 1] >= '0' &&
           rest.data[rest.size - digits - 1] <= '9')
        digits++;
    struct bytes number = {rest.data + rest.size - digits, digits};
    rest.size -= digits;
    if (!digits || (digits > 1 && number.data[0] == '0') || !ends_with(rest, BEFORE_SIZE) ||
        !bytes_to_i64(number, size_r))
        return false;
    rest.size -= sizeof BEFORE_SIZE - 1;
    *rest_r = rest;
    return true;
}

bool attachment_read(struct arena *arena, struct bytes content, struct attachment *attachment_r)
{
    const size_t before = sizeof BEFORE_MIME - 1;
    struct bytes rest, sha;
    struct json *mime;
    if (!read_end(content, &rest, &attachment_r->size, &sha) ||
        !blob_store_read_digest(sha, &attachment_r->digest) || rest.size < before ||
        memcmp(rest.data, BEFORE_MIME, before) != 0)
        return false;
    struct bytes text = {rest.data + before, rest.size - before};
    if (!json_is_tree(arena, text, 1, 1, &mime) || mime->kind != JSON_STRING)
        return false;
    attachment_r->mime = mime->value;
    return attachment_is_mime(mime->value);
}

int64_t attachment_size(struct bytes content)
{
    struct bytes rest, sha;
    int64_t size;
    return content.data && read_end(content, &rest, &size, &sha) ? size : 0;
}

struct attachment_form attachment_form(struct bytes mime)
{
    static const struct {
        const char *end;
        bool is_gzipped, is_encrypted;
    } ends[] = {{".gc", true, true}, {".g", true, false}, {".c", false, true}};
    for (size_t i = 0; i < COUNT_OF(ends); i++)
        if (ends_with(mime, ends[i].end))
            return (struct attachment_form){
                {mime.data, mime.size - strlen(ends[i].end)}, ends[i].is_gzipped, ends[i].is_encrypted};
    return (struct attachment_form){.type = mime};
}
