/* subprocess: programs and functions in processes of their own, their pipes, and how they end. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/base.h"
#include "base/bytes.h"
#include "base/process/subprocess.h"

static int run_shell(const char *line)
{
    const char *const words[] = {"sh", "-c", line, NULL};
    return subprocess_run(&(const struct subprocess_work){.words = words, .has_no_errors = true});
}

static void a_status_is_as_a_shell_has_it(void **state UNUSED)
{
    const char *const words[] = {"no-program-has-this-name", NULL};
    assert_int_equal(run_shell("exit 0"), 0);
    assert_int_equal(run_shell("exit 7"), 7);
    assert_int_equal(run_shell("kill -9 $$"), SUBPROCESS_SIGNAL + SIGKILL);
    assert_int_equal(subprocess_run(&(const struct subprocess_work){.words = words, .has_no_errors = true}),
                     SUBPROCESS_NOT_RUN);
}

static void what_is_written_comes_back(void **state UNUSED)
{
    const char *const words[] = {"tr", "a-z", "A-Z", NULL};
    struct subprocess child;
    struct builder output = {0};
    assert_true(subprocess_start(
        &(const struct subprocess_work){.words = words, .has_in = true, .has_out = true}, &child));
    assert_true(bytes_write(child.in, BYTES("hello")));
    subprocess_close(&child.in);
    assert_true(subprocess_read(&child, 100, &output));
    assert_true(bytes_equal(builder_bytes(&output), BYTES("HELLO")));
    assert_int_equal(subprocess_end(&child), 0);
    builder_free(&output);
}

static void more_than_is_wanted_is_refused(void **state UNUSED)
{
    const char *const words[] = {"yes", NULL};
    struct subprocess child;
    struct builder output = {0};
    assert_true(subprocess_start(&(const struct subprocess_work){.words = words, .has_out = true}, &child));
    assert_false(subprocess_read(&child, 1000, &output));
    assert_int_equal(subprocess_end(&child), SUBPROCESS_SIGNAL + SIGPIPE);
    builder_free(&output);
}

static void errors_go_where_they_are_sent(void **state UNUSED)
{
    const char *const words[] = {"sh", "-c", "echo error >&2; read line || echo end", NULL};
    struct subprocess child;
    struct builder output = {0};
    assert_true(subprocess_start(
        &(const struct subprocess_work){
            .words = words, .has_no_in = true, .has_out = true, .has_errors_in_out = true},
        &child));
    assert_true(subprocess_read(&child, 100, &output));
    assert_true(bytes_equal(builder_bytes(&output), BYTES("error\nend\n")));
    assert_int_equal(subprocess_end(&child), 0);
    builder_free(&output);
}

static int write_and_return(const void *context)
{
    sigset_t blocked;
    sigprocmask(SIG_BLOCK, NULL, &blocked);
    dprintf(STDOUT_FILENO, "%s", (const char *)context);
    return sigismember(&blocked, SIGTERM) ? 1 : 5;
}

/* Signals that the parent blocks are not blocked in it. */
static void a_function_has_a_process_of_its_own(void **state UNUSED)
{
    sigset_t some, before;
    struct subprocess child;
    struct builder output = {0};
    sigemptyset(&some);
    sigaddset(&some, SIGTERM);
    sigprocmask(SIG_BLOCK, &some, &before);
    assert_true(subprocess_start(
        &(const struct subprocess_work){.run = write_and_return, .context = "own", .has_out = true}, &child));
    sigprocmask(SIG_SETMASK, &before, NULL);
    assert_true(subprocess_read(&child, 100, &output));
    assert_true(bytes_equal(builder_bytes(&output), BYTES("own")));
    assert_int_equal(subprocess_end(&child), 5);
    builder_free(&output);
}

static void an_environment_is_the_one_that_is_given(void **state UNUSED)
{
    const char *const words[] = {"/usr/bin/env", NULL}, *const environment[] = {"A=1", NULL};
    struct subprocess child;
    struct builder output = {0};
    assert_true(subprocess_start(
        &(const struct subprocess_work){.words = words, .environment = environment, .has_out = true},
        &child));
    assert_true(subprocess_read(&child, 100, &output));
    assert_true(bytes_equal(builder_bytes(&output), BYTES("A=1\n")));
    assert_int_equal(subprocess_end(&child), 0);
    builder_free(&output);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_status_is_as_a_shell_has_it),
        cmocka_unit_test(what_is_written_comes_back),
        cmocka_unit_test(more_than_is_wanted_is_refused),
        cmocka_unit_test(errors_go_where_they_are_sent),
        cmocka_unit_test(a_function_has_a_process_of_its_own),
        cmocka_unit_test(an_environment_is_the_one_that_is_given),
    };
    signal(SIGPIPE, SIG_IGN);
    return cmocka_run_group_tests_name("subprocess", tests, NULL, NULL);
}
