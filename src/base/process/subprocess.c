/* subprocess: fork, pipes, exec; no shell. */
#include "base/process/subprocess.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum { NOT_USER = 126, PIECE = 65536 };

extern char **environ;

static void become(const char *name)
{
    const struct passwd *user = getpwnam(name);
    if (!user || initgroups(name, user->pw_gid) != 0 || setgid(user->pw_gid) != 0 ||
        setuid(user->pw_uid) != 0 || setenv("HOME", user->pw_dir, 1) != 0) {
        fprintf(stderr, "cannot become the user %s: %s\n", name,
                user ? strerror(errno) : "it does not exist");
        _exit(NOT_USER);
    }
}

static bool connect_streams(const struct subprocess_work *work, int in, int out)
{
    const int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    return null >= 0 && (in < 0 || dup2(in, STDIN_FILENO) >= 0) &&
           (!work->has_no_in || dup2(null, STDIN_FILENO) >= 0) &&
           (out < 0 || dup2(out, STDOUT_FILENO) >= 0) &&
           (!work->has_out_in_errors || dup2(STDERR_FILENO, STDOUT_FILENO) >= 0) &&
           (!work->has_errors_in_out || dup2(STDOUT_FILENO, STDERR_FILENO) >= 0) &&
           (!work->has_no_errors || dup2(null, STDERR_FILENO) >= 0);
}

static _Noreturn void live_as_child(const struct subprocess_work *work, int in, int out, pid_t parent)
{
    sigset_t none;
    sigemptyset(&none);
    if (work->user && geteuid() == 0)
        become(work->user);
    if (work->is_bound) { /* behind the change of user, which would undo it */
        (void)prctl(PR_SET_PDEATHSIG, SIGTERM);
        if (getppid() != parent)
            _exit(SUBPROCESS_NOT_RUN);
    }
    if (!connect_streams(work, in, out))
        _exit(SUBPROCESS_NOT_RUN);
    signal(SIGPIPE, SIG_DFL);
    (void)sigprocmask(SIG_SETMASK, &none, NULL);
    if (work->run) {
        const int status = work->run(work->context);
        fflush(NULL);
        _exit(status);
    }
    execvpe(work->words[0], (char *const *)(uintptr_t)work->words,
            work->environment ? (char *const *)(uintptr_t)work->environment : environ);
    if (!work->has_no_errors)
        fprintf(stderr, "%s: %s\n", work->words[0], strerror(errno));
    _exit(SUBPROCESS_NOT_RUN);
}

void subprocess_close(int *end)
{
    if (*end >= 0)
        close(*end);
    *end = -1;
}

/* Both ends above the standard streams, so that dup2 does not close one of them. */
static bool open_pipe(bool is_wanted, int ends[2])
{
    ends[0] = ends[1] = -1;
    if (!is_wanted)
        return true;
    if (pipe2(ends, O_CLOEXEC) != 0)
        return false;
    for (int i = 0; i < 2; i++)
        if (ends[i] <= STDERR_FILENO) {
            const int higher = fcntl(ends[i], F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
            if (higher < 0)
                return false;
            close(ends[i]);
            ends[i] = higher;
        }
    return true;
}

bool subprocess_start(const struct subprocess_work *work, struct subprocess *child_r)
{
    int in[2], out[2] = {-1, -1};
    const pid_t parent = getpid();
    fflush(stdout);
    fflush(stderr);
    child_r->pid = open_pipe(work->has_in, in) && open_pipe(work->has_out, out) ? fork() : -1;
    if (child_r->pid == 0)
        live_as_child(work, in[0], out[1], parent);
    const int why = errno;
    subprocess_close(&in[0]);
    subprocess_close(&out[1]);
    child_r->in = in[1];
    child_r->out = out[0];
    if (child_r->pid > 0)
        return true;
    subprocess_close(&child_r->in);
    subprocess_close(&child_r->out);
    errno = why;
    return false;
}

bool subprocess_read(struct subprocess *child, size_t most, struct builder *output)
{
    while (child->out >= 0 && output->size <= most) {
        const ssize_t got = read(child->out, builder_reserve(output, PIECE), PIECE);
        if (got < 0 && errno != EINTR)
            return false;
        if (got == 0)
            subprocess_close(&child->out);
        output->size += got > 0 ? (size_t)got : 0;
    }
    return output->size <= most;
}

int subprocess_end(struct subprocess *child)
{
    int status = 0;
    subprocess_close(&child->in);
    subprocess_close(&child->out);
    while (waitpid(child->pid, &status, 0) < 0 && errno == EINTR)
        continue;
    return WIFEXITED(status) ? WEXITSTATUS(status) : SUBPROCESS_SIGNAL + WTERMSIG(status);
}

int subprocess_run(const struct subprocess_work *work)
{
    struct subprocess child;
    return subprocess_start(work, &child) ? subprocess_end(&child) : -1;
}
