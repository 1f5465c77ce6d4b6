/* memory: how much of it a worker may have (settings cache_mb, memory_mb).  Code that leaks or asks for too
 * much harms its own process only. */
#ifndef STAMPD_SERVE_MEMORY_H
#define STAMPD_SERVE_MEMORY_H

#include "base/settings.h"

/* From now on this process gets cache_mb + memory_mb of private memory and no more: malloc fails. */
void memory_limit(const struct settings *settings);
/* Does this process keep so much that it is better replaced, in good order: cache_mb + half of memory_mb? */
bool memory_is_grown(const struct settings *settings);

#endif
