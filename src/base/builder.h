/* builder: a text that grows.  It owns its malloc'ed buffer and is meant to be reused (builder_clear keeps
 * the memory).  The process ends when memory runs out. */
#ifndef STAMPD_BASE_BUILDER_H
#define STAMPD_BASE_BUILDER_H

#include "base/arena.h"

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

/* The text as a copy in the arena; frees the builder. */
static inline struct bytes builder_take(struct builder *builder, struct arena *arena)
{
    struct bytes text = arena_keep(arena, (struct bytes){builder->data, builder->size});
    builder_free(builder);
    return text;
}

#endif
