/* template: one pass over the lines; a block is filled where it is named. */
#include "control/nginx/template.h"

#include <string.h>

enum { BLOCKS_DEEP_MOST = 4 };

struct filling {
    struct bytes text;
    const struct template_value *values;
    size_t count;
    struct builder *builder;
    struct bytes unknown; /* out: the name */
    int deep;
};

static struct bytes take_line(struct bytes *rest)
{
    const char *end = rest->size ? memchr(rest->data, '\n', rest->size) : NULL;
    struct bytes line = {rest->data, end ? (size_t)(end - rest->data) + 1 : rest->size};
    *rest = (struct bytes){rest->data + line.size, rest->size - line.size};
    return line;
}

/* Is the line `%word NAME`, or `%word`? */
static bool is_order(struct bytes line, const char *word, struct bytes *name_r)
{
    size_t size = strlen(word);
    if (line.size <= size || line.data[line.size - 1] != '\n' || memcmp(line.data, word, size) != 0)
        return false;
    *name_r = (struct bytes){line.data + size, line.size - size - 1};
    return true;
}

/* Size of the name between `@` and the next `@`, 0 when there is none. */
static size_t name_size(const char *text, size_t left)
{
    size_t size = 0;
    while (size < left && ((text[size] >= 'A' && text[size] <= 'Z') || text[size] == '_'))
        size++;
    return size < left && text[size] == '@' ? size : 0;
}

static const char *find_value(const struct filling *filling, struct bytes name)
{
    for (size_t i = 0; i < filling->count; i++)
        if (bytes_equal(bytes_of(filling->values[i].name), name))
            return filling->values[i].value;
    return NULL;
}

/* What follows the line of the block. */
static bool find_block(struct bytes text, struct bytes name, struct bytes *block_r)
{
    struct bytes found;
    while (text.size)
        if (is_order(take_line(&text), "%block ", &found) && bytes_equal(found, name)) {
            *block_r = text;
            return true;
        }
    return false;
}

static bool fill_part(struct filling *filling, struct bytes rest);

static bool fill_name(struct filling *filling, struct bytes name)
{
    const char *value = find_value(filling, name);
    struct bytes block;
    if (value) {
        builder_add_bytes(filling->builder, bytes_of(value));
        return true;
    }
    filling->unknown = name;
    if (filling->deep == BLOCKS_DEEP_MOST || !find_block(filling->text, name, &block))
        return false;
    filling->deep++;
    bool is_filled = fill_part(filling, block);
    filling->deep--;
    return is_filled;
}

static bool fill_line(struct filling *filling, struct bytes line)
{
    for (size_t i = 0; i < line.size; i++) {
        struct bytes name = {line.data + i + 1, 0};
        if (line.data[i] == '@')
            name.size = name_size(name.data, line.size - i - 1);
        if (!name.size)
            builder_add(filling->builder, line.data + i, 1);
        else if (!fill_name(filling, name))
            return false;
        else
            i += name.size + 1;
    }
    return true;
}

/* To the end of the text, or to the %end of the block that it is. */
static bool fill_part(struct filling *filling, struct bytes rest)
{
    int open = 0, hidden = 0; /* how many are open, and of them hidden, or in a hidden one */
    while (rest.size) {
        struct bytes line = take_line(&rest), name;
        if (is_order(line, "%#", &name))
            continue;
        if (bytes_equal(line, BYTES("%end\n"))) {
            if (!open)
                return true;
            open--;
            hidden -= hidden > 0;
        } else if (is_order(line, "%block ", &name)) {
            open++;
            hidden++;
        } else if (is_order(line, "%if ", &name)) {
            const char *value = hidden ? "" : find_value(filling, name);
            filling->unknown = name;
            if (!value)
                return false;
            open++;
            hidden += !*value || strcmp(value, "0") == 0;
        } else if (!hidden && !fill_line(filling, line)) {
            return false;
        }
    }
    return true;
}

static bool template_run(struct filling *filling, struct bytes part, int *line_r, struct bytes *name_r)
{
    if (fill_part(filling, part))
        return true;
    *name_r = filling->unknown;
    *line_r = 1;
    for (const char *at = filling->text.data; at < name_r->data; at++)
        *line_r += *at == '\n';
    return false;
}

bool template_fill(struct bytes text, const struct template_value *values, size_t count,
                   struct builder *builder, int *line_r, struct bytes *name_r)
{
    struct filling filling = {.text = text, .values = values, .count = count, .builder = builder};
    return template_run(&filling, text, line_r, name_r);
}

bool template_fill_block(struct bytes text, const char *block, const struct template_value *values,
                         size_t count, struct builder *builder, int *line_r, struct bytes *name_r)
{
    struct filling filling = {.text = text, .values = values, .count = count, .builder = builder};
    struct bytes part;
    *line_r = 1;
    *name_r = bytes_of(block);
    return find_block(text, *name_r, &part) && template_run(&filling, part, line_r, name_r);
}
