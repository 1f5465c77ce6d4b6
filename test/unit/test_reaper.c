/* test_reaper: children that were killed end by themselves, or in the time that they are given. */
#include "base/process/reaper.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>
#include <errno.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include "child.h"

enum { CHILDREN = 20, PATIENCE_MS = 20000 };

static void NORETURN wait_on(void *argument UNUSED)
{
    for (;;)
        pause();
}

static void all_that_were_killed_end(void **state UNUSED)
{
    pid_t pids[CHILDREN], other = child_start(wait_on, NULL);
    for (int i = 0; i < CHILDREN; i++) {
        pids[i] = child_start(wait_on, NULL);
        reaper_kill(pids[i]);
        assert_true(reaper_count() <= (size_t)i + 1);
    }
    assert_true(reaper_await(PATIENCE_MS));
    assert_int_equal(reaper_count(), 0);
    for (int i = 0; i < CHILDREN; i++)
        assert_true(waitpid(pids[i], NULL, WNOHANG) < 0 && errno == ECHILD);
    assert_int_equal(waitpid(other, NULL, WNOHANG), 0); /* it is somebody else's */
    child_kill(other);
}

static void end(void *argument UNUSED)
{
}

static void one_that_has_ended_is_taken(void **state UNUSED)
{
    siginfo_t info;
    pid_t pid = child_start(end, NULL);
    assert_int_equal(waitid(P_PID, (id_t)pid, &info, WEXITED | WNOWAIT), 0);
    reaper_kill(pid);
    assert_int_equal(reaper_count(), 0);
    assert_true(reaper_await(PATIENCE_MS));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_that_were_killed_end),
        cmocka_unit_test(one_that_has_ended_is_taken),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
