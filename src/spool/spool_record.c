/* spool_record: encodes and decodes; reads nothing outside the given bytes. */
#include "spool/spool_record.h"

#include <errno.h>
#include <string.h>

#include "spool/spool_crc.h"

enum tag {
    TAG_NS = 1,
    TAG_OPERATION,
    TAG_PARAM,
    TAG_RESOURCE,
    TAG_DOMAIN,
    TAG_INFO,
    TAG_START,
    TAG_PRIORITY,
    TAG_STRICT,
    TAG_TRACEPARENT,
    TAG_TRACESTATE
};
enum { FIELD_BYTES = 6, HEAD_CRC_AT = 28, PRIORITY_MOST = 255, END_BYTE = 0xff };
static const char magic[] = "SPR1";
#define START_MOST INT64_C(991231235959999)

void spool_record_write_u32(unsigned char *at, uint32_t value)
{
    for (int byte = 0; byte < 4; byte++)
        at[byte] = (unsigned char)(value >> (8 * byte));
}

void spool_record_write_u64(unsigned char *at, uint64_t value)
{
    spool_record_write_u32(at, (uint32_t)value);
    spool_record_write_u32(at + 4, (uint32_t)(value >> 32));
}

uint32_t spool_record_read_u32(const unsigned char *at)
{
    return at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
}

uint64_t spool_record_read_u64(const unsigned char *at)
{
    return spool_record_read_u32(at) | (uint64_t)spool_record_read_u32(at + 4) << 32;
}

/* --- a request --- */

static int check_text(const char *text, int is_needed)
{
    if (!text || !*text)
        return is_needed || text ? EINVAL : 0;
    return strlen(text) > STAMPD_SPOOL_TEXT_MOST ? EMSGSIZE : 0;
}

/* A blank of JSON. */
static int spool_record_is_blank(char letter)
{
    return letter == ' ' || letter == '\t' || letter == '\n' || letter == '\r';
}

/* Only the brackets: whether it is JSON is seen by the forwarder. */
static int check_param(const char *param, size_t size)
{
    if (!param)
        return size ? EINVAL : 0;
    if (size > STAMPD_SPOOL_PARAM_MOST)
        return EMSGSIZE;
    while (size && spool_record_is_blank(*param))
        param++, size--;
    while (size && spool_record_is_blank(param[size - 1]))
        size--;
    return size < 2 || *param != '{' || param[size - 1] != '}' || memchr(param, 0, size) ? EINVAL : 0;
}

int spool_record_check(const struct stampd_spool_request *request)
{
    const char *const texts[] = {request->ns,   request->operation,   request->resource,  request->domain,
                                 request->info, request->traceparent, request->tracestate};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int error = check_text(texts[i], i < 2);
        if (error)
            return error;
    }
    if (request->priority < 0 || request->priority > PRIORITY_MOST || request->start < 0 ||
        request->start > START_MOST || (request->is_strict && !request->domain))
        return EINVAL;
    return check_param(request->param, request->param_size);
}

static size_t field_bytes(const char *text, size_t size)
{
    return text ? FIELD_BYTES + size : 0;
}

static size_t text_bytes(const char *text)
{
    return text ? field_bytes(text, strlen(text)) : 0;
}

size_t spool_record_measure(const struct stampd_spool_request *request)
{
    return text_bytes(request->ns) + text_bytes(request->operation) +
           field_bytes(request->param, request->param_size) + text_bytes(request->resource) +
           text_bytes(request->domain) + text_bytes(request->info) + (request->start ? FIELD_BYTES + 8 : 0) +
           FIELD_BYTES + 1 + (request->is_strict ? FIELD_BYTES : 0) + text_bytes(request->traceparent) +
           text_bytes(request->tracestate);
}

static unsigned char *spool_record_add(unsigned char *at, enum tag tag, const void *data, size_t size)
{
    *at = (unsigned char)tag;
    spool_record_write_u32(at + 1, (uint32_t)size);
    if (size)
        memcpy(at + FIELD_BYTES - 1, data, size);
    at[FIELD_BYTES - 1 + size] = 0;
    return at + FIELD_BYTES + size;
}

static unsigned char *spool_record_add_text(unsigned char *at, enum tag tag, const char *text)
{
    return text ? spool_record_add(at, tag, text, strlen(text)) : at;
}

