/* write_parts: writev until nothing is left. */
#include "edge/write_parts.h"

#include <errno.h>
#include <stddef.h>

enum write_result write_parts(int fd, struct iovec *parts, int count)
{
    while (count) {
        ssize_t wrote = writev(fd, parts, count);
        if (wrote < 0) {
            if (errno == EINTR)
                continue;
            return errno == EPIPE || errno == ECONNRESET ? WRITE_CLOSED : WRITE_STUCK;
        }
        size_t left = (size_t)wrote;
        for (; count && left >= parts->iov_len; parts++, count--)
            left -= parts->iov_len;
        if (count) {
            parts->iov_base = (char *)parts->iov_base + left;
            parts->iov_len -= left;
        }
    }
    return WRITE_DONE;
}
