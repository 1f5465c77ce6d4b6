/* responder: options, sockets and processes of the empty responders. */
#include "test/bench/responder.h"

#include "config.h"

#include <fcntl.h>
#include <grp.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/settings.h"
#include "edge/fcgi.h"

enum { ANSWER_MOST = 1 << 20 };

static const char head[] = "Status: 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n"
                           "Cache-Control: private, no-cache\r\nX-Content-Type-Options: nosniff\r\n"
                           "X-Request-Id: 0123456789abcdef0123456789abcdef\r\n\r\n";

static struct responder_answer read_answer(void)
{
    static char body[ANSWER_MOST], text[sizeof head + 64];
    const char *path = getenv("STAMPD_BENCH_ANSWER");
    int fd = path ? open(path, O_RDONLY | O_CLOEXEC) : -1;
    ssize_t size = fd >= 0 ? read(fd, body, sizeof body) : -1;
    if (size < 0) {
        fprintf(stderr, "responder: STAMPD_BENCH_ANSWER must name a file that can be read\n");
        exit(EXIT_FAILURE);
    }
    close(fd);
    int head_size = snprintf(text, sizeof text, head, (int)size);
    return (struct responder_answer){.head = {text, (size_t)head_size}, .body = {body, (size_t)size}};
}

static int listen_at(const struct settings *settings, int number, bool blocking)
{
    char path[256], problem[256];
    int listener;
    struct group *group = *settings->socket_group ? getgrnam(settings->socket_group) : NULL;
    snprintf(path, sizeof path, "%s/worker-%d.sock", settings->run_directory, number);
    if (!fcgi_listen(path, group ? (int64_t)group->gr_gid : FCGI_NO_GROUP, &listener, problem,
                     sizeof problem)) {
        fprintf(stderr, "responder: %s\n", problem);
        exit(EXIT_FAILURE);
    }
    if (blocking)
        fcntl(listener, F_SETFL, 0);
    return listener;
}

int responder_main(int argc, char **argv, bool blocking,
                   void (*serve)(int listener, const struct responder_answer *answer))
{
    static struct settings settings;
    char problem[256];
    const char *processes = getenv("STAMPD_BENCH_PROCESSES");
    struct responder_answer answer = read_answer();
    bool is_usage = argc == 3 || (argc == 5 && strcmp(argv[3], "--pidfile") == 0); /* no file is written */
    if (!is_usage || strcmp(argv[1], "--config") != 0 ||
        !settings_load(&settings, argv[2], problem, sizeof problem)) {
        fprintf(stderr, "usage: responder --config FILE [--pidfile FILE], as stampd\n");
        return EXIT_FAILURE;
    }
    signal(SIGPIPE, SIG_IGN);
    for (int i = 0; i < settings.workers; i++) {
        int listener = listen_at(&settings, i, blocking);
        for (int j = 0; j < (processes ? atoi(processes) : 1); j++)
            if (fork() == 0) {
                prctl(PR_SET_PDEATHSIG, SIGKILL);
                serve(listener, &answer);
                _exit(EXIT_FAILURE);
            }
        close(listener);
    }
    while (wait(NULL) > 0)
        ;
    return EXIT_SUCCESS;
}