static void write_body(const struct stampd_spool_request *request, unsigned char *body)
{
    unsigned char number[8], priority = (unsigned char)request->priority;
    body = spool_record_add_text(body, TAG_NS, request->ns);
    body = spool_record_add_text(body, TAG_OPERATION, request->operation);
    if (request->param)
        body = spool_record_add(body, TAG_PARAM, request->param, request->param_size);
    body = spool_record_add_text(body, TAG_RESOURCE, request->resource);
    body = spool_record_add_text(body, TAG_DOMAIN, request->domain);
    body = spool_record_add_text(body, TAG_INFO, request->info);
    spool_record_write_u64(number, (uint64_t)request->start);
    if (request->start)
        body = spool_record_add(body, TAG_START, number, sizeof number);
    body = spool_record_add(body, TAG_PRIORITY, &priority, 1);
    if (request->is_strict)
        body = spool_record_add(body, TAG_STRICT, "", 0);
    body = spool_record_add_text(body, TAG_TRACEPARENT, request->traceparent);
    spool_record_add_text(body, TAG_TRACESTATE, request->tracestate);
}

static int spool_record_read_field(struct stampd_spool_request *request, int tag, const unsigned char *data,
                                   size_t size)
{
    const char *text = (const char *)data;
    switch (tag) {
    case TAG_NS:
        request->ns = text;
        break;
    case TAG_OPERATION:
        request->operation = text;
        break;
    case TAG_PARAM:
        request->param = text;
        request->param_size = size;
        return 0;
    case TAG_RESOURCE:
        request->resource = text;
        break;
    case TAG_DOMAIN:
        request->domain = text;
        break;
    case TAG_INFO:
        request->info = text;
        break;
    case TAG_TRACEPARENT:
        request->traceparent = text;
        break;
    case TAG_TRACESTATE:
        request->tracestate = text;
        break;
    case TAG_START:
        request->start = size == 8 ? (int64_t)spool_record_read_u64(data) : -1;
        return 0;
    case TAG_PRIORITY:
        request->priority = size == 1 ? *data : -1;
        return 0;
    case TAG_STRICT:
        request->is_strict = 1;
        return 0;
    default:
        return EBADMSG;
    }
    return memchr(text, 0, size) ? EBADMSG : 0;
}

int spool_record_read_body(const unsigned char *body, size_t size, struct stampd_spool_request *request_r)
{
    *request_r = STAMPD_SPOOL_REQUEST;
    while (size) {
        size_t length = size >= FIELD_BYTES ? spool_record_read_u32(body + 1) : 0;
        if (size < FIELD_BYTES || length > size - FIELD_BYTES || body[FIELD_BYTES - 1 + length] ||
            spool_record_read_field(request_r, *body, body + FIELD_BYTES - 1, length))
            return EBADMSG;
        body += FIELD_BYTES + length;
        size -= FIELD_BYTES + length;
    }
    return spool_record_check(request_r) ? EBADMSG : 0;
}

/* --- a record --- */

static uint32_t head_crc(const unsigned char *head, const unsigned char *series)
{
    return spool_crc(spool_crc(0, series, STAMPD_SPOOL_ID_BYTES), head, HEAD_CRC_AT);
}

void spool_record_write(const struct stampd_spool_request *request, unsigned char *record, size_t size)
{
    size_t bytes = spool_record_bytes(size);
    memcpy(record, magic, 4);
    spool_record_write_u32(record + 4, (uint32_t)size);
    write_body(request, record + SPOOL_HEAD_BYTES);
    spool_record_write_u32(record + 24, spool_crc(0, record + SPOOL_HEAD_BYTES, size));
    memset(record + SPOOL_HEAD_BYTES + size, 0, bytes - SPOOL_HEAD_BYTES - size);
    record[bytes - 1] = END_BYTE;
}

void spool_record_place(unsigned char *record, const unsigned char series[STAMPD_SPOOL_ID_BYTES],
                        uint64_t sequence, int64_t time_ms)
{
    spool_record_write_u64(record + 8, sequence);
    spool_record_write_u64(record + 16, (uint64_t)time_ms);
    spool_record_write_u32(record + HEAD_CRC_AT, head_crc(record, series));
}

size_t spool_record_length(const unsigned char *record)
{
    return spool_record_bytes(spool_record_read_u32(record + 4));
}

int spool_record_read_head(const unsigned char *bytes, const unsigned char series[STAMPD_SPOOL_ID_BYTES],
                           struct spool_head *head_r)
{
    if (memcmp(bytes, magic, 4) || spool_record_read_u32(bytes + HEAD_CRC_AT) != head_crc(bytes, series))
        return EBADMSG;
    *head_r =
        (struct spool_head){spool_record_read_u32(bytes + 4), spool_record_read_u64(bytes + 8),
                            (int64_t)spool_record_read_u64(bytes + 16), spool_record_read_u32(bytes + 24)};
    return head_r->size > STAMPD_SPOOL_RECORD_MOST ? EBADMSG : 0;
}
