/* journal_child: begins as a copy of the parent, of which it closes nearly all. */
#include "journal/journal_child.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <unistd.h>

#include "base/log.h"
#include "base/process/reaper.h"

/* Connections of the parent would stay open here after it has closed them. */
static bool close_all_but(int one, int other)
{
    unsigned low = (unsigned)(one < other ? one : other), high = (unsigned)(one < other ? other : one);
    const unsigned first = STDERR_FILENO + 1;
    return (low <= first || close_range(first, low - 1, 0) == 0) &&
           (high == low + 1 || close_range(low + 1, high - 1, 0) == 0) && close_range(high + 1, ~0U, 0) == 0;
}

/* All signals are blocked, as in the parent: a signal to the whole service leaves the end to the parent. */
static void NORETURN journal_child_run_child(const struct journal_child_work *work, struct records *records,
                                             int fd, pid_t parent)
{
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    (void)prctl(PR_SET_NAME, work->name);
    log_close();
    if (getppid() != parent || !close_all_but(fd, records_descriptor(records)))
        _exit(1);
    work->run(records, fd);
    _exit(0);
}

void journal_child_end(struct journal_child *child)
{
    if (!child->pid)
        return;
    close(child->fd);
    reaper_kill(child->pid);
    child->pid = 0;
}

bool journal_child_start(struct journal_child *child, const struct journal_child_work *work,
                         struct records *records)
{
    int ends[2];
    pid_t parent = getpid();
    reaper_reap();
    if (reaper_count() >= JOURNAL_CHILDREN_KILLED_MOST) {
        log_often(
            LOG_LEVEL_ERROR, work->name,
            "the process %s is not started: %zu that were killed have not ended, the disk does not answer",
            work->name, reaper_count());
        return false;
    }
    if (socketpair(AF_UNIX, work->sockets | SOCK_CLOEXEC, 0, ends) != 0) {
        log_often(LOG_LEVEL_ERROR, work->name, "cannot open sockets for the process %s: %m", work->name);
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        journal_child_run_child(work, records, ends[1], parent);
    int error = errno;
    close(ends[1]);
    if (pid < 0) {
        log_often(LOG_LEVEL_ERROR, work->name, "cannot start the process %s: %s", work->name,
                  strerror(error));
        close(ends[0]);
        return false;
    }
    *child = (struct journal_child){.pid = pid, .fd = ends[0]};
    return true;
}
