/* child: fork, wait, kill, and a folder that is removed. */
#include "child.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <ftw.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/base.h"

enum { PATIENCE_MS = 20000, CROWD_MOST = 64 };

static char folder[] = "/tmp/stampd-test-XXXXXX";

void child_demand(bool condition, const char *text, const char *file, int line)
{
    if (condition)
        return;
    fprintf(stderr, "%s:%d: failed in child %d: %s\n", file, line, (int)getpid(), text);
    _exit(1);
}

pid_t child_start(void (*function)(void *argument), void *argument)
{
    pid_t parent = getpid();
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0) {
        prctl(PR_SET_PDEATHSIG, SIGKILL);
        if (getppid() != parent)
            _exit(1);
        function(argument);
        _exit(0);
    }
    return pid;
}

void child_expect(pid_t pid)
{
    int status;
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

void child_crowd(int count, void (*function)(void *number))
{
    pid_t children[CROWD_MOST];
    assert_true(count <= CROWD_MOST);
    for (int i = 0; i < count; i++)
        children[i] = child_start(function, &i); /* each has its own copy of the number */
    for (int i = 0; i < count; i++)
        child_expect(children[i]);
}

void child_kill(pid_t pid)
{
    int status;
    assert_int_equal(kill(pid, SIGKILL), 0);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    assert_true(WIFSIGNALED(status));
}

void gate_open(struct gate *gate)
{
    DEMAND(pipe(gate->ends) == 0);
}

void gate_pass(struct gate *gate)
{
    DEMAND(write(gate->ends[1], "", 1) == 1);
}

void gate_await(struct gate *gate)
{
    struct pollfd end = {.fd = gate->ends[0], .events = POLLIN};
    char byte;
    DEMAND(poll(&end, 1, PATIENCE_MS) == 1);
    DEMAND(read(gate->ends[0], &byte, 1) == 1);
}

void gate_close(struct gate *gate)
{
    close(gate->ends[0]);
    close(gate->ends[1]);
}

const char *folder_make(void)
{
    strcpy(folder + sizeof folder - 7, "XXXXXX");
    assert_non_null(mkdtemp(folder));
    return folder;
}

const char *folder_path(const char *name)
{
    static char path[PATH_MAX];
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int remove_one(const char *path, const struct stat *status UNUSED, int kind UNUSED,
                      struct FTW *place UNUSED)
{
    return remove(path);
}

void folder_remove(void)
{
    assert_int_equal(nftw(folder, remove_one, 8, FTW_DEPTH | FTW_PHYS), 0);
}
