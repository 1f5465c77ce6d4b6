/* handover: passes listening sockets from one server to the next.
 *
 * A server inherits them from a running server that has started it as its successor (SIGUSR2), or from
 * systemd, which has kept them for a server that has ended (the units' FileDescriptorStoreMax).  In both
 * cases the descriptors start at 3, and LISTEN_PID, LISTEN_FDS and LISTEN_FDNAMES describe them.  So no
 * connection is refused: a client that connects between two servers waits at the socket. */
#ifndef STAMPD_SERVE_HANDOVER_H
#define STAMPD_SERVE_HANDOVER_H

#include <sys/types.h>

#include "base/base.h"

enum { HANDOVER_NAME_BYTES = 24, HANDOVER_MOST = 144 };

/* A descriptor to pass on; its name consists of letters, digits and `-`. */
struct handed {
    char name[HANDOVER_NAME_BYTES];
    int fd;
};

/* --- the new server --- */
/* Takes the inherited descriptors; called once, before anything else is opened. */
void handover_take(void);
/* The inherited descriptor of that name, owned by the caller from now on; -1: none. */
int handover_find(const char *name);
/* The same for a socket that listens at `path`. */
int handover_find_socket(const char *name, const char *path);
/* Was this server started by one that still serves and waits until this one is ready? */
bool handover_has_predecessor(void);
/* Closes the inherited descriptors that were not taken; false: one of them was a socket. */
bool handover_close_rest(void);
/* Signals the predecessor that it may stop, and systemd that this server is ready and which descriptors to
 * keep. */
void handover_ready(const struct handed *handed, size_t count);
/* Does systemd supervise this process?  Then it may keep the sockets, and their paths stay when the server
 * ends. */
bool handover_is_watched(void);

/* --- the old server --- */
/* Starts `program` with the same arguments.  `ready_r` becomes readable: with one byte when the program
 * serves, at end of file when it has ended before that. -1: it cannot be started, which is logged. */
pid_t handover_start(const char *program, char **arguments, const struct handed *handed, size_t count,
                     int *ready_r);
/* Notifies systemd that `pid` is the main process from now on. */
void handover_name_successor(pid_t pid);

#endif
