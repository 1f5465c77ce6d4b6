/* lone: one worker of stampd with its rows in memory (test/unit/fake_store), for test/bench/count: no master,
 * no nginx, no PostgreSQL, so that what a request costs the worker can be counted.  Ends at SIGTERM.
 *
 *   lone SOCKET */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "edge/fcgi.h"
#include "serve/heritage.h"
#include "serve/worker.h"
#include "test/unit/fake_store.h"

enum { SLOTS = 65536, DOCUMENTS = 100, CONTENT = 2000 };

static void open_namespace(void)
{
    static char content[CONTENT + 3];
    char id[16];
    memset(content, 'x', CONTENT + 2);
    content[0] = content[CONTENT + 1] = '"';
    fake_reset();
    fake_change("Namespace", "lab", INT64_C(261121000000000), "{\"access\":\"open\"}");
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(id, sizeof id, "n%d", i);
        fake_change("Bench", id, INT64_C(261121000000000) + i, content);
    }
}

int main(int argc, char **argv)
{
    static struct settings settings;
    struct stamps *stamps;
    char problem[256], segment[256];
    int index, messages[2], listener;
    if (argc != 2 || (size_t)snprintf(segment, sizeof segment, "%s.segment", argv[1]) >= sizeof segment) {
        fprintf(stderr, "lone: the path of a socket is wanted\n");
        return EXIT_FAILURE;
    }
    if (!settings_load(&settings, "/dev/null", problem, sizeof problem) ||
        !stamps_open(&stamps, segment, SLOTS, problem, sizeof problem) ||
        !fcgi_listen(argv[1], FCGI_NO_GROUP, &listener, problem, sizeof problem)) {
        fprintf(stderr, "lone: %s\n", problem);
        return EXIT_FAILURE;
    }
    if (pipe(messages) || stamps_take_entries(stamps, 1, 1, 1, &index) != 1)
        return EXIT_FAILURE;
    open_namespace();
    struct heritage heritage = {.settings = &settings,
                                .stamps = stamps,
                                .begun = begun_create(STAMPS_PROCESSES, clock_monotonic_ms()),
                                .index = index,
                                .listener = listener,
                                .messages = messages[1]};
    int status = worker_run(&heritage);
    unlink(argv[1]);
    unlink(segment);
    return status;
}
