/* spans: a record with room for the first pieces of a request. */
#include "base/logging/spans.h"

#include <string.h>

#include "base/clock.h"

static struct spans spans;

struct spans *spans_get(void)
{
    return &spans;
}

int64_t spans_begin(void)
{
    return spans.is_on ? clock_monotonic_us() : 0;
}

static void copy_text(char *text_r, size_t most, struct bytes text)
{
    size_t size = text.size < most ? text.size : most;
    memcpy(text_r, text.size ? text.data : "", size);
    text_r[size] = '\0';
}

/* NULL: there is no room. */
static struct span *add_span(enum span_kind kind, struct bytes name, int64_t begin_us)
{
    if (spans.count == SPANS_MOST) {
        spans.left_out++;
        return NULL;
    }
    struct span *span = &spans.spans[spans.count++];
    *span = (struct span){.begin_us = begin_us, .kind = (uint8_t)kind, .parent = spans.inside};
    copy_text(span->name, SPAN_NAME_BYTES, name);
    return span;
}

static void end_span(struct span *span, int64_t us, bool has_failed)
{
    span->us = us > UINT32_MAX ? UINT32_MAX : (uint32_t)us;
    span->has_failed = has_failed;
}

void spans_note(const char *name, int64_t begin_us, bool has_failed)
{
    if (!begin_us || !spans.is_on)
        return;
    int64_t us = clock_monotonic_us() - begin_us;
    spans.waited_us += us;
    struct span *span = add_span(SPAN_STATEMENT, bytes_of(name), begin_us);
    if (span)
        end_span(span, us, has_failed);
}

/* The last two letters are flags in hexadecimal, whose last bit is `sampled`. */
bool spans_is_sampled(struct bytes trace)
{
    return trace.size >= SPANS_CONTEXT_BYTES &&
           memchr("13579bdf", trace.data[SPANS_CONTEXT_BYTES - 1], strlen("13579bdf"));
}

void spans_begin_task(struct bytes operation, struct bytes trace)
{
    bool has_context = trace.size >= SPANS_CONTEXT_BYTES;
    if (spans.may_adopt && spans_is_sampled(trace)) {
        spans.may_adopt = false;
        spans.is_on = true;
        copy_text(spans.adopted, SPANS_CONTEXT_BYTES, trace);
    }
    if (!spans.is_on)
        return;
    spans.inside = 0;
    struct span *span = add_span(SPAN_TASK, operation, clock_monotonic_us());
    if (!span)
        return;
    spans.inside = (uint8_t)spans.count;
    if (has_context)
        copy_text(span->link, SPANS_CONTEXT_BYTES, trace);
}

void spans_end_task(bool has_failed)
{
    struct span *span = spans.inside ? &spans.spans[spans.inside - 1] : NULL;
    if (span)
        end_span(span, clock_monotonic_us() - span->begin_us, has_failed);
    spans.inside = 0;
}
