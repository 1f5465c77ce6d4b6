/* memory: limits the memory of a worker (settings cache_mb, memory_mb).  Code that leaks or allocates too
 * much harms only its own process. */
#ifndef STAMPD_SERVE_MEMORY_H
#define STAMPD_SERVE_MEMORY_H

#include "base/settings.h"

/* From now on this process gets cache_mb + memory_mb of private memory and no more: malloc fails. */
void memory_limit(const struct settings *settings);
/* Does this process hold so much memory that it should be recycled: cache_mb + half of memory_mb? */
bool memory_is_grown(const struct settings *settings);
/* Returns freed memory to the system after a request that has used many `bytes`; the allocator would keep
 * what lies below a small piece that is still in use. */
void memory_return(size_t bytes);
/* Returns freed memory after something that had been kept for long was given up. */
void memory_trim(void);

#endif
