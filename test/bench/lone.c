/* lone: one worker of stampd with its rows in memory (test/unit/fake_store), for test/bench/count: no master,
 * no nginx, no PostgreSQL, so that what a request costs the worker can be counted.  Ends at SIGTERM.
 *
 *   lone SOCKET */
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "edge/fcgi.h"
#include "operation/builtin.h"
#include "records/records.h"
#include "segment/counts/limiter.h"
#include "segment/processes.h"
#include "segment/segment_open.h"
#include "serve/heritage.h"
#include "serve/worker.h"
#include "test/unit/fake_store.h"

enum { SLOTS = 65536, DOCUMENTS = 100, CONTENT = 2000, COUNTERS = 10000, RECORDS_BYTES = 16 << 20 };

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

int main(int argc, char **argv)
{
    static struct settings settings;
    struct segment *segment;
    char problem[256], mapping[256], records[256];
    int index, messages[2], listener;
    if (argc != 2 || (size_t)snprintf(mapping, sizeof mapping, "%s.segment", argv[1]) >= sizeof mapping ||
        (size_t)snprintf(records, sizeof records, "%s.records", argv[1]) >= sizeof records) {
        fprintf(stderr, "lone: the path of a socket is wanted\n");
        return EXIT_FAILURE;
    }
    if (!settings_load(&settings, "/dev/null", problem, sizeof problem) ||
        !segment_open(&segment, mapping, SLOTS, 0, problem, sizeof problem) ||
        !records_open(&segment->records, records, RECORDS_BYTES, settings.record_tombstone_s, problem,
                      sizeof problem) ||
        !fcgi_listen(argv[1], FCGI_NO_GROUP, &listener, problem, sizeof problem)) {
        fprintf(stderr, "lone: %s\n", problem);
        return EXIT_FAILURE;
    }
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
