/* memory: RLIMIT_DATA counts private writable memory, mapped or not yet touched; neither the shared segment
 * nor code.  Memory really in use is read from /proc/self/statm. */
#include "serve/memory.h"

#include <malloc.h>
#include <stdio.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/log.h"

enum { MANY_BYTES = 8 << 20 }; /* below this, trimming the heap is not worth its cost */

static int64_t bytes_of_mb(int64_t mb)
{
    return mb << 20;
}

void memory_limit(const struct settings *settings)
{
    struct rlimit limit;
    /* A sanitizer itself maps more than any limit allows. */
    if (IS_SANITIZED || !settings->memory_mb || getrlimit(RLIMIT_DATA, &limit))
        return;
    rlim_t wanted = (rlim_t)bytes_of_mb(settings->cache_mb + settings->memory_mb);
    if (limit.rlim_max != RLIM_INFINITY && wanted >= limit.rlim_max)
        return; /* a stricter limit is set already */
    limit.rlim_cur = limit.rlim_max = wanted;
    if (setrlimit(RLIMIT_DATA, &limit))
        log_warning("cannot limit the memory of the worker: %m");
}

bool memory_is_grown(const struct settings *settings)
{
    long long resident, shared;
    if (IS_SANITIZED || !settings->memory_mb)
        return false;
    FILE *file = fopen("/proc/self/statm", "re");
    if (!file)
        return false;
    int count = fscanf(file, "%*s %lld %lld", &resident, &shared);
    fclose(file);
    return count == 2 && (resident - shared) * sysconf(_SC_PAGESIZE) >
                             bytes_of_mb(settings->cache_mb) + bytes_of_mb(settings->memory_mb) / 2;
}

void memory_trim(void)
{
    malloc_trim(0);
}

void memory_return(size_t bytes)
{
    if (bytes >= MANY_BYTES)
        memory_trim();
}
