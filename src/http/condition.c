/* condition: a strict parser of lists of entity tags. */
#include "http/condition.h"

enum { DIGEST_DIGITS = 64 };

static bool condition_is_blank(char byte)
{
    return byte == ' ' || byte == '\t';
}

static void condition_skip_blanks(struct bytes *text)
{
    while (text->size && condition_is_blank(*text->data)) {
        text->data++;
        text->size--;
    }
}

static bool condition_take(struct bytes *text, const char *word)
{
    size_t size = strlen(word);
    if (text->size < size || memcmp(text->data, word, size) != 0)
        return false;
    text->data += size;
    text->size -= size;
    return true;
}

/* Reads the text between the quotes. */
static bool take_quoted(struct bytes *text, struct bytes *tag_r)
{
    if (!condition_take(text, "\""))
        return false;
    const char *end = text->size ? memchr(text->data, '"', text->size) : NULL;
    if (!end)
        return false;
    *tag_r = (struct bytes){text->data, (size_t)(end - text->data)};
    for (size_t i = 0; i < tag_r->size; i++)
        if ((unsigned char)tag_r->data[i] <= ' ' || tag_r->data[i] == 0x7f)
            return false;
    text->data += tag_r->size + 1;
    text->size -= tag_r->size + 1;
    return true;
}

static bool is_view(struct bytes name)
{
    for (size_t i = 0; i < name.size; i++)
        if (!memchr("0123456789abcdef", name.data[i], 16))
            return false;
    return name.size > 0;
}

/* Digits without a leading zero. */
static bool is_number(struct bytes tag, int64_t *version_r)
{
    return tag.size && tag.data[0] >= '1' && tag.data[0] <= '9' && bytes_to_i64(tag, version_r);
}

/* A version as this server writes it, and the name of a view. */
static bool is_version(struct bytes tag, int64_t *version_r, struct bytes *view_r)
{
    const char *dash = tag.size ? memchr(tag.data, '-', tag.size) : NULL;
    *view_r = BYTES("");
    if (dash) {
        *view_r = (struct bytes){dash + 1, tag.size - (size_t)(dash + 1 - tag.data)};
        tag.size = (size_t)(dash - tag.data);
    }
    return is_number(tag, version_r) && (!dash || is_view(*view_r));
}

static size_t count_commas(struct bytes text)
{
    size_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += text.data[i] == ',';
    return count;
}

static bool condition_is_digest(struct bytes tag)
{
    return tag.size == DIGEST_DIGITS && is_view(tag);
}

/* Room for what a list names. */
struct room {
    int64_t *versions;
    struct bytes *views, *digests;
};

/* One element: nothing, or a tag. */
static bool condition_read_element(struct bytes *rest, enum comparison comparison,
                                   struct version_condition *condition, const struct room *room)
{
    struct bytes tag;
    condition_skip_blanks(rest);
    if (!rest->size || *rest->data == ',')
        return true;
    bool is_weak = condition_take(rest, "W/");
    if (!take_quoted(rest, &tag))
        return false;
    condition->is_given = true;
    bool counts = !is_weak || comparison == COMPARE_WEAKLY;
    if (counts && condition_is_digest(tag))
        room->digests[condition->digest_count++] = tag;
    else if (counts && is_version(tag, &room->versions[condition->count], &room->views[condition->count]))
        condition->count++;
    condition_skip_blanks(rest);
    return !rest->size || *rest->data == ',';
}

enum fault condition_read(struct arena *arena, struct bytes field, enum comparison comparison,
                          struct version_condition *condition_r)
{
    struct bytes rest = field;
    *condition_r = (struct version_condition){0};
    condition_skip_blanks(&rest);
    if (!rest.size)
        return FAULT_NONE;
    if (condition_take(&rest, "*")) {
        condition_skip_blanks(&rest);
        condition_r->is_given = condition_r->is_any = true;
        return rest.size ? FAULT_AARG : FAULT_NONE;
    }
    size_t most = count_commas(rest) + 1;
    const struct room room = {ARENA_ARRAY(arena, int64_t, most), ARENA_ARRAY(arena, struct bytes, most),
                              ARENA_ARRAY(arena, struct bytes, most)};
    condition_r->versions = room.versions;
    condition_r->views = room.views;
    condition_r->digests = room.digests;
    do {
        if (!condition_read_element(&rest, comparison, condition_r, &room))
            return FAULT_AARG;
    } while (condition_take(&rest, ","));
    return condition_r->is_given ? FAULT_NONE : FAULT_AARG;
}
