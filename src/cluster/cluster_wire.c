/* cluster_wire: one layout for all kinds of messages, in the order of the calls below. */
#include "cluster/cluster_wire.h"

enum cluster_wire_flag { IS_UNSURE = 1, IS_CHECK = 2, IS_REMOVED = 4, IS_SURE = 8, IS_PAID = 16, FLAGS = 31 };

/* Adds so many bytes of the number. */
static void put(struct builder *out, uint64_t number, unsigned bytes)
{
    unsigned char eight[8];
    bytes_put_u64(eight, number);
    builder_add(out, eight + 8 - bytes, bytes);
}

static void put_stamp(struct builder *out, const struct cluster_stamp *stamp)
{
    put(out, stamp->version, 8);
    put(out, stamp->number, 8);
    put(out, stamp->origin, 4);
}

/* Takes so many bytes, which are there. */
static uint64_t take(struct bytes *rest, unsigned bytes)
{
    uint64_t number = 0;
    for (unsigned i = 0; i < bytes; i++)
        number = number << 8 | (unsigned char)rest->data[i];
    rest->data += bytes;
    rest->size -= bytes;
    return number;
}

static void put_payer(struct builder *out, const struct cluster_message *message)
{
    const struct cluster_limits *limits = &message->limits;
    put(out, message->payer.rule, 8);
    put(out, message->payer.caller, 8);
    put(out, limits->payers_bytes, 8);
    put(out, limits->rule_bytes, 8);
    put(out, limits->rule_records, 8);
    put(out, limits->caller_bytes, 8);
    put(out, limits->caller_records, 8);
}

static void take_payer(struct bytes *rest, struct cluster_message *message)
{
    struct cluster_limits *limits = &message->limits;
    message->payer.rule = take(rest, 8);
    message->payer.caller = take(rest, 8);
    limits->payers_bytes = take(rest, 8);
    limits->rule_bytes = take(rest, 8);
    limits->rule_records = take(rest, 8);
    limits->caller_bytes = take(rest, 8);
    limits->caller_records = take(rest, 8);
}

static struct bytes take_text(struct bytes *rest, size_t size)
{
    struct bytes text = {rest->data, size};
    rest->data += size;
    rest->size -= size;
    return text;
}

static struct cluster_stamp take_stamp(struct bytes *rest)
{
    struct cluster_stamp stamp = {.version = take(rest, 8)};
    stamp.number = take(rest, 8);
    stamp.origin = (uint32_t)take(rest, 4);
    return stamp;
}

void cluster_wire_write(struct builder *out, const struct cluster_message *message)
{
    assert(message->key.size <= CLUSTER_KEY_MOST && message->silent_count <= CLUSTER_SILENT_MOST);
    size_t texts = message->key.size + message->content.size;
    size_t payer = message->payer.rule ? CLUSTER_WIRE_PAYER : 0;
    builder_reserve(out, CLUSTER_WIRE_MOST + message->content.size);
    put(out, CLUSTER_WIRE_HEAD + payer + 4 * message->silent_count + texts, CLUSTER_WIRE_SIZE);
    put(out, message->kind, 1);
    put(out, message->deed, 1);
    put(out, message->outcome, 1);
    put(out,
        (message->is_unsure ? IS_UNSURE : 0) | (message->is_check ? IS_CHECK : 0) |
            (message->is_removed ? IS_REMOVED : 0) | (message->is_sure ? IS_SURE : 0) | (payer ? IS_PAID : 0),
        1);
    put(out, message->level, 1);
    put(out, message->copies, 1);
    put(out, message->silent_count, 2);
    put(out, message->reach, 2);
    put(out, message->key.size, 2);
    put(out, message->from, 4);
    put(out, message->to, 4);
    put(out, message->version, 8);
    put(out, message->id, 8);
    put(out, (uint64_t)message->sent_ms, 8);
    put(out, (uint64_t)message->ttl_ms, 8);
    put(out, (uint64_t)message->end_ms, 8);
    put(out, (uint64_t)message->past_ms, 8);
    put_stamp(out, &message->stamp);
    put_stamp(out, &message->known);
    if (payer)
        put_payer(out, message);
    for (unsigned i = 0; i < message->silent_count; i++)
        put(out, message->silent[i], 4);
    builder_add_bytes(out, message->key);
    builder_add_bytes(out, message->content);
}

