/* page: extracts from JSON the members that dump and purge need. */
#include "control/documents/page.h"

#include "edge/json/json.h"

/* Depths: the answer, out, docs, document; the content of a document is copied as it is written. */
enum { DEPTH_MOST = 256, LEVEL_OF_DOCUMENT = 4 };

/* The array `name` of `out`, and its cursor. */
static const struct json *read_array(struct arena *arena, struct bytes text, const char *name,
                                     struct bytes *cursor_r)
{
    struct json *root;
    *cursor_r = NO_BYTES;
    if (!json_is_tree(arena, text, DEPTH_MOST, LEVEL_OF_DOCUMENT, &root))
        return NULL;
    const struct json *out = json_member(root, "out");
    const struct json *array = json_member(out, name), *cursor = json_member(out, "cursor");
    if (cursor)
        *cursor_r = cursor->value;
    bool is_cursor = !cursor || (cursor->kind == JSON_STRING && cursor->value.size);
    return array && array->kind == JSON_ARRAY && is_cursor ? array : NULL;
}

static bool page_is_name(const struct json *text)
{
    return text && text->kind == JSON_STRING && text->value.size;
}

bool page_read_classes(struct arena *arena, struct bytes text, struct bytes **classes_r, size_t *count_r,
                       struct bytes *cursor_r)
{
    const struct json *array = read_array(arena, text, "classes", cursor_r);
    if (!array)
        return false;
    *classes_r = ARENA_ARRAY(arena, struct bytes, array->count);
    *count_r = 0;
    for (const struct json *class = array->first; class; class = class->next) {
        if (!page_is_name(class))
            return false;
        (*classes_r)[(*count_r)++] = class->value;
    }
    return true;
}

bool page_read_names(struct arena *arena, struct bytes text, struct page_name **names_r, size_t *count_r,
                     struct bytes *cursor_r)
{
    const struct json *array = read_array(arena, text, "docs", cursor_r);
    if (!array)
        return false;
    *names_r = ARENA_ARRAY(arena, struct page_name, array->count);
    *count_r = 0;
    for (const struct json *header = array->first; header; header = header->next) {
        const struct json *class = json_member(header, "c"), *id = json_member(header, "id");
        int64_t version;
        if (!page_is_name(class) || !page_is_name(id) || !json_is_i64(json_member(header, "v"), &version))
            return false;
        (*names_r)[(*count_r)++] = (struct page_name){class->value, id->value, version};
    }
    return true;
}

/* A JSON string has no line end, so a line end is always between two members. */
static void add_line(struct builder *lines, struct bytes text)
{
    char *line = builder_reserve(lines, text.size + 1);
    for (size_t i = 0; i < text.size; i++)
        line[i] = text.data[i] == '\n' || text.data[i] == '\r' ? ' ' : text.data[i];
    line[text.size] = '\n';
    lines->size += text.size + 1;
}

bool page_read_documents(struct arena *arena, struct bytes text, size_t count, struct builder *lines,
                         size_t *written_r)
{
    struct bytes cursor;
    const struct json *array = read_array(arena, text, "docs", &cursor);
    size_t before = lines->size;
    *written_r = 0;
    if (!array || array->count != count)
        return false;
    for (const struct json *document = array->first; document; document = document->next) {
        int64_t version;
        if (!page_is_name(json_member(document, "c")) || !page_is_name(json_member(document, "id")) ||
            !json_is_i64(json_member(document, "v"), &version)) {
            lines->size = before;
            return false;
        }
        if (!version)
            continue; /* deleted since it was listed */
        add_line(lines, document->text);
        ++*written_r;
    }
    return true;
}

bool page_name_parse(struct bytes text, struct page_name *name_r)
{
    const char *dot = text.size ? memchr(text.data, '.', text.size) : NULL;
    if (!dot)
        return false;
    size_t size = (size_t)(dot - text.data);
    *name_r = (struct page_name){{text.data, size}, {dot + 1, text.size - size - 1}, 0};
    return name_r->class.size && name_r->id.size;
}
