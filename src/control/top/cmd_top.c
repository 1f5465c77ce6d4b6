/* cmd_top: `stampctl top`: what runs now.  It reads the shared memory of the server, so that it works while
 * all workers are busy or PostgreSQL is away, and costs the server nothing. */
#include "control/control.h"

#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/record.h"
#include "model/document/stamp.h"
#include "records/records_host.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"
#include "segment/counts/waits.h"
#include "segment/namespaces.h"
#include "segment/processes.h"
#include "segment/public_answers.h"
#include "segment/segment_view.h"

enum { LOOK_AGAIN_S = 1 };

/* Counted since the server began. */
struct top_sums {
    int64_t at_ms; /* monotonic */
    uint64_t counts[8];
    int64_t workers, busy, doubtful;
};
static const char *const count_names[] = {"requests", "commits", "conflicts",  "faults",
                                          "hits",     "misses",  "tasks_done", "tasks_failed"};

struct top {
    const struct segment *segment;
    const char *records; /* the file of the records; NULL: there is none */
    bool is_json;
};

/* --- requests --- */

struct top_request {
    int64_t for_ms;
    uint32_t pid;
    char ns[PULSE_NS_BYTES + 1], what[PULSE_WHAT_BYTES + 1];
    const char *waits_for;
};

/* The letter of /proc/PID/stat; '?': the process is gone. */
static char top_process_state(uint32_t pid)
{
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%u/stat", pid);
    FILE *file = fopen(path, "re");
    const char *end = file && fgets(line, sizeof line, file) ? strrchr(line, ')') : NULL;
    if (file)
        fclose(file);
    return end && end[1] == ' ' ? end[2] : '?';
}

static const char *top_wait_of(const struct segment *segment, int index, int64_t now_ms)
{
    static const char *const kinds[] = {[PULSE_WAITS_FOR_TASK] = "task",
                                        [PULSE_WAITS_FOR_RECORDS] = "records",
                                        [PULSE_WAITS_FOR_END] = "end of task",
                                        [PULSE_WAITS_FOR_DECODER] = "thumbnails",
                                        [PULSE_WAITS_FOR_HOSTS] = "hosts"};
    const struct pulse *pulse = metrics_pulse(segment, index);
    uint64_t kind = atomic_load(&pulse->waits_for) & UINT8_MAX;
    int64_t commit_ms = waits_since_ms(segment, index);
    char state = top_process_state(processes_pid(segment, index));
    if (kind && kind < COUNT_OF(kinds))
        return kinds[kind];
    if (commit_ms && commit_ms <= now_ms)
        return "commit";
    if (state == 'R')
        return "processor";
    if (state == 'D')
        return "disk";
    if (atomic_load(&pulse->deadline_ms))
        return "module";
    return state == 'T' ? "stopped" : state == '?' ? "gone" : "database";
}

/* What a client has sent as the name of an operation is shown as letters. */
static void top_clean(char *text)
{
    for (; *text; text++)
        if ((unsigned char)*text <= ' ' || (unsigned char)*text >= 0x7f)
            *text = '?';
}

/* False: the process has no request, or goes on with another meanwhile. */
static bool top_find_request(const struct segment *segment, int index, int64_t now_ms,
                             struct top_request *request_r)
{
    const struct pulse *pulse = metrics_pulse(segment, index);
    int64_t since_ms = atomic_load(&pulse->request_since_ms);
    if (!since_ms || processes_state(segment, index) != PROCESS_HELD)
        return false;
    *request_r = (struct top_request){.for_ms = now_ms > since_ms ? now_ms - since_ms : 0,
                                      .pid = processes_pid(segment, index),
                                      .waits_for = top_wait_of(segment, index, now_ms)};
    metrics_read_work(pulse, request_r->ns, request_r->what);
    top_clean(request_r->ns);
    top_clean(request_r->what);
    return atomic_load(&pulse->request_since_ms) == since_ms;
}

static void top_print_request(const struct top *top, const struct top_request *request)
{
    if (!top->is_json) {
        printf("%-8u  %-16s  %-32s  %9lld  %s\n", request->pid, *request->ns ? request->ns : "-",
               *request->what ? request->what : "-", (long long)request->for_ms, request->waits_for);
        return;
    }
    struct record record = {0};
    record_add_word(&record, "kind", "request");
    record_add_i64(&record, "pid", request->pid);
    record_add_word(&record, "ns", *request->ns ? request->ns : NULL);
    record_add_word(&record, "what", *request->what ? request->what : NULL);
    record_add_i64(&record, "milliseconds", request->for_ms);
    record_add_word(&record, "waits_for", request->waits_for);
    record_print(&record);
}

