/* attachment_head: type, name, caches. */
#include "operation/attachments/attachment_head.h"

#include <strings.h>

#include "operation/reply.h"

enum { NAME_MOST = 200 /* bytes; file systems allow 255 */ };

bool attachment_head_is_inline(const char *types, struct bytes mime)
{
    struct bytes type = bytes_cut(&mime, ';'), list = bytes_of(types);
    while (type.size && type.data[type.size - 1] == ' ')
        type.size--;
    while (list.size) {
        struct bytes word = bytes_cut(&list, ' ');
        bool is_group = word.size > 2 && memcmp(word.data + word.size - 2, "/*", 2) == 0;
        size_t size = is_group ? word.size - 1 : word.size;
        if (word.size && (is_group ? type.size > size : type.size == size) &&
            strncasecmp(type.data, word.data, size) == 0)
            return true;
    }
    return false;
}

/* U+200E, U+200F, U+202A to U+202E, U+2066 to U+2069: a name could show another extension than it has. */
static bool is_direction(const unsigned char *text, size_t size)
{
    if (size < 3 || text[0] != 0xE2)
        return false;
    return (text[1] == 0x80 &&
            (text[2] == 0x8E || text[2] == 0x8F || (text[2] >= 0xAA && text[2] <= 0xAE))) ||
           (text[1] == 0x81 && text[2] >= 0xA6 && text[2] <= 0xA9);
}

static bool is_c1(const unsigned char *text, size_t size)
{
    return size >= 2 && text[0] == 0xC2 && text[1] < 0xA0;
}

static bool is_unsafe(unsigned char byte)
{
    return byte < ' ' || byte == 0x7F || strchr("/\\:*?\"<>|", byte);
}

/* The name that may be shown and saved: valid UTF-8, not too long, not hidden. */
static struct bytes clean(struct arena *arena, struct bytes name)
{
    const unsigned char *text = (const unsigned char *)name.data;
    char *safe = arena_alloc(arena, name.size + 1);
    size_t size = 0;
    for (size_t i = 0; i < name.size && size < NAME_MOST;) {
        size_t skip = is_direction(text + i, name.size - i) ? 3 : is_c1(text + i, name.size - i) ? 2 : 0;
        bool is_bad = skip || is_unsafe(text[i]) || (text[i] == '.' && size == 0);
        safe[size++] = is_bad ? '_' : (char)text[i];
        i += skip ? skip : 1;
    }
    if (size == NAME_MOST) { /* it may have been cut inside a character */
        while (size && ((unsigned char)safe[size - 1] & 0xC0) == 0x80)
            size--;
        if (size && (unsigned char)safe[size - 1] >= 0xC0)
            size--;
    }
    return size ? (struct bytes){safe, size} : BYTES("file");
}

static bool is_attribute(unsigned char byte) /* attr-char of RFC 8187 */
{
    return (byte >= '0' && byte <= '9') || ((byte | 0x20) >= 'a' && (byte | 0x20) <= 'z') ||
           (byte && strchr("!#$&+-.^_`|~", byte));
}

const char *attachment_head_disposition(struct arena *arena, bool is_inline, struct bytes name)
{
    struct builder builder = {0};
    struct bytes safe = clean(arena, name);
    bool is_plain = true;
    builder_printf(&builder, "%s; filename=\"", is_inline ? "inline" : "attachment");
    for (size_t i = 0; i < safe.size; i++) {
        unsigned char byte = (unsigned char)safe.data[i];
        if ((byte & 0xC0) == 0x80)
            continue; /* one mark for a whole character */
        is_plain = is_plain && byte < 0x80 && byte != '%';
        builder_add(&builder, byte < 0x80 && byte != '%' ? safe.data + i : "_", 1);
    }
    builder_add_text(&builder, "\"");
    if (!is_plain)
        builder_add_text(&builder, "; filename*=UTF-8''");
    for (size_t i = 0; !is_plain && i < safe.size; i++) {
        if (is_attribute((unsigned char)safe.data[i]))
            builder_add(&builder, safe.data + i, 1);
        else
            builder_printf(&builder, "%%%02X", (unsigned)(unsigned char)safe.data[i]);
    }
    const char *text = arena_copy(arena, builder.data, builder.size);
    builder_free(&builder);
    return text;
}

/* May a cache that others use keep it?  Only what anybody may read without a name. */
static bool is_public(const struct call *call)
{
    return !call->rules && !call->admin.size && !call->bearer.data && !call->token.data &&
           !call->caller.account.data && !call->cookies.size && call->level >= LEVEL_READ;
}

void attachment_head_set(struct attempt *attempt, const struct attachment *attachment, struct bytes key,
                         bool is_held, const struct attachment_object *object)
{
    char sha[BLOB_HEX + 1];
    struct call *call = attempt->call;
    const struct settings *settings = attempt->worker_context->settings;
    struct reply_attachment *head = ARENA_NEW(call->arena, struct reply_attachment);
    bool is_inline = attachment_head_is_inline(settings->blob_inline_types, attachment->mime);
    blob_store_write_digest(&attachment->digest, sha);
    *head = (struct reply_attachment){
        .sha = arena_copy(call->arena, sha, BLOB_HEX),
        .disposition = attachment_head_disposition(call->arena, is_inline, key),
        .is_public = is_public(call),
        .is_immutable = call->attachment->sha.data != NULL,
    };
    if (!is_held && object)
        attachment_object_set(call, object, attachment->size, head);
    else if (!is_held)
        head->location = blob_store_locate(call->arena, call->database, &attachment->digest);
    attempt->reply->attachment = head;
    attempt->reply->mime = arena_copy(call->arena, attachment->mime.data, attachment->mime.size);
}
