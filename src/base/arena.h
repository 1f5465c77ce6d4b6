/* arena: memory with a named lifetime.  All memory of an arena is freed at once.
 *
 * For: the many small pieces of one request.  Not for: memory that outlives it (cache entries are malloc'ed).
 * No function returns NULL: when memory runs out the process ends with a log line, so every size that comes
 * from outside is limited before it is allocated.  In builds with AddressSanitizer each piece is a malloc of
 * its own, so that a write past its end is detected. */
#ifndef STAMPD_BASE_ARENA_H
#define STAMPD_BASE_ARENA_H

#include "base/bytes.h"

struct arena;

struct arena *arena_create(const char *name);
void arena_destroy(struct arena *arena);

/* Returns `size` bytes, aligned for any object, not cleared. */
void *arena_alloc(struct arena *arena, size_t size) __attribute__((malloc, alloc_size(2), returns_nonnull));
/* The same, cleared; `count` times `size` is checked for overflow. */
void *arena_zalloc(struct arena *arena, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
/* Copies `size` bytes and adds a NUL after them. */
char *arena_copy(struct arena *arena, const void *data, size_t size) __attribute__((returns_nonnull));
/* The same of a text: never NO_BYTES. */
static inline struct bytes arena_keep(struct arena *arena, struct bytes text)
{
    return (struct bytes){arena_copy(arena, text.data, text.size), text.size};
}
/* printf into the arena. */
char *arena_printf(struct arena *arena, const char *format, ...) PRINTF_LIKE(2, 3);

/* Runs `function(pointer)` at the next reset, last deferred first: PQclear, close, document_release. */
void arena_defer(struct arena *arena, void (*function)(void *), void *pointer);

/* Counts bytes that a deferred function will free at the next reset as if the arena had allocated them. */
void arena_count(struct arena *arena, size_t size);

/* Runs the deferred functions and frees all memory; keeps one block for the next use. */
void arena_reset(struct arena *arena);
/* Bytes allocated and counted since the last reset. */
size_t arena_used(const struct arena *arena);

/* Room for `count` pieces of `size` bytes, not cleared; checked for overflow. */
void *arena_room(struct arena *arena, size_t count, size_t size) __attribute__((malloc, returns_nonnull));
#define ARENA_ROOM(arena, type, count)  ((type *)arena_room((arena), (count), sizeof(type)))
#define ARENA_NEW(arena, type)          ((type *)arena_zalloc((arena), 1, sizeof(type)))
#define ARENA_ARRAY(arena, type, count) ((type *)arena_zalloc((arena), (count), sizeof(type)))

/* Makes room for one more element in a list of `count` elements with room for `*capacity`: returns the list,
 * or a copy with twice the room, cleared behind the elements. */
void *arena_grow(struct arena *arena, void *list, size_t count, size_t *capacity, size_t size);
#define ARENA_GROW(arena, list, count, capacity)                                                             \
    ((list) = arena_grow((arena), (list), (count), &(capacity), sizeof *(list)))

#endif
