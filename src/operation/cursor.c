/* cursor: sizes, id and key, padded, as a signed text. */
#include "operation/cursor.h"

#include "operation/classes.h"
#include "operation/signed_text.h"

/* limit_name_bytes is at most 255: the sizes, "255.255.", and both texts. */
enum { SIZES_MOST = 8, NAME_MOST = 255, PAYLOAD_SIZE = SIZES_MOST + 2 * NAME_MOST };

static struct bytes question_of(const struct call *call, struct bytes question)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("cursor"));
    signed_text_add_part(&text, call->ns);
    signed_text_add_part(&text, call->caller.account);
    signed_text_add_part(&text, question);
    struct bytes whole = {arena_copy(call->arena, text.data, text.size), text.size};
    builder_free(&text);
    return whole;
}

enum fault cursor_make(struct attempt *attempt, struct bytes question, struct bytes id, struct bytes key,
                       struct bytes *text_r)
{
    struct arena *arena = attempt->call->arena;
    const struct schema *schema;
    enum fault fault = classes_schema(attempt, &schema);
    if (fault)
        return fault;
    assert(id.size <= NAME_MOST && key.size <= NAME_MOST);
    struct builder payload = {0};
    builder_printf(&payload, "%zu.%zu.", id.size, key.size);
    builder_add_bytes(&payload, id);
    builder_add_bytes(&payload, key);
    while (payload.size < PAYLOAD_SIZE)
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
        size < 0 || size > NAME_MOST)
        return false;
    payload->size -= (size_t)(dot + 1 - payload->data);
    payload->data = dot + 1;
    *size_r = (size_t)size;
    return true;
}

static bool split(struct bytes payload, struct bytes *id_r, struct bytes *key_r)
{
    size_t id_size, key_size;
    if (!take_size(&payload, &id_size) || !take_size(&payload, &key_size) ||
        id_size + key_size > payload.size)
        return false;
    *id_r = (struct bytes){payload.data, id_size};
    *key_r = (struct bytes){payload.data + id_size, key_size};
    return bytes_is_utf8(*id_r) && bytes_is_utf8(*key_r);
}

enum fault cursor_read(struct attempt *attempt, struct bytes question, struct bytes text, struct bytes *id_r,
                       struct bytes *key_r, bool *is_ours_r)
{
    const struct schema *schema;
    struct bytes payload;
    enum fault fault = classes_schema(attempt, &schema);
    *is_ours_r = !fault &&
                 signed_text_read(attempt->call->arena, schema->secret, question_of(attempt->call, question),
                                  text, &payload) &&
                 split(payload, id_r, key_r);
    return fault;
}
