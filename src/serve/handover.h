/* handover: the sockets that a server listens at outlive it.
 *
 * They come from outside in two ways that look alike: from a running server that has started this one in its
 * place (SIGUSR2), or from systemd, which has kept them for a server that has ended (the units'
 * FileDescriptorStoreMax). In both, descriptors from 3 on, with names, are told by LISTEN_PID, LISTEN_FDS and
 * LISTEN_FDNAMES.  So nobody who connects is refused: who comes between two servers waits at the socket. */
#ifndef STAMPD_SERVE_HANDOVER_H
#define STAMPD_SERVE_HANDOVER_H

#include <sys/types.h>

#include "base/base.h"

enum { HANDOVER_NAME_BYTES = 24, HANDOVER_MOST = 144 };

/* A descriptor to be handed on; the name has letters, digits and `-`. */
struct handed {
    char name[HANDOVER_NAME_BYTES];
    int fd;
};

/* --- the new server --- */
/* Takes what was handed to this process, once, before anything else is opened. */
void handover_take(void);
/* The descriptor of that name, which is the caller's from now on; -1: none came. */
int handover_find(const char *name);
/* The same, of a socket that listens at `path`. */
int handover_find_socket(const char *name, const char *path);
/* Was this server started by one that still serves, and waits to hear that we are ready? */
bool handover_has_predecessor(void);
/* Closes what nobody has asked for; false, when there was a socket among it. */
bool handover_close_rest(void);
/* Tells the predecessor that it may go, and systemd that we are ready and which descriptors it is to keep. */
void handover_ready(const struct handed *handed, size_t count);
/* Does systemd watch us?  Then it may keep the sockets, and their paths stay when we end. */
bool handover_is_watched(void);

/* --- the old server --- */
/* Starts `program` with the same arguments; `ready_r` is readable with one byte when it serves, and with none
 * when it has ended before.  -1: it cannot be started, which was logged. */
pid_t handover_start(const char *program, char **arguments, const struct handed *handed, size_t count,
                     int *ready_r);
/* systemd is told that `pid` is the server from now on. */
void handover_name_successor(pid_t pid);

#endif
