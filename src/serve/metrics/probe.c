/* probe: /live, /ready, /metrics.  Metrics cover all processes of this instance, whichever worker answers:
 * they are summed from shared memory. */
#include "serve/metrics/probe.h"

#include "base/clock.h"
#include "model/quotas.h"
#include "records/records.h"
#include "segment/feed.h"
#include "segment/counts/hashers.h"
#include "segment/counts/limiter.h"
#include "segment/lineage.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/counts/purge_counts.h"
#include "segment/public_answers.h"
#include "segment/counts/long_requests.h"
#include "segment/counts/refusals.h"
#include "segment/counts/request_counts.h"
#include "segment/counts/stored.h"
#include "segment/counts/shares.h"
#include "serve/instance.h"
#include "serve/metrics/host_metrics.h"
#include "serve/metrics/latency.h"
#include "serve/metrics/task_metrics.h"
#include "operation/reply.h"

static int answer_ready(struct worker_context *worker_context, struct reply *reply)
{
    int ns = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    enum fault fault =
        ns < 0 ? FAULT_BINTERNAL : store_connect(documents_store(worker_context->documents), ns);
    if (!fault) {
        builder_add_text(reply->body, "ready\n");
        return 200;
    }
    builder_printf(reply->body, "%s\n", fault_code(fault));
    return 503;
}

/* What the pulses count. */
struct sums {
    uint64_t database_us, requests, commits, conflicts, hits, misses, faults, replica_reads, tasks_done,
        tasks_failed, tasks_lost;
    int64_t held, doubtful, busy, oldest_ms;
};

static void add_entry(struct sums *sums, struct segment *segment, int index, int64_t now_ms)
{
    struct pulse *pulse = metrics_pulse(segment, index);
    int64_t since_ms = atomic_load(&pulse->request_since_ms);
    sums->database_us += atomic_load(&pulse->database_us);
    sums->requests += atomic_load(&pulse->requests);
    sums->commits += atomic_load(&pulse->commits);
    sums->conflicts += atomic_load(&pulse->conflicts);
    sums->hits += atomic_load(&pulse->hits);
    sums->misses += atomic_load(&pulse->misses);
    sums->replica_reads += atomic_load(&pulse->replica_reads);
    sums->faults += atomic_load(&pulse->faults);
    sums->tasks_done += atomic_load(&pulse->tasks_done);
    sums->tasks_failed += atomic_load(&pulse->tasks_failed);
    sums->tasks_lost += atomic_load(&pulse->tasks_lost);
    sums->held += processes_state(segment, index) == PROCESS_HELD;
    sums->doubtful += processes_state(segment, index) == PROCESS_DIRTY;
    if (since_ms) {
        sums->busy++;
        if (now_ms - since_ms > sums->oldest_ms)
            sums->oldest_ms = now_ms - since_ms;
    }
}

static void add_metric(struct builder *out, const char *type, const char *name, const char *help,
                       uint64_t value)
{
    builder_printf(out, "# HELP stampd_%s %s\n# TYPE stampd_%s %s\nstampd_%s %llu\n", name, help, name, type,
                   name, (unsigned long long)value);
}

static void add_live(struct builder *out, const struct segment *segment)
{
    uint64_t listeners = 0, sent = 0, refused = 0, held = 0, overflows = 0;
    for (int i = 0; i < FEED_MOST; i++) {
        listeners += atomic_load(&segment->feed->slots[i].listeners);
        sent += atomic_load(&segment->feed->slots[i].sent);
        refused += atomic_load(&segment->feed->slots[i].refused);
        held += atomic_load(&segment->feed->slots[i].held);
        overflows += atomic_load(&segment->feed->slots[i].overflows);
    }
    add_metric(out, "gauge", "live_listeners",
               "Open connections for live events, of all instances that share the segment.", listeners);
    add_metric(out, "counter", "live_events_total", "Events written to connections for live events.", sent);
    add_metric(out, "counter", "live_refused_total", "Requests for live events that a limit has refused.",
               refused);
    add_metric(out, "gauge", "live_held_changes",
               "Changes of documents that wait to be judged by access rules.", held);
    add_metric(out, "counter", "live_held_overflows_total",
               "How often there was no room for more such changes, so that clients got a reset.", overflows);
}

static void add_spans(struct builder *out, const struct segment *segment)
{
    static const char *const words[SPANS_KINDS] = {[SPANS_SENT] = "sent", [SPANS_DROPPED] = "dropped"};
    builder_add_text(out, "# HELP stampd_spans_total Spans of traced requests that the collector has "
                          "accepted, and those that were dropped.\n"
                          "# TYPE stampd_spans_total counter\n");
    for (int kind = 0; kind < SPANS_KINDS; kind++)
        builder_printf(out, "stampd_spans_total{result=\"%s\"} %llu\n", words[kind],
                       (unsigned long long)atomic_load(&segment->kept->spans[kind]));
}

