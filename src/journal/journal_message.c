/* journal_message: big-endian numbers and sized texts. */
#include "journal/journal_message.h"

/* --- reading --- */

struct journal_bytes {
    const unsigned char *at;
    size_t left;
    bool is_short;
};

static uint64_t number(struct journal_bytes *scan, size_t bytes)
{
    uint64_t value = 0;
    if (scan->left < bytes) {
        scan->is_short = true;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | *scan->at++;
    scan->left -= bytes;
    return value;
}

static struct bytes text(struct journal_bytes *scan, uint64_t size)
{
    if (scan->is_short || scan->left < size) {
        scan->is_short = true;
        return NO_BYTES;
    }
    struct bytes found = {(const char *)scan->at, (size_t)size};
    scan->at += size;
    scan->left -= (size_t)size;
    return found;
}

static bool has_other(const struct journal_request *request)
{
    return journal_query_of(request) == JOURNAL_RANGE || request->function == JOURNAL_RENAME;
}

static size_t value_size_bytes(uint16_t flags)
{
    static const size_t sizes[] = {0, 1, 2, 4};
    return sizes[flags >> JOURNAL_VALUE_SHIFT & JOURNAL_VALUE_BITS];
}

static bool is_head(const unsigned char *data, size_t size)
{
    static const unsigned char head[] = {'F', 'J', 0, JOURNAL_VERSION};
    for (size_t i = 0; i < sizeof head && i < size; i++)
        if (data[i] != head[i])
            return false;
    return true;
}

/* The sizes are checked as soon as they are there: what is too large is not awaited. */
static enum journal_reading journal_message_read_value(struct journal_bytes *scan, size_t most,
                                                       struct journal_request *request)
{
    size_t size_bytes = value_size_bytes(request->flags);
    request->has_value = size_bytes > 0;
    if (!size_bytes)
        return JOURNAL_WHOLE;
    uint64_t size = number(scan, size_bytes);
    if (scan->is_short)
        return JOURNAL_PARTIAL;
    if (size < 1 || size - 1 > most)
        return JOURNAL_MALFORMED;
    request->type = (uint8_t)number(scan, 1);
    request->value = text(scan, size - 1);
    return scan->is_short ? JOURNAL_PARTIAL : JOURNAL_WHOLE;
}

static enum journal_reading journal_message_read_key(struct journal_bytes *scan,
                                                     const struct journal_request *request,
                                                     struct bytes *key_r)
{
    uint64_t size = number(scan, request->flags & JOURNAL_LONG_KEYS ? 2 : 1);
    if (!scan->is_short && size > JOURNAL_CURSOR_MOST)
        return JOURNAL_MALFORMED;
    *key_r = text(scan, size);
    return scan->is_short ? JOURNAL_PARTIAL : JOURNAL_WHOLE;
}

enum journal_reading journal_message_read(struct bytes bytes, size_t most, struct journal_request *request,
                                          size_t *used_r)
{
    struct journal_bytes scan = {(const unsigned char *)bytes.data, bytes.size, false};
    *request = (struct journal_request){0};
    *used_r = 0;
    if (!is_head(scan.at, scan.left))
        return JOURNAL_MALFORMED;
    if (scan.left < JOURNAL_FIXED_BYTES)
        return JOURNAL_PARTIAL;
    number(&scan, 4);
    request->function = (uint16_t)number(&scan, 2);
    request->identifier = (uint16_t)number(&scan, 2);
    request->flags = (uint16_t)number(&scan, 2);
    bool is_of_records = request->function >= JOURNAL_SET && request->function <= JOURNAL_RENAME;
    if (request->flags & JOURNAL_OF_RECORDS && !is_of_records)
        return JOURNAL_MALFORMED;
    request->timestamp = number(&scan, 8);
    if (request->flags & JOURNAL_HAS_TIMEOUT)
        request->timeout = number(&scan, 8);
    if (request->flags & JOURNAL_IF_STAMP)
        request->stamp = number(&scan, 8);
    if (journal_query_of(request) != JOURNAL_KEY)
        request->count = (uint16_t)number(&scan, 2);
    enum journal_reading reading =
        scan.is_short ? JOURNAL_PARTIAL : journal_message_read_key(&scan, request, &request->key);
    if (reading == JOURNAL_WHOLE && has_other(request))
        reading = journal_message_read_key(&scan, request, &request->other);
    if (reading == JOURNAL_WHOLE)
        reading = journal_message_read_value(&scan, most, request);
    if (reading == JOURNAL_WHOLE)
        *used_r = bytes.size - scan.left;
    return reading;
}

/* --- writing --- */

static void journal_message_put(struct builder *out, uint64_t value, size_t bytes)
{
    char *at = builder_reserve(out, bytes);
    for (size_t i = bytes; i-- > 0; value >>= 8)
        at[i] = (char)(value & 0xff);
    out->size += bytes;
}

static void put_at(struct builder *out, size_t place, uint16_t value)
{
    out->data[place] = (char)(value >> 8);
    out->data[place + 1] = (char)(value & 0xff);
}

enum { FLAGS_PLACE = 6, KEY_SIZE_BYTES = 2, VALUE_SIZE_BYTES = 4 };

/* Answers always use the long sizes: a client reads both, and one loop writes them. */
void journal_message_begin(struct journal_answer *answer, struct builder *out,
                           const struct journal_request *request, uint64_t timestamp, uint64_t timeout,
                           const char *error)
{
    struct bytes word = bytes_of(error);
    uint16_t query = (uint16_t)(journal_query_of(request) << JOURNAL_QUERY_SHIFT);
    *answer = (struct journal_answer){.out = out, .start = out->size};
    answer->flags = (uint16_t)(JOURNAL_LONG_KEYS | JOURNAL_VALUE_BITS << JOURNAL_VALUE_SHIFT | query);
    if (timeout)
        answer->flags |= JOURNAL_HAS_TIMEOUT;
    builder_add_text(out, "JR");
    journal_message_put(out, JOURNAL_VERSION, 2);
    journal_message_put(out, request->identifier, 2);
    journal_message_put(out, 0, 2); /* the flags, by journal_message_end */
    journal_message_put(out, timestamp, 8);
    if (timeout)
        journal_message_put(out, timeout, 8);
    if (query)
        journal_message_put(out, 0, 2); /* the count */
    journal_message_put(out, word.size, KEY_SIZE_BYTES);
    builder_add_bytes(out, word);
}

void journal_message_refuse(struct builder *out, const struct journal_request *request, uint64_t timestamp,
                            const char *error)
{
    struct bytes word = bytes_of(error);
    builder_add_text(out, "JR");
    journal_message_put(out, JOURNAL_VERSION, 2);
    journal_message_put(out, request->identifier, 2);
    journal_message_put(out, JOURNAL_LONG_KEYS, 2);
    journal_message_put(out, timestamp, 8);
    journal_message_put(out, word.size, KEY_SIZE_BYTES);
    builder_add_bytes(out, word);
}

void journal_message_add_stamp(struct journal_answer *answer, uint64_t stamp)
{
    answer->flags |= JOURNAL_STAMP;
    journal_message_put(answer->out, stamp, 8);
}

void journal_message_add(struct journal_answer *answer, struct bytes key, uint8_t type, struct bytes content,
                         bool with_content)
{
    size_t size = with_content ? content.size : 0;
    answer->flags |= JOURNAL_DATA;
    answer->count++;
    journal_message_put(answer->out, key.size, KEY_SIZE_BYTES);
    builder_add_bytes(answer->out, key);
    journal_message_put(answer->out, size + 1, VALUE_SIZE_BYTES);
    journal_message_put(answer->out, type, 1);
    if (size)
        builder_add(answer->out, content.data, size);
}

void journal_message_add_cursor(struct journal_answer *answer, struct bytes cursor)
{
    answer->flags |= JOURNAL_MORE;
    journal_message_put(answer->out, cursor.size, KEY_SIZE_BYTES);
    builder_add_bytes(answer->out, cursor);
}

void journal_message_notice(struct builder *out, uint16_t identifier, uint64_t timestamp, struct bytes key)
{
    const struct journal_request request = {.identifier = identifier};
    struct journal_answer answer;
    journal_message_begin(&answer, out, &request, timestamp, 0, "");
    journal_message_add(&answer, key, 0, NO_BYTES, false);
    answer.flags |= JOURNAL_LISTEN;
    journal_message_end(&answer);
}

void journal_message_end(struct journal_answer *answer)
{
    size_t place = answer->start + FLAGS_PLACE;
    put_at(answer->out, place, answer->flags);
    if (answer->flags & JOURNAL_QUERY_BITS << JOURNAL_QUERY_SHIFT)
        put_at(answer->out, place + 10 + (answer->flags & JOURNAL_HAS_TIMEOUT ? 8 : 0), answer->count);
}
