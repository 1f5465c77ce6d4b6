/* home: which workers keep the database sessions of a namespace. */
#include "serve/home.h"

#include <string.h>

bool home_has(struct bytes home, int64_t position, int64_t workers)
{
    int64_t first, width;
    const char *slash = home.size ? memchr(home.data, '/', home.size) : NULL;
    if (!slash)
        return true;
    size_t size = (size_t)(slash - home.data);
    if (!bytes_to_i64((struct bytes){home.data, size}, &first) ||
        !bytes_to_i64((struct bytes){slash + 1, home.size - size - 1}, &width) || first < 0 ||
        first >= workers || width < 1)
        return true;
    return (position - first + workers) % workers < width;
}