static bool is_time(int64_t ms)
{
    return ms > -CLUSTER_WIRE_MS_MOST && ms < CLUSTER_WIRE_MS_MOST;
}

/* An answer to a question has none of the outcomes of copies: it is passed to the program that asked. */
static bool is_in_range(const struct cluster_message *message)
{
    return message->kind <= CLUSTER_COPIED && message->deed < CLUSTER_DEEDS &&
           message->outcome <= (message->kind == CLUSTER_ANSWER ? CLUSTER_REDO : CLUSTER_NO_TIME) &&
           message->level <= CLUSTER_LEVELS_MOST && message->copies <= CLUSTER_COPIES_MOST &&
           is_time(message->sent_ms) && is_time(message->end_ms) && is_time(message->ttl_ms) &&
           is_time(message->past_ms) && message->past_ms >= 0;
}

enum cluster_reading cluster_wire_read(struct bytes bytes, size_t content_most,
                                       struct cluster_message *message_r, size_t *used_r)
{
    struct bytes rest = bytes;
    if (rest.size < CLUSTER_WIRE_SIZE)
        return CLUSTER_PARTIAL;
    size_t size = take(&rest, CLUSTER_WIRE_SIZE);
    if (size < CLUSTER_WIRE_HEAD || size - CLUSTER_WIRE_HEAD > CLUSTER_WIRE_MOST + content_most)
        return CLUSTER_MALFORMED;
    if (rest.size < size)
        return CLUSTER_PARTIAL;
    rest.size = size;
    struct cluster_message message = {.kind = (enum cluster_message_kind)take(&rest, 1)};
    message.deed = (enum cluster_deed)take(&rest, 1);
    message.outcome = (enum cluster_outcome)take(&rest, 1);
    uint64_t flags = take(&rest, 1);
    message.is_unsure = flags & IS_UNSURE;
    message.is_check = flags & IS_CHECK;
    message.is_removed = flags & IS_REMOVED;
    message.is_sure = flags & IS_SURE;
    message.level = (unsigned)take(&rest, 1);
    message.copies = (unsigned)take(&rest, 1);
    message.silent_count = (unsigned)take(&rest, 2);
    message.reach = (uint16_t)take(&rest, 2);
    size_t key_size = take(&rest, 2);
    message.from = (uint32_t)take(&rest, 4);
    message.to = (uint32_t)take(&rest, 4);
    message.version = take(&rest, 8);
    message.id = take(&rest, 8);
    message.sent_ms = (int64_t)take(&rest, 8);
    message.ttl_ms = (int64_t)take(&rest, 8);
    message.end_ms = (int64_t)take(&rest, 8);
    message.past_ms = (int64_t)take(&rest, 8);
    message.stamp = take_stamp(&rest);
    message.known = take_stamp(&rest);
    bool is_paid = flags & IS_PAID;
    if (is_paid && rest.size < CLUSTER_WIRE_PAYER)
        return CLUSTER_MALFORMED;
    if (is_paid)
        take_payer(&rest, &message);
    if (!is_in_range(&message) || flags > FLAGS || is_paid != (message.payer.rule != 0) ||
        key_size > CLUSTER_KEY_MOST || message.silent_count > CLUSTER_SILENT_MOST ||
        rest.size < 4 * message.silent_count + key_size)
        return CLUSTER_MALFORMED;
    for (unsigned i = 0; i < message.silent_count; i++)
        message.silent[i] = (uint32_t)take(&rest, 4);
    message.key = take_text(&rest, key_size);
    message.content = rest;
    if (message.content.size > content_most)
        return CLUSTER_MALFORMED;
    *message_r = message;
    *used_r = CLUSTER_WIRE_SIZE + size;
    return CLUSTER_WHOLE;
}
