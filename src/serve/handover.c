/* handover: passes descriptors through exec, and sends datagrams to systemd (sd_notify(3)). */
#include "serve/handover.h"

#include <errno.h>
#include <fcntl.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "edge/local_socket.h"

enum { FIRST_FD = 3, MESSAGE_BYTES = 160 };
static const char READY[] = "ready";

static struct handed taken[HANDOVER_MOST];
static size_t taken_count;
static int ready_fd = -1;

/* --- the new server --- */

static long handover_number_of(const char *name)
{
    const char *text = getenv(name);
    char *end;
    if (!text || !*text)
        return -1;
    long number = strtol(text, &end, 10);
    return *end ? -1 : number;
}

static void take_one(int fd, const char *name, size_t size)
{
    if (fcntl(fd, F_SETFD, FD_CLOEXEC))
        return; /* no such descriptor */
    struct handed *handed = &taken[taken_count++];
    handed->fd = fd;
    snprintf(handed->name, sizeof handed->name, "%.*s", (int)size, name);
}

void handover_take(void)
{
    long count = handover_number_of("LISTEN_FDS");
    const char *names = getenv("LISTEN_FDNAMES");
    if (handover_number_of("LISTEN_PID") == getpid() && count > 0 && names) {
        for (int fd = FIRST_FD; fd < FIRST_FD + count && taken_count < HANDOVER_MOST; fd++) {
            size_t size = strcspn(names, ":");
            take_one(fd, names, size);
            names += size + (names[size] == ':');
        }
    }
    unsetenv("LISTEN_PID");
    unsetenv("LISTEN_FDS");
    unsetenv("LISTEN_FDNAMES");
    ready_fd = handover_find(READY);
}

int handover_find(const char *name)
{
    for (size_t i = 0; i < taken_count; i++)
        if (strcmp(taken[i].name, name) == 0) {
            int fd = taken[i].fd;
            taken[i] = taken[--taken_count];
            return fd;
        }
    return -1;
}

static bool listens_at(int fd, const char *path)
{
    socklen_t size = sizeof(int);
    int is_listening = 0;
    return local_socket_is_bound(fd, path) &&
           getsockopt(fd, SOL_SOCKET, SO_ACCEPTCONN, &is_listening, &size) == 0 && is_listening &&
           access(path, F_OK) == 0;
}

int handover_find_socket(const char *name, const char *path)
{
    int fd = handover_find(name);
    if (fd >= 0 && (!listens_at(fd, path) || fcntl(fd, F_SETFL, O_RDWR | O_NONBLOCK))) {
        close(fd);
        return -1;
    }
    return fd;
}

bool handover_has_predecessor(void)
{
    return ready_fd >= 0;
}

bool handover_close_rest(void)
{
    bool is_clean = true;
    for (size_t i = 0; i < taken_count; i++) {
        struct sockaddr_un address;
        socklen_t size = sizeof address;
        is_clean = is_clean && getsockname(taken[i].fd, (struct sockaddr *)&address, &size) != 0;
        close(taken[i].fd);
    }
    taken_count = 0;
    return is_clean;
}

/* --- systemd --- */

bool handover_is_watched(void)
{
    const char *path = getenv("NOTIFY_SOCKET");
    return path && (*path == '/' || *path == '@') && path[1];
}

/* Sends `text` with a descriptor, or -1.  Failures are ignored. */
static void notify_systemd(const char *text, int fd)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    const char *path = getenv("NOTIFY_SOCKET");
    if (!handover_is_watched() || strlen(path) >= sizeof address.sun_path)
        return;
    size_t size = strlen(path);
    memcpy(address.sun_path, path, size);
    if (*path == '@')
        address.sun_path[0] = '\0';
    union {
        char bytes[CMSG_SPACE(sizeof(int))];
        struct cmsghdr header;
    } control = {.bytes = {0}};
    struct iovec part = {(char *)(uintptr_t)text, strlen(text)};
    struct msghdr message = {.msg_name = &address,
                             .msg_namelen = (socklen_t)(offsetof(struct sockaddr_un, sun_path) + size),
                             .msg_iov = &part,
                             .msg_iovlen = 1};
    if (fd >= 0) {
        message.msg_control = control.bytes;
        message.msg_controllen = sizeof control.bytes;
        control.header = (struct cmsghdr){
            .cmsg_len = CMSG_LEN(sizeof(int)), .cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS};
        memcpy(CMSG_DATA(&control.header), &fd, sizeof fd);
    }
    int out = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    if (out < 0 || sendmsg(out, &message, MSG_NOSIGNAL) < 0)
        log_warning("cannot notify systemd: %m");
    if (out >= 0)
        close(out);
}

void handover_ready(const struct handed *handed, size_t count)
{
    char text[MESSAGE_BYTES];
    if (ready_fd >= 0) {
        if (write(ready_fd, "", 1) != 1)
            log_warning("cannot notify the former server: %m");
        close(ready_fd);
        ready_fd = -1;
    }
    for (size_t i = 0; i < count; i++) {
        snprintf(text, sizeof text, "FDSTORE=1\nFDNAME=%s", handed[i].name);
        notify_systemd(text, handed[i].fd);
    }
    notify_systemd("READY=1", -1);
}

void handover_name_successor(pid_t pid)
{
    char text[MESSAGE_BYTES];
    snprintf(text, sizeof text, "MAINPID=%d", (int)pid);
    notify_systemd(text, -1);
}

/* --- the old server --- */

/* In the child: places the descriptors from 3 on, in their order, after moving all out of that range. */
static bool place_descriptors(struct handed *handed, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        handed[i].fd = fcntl(handed[i].fd, F_DUPFD_CLOEXEC, FIRST_FD + (int)count);
        if (handed[i].fd < 0)
            return false;
    }
    for (size_t i = 0; i < count; i++)
        if (dup2(handed[i].fd, FIRST_FD + (int)i) < 0)
            return false;
    return true;
}

static bool notify_child(const struct handed *handed, size_t count)
{
    char names[HANDOVER_MOST * HANDOVER_NAME_BYTES] = "", pid[24], number[24];
    size_t used = 0;
    for (size_t i = 0; i < count; i++)
        used += (size_t)snprintf(names + used, sizeof names - used, "%s%s", i ? ":" : "", handed[i].name);
    snprintf(pid, sizeof pid, "%d", (int)getpid());
    snprintf(number, sizeof number, "%zu", count);
    return setenv("LISTEN_PID", pid, 1) == 0 && setenv("LISTEN_FDS", number, 1) == 0 &&
           setenv("LISTEN_FDNAMES", names, 1) == 0;
}

pid_t handover_start(const char *program, char **arguments, const struct handed *handed, size_t count,
                     int *ready_r)
{
    struct handed all[HANDOVER_MOST];
    int ends[2];
    assert(count < HANDOVER_MOST);
    if (pipe2(ends, O_CLOEXEC)) {
        log_error("cannot start a new server: %m");
        return -1;
    }
    memcpy(all, handed, count * sizeof *handed);
    all[count] = (struct handed){.fd = ends[1]};
    memcpy(all[count].name, READY, sizeof READY);
    pid_t pid = fork();
    if (pid == 0) {
        if (notify_child(all, count + 1) && place_descriptors(all, count + 1))
            execv(program, arguments);
        log_error("%s: a new server cannot be started: %m", program);
        _exit(1);
    }
    close(ends[1]);
    if (pid < 0) {
        log_error("cannot start a new server: %m");
        close(ends[0]);
        return -1;
    }
    *ready_r = ends[0];
    return pid;
}