/* The longest first. */
static void top_show_requests(const struct top *top)
{
    struct top_request requests[PROCESSES_MOST], found;
    int count = 0;
    for (int i = 0; i < processes_count(top->segment); i++) {
        if (!top_find_request(top->segment, i, clock_monotonic_ms(), &found))
            continue;
        int at = count++;
        for (; at > 0 && requests[at - 1].for_ms < found.for_ms; at--)
            requests[at] = requests[at - 1];
        requests[at] = found;
    }
    if (!top->is_json)
        printf("\n%-8s  %-16s  %-32s  %9s  %s\n", "PROCESS", "NAMESPACE", "OPERATION", "FOR MS", "WAITS FOR");
    for (int i = 0; i < count; i++)
        top_print_request(top, &requests[i]);
}

/* --- queues --- */

static void top_print_queue(const struct top *top, const char *ns, int queue,
                            const struct backlog_numbers *numbers)
{
    int64_t oldest_s = 0;
    if (numbers->oldest)
        oldest_s = (stamp_to_epoch_ms(stamp_now()) - stamp_to_epoch_ms(numbers->oldest)) / 1000;
    if (!top->is_json) {
        printf("%-16s  %5d  %9lld  %9lld  %9lld  %9lld  %9lld  %9lld\n", ns, queue, (long long)numbers->due,
               (long long)numbers->running, (long long)numbers->later, (long long)numbers->parked,
               (long long)numbers->failing, (long long)oldest_s);
        return;
    }
    struct record record = {0};
    record_add_word(&record, "kind", "queue");
    record_add_word(&record, "ns", ns);
    record_add_i64(&record, "queue", queue);
    record_add_i64(&record, "due", numbers->due);
    record_add_i64(&record, "running", numbers->running);
    record_add_i64(&record, "later", numbers->later);
    record_add_i64(&record, "parked", numbers->parked);
    record_add_i64(&record, "failing", numbers->failing);
    record_add_i64(&record, "oldest_seconds", oldest_s);
    record_print(&record);
}

/* As the queue manager has counted them last. */
static void top_show_queues(const struct top *top)
{
    char code[BACKLOG_CODE_BYTES + 1];
    struct backlog_numbers numbers;
    if (!top->is_json)
        printf("\n%-16s  %5s  %9s  %9s  %9s  %9s  %9s  %9s\n", "NAMESPACE", "QUEUE", "DUE", "RUNNING",
               "LATER", "PARKED", "FAILING", "OLDEST S");
    for (int ns = 0; ns < namespaces_count(top->segment); ns++) {
        const struct backlog *backlog = backlog_of(top->segment, ns);
        backlog_read_code(backlog, code);
        for (int queue = 0; queue < BACKLOG_QUEUES; queue++)
            if (backlog_read(backlog, queue, &numbers))
                top_print_queue(top, code, queue, &numbers);
    }
}

/* --- hosts that hold records together --- */

static void top_print_host(const struct top *top, const struct records_host *host)
{
    const char *state = records_host_word(host->state);
    if (!top->is_json) {
        printf("%-32s  %-7s  %-8s  %10llu  %8llu  %8llu  %8llu\n", host->address, state,
               host->is_exhaustive ? "all" : "not all", (unsigned long long)host->records,
               (unsigned long long)host->doubtful, (unsigned long long)host->absent,
               (unsigned long long)host->missing);
        return;
    }
    struct record record = {0};
    record_add_word(&record, "kind", "host");
    record_add_word(&record, "address", host->address);
    record_add_word(&record, "state", state);
    record_add_bool(&record, "exhaustive", host->is_exhaustive);
    record_add_i64(&record, "unsure_ms", host->unsure_ms);
    record_add_i64(&record, "records", (int64_t)host->records);
    record_add_i64(&record, "not_exhaustive_keys", (int64_t)host->doubtful);
    record_add_i64(&record, "not_found_keys", (int64_t)host->absent);
    record_add_i64(&record, "missing_copies", (int64_t)host->missing);
    record_add_i64(&record, "sent", (int64_t)host->sent);
    record_add_i64(&record, "received", (int64_t)host->received);
    record_print(&record);
}

/* As z knew them last. */
static void top_show_hosts(const struct top *top)
{
    struct records_hosts hosts;
    if (!top->records || !records_host_peek(top->records, &hosts))
        return;
    if (!top->is_json)
        printf("\n%-32s  %-7s  %-8s  %10s  %8s  %8s  %8s\n", "HOST", "STATE", "KNOWS", "RECORDS", "DOUBTFUL",
               "ABSENT", "MISSING");
    for (uint64_t i = 0; i < hosts.count; i++)
        top_print_host(top, &hosts.list[i]);
}

/* --- sums --- */

