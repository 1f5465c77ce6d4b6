/* builder: doubles its buffer, writes numbers and formats. */
#include "base/builder.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>

#include "base/log.h"

char *builder_grow(struct builder *builder, size_t more)
{
    size_t need, capacity;
    if (__builtin_add_overflow(builder->size, more, &need) || __builtin_mul_overflow(need, 2, &capacity))
        log_fatal("size overflow builder bytes=%zu more=%zu", builder->size, more);
    if (capacity < 256)
        capacity = 256;
    char *data = realloc(builder->data, capacity);
    if (!data)
        log_fatal("out of memory builder bytes=%zu", capacity);
    builder->data = data;
    builder->capacity = capacity;
    return data + builder->size;
}

/* Two digits in each round: most numbers are stamps, which have fifteen. */
void builder_add_i64(struct builder *builder, int64_t value)
{
    static const char pairs[] = "00010203040506070809101112131415161718192021222324"
                                "25262728293031323334353637383940414243444546474849"
                                "50515253545556575859606162636465666768697071727374"
                                "75767778798081828384858687888990919293949596979899";
    char digits[20], *p = digits + sizeof digits;
    uint64_t rest = value < 0 ? -(uint64_t)value : (uint64_t)value;
    for (; rest >= 10; rest /= 100) {
        const char *pair = pairs + 2 * (rest % 100);
        *--p = pair[1];
        *--p = pair[0];
    }
    if (rest || p == digits + sizeof digits)
        *--p = (char)('0' + rest);
    if (value < 0)
        *--p = '-';
    builder_add(builder, p, (size_t)(digits + sizeof digits - p));
}

enum { PRINTED_OFTEN = 64 }; /* bytes: most of what is printed fits into so many */

void builder_printf(struct builder *builder, const char *format, ...)
{
    va_list arguments;
    char *at = builder_reserve(builder, PRINTED_OFTEN);
    size_t room = builder->capacity - builder->size;
    va_start(arguments, format);
    int size = vsnprintf(at, room, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    if ((size_t)size >= room) { /* it did not fit: the size is known now */
        at = builder_reserve(builder, (size_t)size + 1);
        va_start(arguments, format);
        vsnprintf(at, (size_t)size + 1, format, arguments);
        va_end(arguments);
    }
    builder->size += (size_t)size;
}

void builder_clear(struct builder *builder, size_t keep)
{
    if (builder->capacity > keep)
        builder_free(builder);
    builder->size = 0;
}

void builder_free(struct builder *builder)
{
    free(builder->data);
    *builder = (struct builder){0};
}
