/* cursor: the sizes of the texts, then the texts, padded, as a signed text. */
#include "operation/cursor.h"

#include "operation/classes.h"
#include "operation/signed_text.h"

enum { SIZE_MOST = 9999, SIZE_DIGITS = 5 /* with the dot behind it */ };

static struct bytes question_of(const struct call *call, struct bytes question)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("cursor"));
    signed_text_add_part(&text, call->ns);
    if (call_is_judged(call))
        signed_text_add_part(&text, call->caller.account);
    signed_text_add_part(&text, question);
    return builder_take(&text, call->arena);
}

enum fault cursor_make(struct attempt *attempt, struct bytes question, const struct cursor_row *row,
                       struct bytes *text_r)
{
    struct arena *arena = attempt->call->arena;
    const struct schema *schema;
    enum fault fault = classes_schema(attempt, &schema);
    if (fault)
        return fault;
    struct builder payload = {0};
    for (size_t i = 0; i < row->count; i++)
        builder_printf(&payload, "%zu.", row->texts[i].size);
    for (size_t i = 0; i < row->count; i++)
        if (row->texts[i].size)
            builder_add_bytes(&payload, row->texts[i]);
    const size_t size = row->count * SIZE_DIGITS + row->bytes_most;
    assert(payload.size <= size);
    while (call_is_judged(attempt->call) && payload.size < size)
        builder_add_text(&payload, " ");
    *text_r = signed_text_make(arena, schema->secret, question_of(attempt->call, question),
                               builder_bytes(&payload));
    builder_free(&payload);
    return FAULT_NONE;
}

static bool take_size(struct bytes *payload, size_t *size_r)
{
    const char *dot = payload->size ? memchr(payload->data, '.', payload->size) : NULL;
    int64_t size;
    if (!dot || !bytes_to_i64((struct bytes){payload->data, (size_t)(dot - payload->data)}, &size) ||
        size < 0 || size > SIZE_MOST)
        return false;
    payload->size -= (size_t)(dot + 1 - payload->data);
    payload->data = dot + 1;
    *size_r = (size_t)size;
    return true;
}

static bool cursor_split(struct bytes payload, struct cursor_row *row)
{
    for (size_t i = 0; i < row->count; i++)
        if (!take_size(&payload, &row->texts[i].size))
            return false;
    for (size_t i = 0; i < row->count; i++) {
        struct bytes *text = &row->texts[i];
        if (text->size > payload.size)
            return false;
        text->data = payload.data;
        payload.data += text->size;
        payload.size -= text->size;
        if (!bytes_is_utf8(*text))
            return false;
    }
    return true;
}

enum fault cursor_read(struct attempt *attempt, struct bytes question, struct bytes text,
                       struct cursor_row *row, bool *is_ours_r)
{
    const struct schema *schema;
    struct bytes payload;
    enum fault fault = classes_schema(attempt, &schema);
    *is_ours_r = !fault &&
                 signed_text_read(attempt->call->arena, schema->secret, question_of(attempt->call, question),
                                  text, &payload) &&
                 cursor_split(payload, row);
    return fault;
}
