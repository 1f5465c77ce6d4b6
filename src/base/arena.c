/* arena: blocks chained from the newest; the first one is kept over resets. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

#if defined(__SANITIZE_ADDRESS__)
#define BLOCK_BYTES 1 /* every piece gets its own block, so ASan guards each */
#elif defined(__has_feature)
#if __has_feature(address_sanitizer)
#define BLOCK_BYTES 1
#endif
#endif
#ifndef BLOCK_BYTES
#define BLOCK_BYTES (64 * 1024)
#endif

struct block {
    struct block *older;
    size_t size, used;
    max_align_t data[];
};

struct deferred {
    struct deferred *older;
    void (*function)(void *);
    void *pointer;
};

struct arena {
    const char *name;
    struct block *newest;
    struct deferred *deferred;
    size_t used;
};

static struct block *block_create(const struct arena *arena, size_t size, struct block *older)
{
    struct block *block = malloc(sizeof *block + size);
    if (!block)
        log_fatal("out of memory arena=%s bytes=%zu", arena->name, size);
    *block = (struct block){.older = older, .size = size};
    return block;
}

struct arena *arena_create(const char *name)
{
    struct arena *arena = calloc(1, sizeof *arena);
    if (!arena)
        log_fatal("out of memory arena=%s", name);
    arena->name = name;
    return arena;
}

void arena_destroy(struct arena *arena)
{
    if (!arena)
        return;
    arena_reset(arena);
    free(arena->newest);
    free(arena);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(size, sizeof(max_align_t) - 1, &need))
        log_fatal("size overflow arena=%s bytes=%zu", arena->name, size);
    need &= ~(sizeof(max_align_t) - 1);
    struct block *block = arena->newest;
    if (!block || block->size - block->used < need) {
        /* In a sanitized build the block is just as large as asked. */
        size_t block_size = BLOCK_BYTES == 1 ? (size ? size : 1) : need > BLOCK_BYTES ? need : BLOCK_BYTES;
        block = arena->newest = block_create(arena, block_size, block);
        if (BLOCK_BYTES == 1)
            need = block_size;
    }
    void *piece = (char *)block->data + block->used;
    block->used += need;
    arena->used += need;
    return piece;
}

void *arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        log_fatal("size overflow arena=%s count=%zu size=%zu", arena->name, count, size);
    return memset(arena_alloc(arena, total), 0, total);
}

char *arena_copy(struct arena *arena, const void *data, size_t size)
{
    char *copy = arena_alloc(arena, size + 1);
    if (size)
        memcpy(copy, data, size);
    copy[size] = '\0';
    return copy;
}

char *arena_printf(struct arena *arena, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    int size = vsnprintf(NULL, 0, format, arguments);
    va_end(arguments);
    assert(size >= 0);
    char *text = arena_alloc(arena, (size_t)size + 1);
    va_start(arguments, format);
    vsnprintf(text, (size_t)size + 1, format, arguments);
    va_end(arguments);
    return text;
}

void arena_defer(struct arena *arena, void (*function)(void *), void *pointer)
{
    struct deferred *deferred = arena_alloc(arena, sizeof *deferred);
    *deferred = (struct deferred){.older = arena->deferred, .function = function, .pointer = pointer};
    arena->deferred = deferred;
}

void arena_reset(struct arena *arena)
{
    while (arena->deferred) {
        struct deferred *deferred = arena->deferred;
        arena->deferred = deferred->older;
        deferred->function(deferred->pointer);
    }
    struct block *block = arena->newest;
    while (block && (block->older || BLOCK_BYTES == 1 || block->size > BLOCK_BYTES)) {
        struct block *older = block->older;
        free(block);
        block = older;
    }
    if (block)
        block->used = 0;
    arena->newest = block;
    arena->used = 0;
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}
