/* host_metrics: one table of numbers, for both forms. */
#include "serve/metrics/host_metrics.h"

#include <inttypes.h>

#include "edge/json/json.h"

static const struct host_number {
    const char *name, *type, *metric, *help;
    size_t offset;
} numbers[] = {
    {"records", "gauge", "host_records", "Records and removals of a host, copies included.",
     offsetof(struct records_host, records)},
    {"bytes", "gauge", "host_records_bytes", "Bytes that these take.", offsetof(struct records_host, bytes)},
    {"memory", "gauge", "host_memory_bytes", "Bytes of the memory of a host for records.",
     offsetof(struct records_host, memory)},
    {"not_exhaustive_keys", "gauge", "host_not_exhaustive_keys",
     "Keys of which a host cannot know whether they are absent.", offsetof(struct records_host, doubtful)},
    {"not_found_keys", "gauge", "host_not_found_keys", "Keys that a host knows to be absent.",
     offsetof(struct records_host, absent)},
    {"missing_copies", "gauge", "host_missing_copies", "Records of a host of which a copy is missing.",
     offsetof(struct records_host, missing)},
    {"sent", "counter", "host_messages_sent_total", "Messages that a host has sent to hosts.",
     offsetof(struct records_host, sent)},
    {"received", "counter", "host_messages_received_total", "Messages that a host has received from hosts.",
     offsetof(struct records_host, received)},
};

static uint64_t number_of(const struct records_host *host, size_t i)
{
    return *(const uint64_t *)(const void *)((const char *)host + numbers[i].offset);
}

static void host_metrics_write_head(struct builder *out, const char *type, const char *name, const char *help)
{
    builder_printf(out, "# HELP stampd_%s %s\n# TYPE stampd_%s %s\n", name, help, name, type);
}

/* Addresses are letters, digits, dots, dashes and underscores: sql/0025_hosts.sql. */
void host_metrics_write(const struct records *records, struct builder *out)
{
    struct records_hosts hosts;
    if (!records || !records_host_read(records, &hosts))
        return;
    host_metrics_write_head(
        out, "gauge", "host_state",
        "A host that holds records together with others: 0 it is away, 1 it takes part, 2 it leaves.");
    for (uint64_t i = 0; i < hosts.count; i++)
        builder_printf(out, "stampd_host_state{host=\"%s\"} %" PRIu64 "\n", hosts.list[i].address,
                       hosts.list[i].state);
    host_metrics_write_head(out, "gauge", "host_exhaustive", "1: the host knows which keys are absent.");
    for (uint64_t i = 0; i < hosts.count; i++)
        builder_printf(out, "stampd_host_exhaustive{host=\"%s\"} %" PRIu64 "\n", hosts.list[i].address,
                       hosts.list[i].is_exhaustive);
    for (size_t at = 0; at < COUNT_OF(numbers); at++) {
        host_metrics_write_head(out, numbers[at].type, numbers[at].metric, numbers[at].help);
        for (uint64_t i = 0; i < hosts.count; i++)
            builder_printf(out, "stampd_%s{host=\"%s\"} %" PRIu64 "\n", numbers[at].metric,
                           hosts.list[i].address, number_of(&hosts.list[i], at));
    }
    host_metrics_write_head(out, "gauge", "hosts_connected", "Other hosts that this one is connected to.");
    builder_printf(out, "stampd_hosts_connected %" PRIu64 "\n", hosts.connected);
}

void host_metrics_write_list(const struct records *records, struct builder *out)
{
    struct records_hosts hosts;
    if (!records || !records_host_read(records, &hosts))
        return;
    builder_add_text(out, "\"hosts\":[");
    for (uint64_t i = 0; i < hosts.count; i++) {
        const struct records_host *host = &hosts.list[i];
        builder_printf(out, "%s{\"address\":", i ? "," : "");
        json_add_string(out, bytes_of(host->address));
        builder_printf(out, ",\"state\":\"%s\",\"exhaustive\":%s,\"unsure_ms\":%" PRId64,
                       records_host_word(host->state), host->is_exhaustive ? "true" : "false",
                       host->unsure_ms);
        if (host->is_self)
            builder_add_text(out, ",\"self\":true");
        for (size_t at = 0; at < COUNT_OF(numbers); at++)
            builder_printf(out, ",\"%s\":%" PRIu64, numbers[at].name, number_of(host, at));
        builder_add_text(out, "}");
    }
    builder_add_text(out, "],");
}
