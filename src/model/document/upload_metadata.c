/* upload_metadata: pairs separated by commas, a name and its value by a space. */
#include "model/document/upload_metadata.h"

#include "base/coding/base64.h"
#include "model/document/attachment.h"

/* The alphabet with + and /, with its padding; an absent value is an empty one. */
static bool upload_metadata_read_value(struct arena *arena, struct bytes text, struct bytes *value_r)
{
    size_t padding = 0;
    *value_r = BYTES("");
    if (!text.size)
        return true;
    while (padding < 2 && padding < text.size && text.data[text.size - 1 - padding] == '=')
        padding++;
    if (text.size % 4)
        return false;
    char *letters = arena_copy(arena, text.data, text.size);
    for (size_t i = 0; i < text.size; i++) {
        if (letters[i] == '-' || letters[i] == '_')
            return false;
        letters[i] = letters[i] == '+' ? '-' : letters[i] == '/' ? '_' : letters[i];
    }
    size_t size = text.size / 4 * 3 - padding;
    char *value = arena_alloc(arena, size + 1);
    *value_r = (struct bytes){value, size};
    return base64_read_strict((struct bytes){letters, text.size - padding}, value, size);
}

static bool upload_metadata_is_text(struct bytes text)
{
    return text.size && bytes_is_utf8(text) && !memchr(text.data, '\0', text.size);
}

static bool is_printable(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < ' ' || text.data[i] > '~')
            return false;
    return true;
}

bool upload_metadata_read(struct arena *arena, struct bytes text, struct upload_metadata *metadata_r)
{
    struct bytes file_name = NO_BYTES;
    *metadata_r = (struct upload_metadata){0};
    const struct {
        const char *name;
        struct bytes *value;
    } known[] = {{"class", &metadata_r->class},
                 {"id", &metadata_r->id},
                 {"key", &metadata_r->key},
                 {"filename", &file_name},
                 {"filetype", &metadata_r->mime}};
    if (text.size > UPLOAD_METADATA_MOST || !is_printable(text))
        return false;
    while (text.size) {
        struct bytes value = bytes_trim(bytes_cut(&text, ','));
        struct bytes name = bytes_cut(&value, ' ');
        for (size_t i = 0; i < COUNT_OF(known); i++) {
            if (!bytes_equal(name, bytes_of(known[i].name)))
                continue;
            if (known[i].value->data || !upload_metadata_read_value(arena, value, known[i].value))
                return false;
        }
    }
    if (!metadata_r->key.size)
        metadata_r->key = file_name;
    return upload_metadata_is_text(metadata_r->class) && upload_metadata_is_text(metadata_r->id) &&
           upload_metadata_is_text(metadata_r->key) &&
           (!metadata_r->mime.size || attachment_is_mime(metadata_r->mime));
}
