/* latency: fixed buckets, so that a request costs one addition. */
#include "serve/metrics/latency.h"

static const struct {
    int64_t us;
    const char *label; /* seconds */
} bounds[] = {
    {250, "0.00025"}, {500, "0.0005"}, {1000, "0.001"},  {2500, "0.0025"}, {5000, "0.005"},  {10000, "0.01"},
    {25000, "0.025"}, {50000, "0.05"}, {100000, "0.1"},  {250000, "0.25"}, {500000, "0.5"},  {1000000, "1"},
    {2500000, "2.5"}, {5000000, "5"},  {10000000, "10"}, {30000000, "30"}, {60000000, "60"},
};
_Static_assert(COUNT_OF(bounds) + 1 == PULSE_LATENCIES,
               "a counter for each bound, and one for what takes longer");

void latency_count(struct pulse *pulse, int64_t us)
{
    size_t bucket = 0;
    while (bucket < COUNT_OF(bounds) && us > bounds[bucket].us)
        bucket++;
    pulse_count(&pulse->latencies[bucket], 1);
    pulse_count(&pulse->latency_us, us > 0 ? (uint64_t)us : 0);
}

const char *latency_bound(size_t bucket)
{
    return bucket < COUNT_OF(bounds) ? bounds[bucket].label : "+Inf";
}

void latency_write(struct segment *segment, const struct instance *instance, struct builder *out)
{
    uint64_t counts[PULSE_LATENCIES] = {0}, sum_us = 0, count = 0;
    for (int i = 0; i < instance_entry_count(instance); i++) {
        struct pulse *pulse = metrics_pulse(segment, instance_entry(instance, i));
        for (size_t bucket = 0; bucket < PULSE_LATENCIES; bucket++)
            counts[bucket] += atomic_load(&pulse->latencies[bucket]);
        sum_us += atomic_load(&pulse->latency_us);
    }
    builder_add_text(out,
                     "# HELP stampd_request_seconds Time of requests in workers, tasks and probes apart.\n"
                     "# TYPE stampd_request_seconds histogram\n");
    for (size_t bucket = 0; bucket < PULSE_LATENCIES; bucket++) {
        count += counts[bucket];
        builder_printf(out, "stampd_request_seconds_bucket{le=\"%s\"} %llu\n", latency_bound(bucket),
                       (unsigned long long)count);
    }
    builder_printf(out, "stampd_request_seconds_sum %llu.%06llu\nstampd_request_seconds_count %llu\n",
                   (unsigned long long)sum_us / 1000000, (unsigned long long)sum_us % 1000000,
                   (unsigned long long)count);
}
