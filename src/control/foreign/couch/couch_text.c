/* couch_text: a value is passed over by its brackets and quotes; a number or a word ends at a comma or
 * bracket. */
#include "control/foreign/couch/couch_text.h"

#include <string.h>

static bool couch_text_is_blank(char c)
{
    return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void couch_text_skip(struct bytes *text)
{
    while (text->size && couch_text_is_blank(*text->data)) {
        text->data++;
        text->size--;
    }
}

/* Is there this character?  Then passes it, and the blanks behind it. */
static bool couch_text_take(struct bytes *text, char expected)
{
    if (!text->size || *text->data != expected)
        return false;
    text->data++;
    text->size--;
    couch_text_skip(text);
    return true;
}

static size_t string_size(struct bytes text)
{
    for (size_t i = 1; i < text.size; i++)
        if (text.data[i] == '\\')
            i++;
        else if (text.data[i] == '"')
            return i + 1;
    return 0;
}

/* 0: it does not end. */
static size_t value_size(struct bytes text)
{
    struct couch_scan scan = {0};
    if (!text.size)
        return 0;
    if (*text.data == '"')
        return string_size(text);
    if (*text.data != '{' && *text.data != '[') {
        size_t size = 0;
        while (size < text.size && !strchr(",]} \t\r\n", text.data[size]))
            size++;
        return size;
    }
    for (size_t i = 0; i < text.size; i++)
        if (couch_scan_ends(&scan, text.data[i]))
            return i + 1;
    return 0;
}

static bool couch_text_take_value(struct bytes *text, struct bytes *value_r)
{
    size_t size = value_size(*text);
    *value_r = (struct bytes){text->data, size};
    text->data += size;
    text->size -= size;
    couch_text_skip(text);
    return size > 0;
}

bool couch_text_is_whole(struct bytes text)
{
    struct bytes value;
    couch_text_skip(&text);
    return text.size && *text.data == '{' && couch_text_take_value(&text, &value) && !text.size;
}

struct bytes couch_text_member(struct bytes object, struct bytes name)
{
    struct bytes one, value;
    couch_text_skip(&object);
    if (!couch_text_take(&object, '{'))
        return NO_BYTES;
    while (object.size && *object.data == '"' && couch_text_take_value(&object, &one) &&
           couch_text_take(&object, ':') && couch_text_take_value(&object, &value)) {
        if (bytes_equal((struct bytes){one.data + 1, one.size - 2}, name))
            return value;
        if (!couch_text_take(&object, ','))
            break;
    }
    return NO_BYTES;
}

bool couch_text_cut(struct bytes *rest, struct bytes *element_r)
{
    couch_text_skip(rest);
    (void)couch_text_take(rest, ',');
    return rest->size && *rest->data == '{' && couch_text_take_value(rest, element_r);
}

size_t couch_text_list(struct bytes head, bool *is_rows_r)
{
    struct bytes rest = head, name, value;
    bool is_object = couch_text_take(&rest, '{');
    while (is_object && rest.size && *rest.data == '"' && couch_text_take_value(&rest, &name) &&
           couch_text_take(&rest, ':')) {
        *is_rows_r = bytes_equal(name, BYTES("\"rows\""));
        if (bytes_equal(name, BYTES("\"_id\"")) || bytes_equal(name, BYTES("\"id\"")))
            break;
        if ((*is_rows_r || bytes_equal(name, BYTES("\"docs\""))) && couch_text_take(&rest, '['))
            return (size_t)(rest.data - head.data);
        if (!couch_text_take_value(&rest, &value) || !couch_text_take(&rest, ','))
            break;
    }
    return 0;
}

void couch_text_wrap(struct builder *row, struct bytes id, struct bytes document, bool is_change)
{
    builder_clear(row, 1 << 20);
    builder_add_text(row, "{\"id\":");
    builder_add_bytes(row, id);
    if (is_change)
        builder_add_text(row, ",\"changes\":[]");
    builder_add_text(row, ",\"doc\":");
    builder_add_bytes(row, document);
    builder_add_text(row, "}");
}
