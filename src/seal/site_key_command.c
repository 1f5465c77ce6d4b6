/* site_key_command: fork, a pipe, and a deadline. */
#include "seal/site_key_command.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/log.h"

enum { OUTPUT_MOST = 1000, NOT_RUN = 127 };
static const char setting[] = "site_key_command";

static _Noreturn void site_key_command_run_child(char **words, int out)
{
    int none = open("/dev/null", O_RDONLY);
    if (none >= 0 && dup2(none, STDIN_FILENO) >= 0 && dup2(out, STDOUT_FILENO) >= 0)
        execv(words[0], words);
    _exit(NOT_RUN);
}

/* At most OUTPUT_MOST bytes; false: not in time. */
static bool site_key_command_read_all(int fd, char output[OUTPUT_MOST + 1])
{
    const int64_t end_ms = clock_monotonic_ms() + SITE_KEY_COMMAND_MS;
    size_t size = 0;
    for (;;) {
        struct pollfd wait = {.fd = fd, .events = POLLIN};
        int64_t left_ms = end_ms - clock_monotonic_ms();
        int ready = left_ms > 0 ? poll(&wait, 1, (int)left_ms) : 0;
        if (ready == 0)
            return false;
        ssize_t got = ready < 0 ? -1 : read(fd, output + size, OUTPUT_MOST - size);
        if (got < 0 && errno == EINTR)
            continue;
        if (got <= 0 || (size += (size_t)got) == OUTPUT_MOST)
            break;
    }
    output[size] = '\0';
    return true;
}

/* Its status as a shell has it; -1: it was killed. */
static int site_key_command_await(pid_t pid, bool is_late)
{
    int status = 0;
    if (is_late)
        kill(pid, SIGKILL);
    while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
        ;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
}

static bool site_key_command_judge(const char *program, bool is_late, int status, char *output, char *problem,
                                   size_t problem_size)
{
    output[strcspn(output, " \t\r\n")] = '\0';
    if (is_late)
        snprintf(problem, problem_size, "%s: %s has not ended within %d s", setting, program,
                 SITE_KEY_COMMAND_MS / 1000);
    else if (status == NOT_RUN)
        snprintf(problem, problem_size, "%s: %s cannot be run", setting, program);
    else if (status != 0)
        snprintf(problem, problem_size, "%s: %s has failed (status %d)", setting, program, status);
    else if (!*output)
        snprintf(problem, problem_size, "%s: %s has printed nothing", setting, program);
    else
        return true;
    return false;
}

static bool run_site_key_command(char **words, struct secret *line, char *problem, size_t problem_size)
{
    char output[OUTPUT_MOST + 1] = "";
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        snprintf(problem, problem_size, "%s: %m", setting);
        return false;
    }
    pid_t pid = fork();
    if (pid == 0)
        site_key_command_run_child(words, ends[1]);
    close(ends[1]);
    bool is_late = pid > 0 && !site_key_command_read_all(ends[0], output);
    close(ends[0]);
    int status = pid > 0 ? site_key_command_await(pid, is_late) : NOT_RUN;
    bool is_right = site_key_command_judge(words[0], is_late, status, output, problem, problem_size);
    if (is_right && !(line->text = strdup(output)))
        log_fatal("out of memory");
    explicit_bzero(output, sizeof output);
    return is_right;
}

bool site_key_command_run(const char *command, struct secret *line, char *problem, size_t problem_size)
{
    char *copy = strdup(command), *rest = copy, *words[SITE_KEY_COMMAND_WORDS + 1], *word;
    size_t count = 0;
    bool is_right = true;
    if (!copy)
        log_fatal("out of memory");
    line->text = NULL;
    while ((word = strsep(&rest, " \t")) && is_right) {
        if (!*word)
            continue;
        is_right = count < SITE_KEY_COMMAND_WORDS;
        if (is_right)
            words[count++] = word;
    }
    words[count] = NULL;
    is_right = is_right && count;
    if (!is_right)
        snprintf(problem, problem_size, "%s: expected at most %d words", setting, SITE_KEY_COMMAND_WORDS);
    is_right = is_right && run_site_key_command(words, line, problem, problem_size);
    free(copy);
    return is_right;
}