static struct top_sums top_sum(const struct segment *segment)
{
    uint64_t by_nginx = public_answers_served(segment);
    struct top_sums sums = {.at_ms = clock_monotonic_ms(), .counts = {by_nginx, [4] = by_nginx}};
    for (int i = 0; i < processes_count(segment); i++) {
        const struct pulse *pulse = metrics_pulse(segment, i);
        const _Atomic uint64_t *const counts[] = {&pulse->requests,   &pulse->commits,     &pulse->conflicts,
                                                  &pulse->faults,     &pulse->hits,        &pulse->misses,
                                                  &pulse->tasks_done, &pulse->tasks_failed};
        for (size_t k = 0; k < COUNT_OF(counts); k++)
            sums.counts[k] += atomic_load(counts[k]);
        enum process_state state = processes_state(segment, i);
        sums.workers += state == PROCESS_HELD;
        sums.doubtful += state == PROCESS_DIRTY;
        sums.busy += state == PROCESS_HELD && atomic_load(&pulse->request_since_ms) != 0;
    }
    return sums;
}

static double top_rate(const struct top_sums *before, const struct top_sums *now, size_t k)
{
    int64_t ms = now->at_ms > before->at_ms ? now->at_ms - before->at_ms : 1;
    uint64_t more = now->counts[k] > before->counts[k] ? now->counts[k] - before->counts[k] : 0;
    return 1000.0 * (double)more / (double)ms;
}

static void top_show_sums(const struct top *top, const struct top_sums *before, const struct top_sums *now)
{
    if (!top->is_json) {
        printf("workers %lld, busy %lld, in doubt %lld\n", (long long)now->workers, (long long)now->busy,
               (long long)now->doubtful);
        for (size_t k = 0; k < COUNT_OF(count_names); k++)
            printf("%s%s %.1f/s", k ? ", " : "", count_names[k], top_rate(before, now, k));
        printf("\n");
        return;
    }
    struct record record = {0};
    record_add_word(&record, "kind", "sums");
    record_add_i64(&record, "workers", now->workers);
    record_add_i64(&record, "busy", now->busy);
    record_add_i64(&record, "doubtful", now->doubtful);
    for (size_t k = 0; k < COUNT_OF(count_names); k++)
        record_add_i64(&record, count_names[k], (int64_t)now->counts[k]);
    record_add_i64(&record, "milliseconds", now->at_ms - before->at_ms);
    for (size_t k = 0; k < COUNT_OF(count_names); k++) {
        char name[64], text[64];
        snprintf(name, sizeof name, "%s_per_second", count_names[k]);
        snprintf(text, sizeof text, "%.1f", top_rate(before, now, k));
        record_add_json(&record, name, bytes_of(text));
    }
    record_print(&record);
}

static bool top_open(struct control *control, struct segment **segment_r)
{
    const struct settings *settings = &control->settings;
    char path[PATH_MAX], problem[1024];
    const struct board_sizes sizes = {.slots = (uint32_t)settings->segment_slots,
                                      .shared_cache_bytes = (size_t)settings->shared_cache_mb << 20,
                                      .public_answers_bytes = (size_t)settings->public_answers_mb << 20};
    if (!settings_segment_path(settings, path, sizeof path))
        return message_refuse("segment: the path is too long");
    if (!segment_view_open(segment_r, path, &sizes, problem, sizeof problem))
        return message_refuse("%s", problem);
    if (processes_count(*segment_r))
        return true;
    message_print("segment %s: no worker has begun: stampd does not run", path);
    segment_view_close(*segment_r);
    return false;
}

int control_top(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "top", "",
        "Show what runs now: each request, for how long and what it waits for; queues; hosts; rates.",
        "Reads the shared memory of the server, as root or as the user of stampd, and asks no worker.  Shows "
        "it again\n"
        "each second until it is interrupted; once, if standard output is no terminal.\n");
    struct top top = {0};
    bool is_once = false;
    int64_t every_s = LOOK_AGAIN_S;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        OPTION_NUMBER("every", "SECONDS", &every_s, 1, 3600, "Measure rates over this time (default: 1)."),
        OPTION_FLAG("once", &is_once, "Show it once."),
        RECORD_JSON_LINE(&top.is_json),
    };
    struct segment *segment;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!top_open(control, &segment))
        return CONTROL_FAILED;
    top.segment = segment;
    if (*control->settings.cluster_address)
        top.records = arena_printf(control->arena, "%s/records", control->settings.run_directory);
    is_once = is_once || !isatty(STDOUT_FILENO);
    struct top_sums before = top_sum(segment);
    do {
        clock_sleep_ms(every_s * 1000);
        struct top_sums now = top_sum(segment);
        if (!is_once && !top.is_json)
            printf("\033[H\033[J"); /* the screen from its first line, cleared */
        top_show_sums(&top, &before, &now);
        top_show_requests(&top);
        top_show_queues(&top);
        top_show_hosts(&top);
        before = now;
    } while (fflush(stdout) == 0 && !is_once);
    segment_view_close(segment);
    return CONTROL_DONE;
}
