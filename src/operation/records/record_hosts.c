/* record_hosts: a wait that is bounded in time, and in processes of the server. */
#include "operation/records/record_hosts.h"

#include "base/clock.h"
#include "records/records_road.h"
#include "segment/counts/metrics.h"

enum { SPARE_MS = 1000 }; /* of the request's time, for its end */

struct hosts_wait {
    const struct attempt *attempt;
    struct pulse *pulse;
};

/* Two that begin at once may both find too many. */
static bool may_wait_for_hosts(void *context)
{
    const struct hosts_wait *wait = context;
    const struct attempt *attempt = wait->attempt;
    struct pulse_waiting waiting;
    int64_t most = attempt->worker_context->settings->record_hosts_waiters, half = (most + 1) / 2;
    metrics_note_wait(wait->pulse, PULSE_WAITS_FOR_HOSTS, attempt->ns, attempt->call->client, 0);
    metrics_waiting(attempt->worker_context->segment, PULSE_WAITS_FOR_HOSTS, attempt->ns,
                    attempt->call->client, &waiting);
    return waiting.processes <= most && waiting.of_ns <= half && waiting.of_client <= half;
}

enum records_outcome record_hosts_run(struct attempt *attempt, const struct records_command *command,
                                      struct records_found *found_r)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct segment *segment = attempt->worker_context->segment;
    struct hosts_wait own = {attempt, metrics_pulse(segment, segment_index(segment))};
    int64_t last_ms = attempt->call->deadline_ms - SPARE_MS;
    const char *path =
        arena_printf(attempt->call->arena, "%s/journal.sock" RECORDS_ROAD_SUFFIX, settings->run_directory);
    if (!attempt->hosts_until_ms)
        attempt->hosts_until_ms = clock_monotonic_ms() + settings->record_hosts_ms;
    const struct records_road_wait wait = {
        attempt->hosts_until_ms < last_ms ? attempt->hosts_until_ms : last_ms, may_wait_for_hosts, &own};
    enum records_outcome outcome = records_road_run(path, attempt->call->ns, command, &wait, found_r);
    metrics_note_wait(own.pulse, PULSE_WAITS_FOR_NOTHING, 0, 0, 0);
    return outcome;
}
