/* journal_wire: big-endian numbers and sized texts. */
#include "journal_client/journal_wire.h"

#include <errno.h>
#include <string.h>

/* Layout, as doc/reference/journal-protocol.md has it: sizes of keys have 16 bits, of values 32. */
enum {
    WIRE_FIXED_BYTES = 18,
    WIRE_LONG_KEYS = 1 << 0,
    WIRE_VALUE = 3 << 1,
    WIRE_TIMEOUT = 1 << 3,
    WIRE_QUERY_SHIFT = 7,
    WIRE_QUERY = 3 << WIRE_QUERY_SHIFT,
    WIRE_MORE = 1 << 14,
    WIRE_OF_REQUESTS = STAMPD_JOURNAL_UPDATE_TIMEOUT | STAMPD_JOURNAL_OVERWRITE | STAMPD_JOURNAL_WORKED_ON |
                       STAMPD_JOURNAL_PERSIST | STAMPD_JOURNAL_DATA | STAMPD_JOURNAL_LISTEN |
                       STAMPD_JOURNAL_ONLY_PRESENT | STAMPD_JOURNAL_IF_STAMP | STAMPD_JOURNAL_STAMP,
    WIRE_STAMP_BYTES = 8
};

/* --- writing --- */

static int has_other(const struct stampd_journal_request *request)
{
    return request->query == STAMPD_JOURNAL_RANGE || request->function == STAMPD_JOURNAL_RENAME;
}

static int has_value(const struct stampd_journal_request *request)
{
    return request->type != STAMPD_JOURNAL_NO_VALUE;
}

/* A flag of a function that does not take it would end the connection. */
static int has_wrong_flags(const struct stampd_journal_request *request)
{
    unsigned of_records = STAMPD_JOURNAL_IF_STAMP | STAMPD_JOURNAL_STAMP;
    int is_of_record = request->function >= STAMPD_JOURNAL_SET && request->function <= STAMPD_JOURNAL_RENAME;
    return request->flags & ~(unsigned)WIRE_OF_REQUESTS || (request->flags & of_records && !is_of_record) ||
           (request->flags & STAMPD_JOURNAL_ONLY_PRESENT && request->function != STAMPD_JOURNAL_SET);
}

size_t journal_wire_size(const struct stampd_journal_request *request)
{
    if (has_wrong_flags(request) || request->count > UINT16_MAX ||
        request->key.size > JOURNAL_WIRE_KEY_MOST || request->other.size > JOURNAL_WIRE_KEY_MOST ||
        request->value.size > STAMPD_JOURNAL_VALUE_MOST || (int)request->type < STAMPD_JOURNAL_NO_VALUE ||
        (int)request->type > STAMPD_JOURNAL_BOOLEAN || (unsigned)request->query > STAMPD_JOURNAL_CURSOR)
        return 0;
    return (size_t)WIRE_FIXED_BYTES + (request->timeout_ms ? 8 : 0) +
           (request->flags & STAMPD_JOURNAL_IF_STAMP ? WIRE_STAMP_BYTES : 0) +
           (request->query != STAMPD_JOURNAL_KEY ? 2 : 0) + 2 + request->key.size +
           (has_other(request) ? 2 + request->other.size : 0) +
           (has_value(request) ? 5 + request->value.size : 0);
}

static unsigned char *journal_wire_put(unsigned char *to, uint64_t value, size_t bytes)
{
    for (size_t i = bytes; i-- > 0; value >>= 8)
        to[i] = (unsigned char)(value & 0xff);
    return to + bytes;
}

static unsigned char *put_text(unsigned char *to, struct stampd_journal_text text)
{
    if (text.size)
        memcpy(to, text.data, text.size);
    return to + text.size;
}

void journal_wire_write(const struct stampd_journal_request *request, unsigned identifier,
                        unsigned char *bytes_r)
{
    unsigned flags = request->flags | WIRE_LONG_KEYS | (has_value(request) ? WIRE_VALUE : 0) |
                     (request->timeout_ms ? WIRE_TIMEOUT : 0) | (unsigned)request->query << WIRE_QUERY_SHIFT;
    unsigned char *to = put_text(bytes_r, (struct stampd_journal_text){"FJ", 2});
    to = journal_wire_put(to, 1, 2);
    to = journal_wire_put(to, (uint64_t)request->function, 2);
    to = journal_wire_put(to, identifier, 2);
    to = journal_wire_put(to, flags, 2);
    to = journal_wire_put(to, request->timestamp_us, 8);
    if (request->timeout_ms)
        to = journal_wire_put(to, request->timeout_ms, 8);
    if (request->flags & STAMPD_JOURNAL_IF_STAMP)
        to = journal_wire_put(to, request->stamp, WIRE_STAMP_BYTES);
    if (request->query != STAMPD_JOURNAL_KEY)
        to = journal_wire_put(to, request->count, 2);
    to = put_text(journal_wire_put(to, request->key.size, 2), request->key);
    if (has_other(request))
        to = put_text(journal_wire_put(to, request->other.size, 2), request->other);
    if (has_value(request))
        put_text(
            journal_wire_put(journal_wire_put(to, request->value.size + 1, 4), (uint64_t)request->type, 1),
            request->value);
}

