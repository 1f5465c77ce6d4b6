/* memory: memory from the system, without which a process ends: the callers check nothing.  `free` returns
 * it. */
#ifndef STAMPD_BASE_MEMORY_H
#define STAMPD_BASE_MEMORY_H

#include "base/base.h"

/* `count` elements of `size` bytes, all zero.  Where there is no memory the process logs "out of memory" and
 * `what`, and ends with status 1. */
void *memory_zeroed(size_t count, size_t size, const char *what) MUST_USE;

/* `old` (NULL: none) with room for `count` elements of `size` bytes: what it held stays, the rest is
 * uninitialised.  Ends the process as above, also when the product overflows. */
void *memory_grown(void *old, size_t count, size_t size, const char *what) MUST_USE;

#endif
