/* module_watch: what the pulse of a worker records about application code. */
#include "operation/module/module_watch.h"

#include <string.h>

#include "base/bytes.h"

void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms)
{
    struct bytes name = bytes_of(what);
    size_t size = name.size < sizeof pulse->application ? name.size : sizeof pulse->application - 1;
    memcpy(pulse->application, name.data, size);
    pulse->application[size] = '\0';
    atomic_store(&pulse->deadline_ms, deadline_ms);
}

void module_watch_end(struct pulse *pulse)
{
    atomic_store(&pulse->deadline_ms, 0);
}
