/* schema_index: texts of an index, and equality. */
#include "model/schema/schema_index.h"

void schema_index_write(struct builder *text, const struct schema_index *index)
{
    for (size_t i = 0; i < index->count; i++)
        builder_printf(text, "%s\"%s%.*s\"", i ? "," : "[", index->fields[i].is_descending ? "-" : "",
                       (int)index->fields[i].name.size, index->fields[i].name.data);
    builder_add_text(text, "]");
}

bool schema_index_is_same(const struct schema_index *one, const struct schema_index *other)
{
    if (one->count != other->count)
        return false;
    bool is_reversed = one->fields[0].is_descending != other->fields[0].is_descending;
    for (size_t i = 0; i < one->count; i++)
        if (!bytes_equal(one->fields[i].name, other->fields[i].name) ||
            (one->fields[i].is_descending != other->fields[i].is_descending) != is_reversed)
            return false;
    return true;
}

struct bytes schema_index_word(struct arena *arena, const struct schema_index *index)
{
    struct builder text = {0};
    for (size_t i = 0; i < index->count; i++)
        builder_printf(&text, "%s%s%.*s", i ? "," : "", index->fields[i].is_descending ? "-" : "",
                       (int)index->fields[i].name.size, index->fields[i].name.data);
    struct bytes word = {arena_copy(arena, text.data, text.size), text.size};
    builder_free(&text);
    return word;
}
