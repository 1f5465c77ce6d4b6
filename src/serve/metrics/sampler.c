/* sampler: sums over the processes, the queues and the listeners of the segment. */
#include "serve/metrics/sampler.h"

#include "base/builder.h"
#include "base/clock.h"
#include "model/document/stamp.h"
#include "segment/counts/activity.h"
#include "segment/counts/metrics.h"
#include "segment/feed.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "serve/metrics/host_metrics.h"
#include "serve/metrics/latency.h"
#include "serve/metrics/task_metrics.h"

static void sampler_add_entry(const struct segment *segment, int index, struct activity_sample *sample)
{
    const struct pulse *pulse = metrics_pulse(segment, index);
    uint64_t *values = sample->values;
    values[ACTIVITY_requests] += atomic_load(&pulse->requests);
    values[ACTIVITY_faults] += atomic_load(&pulse->faults);
    values[ACTIVITY_commits] += atomic_load(&pulse->commits);
    values[ACTIVITY_conflicts] += atomic_load(&pulse->conflicts);
    values[ACTIVITY_hits] += atomic_load(&pulse->hits);
    values[ACTIVITY_misses] += atomic_load(&pulse->misses);
    values[ACTIVITY_busy] += atomic_load(&pulse->request_since_ms) != 0;
    values[ACTIVITY_workers] += processes_state(segment, index) == PROCESS_HELD;
    values[ACTIVITY_doubt] += processes_state(segment, index) == PROCESS_DIRTY;
    for (size_t bucket = 0; bucket < PULSE_LATENCIES; bucket++)
        sample->latencies[bucket] += atomic_load(&pulse->latencies[bucket]);
}

static void sampler_take(const struct segment *segment, int64_t now_ms, struct activity_sample *sample_r)
{
    uint64_t *values = sample_r->values;
    struct backlog_numbers tasks;
    *sample_r = (struct activity_sample){.at_ms = clock_wall_ms(), .ms = now_ms};
    for (int i = 0; i < processes_count(segment); i++)
        sampler_add_entry(segment, i, sample_r);
    uint64_t served = public_answers_served(segment); /* by nginx, without a worker */
    values[ACTIVITY_requests] += served;
    values[ACTIVITY_hits] += served;
    for (int i = 0; i < FEED_MOST; i++)
        values[ACTIVITY_listeners] += atomic_load(&segment->feed->slots[i].listeners);
    task_metrics_sum(segment, &tasks);
    values[ACTIVITY_due] = (uint64_t)tasks.due;
    values[ACTIVITY_running] = (uint64_t)tasks.running;
    values[ACTIVITY_parked] = (uint64_t)tasks.parked;
}

void sampler_tend(struct segment *segment)
{
    struct activity_sample sample;
    int64_t now_ms = clock_monotonic_ms();
    if (!activity_take_turn(segment, now_ms))
        return;
    sampler_take(segment, now_ms, &sample);
    activity_add(segment, &sample);
}

/* --- as JSON --- */

static void write_names(struct builder *out)
{
#define SAMPLER_NAME(name) ",\"" #name "\""
    builder_add_text(out, "\"names\":[\"number\",\"at\",\"ms\"" ACTIVITY_NUMBERS(SAMPLER_NAME));
#undef SAMPLER_NAME
    for (size_t bucket = 0; bucket < PULSE_LATENCIES; bucket++)
        builder_printf(out, ",\"le_%s\"", latency_bound(bucket));
    builder_add_text(out, "]");
}

static void write_sample(struct builder *out, const struct activity_sample *sample)
{
    builder_printf(out, "[%llu,%lld,%lld", (unsigned long long)sample->number,
                   (long long)stamp_from_epoch_ms(sample->at_ms), (long long)sample->ms);
    for (size_t i = 0; i < ACTIVITY_COUNT; i++)
        builder_printf(out, ",%llu", (unsigned long long)sample->values[i]);
    for (size_t i = 0; i < PULSE_LATENCIES; i++)
        builder_printf(out, ",%llu", (unsigned long long)sample->latencies[i]);
    builder_add_text(out, "]");
}

void sampler_write(const struct worker_context *context, uint64_t after, struct builder *out)
{
    const struct segment *segment = context->segment;
    struct activity_sample sample;
    uint64_t newest = activity_newest(segment);
    /* A caller that has seen later ones has seen those of a former segment. */
    uint64_t number = after > newest ? 0 : after;
    if (newest - number > ACTIVITY_KEPT)
        number = newest - ACTIVITY_KEPT;
    builder_printf(out, "{\"every_s\":%d,\"generation\":%llu,", ACTIVITY_EVERY_MS / 1000,
                   (unsigned long long)segment_generation(segment));
    host_metrics_write_list(segment->records, out);
    write_names(out);
    builder_add_text(out, ",\"samples\":[");
    bool is_first = true;
    while (number++ < newest) {
        if (!activity_read(segment, number, &sample))
            continue;
        if (!is_first)
            builder_add_text(out, ",");
        is_first = false;
        write_sample(out, &sample);
    }
    builder_add_text(out, "],\"now\":");
    sampler_take(segment, clock_monotonic_ms(), &sample);
    write_sample(out, &sample);
    builder_add_text(out, "}");
}
