/* coding: gzip is unpacked, whatever else there is has to be refused. */
#include "http/coding.h"

#include <string.h>
#include <strings.h>

#include "edge/gzip.h"

static bool is_coding(struct bytes value, const char *name)
{
    return value.size == strlen(name) && strncasecmp(value.data, name, value.size) == 0;
}

enum fault coding_read(struct call *call, struct bytes header, bool *is_gzip_r, struct reply *reply)
{
    struct bytes value = bytes_trim(header);
    *is_gzip_r = is_coding(value, "gzip") || is_coding(value, "x-gzip");
    if (!value.size || is_coding(value, "identity") || (*is_gzip_r && !call->attachment))
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_ATYPE,
                       call->attachment ? "A file is sent without a Content-Encoding."
                                        : "The Content-Encoding must be gzip or identity.",
                       "body", NULL);
}

enum fault coding_unpack(const struct settings *settings, struct call *call, struct builder *body,
                         int64_t most, int64_t *size_r, struct reply *reply)
{
    struct builder text = {0};
    long long ratio = settings->limit_body_ratio;
    enum gzip_outcome outcome = gzip_unpack(builder_bytes(body), (size_t)most, (size_t)ratio, &text);
    builder_free(body);
    *body = text;
    *size_r = (int64_t)text.size + (outcome == GZIP_TOO_LARGE);
    switch (outcome) {
    case GZIP_DONE:
        return FAULT_NONE;
    case GZIP_TOO_LARGE:
        return FAULT_ALIMIT;
    case GZIP_TOO_DENSE:
        return reply_fault(call, reply, FAULT_ALIMIT, NULL, "limit_body_ratio",
                           arena_printf(call->arena, "%lld", ratio),
                           arena_printf(call->arena, "%lld", ratio + 1), NULL);
    case GZIP_BROKEN:
        break;
    }
    return reply_fault(call, reply, FAULT_ABODY, "The body is not gzip, or not all of it.", "body", NULL);
}
