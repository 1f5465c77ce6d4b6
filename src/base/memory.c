/* memory: the two calls of the C library that a process cannot do without. */
#include "base/memory.h"

#include <stdlib.h>

#include "base/log.h"

void *memory_zeroed(size_t count, size_t size, const char *what)
{
    void *memory = calloc(count, size);
    if (!memory)
        log_fatal("out of memory %s", what);
    return memory;
}

void *memory_grown(void *old, size_t count, size_t size, const char *what)
{
    void *memory = reallocarray(old, count, size);
    if (!memory)
        log_fatal("out of memory %s", what);
    return memory;
}
