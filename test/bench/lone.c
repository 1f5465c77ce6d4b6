/* lone: one worker of stampd with its rows in memory (test/unit/fake_store), for test/bench/count: no master,
 * no nginx, no PostgreSQL, so that what a request costs the worker can be counted.  Ends at SIGTERM.
 *
 *   lone SOCKET [public | traced MILLIONTHS]
 *
 * public: what anybody may read is in the segment for the module of nginx, too; traced: as with trace_ratio,
 * for a collector that takes nothing. */
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "base/clock.h"
#include "edge/fcgi.h"
#include "http/public_reads.h"
#include "operation/builtin.h"
#include "records/records.h"
#include "segment/counts/limiter.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/segment_open.h"
#include "serve/heritage.h"
#include "serve/tracing/tracing.h"
#include "serve/worker.h"
#include "test/unit/fake_store.h"

enum {
    SLOTS = 65536,
    DOCUMENTS = 100,
    CONTENT = 2000,
    COUNTERS = 10000,
    RECORDS_BYTES = 16 << 20,
    PUBLIC_BYTES = 1 << 20
};

static void open_namespace(void)
{
    static char content[CONTENT + 3];
    char id[16];
    memset(content, 'x', CONTENT + 2);
    content[0] = content[CONTENT + 1] = '"';
    fake_reset();
    fake_change("Namespace", "lab", INT64_C(261121000000000),
                "{\"database\":\"stampd_lab\",\"access\":\"open\"}");
    fake_change("Namespace", "rated", INT64_C(261121000000000),
                "{\"database\":\"stampd_rated\",\"access\":\"open\",\"quotas\":{"
                "\"address\":{\"requests\":\"8000/s, burst 1000000\",\"writes\":\"8000/s, burst 1000000\"},"
                "\"account\":{\"requests\":\"8000/s, burst 1000000\"},"
                "\"namespace\":{\"requests\":\"8000/s, burst 1000000\"}}}");
    fake_change("Namespace", "kept", INT64_C(261121000000000),
                "{\"database\":\"stampd_kept\",\"access\":\"open\",\"records\":[{\"prefix\":\"key:\","
                "\"read\":\"anyone\","
                "\"write\":\"anyone\"}]}");
    for (int i = 0; i < DOCUMENTS; i++) {
        snprintf(id, sizeof id, "n%d", i);
        fake_change("Bench", id, INT64_C(261121000000000) + i, content);
    }
}

/* As many subjects owe something as in a busy hour. */
static void use_counters(struct segment *segment)
{
    const struct limiter_rate daily = {.count = 1, .period_ms = 86400000, .burst = 1};
    for (uint64_t i = 0; i < COUNTERS; i++)
        if (limiter_take(segment, limiter_key(segment, 0, 0, (struct bytes){(const char *)&i, sizeof i}),
                         &daily, 1, clock_monotonic_ms()))
            fprintf(stderr, "lone: two of %d subjects share a counter\n", COUNTERS);
}

/* A process of its own in the place of the master, for as long as this one lives. */
static bool lone_beat(struct segment *segment)
{
    public_answers_beat(segment, clock_monotonic_ms());
    pid_t pid = fork();
    if (pid)
        return pid > 0;
    (void)prctl(PR_SET_PDEATHSIG, SIGKILL);
    for (;;) {
        clock_sleep_ms(PUBLIC_BEAT_MS / 10);
        public_answers_beat(segment, clock_monotonic_ms());
    }
}

int main(int argc, char **argv)
{
    static struct settings settings;
    struct segment *segment;
    char problem[256], mapping[256], records[256];
    int index, messages[2], listener;
    bool is_public = argc == 3 && strcmp(argv[2], "public") == 0;
    bool is_traced = argc == 4 && strcmp(argv[2], "traced") == 0;
    if (argc != 2 + is_public + 2 * is_traced ||
        (size_t)snprintf(mapping, sizeof mapping, "%s.segment", argv[1]) >= sizeof mapping ||
        (size_t)snprintf(records, sizeof records, "%s.records", argv[1]) >= sizeof records) {
        fprintf(stderr, "lone: the path of a socket is wanted\n");
        return EXIT_FAILURE;
    }
    const struct board_sizes sizes = {.slots = SLOTS, .public_answers_bytes = is_public ? PUBLIC_BYTES : 0};
    if (!settings_load(&settings, "/dev/null", problem, sizeof problem) ||
        !segment_open_sized(&segment, mapping, &sizes, problem, sizeof problem) ||
        !records_open(&segment->records, records, RECORDS_BYTES, settings.record_tombstone_s, problem,
                      sizeof problem) ||
        !fcgi_listen(argv[1], FCGI_NO_GROUP, &listener, problem, sizeof problem)) {
        fprintf(stderr, "lone: %s\n", problem);
        return EXIT_FAILURE;
    }
    static char collector[] = "http://127.0.0.1/";
    if (is_traced) {
        settings.trace_url = collector;
        if (!bytes_to_i64(bytes_of(argv[3]), &settings.trace_ratio))
            return EXIT_FAILURE;
        tracing_make_pipe();
    }
    settings.public_answers_mb = is_public;
    public_answers_set_form(segment, public_reads_form(&settings));
    if (is_public && !lone_beat(segment))
        return EXIT_FAILURE;
    if (pipe(messages) || processes_take(segment, 1, 1, 1, &index) != 1)
        return EXIT_FAILURE;
    open_namespace();
    use_counters(segment);
    struct heritage heritage = {.settings = &settings,
                                .segment = segment,
                                .in_flight = in_flight_create(PROCESSES_MOST, clock_monotonic_ms()),
                                .index = index,
                                .listener = listener,
                                .messages = messages[1]};
    builtin_register();
    int status = worker_run(&heritage);
    unlink(argv[1]);
    unlink(mapping);
    unlink(records);
    return status;
}