static void add_kept(struct builder *out, const struct segment *segment)
{
#define KEPT_NAME(name, text) [KEPT_##name] = text,
    static const char *const names[KEPT_COUNT] = {KEPT_KINDS(KEPT_NAME)};
#undef KEPT_NAME
    builder_add_text(out, "# HELP stampd_purged_total Rows that were too old and are deleted, by kind.\n"
                          "# TYPE stampd_purged_total counter\n");
    for (int kind = 0; kind < KEPT_COUNT; kind++)
        builder_printf(out, "stampd_purged_total{kind=\"%s\"} %llu\n", names[kind],
                       (unsigned long long)atomic_load(&segment->kept->deleted[kind]));
    add_metric(out, "counter", "files_removed_total",
               "Files of attachments that nothing refers to and that are removed.",
               atomic_load(&segment->kept->files));
    add_metric(out, "counter", "files_sent_total", "Files of attachments that were moved to an object store.",
               atomic_load(&segment->kept->moved[MOVED_SENT]));
    add_metric(out, "counter", "files_brought_total",
               "Files of attachments that were moved back to the directory.",
               atomic_load(&segment->kept->moved[MOVED_BROUGHT]));
    add_metric(out, "counter", "object_store_failures_total",
               "Attempts to move a file, or to remove an object, that failed.",
               atomic_load(&segment->kept->moved[MOVED_FAILURES]));
    add_metric(out, "counter", "purge_rounds_total", "Rounds of the keeper through all namespaces.",
               atomic_load(&segment->kept->rounds));
    add_metric(out, "gauge", "purge_round_seconds", "When the last round ended, in seconds since 1970.",
               (uint64_t)atomic_load(&segment->kept->round_s));
}

/* Writes all of them, including zeros, so that a series exists before its first event. */
static void add_refusals(struct builder *out, const struct segment *segment)
{
    builder_add_text(out, "# HELP stampd_refused_total Requests that a limit has refused, of all instances "
                          "that share the segment.\n"
                          "# TYPE stampd_refused_total counter\n");
    for (int counter = 0; counter < REFUSALS_MOST; counter++) {
        uint64_t count;
        const char *limit = refusals_read(segment, counter, &count);
        if (limit)
            builder_printf(out, "stampd_refused_total{limit=\"%s\"} %llu\n", limit,
                           (unsigned long long)count);
    }
}

static void add_lost(struct builder *out, const struct segment *segment)
{
    builder_add_text(out,
                     "# HELP stampd_history_lost Whether the database has lost acknowledged commits at a "
                     "failover: its namespace is refused until `stampctl ns restored`.\n"
                     "# TYPE stampd_history_lost gauge\n");
    for (int ns = 0; ns < namespaces_count(segment); ns++) {
        const char *database = namespaces_database(segment, ns);
        if (database)
            builder_printf(out, "stampd_history_lost{database=\"%s\"} %u\n", database,
                           atomic_load(&segment->lineage->records[ns].has_lost));
    }
}

static void add_nginx(struct builder *out, const struct segment *segment)
{
    uint64_t count;
    builder_add_text(out, "# HELP stampd_nginx_refused_total Requests that nginx has refused by itself, by "
                          "the status of its answer.\n"
                          "# TYPE stampd_nginx_refused_total counter\n");
    for (int counter = 0, status; (status = refusals_read_nginx(segment, counter, &count)); counter++)
        builder_printf(out, "stampd_nginx_refused_total{status=\"%d\"} %llu\n", status,
                       (unsigned long long)count);
}

/* Only of what has been answered: each namespace could have all operations and classes. */
static void add_requests(struct builder *out, const struct segment *segment)
{
    struct request_counts counts;
    builder_add_text(out, "# HELP stampd_answers_total Requests that workers have answered, by namespace, "
                          "operation and class of the fault, of all instances that share the segment.\n"
                          "# TYPE stampd_answers_total counter\n");
    for (size_t place = 0; place <= REQUEST_COUNTS_NAMES; place++) {
        if (!request_counts_read(segment, place, &counts))
            continue;
        for (size_t class = 0; class < sizeof REQUEST_COUNTS_CLASSES; class ++)
            if (counts.counts[class])
                builder_printf(out, "stampd_answers_total{ns=\"%s\",op=\"%s\",class=\"%.*s\"} %llu\n",
                               counts.ns, counts.what, class ? 1 : 4,
                               class ? &REQUEST_COUNTS_CLASSES[class - 1] : "done",
                               (unsigned long long)counts.counts[class]);
    }
}

