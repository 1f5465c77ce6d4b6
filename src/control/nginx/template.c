/* template: one pass over the text. */
#include "control/nginx/template.h"

/* Size of the name between `@` and the next `@`, 0 when there is none. */
static size_t name_size(const char *text, size_t left)
{
    size_t size = 0;
    while (size < left && ((text[size] >= 'A' && text[size] <= 'Z') || text[size] == '_'))
        size++;
    return size < left && text[size] == '@' ? size : 0;
}

static const char *find_value(const struct template_value *values, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(bytes_of(values[i].name), name))
            return values[i].value;
    return NULL;
}

bool template_fill(struct bytes text, const struct template_value *values, size_t count,
                   struct builder *builder, int *line_r, struct bytes *name_r)
{
    int line = 1;
    for (size_t i = 0; i < text.size; i++) {
        struct bytes name = {text.data + i + 1, 0};
        if (text.data[i] == '@')
            name.size = name_size(name.data, text.size - i - 1);
        if (!name.size) {
            builder_add(builder, text.data + i, 1);
            line += text.data[i] == '\n';
            continue;
        }
        const char *value = find_value(values, count, name);
        if (!value) {
            *line_r = line;
            *name_r = name;
            return false;
        }
        builder_add_bytes(builder, bytes_of(value));
        i += name.size + 1;
    }
    return true;
}
