/* local_socket: binds Unix sockets.
 *
 * A socket is bound under another name in the same folder, where it gets its group and mode and, a stream,
 * begins to listen; then it is renamed.  So whoever finds the path can connect, from the first moment: no
 * client is refused because a server is just starting.  Meanwhile the folder is locked (flock(2)): when two
 * processes start at once, each finds what the other has done, or nothing of it. */
#ifndef STAMPD_EDGE_LOCAL_SOCKET_H
#define STAMPD_EDGE_LOCAL_SOCKET_H

#include <sys/types.h>

#include "base/base.h"

enum { LOCAL_SOCKET_NO_GROUP = -1 };

struct local_socket_options {
    int type;                /* SOCK_STREAM or SOCK_DGRAM */
    mode_t mode;             /* of the path */
    int64_t group;           /* LOCAL_SOCKET_NO_GROUP: that of the process */
    bool may_replace_living; /* the path changes hands while its former owner still runs */
};

/* Opens a non-blocking socket, closed by exec, at `path`.  Replaces a socket that a dead process has left
 * there; fails when there is another file, or, unless may_replace_living, when a living process uses it:
 * `problem` contains "living process" then.  The path has at most 107 bytes, or 103 if it does not
 * end in .sock.  On failure one line in `problem`. */
MUST_USE bool local_socket_open(const char *path, const struct local_socket_options *options, int *fd_r,
                                char *problem, size_t problem_size);

/* Was this socket bound to be at `path`?  Also one that another release has bound under that name itself. */
bool local_socket_is_bound(int fd, const char *path);

#endif
