/* bytes: text as pointer and length, without an implied NUL; and a buffer that grows.
 *
 * Ownership: struct bytes owns nothing.  A builder owns its malloc'ed buffer and is meant to be reused
 * (builder_clear keeps the memory).  The process ends when memory runs out. */
#ifndef STAMPD_BASE_BYTES_H
#define STAMPD_BASE_BYTES_H

#include "base/base.h"

#include <string.h>

struct bytes {
    const char *data; /* NULL: no text at all, not the same as an empty one */
    size_t size;
};

#define BYTES(literal) ((struct bytes){("" literal), sizeof(literal) - 1})
#define NO_BYTES       ((struct bytes){NULL, 0})

static inline struct bytes bytes_of(const char *text)
{
    return (struct bytes){text, text ? strlen(text) : 0};
}

static inline bool bytes_equal(struct bytes a, struct bytes b)
{
    return a.size == b.size && (a.size == 0 || memcmp(a.data, b.data, a.size) == 0);
}

/* Orders as unsigned bytes, shorter first on a tie: the order of PostgreSQL's collation "C". */
static inline int bytes_compare(struct bytes a, struct bytes b)
{
    size_t common = a.size < b.size ? a.size : b.size;
    int order = common ? memcmp(a.data, b.data, common) : 0;
    return order ? order : (a.size > b.size) - (a.size < b.size);
}

/* Is it well-formed UTF-8 (no overlong form, no surrogate, at most U+10FFFF)?  NUL is allowed. */
bool bytes_is_utf8(struct bytes text);

/* Returns the text before the separator, or all, and advances `rest` past it. */
struct bytes bytes_cut(struct bytes *rest, char separator);

/* Reads a whole decimal integer (sign allowed); false when the text is not one or it does not fit. */
bool bytes_to_i64(struct bytes text, int64_t *value_r);

/* Writes the whole text to the file; on failure returns false and sets errno. */
MUST_USE bool bytes_write(int fd, struct bytes text);

struct builder {
    char *data;
    size_t size, capacity;
};

/* builder_reserve when there is too little room. */
char *builder_grow(struct builder *builder, size_t more) __attribute__((returns_nonnull));

/* Makes room for `more` bytes after the text and returns a pointer to it; the caller adds to `size`. */
static inline char *builder_reserve(struct builder *builder, size_t more)
{
    return builder->capacity - builder->size >= more ? builder->data + builder->size
                                                     : builder_grow(builder, more);
}

static inline void builder_add(struct builder *builder, const void *data, size_t size)
{
    if (!size)
        return;
    memcpy(builder_reserve(builder, size), data, size);
    builder->size += size;
}

void builder_add_i64(struct builder *builder, int64_t value);
void builder_printf(struct builder *builder, const char *format, ...) PRINTF_LIKE(2, 3);
/* Empties it, keeping at most `keep` bytes of memory for the next use. */
void builder_clear(struct builder *builder, size_t keep);
void builder_free(struct builder *builder);

static inline void builder_add_bytes(struct builder *builder, struct bytes text)
{
    builder_add(builder, text.data, text.size);
}
#define builder_add_text(builder, literal) builder_add((builder), ("" literal), sizeof(literal) - 1)

static inline struct bytes builder_bytes(const struct builder *builder)
{
    return (struct bytes){builder->data ? builder->data : "", builder->size};
}

#endif
