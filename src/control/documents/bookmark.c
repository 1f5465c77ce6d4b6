/* bookmark: a few lines of text, replaced in one step, refused when they belong to another load. */
#include "control/documents/bookmark.h"

static const char first_line[] = "stampctl load 1";

struct bytes bookmark_compose(struct arena *arena, const struct bookmark *bookmark)
{
    char *text =
        arena_printf(arena, "%s\nline %lld\nbyte %lld\nnamespace %s\nfile %s\n", first_line,
                     (long long)bookmark->line, (long long)bookmark->offset, bookmark->ns, bookmark->file);
    return bytes_of(text);
}

/* Takes "word value\n" off the front of the text. */
static bool bookmark_take_line(struct bytes *text, const char *word, struct bytes *value_r)
{
    size_t size = strlen(word);
    const char *end = text->size ? memchr(text->data, '\n', text->size) : NULL;
    if (!end || (size_t)(end - text->data) < size + 1 || memcmp(text->data, word, size) != 0 ||
        text->data[size] != ' ')
        return false;
    *value_r = (struct bytes){text->data + size + 1, (size_t)(end - text->data) - size - 1};
    text->size -= (size_t)(end - text->data) + 1;
    text->data = end + 1;
    return true;
}

bool bookmark_parse(struct arena *arena, struct bytes text, struct bookmark *bookmark_r)
{
    size_t head = sizeof first_line - 1;
    struct bytes line, offset, ns, file;
    if (text.size <= head || memcmp(text.data, first_line, head) != 0 || text.data[head] != '\n')
        return false;
    text.data += head + 1;
    text.size -= head + 1;
    if (!bookmark_take_line(&text, "line", &line) || !bookmark_take_line(&text, "byte", &offset) ||
        !bookmark_take_line(&text, "namespace", &ns) || !bookmark_take_line(&text, "file", &file) ||
        text.size)
        return false;
    bookmark_r->ns = arena_copy(arena, ns.data, ns.size);
    bookmark_r->file = arena_copy(arena, file.data, file.size);
    return bytes_to_i64(line, &bookmark_r->line) && bytes_to_i64(offset, &bookmark_r->offset) &&
           bookmark_r->line >= 0 && bookmark_r->offset >= 0;
}
