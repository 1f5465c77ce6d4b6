/* archive_transform: a child process with a pipe each way. */
#include "control/archive/archive_transform.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "control/message.h"

enum { PIECE = 65536, STATUS_NOT_RUN = 127, OUTPUT_MOST = 1 << 30 };

struct transform_child {
    pid_t pid;
    int in, out; /* our ends; -1: closed */
};

static void archive_transform_run_child(const char *command, const int *in, const int *out)
{
    signal(SIGPIPE, SIG_DFL);
    if (dup2(in[0], STDIN_FILENO) >= 0 && dup2(out[1], STDOUT_FILENO) >= 0)
        execl("/bin/sh", "sh", "-c", command, (char *)NULL);
    _exit(STATUS_NOT_RUN);
}

static bool archive_transform_start(const char *command, struct transform_child *child)
{
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return false;
    if (pipe2(out, O_CLOEXEC) != 0) {
        close(in[0]);
        close(in[1]);
        return false;
    }
    child->pid = fork();
    if (child->pid == 0)
        archive_transform_run_child(command, in, out);
    close(in[0]);
    close(out[1]);
    child->in = in[1];
    child->out = out[0];
    (void)fcntl(child->in, F_SETFL, O_NONBLOCK);
    return child->pid > 0;
}

static void close_end(int *fd)
{
    if (*fd >= 0)
        close(*fd);
    *fd = -1;
}

/* A command may stop reading before the end. */
static bool feed(struct transform_child *child, struct bytes *rest)
{
    ssize_t done = rest->size ? write(child->in, rest->data, rest->size) : 0;
    if (done < 0 && errno != EPIPE)
        return errno == EAGAIN || errno == EINTR;
    if (done < 0)
        rest->size = 0;
    else {
        rest->data += done;
        rest->size -= (size_t)done;
    }
    if (!rest->size)
        close_end(&child->in);
    return true;
}

static bool exchange(struct transform_child *child, struct bytes rest, struct builder *lines)
{
    while (child->out >= 0) {
        struct pollfd ends[] = {{.fd = child->out, .events = POLLIN}, {.fd = child->in, .events = POLLOUT}};
        if (poll(ends, COUNT_OF(ends), -1) < 0 && errno != EINTR)
            return false;
        if (child->in >= 0 && ends[1].revents && !feed(child, &rest))
            return false;
        if (!ends[0].revents)
            continue;
        ssize_t got = read(child->out, builder_reserve(lines, PIECE), PIECE);
        if (got < 0 && errno != EINTR)
            return false;
        if (got == 0)
            close_end(&child->out);
        lines->size += got > 0 ? (size_t)got : 0;
        if (lines->size > OUTPUT_MOST) {
            errno = EFBIG;
            return false;
        }
    }
    return true;
}

bool archive_transform_run(const char *command, struct bytes lines, struct builder *lines_r)
{
    struct transform_child child = {.in = -1, .out = -1};
    int status = -1;
    builder_clear(lines_r, OUTPUT_MOST);
    signal(SIGPIPE, SIG_IGN);
    bool is_done = archive_transform_start(command, &child) && exchange(&child, lines, lines_r);
    int why = errno;
    close_end(&child.in);
    close_end(&child.out);
    while (child.pid > 0 && waitpid(child.pid, &status, 0) < 0 && errno == EINTR)
        continue;
    if (!is_done)
        message_print("--transform: %s", strerror(why));
    else if (!WIFEXITED(status) || WEXITSTATUS(status) != 0)
        message_print("--transform: the command ended with status %d",
                      WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status));
    else if (lines_r->size && lines_r->data[lines_r->size - 1] != '\n')
        message_print("--transform: the last line of the command has no end");
    else
        return true;
    return false;
}