/* Only quotas that have refused something: each namespace could have all of them. */
static void add_quotas(struct builder *out, const struct segment *segment, int64_t now_ms)
{
    struct limiter_use use = limiter_use(segment, now_ms);
    char code[REFUSALS_CODE_BYTES + 1];
    builder_add_text(out, "# HELP stampd_quota_refused_total Requests that a quota has refused.\n"
                          "# TYPE stampd_quota_refused_total counter\n");
    for (int ns = 0; ns < namespaces_count(segment); ns++)
        for (int quota = 0; quota < QUOTAS_ALL; quota++) {
            uint64_t count = refusals_read_quota(segment, ns, quota, code);
            if (count)
                builder_printf(out, "stampd_quota_refused_total{ns=\"%s\",quota=\"%s\"} %llu\n", code,
                               quotas_name(quota), (unsigned long long)count);
        }
    add_metric(out, "gauge", "rate_counters", "Counters of rates in use.", use.used);
    add_metric(out, "gauge", "rate_counters_most", "Counters of rates that there are.", use.most);
    add_metric(out, "counter", "rate_counters_evicted_total",
               "Counters of rates that were given to another subject too early, since none was free.",
               use.evicted);
}

/* Of namespaces that the keeper has measured, or whose bytes are limited. */
static void add_stored(struct builder *out, const struct segment *segment)
{
    static const char *const kinds[STORED_KINDS][2] = {
        {"stored_bytes", "Bytes of all keys, contents and attachments of a namespace."},
        {"stored_file_bytes", "Bytes of the attachments of a namespace, as often as documents have them."}};
    char code[STORED_CODE_BYTES + 1];
    int64_t bytes[STORED_KINDS];
    for (int kind = 0; kind < STORED_KINDS; kind++) {
        builder_printf(out, "# HELP stampd_%s %s\n# TYPE stampd_%s gauge\n", kinds[kind][0], kinds[kind][1],
                       kinds[kind][0]);
        for (int ns = 0; ns < namespaces_count(segment); ns++) {
            if (!stored_read(segment, ns, 0, bytes))
                continue;
            stored_code(segment, ns, code);
            builder_printf(out, "stampd_%s{ns=\"%s\"} %lld\n", kinds[kind][0], code, (long long)bytes[kind]);
        }
    }
}

static void add_records(struct builder *out, struct records *records)
{
    struct records_sums sums;
    struct records_use uses[RECORDS_SPACES_MOST];
    if (!records)
        return;
    records_sum(records, NO_BYTES, &sums);
    size_t count = records_uses(records, uses);
    builder_add_text(out, "# HELP stampd_records Records of a namespace, remembered deletions included.\n"
                          "# TYPE stampd_records gauge\n");
    for (size_t i = 0; i < count; i++)
        builder_printf(out, "stampd_records{ns=\"%s\"} %llu\n", uses[i].ns,
                       (unsigned long long)uses[i].records);
    builder_add_text(out, "# HELP stampd_records_bytes Bytes of the memory that the records of a namespace "
                          "take.\n# TYPE stampd_records_bytes gauge\n");
    for (size_t i = 0; i < count; i++)
        builder_printf(out, "stampd_records_bytes{ns=\"%s\"} %llu\n", uses[i].ns,
                       (unsigned long long)uses[i].bytes);
    add_metric(out, "gauge", "records_capacity_bytes", "Bytes of the memory for records.", sums.capacity);
    add_metric(out, "gauge", "records_unsaved_bytes", "Bytes of the keys of records that wait for the disk.",
               sums.unsaved);
    add_metric(out, "gauge", "records_away", "Records whose value is on disk alone.", sums.away);
    add_metric(out, "gauge", "records_away_bytes", "Bytes of these values.", sums.away_bytes);
    add_metric(out, "counter", "records_refused_total",
               "Commands for records that ended OUT_OF_MEMORY, of all programs of the host.", sums.refused);
    add_metric(out, "counter", "records_share_refused_total",
               "Commands for records that ended OUT_OF_SHARE, of all programs of the host.",
               sums.refused_shares);
    add_metric(out, "gauge", "records_shares_bytes",
               "Bytes of records that count for callers, not for administrators.", sums.paid);
}

