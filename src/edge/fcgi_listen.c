/* fcgi_listen: the listening socket of a worker: its owner and mode. */
#include "edge/fcgi.h"

#include <sys/socket.h>

#include "edge/local_socket.h"

bool fcgi_listen(const char *path, int64_t group, int *listener_r, char *problem, size_t problem_size)
{
    const bool has_group = group != FCGI_NO_GROUP;
    const struct local_socket_options options = {.type = SOCK_STREAM,
                                                 .mode = has_group ? 0660 : 0600,
                                                 .group = has_group ? group : LOCAL_SOCKET_NO_GROUP};
    return local_socket_open(path, &options, listener_r, problem, problem_size);
}
