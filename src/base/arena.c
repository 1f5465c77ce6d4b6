/* arena: a chain of blocks from the newest; one is kept across resets. */
#include "base/arena.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"

enum { BLOCK_BYTES = 64 * 1024 };

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
    size_t whole;
    struct block *block = __builtin_add_overflow(sizeof *block, size, &whole) ? NULL : malloc(whole);
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

/* A large piece gets a block of its own behind the newest, whose remaining space stays in use. */
static struct block *block_for_large(struct arena *arena, size_t size)
{
    struct block *newest = arena->newest;
    if (!newest)
        return arena->newest = block_create(arena, size, NULL);
    return newest->older = block_create(arena, size, newest->older);
}

void *arena_alloc(struct arena *arena, size_t size)
{
    size_t need;
    if (__builtin_add_overflow(size, sizeof(max_align_t) - 1, &need))
        log_fatal("size overflow arena=%s bytes=%zu", arena->name, size);
    need &= ~(sizeof(max_align_t) - 1);
    struct block *block = arena->newest;
    if (IS_SANITIZED) /* every piece gets a block of its own, so that ASan guards each */
        block = block_for_large(arena, need = size ? size : 1); /* exactly the requested size */
    else if (need > BLOCK_BYTES / 4)
        block = block_for_large(arena, need);
    else if (!block || block->size - block->used < need)
        block = arena->newest = block_create(arena, BLOCK_BYTES, block);
    void *piece = (char *)block->data + block->used;
    block->used += need;
    arena->used += need;
    return piece;
}

void *arena_room(struct arena *arena, size_t count, size_t size)
{
    size_t total;
    if (__builtin_mul_overflow(count, size, &total))
        log_fatal("size overflow arena=%s count=%zu size=%zu", arena->name, count, size);
    return arena_alloc(arena, total);
}

void *arena_zalloc(struct arena *arena, size_t count, size_t size)
{
    return memset(arena_room(arena, count, size), 0, count * size);
}

void *arena_grow(struct arena *arena, void *list, size_t count, size_t *capacity, size_t size)
{
    if (count < *capacity)
        return list;
    *capacity = count ? 2 * count : 8;
    void *larger = arena_zalloc(arena, *capacity, size);
    if (count)
        memcpy(larger, list, count * size);
    return larger;
}

char *arena_copy(struct arena *arena, const void *data, size_t size)
{
    size_t with_nul;
    if (__builtin_add_overflow(size, 1, &with_nul))
        log_fatal("size overflow arena=%s bytes=%zu", arena->name, size);
    char *copy = arena_alloc(arena, with_nul);
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
    struct block *kept = NULL;
    for (struct block *block = arena->newest, *older; block; block = older) {
        older = block->older;
        if (!kept && !IS_SANITIZED && block->size == BLOCK_BYTES)
            kept = block;
        else
            free(block);
    }
    if (kept)
        *kept = (struct block){.size = BLOCK_BYTES};
    arena->newest = kept;
    arena->used = 0;
}

void arena_count(struct arena *arena, size_t size)
{
    arena->used += size;
}

size_t arena_used(const struct arena *arena)
{
    return arena->used;
}
