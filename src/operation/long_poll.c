/* long_poll: a loop of short waits. */
#include "operation/long_poll.h"

#include "base/clock.h"
#include "edge/crypto/crypto.h"

enum {
    STEP_MS = 10,
    SPARE_MS = 2000, /* of the request's time, for the last look */
    PAUSE_MS = 1000, /* most that a client is asked to pause */
    PAUSE_LEAST_MS = 250
};

static int64_t choose_pause(void)
{
    uint32_t random;
    crypto_random(&random, sizeof random);
    return PAUSE_LEAST_MS + random % (PAUSE_MS - PAUSE_LEAST_MS);
}

static enum fault wait_until(struct attempt *attempt, struct long_poll *poll, int64_t end_ms)
{
    const struct worker_context *context = attempt->worker_context;
    bool is_over = false;
    enum fault fault = FAULT_NONE;
    while (!fault && !is_over) {
        if (context->is_wanted(context, STEP_MS))
            return FAULT_NONE;
        is_over = clock_monotonic_ms() >= end_ms;
        if (!is_over && poll->is_worth_a_look(poll->context))
            fault = poll->look(poll->context, &is_over);
    }
    poll->pauses_ms = 0;
    return fault;
}

/* Two that begin at once may both find too many. */
static bool may_wait(const struct attempt *attempt, const struct long_poll *poll)
{
    const struct segment *segment = attempt->worker_context->segment;
    struct pulse_waiting waiting;
    metrics_waiting(segment, poll->kind, attempt->ns, attempt->call->client, &waiting);
    int64_t half = (poll->processes + 1) / 2;
    bool is_shared =
        poll->kind == PULSE_WAITS_FOR_TASK || (waiting.of_ns <= half && waiting.of_client <= half);
    return waiting.processes <= poll->processes && is_shared;
}

enum fault long_poll_wait(struct attempt *attempt, struct long_poll *poll)
{
    struct segment *segment = attempt->worker_context->segment;
    struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    int64_t begin_ms = clock_monotonic_ms(), end_ms = begin_ms + poll->wait_ms;
    int64_t last_ms = attempt->call->deadline_ms - SPARE_MS;
    enum fault fault = FAULT_NONE;
    poll->pauses_ms = choose_pause();
    if (poll->wait_ms <= 0 || !attempt->worker_context->is_wanted)
        return FAULT_NONE;
    metrics_note_wait(pulse, poll->kind, attempt->ns, attempt->call->client, poll->queue);
    if (may_wait(attempt, poll))
        fault = wait_until(attempt, poll, end_ms < last_ms ? end_ms : last_ms);
    metrics_note_wait(pulse, PULSE_WAITS_FOR_NOTHING, 0, 0, 0);
    if (attempt->reply->timing)
        attempt->reply->timing->idle_us += (clock_monotonic_ms() - begin_ms) * 1000;
    return fault;
}
