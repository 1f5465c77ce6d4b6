/* test_crash: who dies where, and how often. */
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>

#include <cmocka.h>

#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/crash.h"
#include "edge/mapping.h"

static bool is_list(const char *text)
{
    const char *wrong = NULL;
    size_t size = 0;
    bool good = crash_is_list(text, &wrong, &size);
    assert_true(good || (wrong >= text && size > 0 && wrong + size <= text + strlen(text)));
    return good;
}

static void test_lists(void **state UNUSED)
{
    assert_true(is_list(""));
    assert_true(is_list("  "));
    assert_true(is_list("commit-begun"));
    assert_true(is_list(" commit-begun:2\trecovery-moved:1:3  "));
    static const char *const wrong[] = {"commit",
                                        "commit-begun:",
                                        "commit-begun:0",
                                        "commit-begun:x",
                                        "commit-begun:1:0",
                                        "commit-begun:1:2:3",
                                        ":1",
                                        "commit-begun:1:",
                                        "recovery-moved COMMIT-BEGUN",
                                        "commit-begun:-1"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_false(is_list(wrong[i]));
}

/* A child that comes to the point `times` times; returns at which time it died, 0: it did not. */
static int pass(enum crash_point point, int times)
{
    int progress[2];
    assert_int_equal(pipe(progress), 0);
    pid_t child = fork();
    if (child == 0) {
        for (int i = 0; i < times; i++) {
            if (write(progress[1], "", 1) != 1)
                _exit(1);
            crash_at(point);
        }
        _exit(0);
    }
    close(progress[1]);
    int status, begun = 0;
    for (char byte; read(progress[0], &byte, 1) == 1;)
        begun++;
    close(progress[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
        return 0;
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    return begun;
}

static void test_unarmed(void **state UNUSED)
{
    crash_arm("", mapping_share);
    assert_null(crash_board);
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 3), 0);
}

static void test_deaths_are_counted_over_processes(void **state UNUSED)
{
    crash_arm("commit-begun recovery-moved:3 unmark:2:2", mapping_share);
    assert_int_equal(pass(CRASH_COMMIT_MARK, 3), 0);
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 3), 1);
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 3), 0); /* one death was asked for */
    assert_int_equal(pass(CRASH_RECOVERY_MOVED, 2), 0);
    assert_int_equal(pass(CRASH_RECOVERY_MOVED, 2), 1); /* the third time of all */
    assert_int_equal(pass(CRASH_UNMARK, 5), 2);
    assert_int_equal(pass(CRASH_UNMARK, 5), 1);
    assert_int_equal(pass(CRASH_UNMARK, 5), 0);
    crash_arm("commit-begun recovery-moved:3 unmark:2:2", mapping_share); /* nothing new */
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 1), 0);
    crash_arm("publish", mapping_share);
    assert_int_equal(pass(CRASH_PUBLISH, 1), 1);
    crash_arm("commit-begun", mapping_share);
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 1), 1);
    crash_arm("", mapping_share);
    assert_int_equal(pass(CRASH_PUBLISH, 1), 0);
    assert_int_equal(pass(CRASH_COMMIT_BEGUN, 1), 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_lists),
        cmocka_unit_test(test_unarmed),
        cmocka_unit_test(test_deaths_are_counted_over_processes),
    };
    return cmocka_run_group_tests_name("crash", tests, NULL, NULL);
}