void probe_write_metrics(const struct worker_context *worker_context, struct builder *out)
{
    struct segment *segment = worker_context->segment;
    const struct instance *instance = worker_context->instance;
    struct sums sums = {0};
    int64_t now_ms = clock_monotonic_ms();
    sums.requests = sums.hits = public_answers_served(segment); /* by nginx, without a worker */
    for (int i = 0; i < instance_entry_count(instance); i++)
        add_entry(&sums, segment, instance_entry(instance, i), now_ms);
    add_metric(out, "counter", "requests_total", "Requests received.", sums.requests);
    add_metric(out, "counter", "nginx_answers_total",
               "Of these, requests that nginx has answered without a worker.",
               public_answers_served(segment));
    add_metric(out, "counter", "faults_total", "Requests answered with a fault.", sums.faults);
    add_metric(out, "counter", "commits_total", "Operations that wrote and were committed.", sums.commits);
    add_metric(out, "counter", "conflicts_total", "Tries of operations whose validation failed.",
               sums.conflicts);
    add_metric(out, "counter", "cache_hits_total", "Documents answered from a copy that was proven fresh.",
               sums.hits);
    add_metric(out, "counter", "cache_misses_total", "Documents loaded from the database.", sums.misses);
    add_metric(out, "counter", "replica_reads_total", "Documents read from a standby.", sums.replica_reads);
    add_metric(out, "counter", "tasks_done_total", "Tasks that were done.", sums.tasks_done);
    add_metric(out, "counter", "tasks_failed_total", "Attempts at tasks that failed.", sums.tasks_failed);
    add_metric(out, "counter", "tasks_lost_total", "Attempts at tasks that were found lost.",
               sums.tasks_lost);
    add_metric(out, "gauge", "workers",
               "Worker processes, those that drain and that of the thumbnails included.",
               (uint64_t)sums.held);
    add_metric(out, "gauge", "workers_busy", "Workers with a request.", (uint64_t)sums.busy);
    add_metric(out, "gauge", "entries_in_doubt", "Entries of dead workers that wait for recovery.",
               (uint64_t)sums.doubtful);
    builder_printf(out,
                   "# HELP stampd_request_oldest_seconds Age of the oldest in-flight request.\n"
                   "# TYPE stampd_request_oldest_seconds gauge\nstampd_request_oldest_seconds %lld.%03lld\n",
                   (long long)sums.oldest_ms / 1000, (long long)sums.oldest_ms % 1000);
    add_metric(out, "gauge", "long_requests", "Workers at long requests without the administrator's key.",
               (uint64_t)long_requests_count(segment));
    add_metric(out, "gauge", "password_digests", "Workers at the digest of a password.",
               (uint64_t)hashers_count(segment));
    add_metric(out, "gauge", "streams_open", "Streamed collections that count for a quota.",
               (uint64_t)shares_count(segment, SHARES_STREAMS));
    add_metric(out, "gauge", "uploads_open", "Workers that receive the file of an attachment.",
               (uint64_t)shares_count(segment, SHARES_UPLOADS));
    builder_printf(out,
                   "# HELP stampd_database_seconds_total Time in which workers waited for PostgreSQL.\n"
                   "# TYPE stampd_database_seconds_total counter\nstampd_database_seconds_total "
                   "%llu.%06llu\n",
                   (unsigned long long)sums.database_us / 1000000,
                   (unsigned long long)sums.database_us % 1000000);
    add_requests(out, segment);
    add_refusals(out, segment);
    add_nginx(out, segment);
    add_quotas(out, segment, now_ms);
    add_stored(out, segment);
    add_records(out, segment->records);
    host_metrics_write(segment->records, out);
    latency_write(segment, instance, out);
    add_live(out, segment);
    add_kept(out, segment);
    add_spans(out, segment);
    add_lost(out, segment);
    add_metric(out, "gauge", "namespaces", "Databases known to the segment.",
               (uint64_t)namespaces_count(segment));
    add_metric(out, "gauge", "lease_held",
               "1: this host may serve; 0: another host of the pair has the lease.",
               slots_have_lease(segment));
    add_metric(out, "gauge", "generation", "Generation of the segment; incremented when it is created again.",
               segment_generation(segment));
    task_metrics_write(segment, out);
}

int probe_answer(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    reply->mime = "text/plain; charset=utf-8";
    switch (call->route) {
    case CALL_READY:
        documents_begin_request(worker_context->documents, call->deadline_ms);
        return answer_ready(worker_context, reply);
    case CALL_METRICS:
        reply->mime = MIME_METRICS;
        probe_write_metrics(worker_context, reply->body);
        return 200;
    default:
        builder_add_text(reply->body, "live\n");
        return 200;
    }
}
