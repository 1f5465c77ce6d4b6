/* test_confinement: what a process that decodes images can no longer do, and what libraries still need. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "edge/confinement.h"

static void *think(void *context)
{
    return context;
}

static bool can_have_threads(void)
{
    pthread_t thread;
    char thought;
    void *result = NULL;
    return pthread_create(&thread, NULL, think, &thought) == 0 && pthread_join(thread, &result) == 0 &&
           result == &thought;
}

static bool is_refused(long result)
{
    return result == -1 && errno == EPERM;
}

/* The number of the first that is not as it should be; 0: all is. */
static int try_all(void)
{
    const struct confinement confinement = {.cpu_s = 60, .files = 64};
    const long parent = getppid();
    struct rlimit limit;
    int tried = 1;
    if (!confinement_enter(&confinement))
        return tried;
    const bool are_right[] = {
        can_have_threads(),
        is_refused(fork()),
        is_refused(syscall(SYS_tgkill, parent, parent, 0)),
        syscall(SYS_tgkill, getpid(), gettid(), 0) == 0,
        is_refused(syscall(SYS_kill, parent, 0)),
        is_refused(syscall(SYS_rt_sigqueueinfo, parent, 0, NULL)),
        is_refused(syscall(SYS_prlimit64, parent, RLIMIT_CORE, NULL, &limit)),
        syscall(SYS_prlimit64, 0, RLIMIT_CORE, NULL, &limit) == 0,
        is_refused(open("/etc/passwd", O_RDONLY)),
        is_refused(syscall(SYS_renameat, AT_FDCWD, "/nowhere", AT_FDCWD, "/elsewhere")),
        is_refused(syscall(SYS_socket, 1, 1, 0)),
    };
    for (size_t i = 0; i < COUNT_OF(are_right); i++) {
        tried++;
        if (!are_right[i])
            return tried;
    }
    return 0;
}

static void a_confined_process_can_compute_and_nothing_else(void **state UNUSED)
{
    int status;
    pid_t child = fork();
    assert_true(child >= 0);
    if (!child)
        _exit(try_all());
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_confined_process_can_compute_and_nothing_else),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