/* --- reading --- */

struct wire_scan {
    const unsigned char *at;
    size_t left;
    int is_short, is_wrong;
};

static uint64_t number(struct wire_scan *scan, size_t bytes)
{
    uint64_t value = 0;
    if (scan->left < bytes) {
        scan->is_short = 1;
        scan->left = 0;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | *scan->at++;
    scan->left -= bytes;
    return value;
}

static struct stampd_journal_text text(struct wire_scan *scan, uint64_t size)
{
    struct stampd_journal_text found = {scan->at, 0};
    if (scan->left < size) {
        scan->is_short = 1;
        scan->left = 0;
        return found;
    }
    found.size = (size_t)size;
    scan->at += size;
    scan->left -= (size_t)size;
    return found;
}

static void read_record(struct wire_scan *scan, struct stampd_journal_record *record_r)
{
    record_r->key = text(scan, number(scan, 2));
    uint64_t size = number(scan, 4);
    if (!scan->is_short && (size < 1 || size - 1 > STAMPD_JOURNAL_VALUE_MOST))
        scan->is_wrong = 1;
    record_r->type = (enum stampd_journal_type)number(scan, 1);
    record_r->value = text(scan, scan->is_wrong || !size ? 0 : size - 1);
}

static int is_head(const unsigned char *bytes, size_t size)
{
    static const unsigned char head[] = {'J', 'R', 0, 1};
    return memcmp(bytes, head, size < sizeof head ? size : sizeof head) == 0;
}

ssize_t journal_wire_read(const unsigned char *bytes, size_t size, struct stampd_journal_answer *answer_r)
{
    struct wire_scan scan = {.at = bytes, .left = size};
    struct stampd_journal_record record;
    if (size && !is_head(bytes, size))
        return -1;
    *answer_r = (struct stampd_journal_answer){0};
    number(&scan, 4);
    answer_r->identifier = (unsigned)number(&scan, 2);
    answer_r->flags = (unsigned)number(&scan, 2);
    answer_r->timestamp_us = number(&scan, 8);
    if (answer_r->flags & WIRE_TIMEOUT)
        answer_r->timeout_ms = number(&scan, 8);
    answer_r->count =
        answer_r->flags & WIRE_QUERY ? (unsigned)number(&scan, 2) : !!(answer_r->flags & STAMPD_JOURNAL_DATA);
    answer_r->error = text(&scan, number(&scan, 2));
    if (answer_r->flags & STAMPD_JOURNAL_STAMP)
        number(&scan, WIRE_STAMP_BYTES);
    const unsigned char *first = scan.at;
    for (unsigned i = 0; i < answer_r->count && !scan.is_short && !scan.is_wrong; i++)
        read_record(&scan, &record);
    answer_r->records = (struct stampd_journal_text){first, (size_t)(scan.at - first)};
    if (answer_r->flags & WIRE_MORE)
        answer_r->cursor = text(&scan, number(&scan, 2));
    if (scan.is_wrong)
        return -1;
    return scan.is_short ? 0 : scan.at - bytes;
}

uint64_t stampd_journal_stamp(const struct stampd_journal_answer *answer)
{
    struct wire_scan scan = {.at = (const unsigned char *)answer->records.data - WIRE_STAMP_BYTES,
                             .left = WIRE_STAMP_BYTES};
    return answer->flags & STAMPD_JOURNAL_STAMP ? number(&scan, WIRE_STAMP_BYTES) : 0;
}

int stampd_journal_next_record(struct stampd_journal_answer *answer, struct stampd_journal_record *record_r)
{
    struct wire_scan scan = {.at = answer->records.data, .left = answer->records.size};
    if (!answer->count)
        return ENOENT;
    read_record(&scan, record_r);
    if (scan.is_short || scan.is_wrong) /* not one that was received */
        return ENOENT;
    answer->count--;
    answer->records = (struct stampd_journal_text){scan.at, scan.left};
    return 0;
}

/* --- values --- */

void stampd_journal_write_integer(int64_t value, unsigned char bytes_r[8])
{
    journal_wire_put(bytes_r, (uint64_t)value, 8);
}

void stampd_journal_write_float(double value, unsigned char bytes_r[8])
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    journal_wire_put(bytes_r, bits, 8);
}

static uint64_t bits_of(struct stampd_journal_text value)
{
    struct wire_scan scan = {.at = value.data, .left = value.size};
    return value.size == 8 ? number(&scan, 8) : 0;
}

int64_t stampd_journal_read_integer(struct stampd_journal_text value)
{
    return (int64_t)bits_of(value);
}

double stampd_journal_read_float(struct stampd_journal_text value)
{
    uint64_t bits = bits_of(value);
    double number_of;
    memcpy(&number_of, &bits, sizeof number_of);
    return number_of;
}
