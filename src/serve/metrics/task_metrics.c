/* task_metrics: three metrics over the same namespaces and queues. */
#include "serve/metrics/task_metrics.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "model/document/stamp.h"
#include "segment/counts/backlog.h"
#include "segment/counts/metrics.h"
#include "segment/namespaces.h"
#include "segment/counts/task_counts.h"

enum { FORGOTTEN_MS = 24 * 3600 * 1000, QUEUE_LABELS_BYTES = 2 * NAMED_COUNTS_BYTES };

static int64_t started_ms;

void task_metrics_start(void)
{
    started_ms = clock_monotonic_ms();
}

int64_t task_metrics_started_ms(void)
{
    return started_ms;
}

struct page {
    struct builder *out;
    int64_t now_ms; /* monotonic */
    int64_t present_ms;
};

typedef void queue_writer(const struct page *page, const char *code, int queue,
                          const struct backlog_numbers *numbers);

static void write_counts(const struct page *page, const char *code, int queue,
                         const struct backlog_numbers *numbers)
{
    const struct {
        const char *state;
        int64_t count;
    } counts[] = {{"due", numbers->due},
                  {"later", numbers->later},
                  {"running", numbers->running},
                  {"parked", numbers->parked},
                  {"failing", numbers->failing}};
    for (size_t i = 0; i < COUNT_OF(counts); i++)
        builder_printf(page->out, "stampd_tasks{ns=\"%s\",queue=\"%d\",state=\"%s\"} %" PRId64 "\n", code,
                       queue, counts[i].state, counts[i].count);
}

static void write_oldest(const struct page *page, const char *code, int queue,
                         const struct backlog_numbers *numbers)
{
    int64_t age_ms = numbers->oldest ? page->present_ms - stamp_to_epoch_ms(numbers->oldest) : 0;
    if (age_ms < 0)
        age_ms = 0;
    builder_printf(page->out,
                   "stampd_tasks_due_oldest_seconds{ns=\"%s\",queue=\"%d\"} %" PRId64 ".%03" PRId64 "\n",
                   code, queue, age_ms / 1000, age_ms % 1000);
}

static bool task_metrics_is_current(const struct page *page, const struct backlog *backlog)
{
    int64_t age_ms = backlog_age_ms(backlog, page->now_ms);
    return age_ms >= 0 && age_ms < FORGOTTEN_MS;
}

static void write_queues(const struct page *page, const struct segment *segment, queue_writer *write)
{
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        const struct backlog *backlog = backlog_of(segment, ns);
        char code[BACKLOG_CODE_BYTES + 1];
        struct backlog_numbers numbers;
        if (!task_metrics_is_current(page, backlog))
            continue;
        backlog_read_code(backlog, code);
        for (int queue = 0; queue < BACKLOG_QUEUES; queue++)
            if (backlog_read(backlog, queue, &numbers))
                write(page, code, queue, &numbers);
    }
}

void task_metrics_sum(const struct segment *segment, struct backlog_numbers *sum_r)
{
    const struct page page = {.now_ms = clock_monotonic_ms()};
    *sum_r = (struct backlog_numbers){0};
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        const struct backlog *backlog = backlog_of(segment, ns);
        struct backlog_numbers numbers;
        if (!task_metrics_is_current(&page, backlog))
            continue;
        for (int queue = 0; queue < BACKLOG_QUEUES; queue++) {
            if (!backlog_read(backlog, queue, &numbers))
                continue;
            sum_r->due += numbers.due;
            sum_r->later += numbers.later;
            sum_r->running += numbers.running;
            sum_r->parked += numbers.parked;
            sum_r->failing += numbers.failing;
        }
    }
}

static void write_age(const struct page *page, const char *code, int64_t age_ms)
{
    builder_printf(page->out, "stampd_tasks_look_age_seconds{ns=\"%s\"} %" PRId64 ".%03" PRId64 "\n", code,
                   age_ms / 1000, age_ms % 1000);
}

/* The age over all namespaces (ns="") starts at the server's start: without any manager there would be no
 * series. */
static void write_ages(const struct page *page, const struct segment *segment)
{
    int64_t least_ms = page->now_ms - started_ms;
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        const struct backlog *backlog = backlog_of(segment, ns);
        char code[BACKLOG_CODE_BYTES + 1];
        if (!task_metrics_is_current(page, backlog))
            continue;
        int64_t age_ms = backlog_age_ms(backlog, page->now_ms);
        backlog_read_code(backlog, code);
        write_age(page, code, age_ms);
        least_ms = age_ms < least_ms ? age_ms : least_ms;
    }
    write_age(page, "", least_ms);
}

static void write_counter(const struct page *page, const struct segment *segment, const char *name,
                          const char *help, size_t offset)
{
    builder_printf(page->out, "# HELP stampd_%s %s\n# TYPE stampd_%s counter\n", name, help, name);
    for (int ns = 0; ns < NAMESPACES_MOST; ns++) {
        const struct backlog *backlog = backlog_of(segment, ns);
        char code[BACKLOG_CODE_BYTES + 1];
        if (!task_metrics_is_current(page, backlog))
            continue;
        backlog_read_code(backlog, code);
        builder_printf(page->out, "stampd_%s{ns=\"%s\"} %" PRIu64 "\n", name, code,
                       atomic_load((const _Atomic uint64_t *)((const char *)backlog + offset)));
    }
}

static void write_head(const struct page *page, const char *name, const char *help)
{
    builder_printf(page->out, "# HELP stampd_%s %s\n# TYPE stampd_%s gauge\n", name, help, name);
}

static void write_operations(struct builder *out, const struct segment *segment, const char *name,
                             const char *help, enum task_count count)
{
    char operation[NAMED_COUNTS_BYTES + 1];
    uint64_t counts[NAMED_COUNTS_MOST];
    builder_printf(out, "# HELP stampd_task_operation_%s %s\n# TYPE stampd_task_operation_%s counter\n", name,
                   help, name);
    for (size_t place = 0; place <= NAMED_COUNTS_NAMES; place++) {
        if (!named_counts_read(task_counts_operations(segment), place, operation, counts))
            continue;
        builder_printf(out, "stampd_task_operation_%s{op=\"%s\"} ", name, operation);
        if (count == TASK_COUNT_US)
            builder_printf(out, "%" PRIu64 ".%06" PRIu64 "\n", counts[count] / 1000000,
                           counts[count] % 1000000);
        else
            builder_printf(out, "%" PRIu64 "\n", counts[count]);
    }
}

/* The labels of the queue at a place among those of external workers; false: nothing has been counted there.
 */
static bool read_queue(const struct segment *segment, size_t place, char labels[QUEUE_LABELS_BYTES],
                       uint64_t counts[NAMED_COUNTS_MOST])
{
    char name[NAMED_COUNTS_BYTES + 1];
    if (!named_counts_read(task_counts_queues(segment), place, name, counts))
        return false;
    const char *blank = strchr(name, ' ');
    snprintf(labels, QUEUE_LABELS_BYTES, "{ns=\"%s\",queue=\"%.*s\"}", blank ? blank + 1 : "",
             blank ? (int)(blank - name) : 0, name);
    return true;
}

static void write_external(struct builder *out, const struct segment *segment)
{
    static const char *const names[][2] = {
        [EXTERNAL_COUNT_TAKEN] = {"taken",
                                  "Tasks that external workers have taken; ns=\"\": of all other queues."},
        [EXTERNAL_COUNT_KEPT] = {"kept", "Claims that external workers have extended."},
        [EXTERNAL_COUNT_DONE] = {"done", "Tasks that external workers have done."},
        [EXTERNAL_COUNT_FAILED] = {"failed", "Attempts that external workers have reported as failed."},
        [EXTERNAL_COUNT_RELEASED] = {"released", "Tasks that external workers have given back untried."},
        [EXTERNAL_COUNT_EXPIRED] = {"expired", "Claims of external workers that have ended by themselves."}};
    char labels[QUEUE_LABELS_BYTES];
    uint64_t counts[NAMED_COUNTS_MOST];
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        builder_printf(out, "# HELP stampd_external_%s_total %s\n# TYPE stampd_external_%s_total counter\n",
                       names[i][0], names[i][1], names[i][0]);
        for (size_t place = 0; place <= NAMED_COUNTS_NAMES; place++)
            if (read_queue(segment, place, labels, counts))
                builder_printf(out, "stampd_external_%s_total%s %" PRIu64 "\n", names[i][0], labels,
                               counts[i]);
    }
    builder_add_text(out, "# HELP stampd_external_waiting Requests of external workers that wait for tasks.\n"
                          "# TYPE stampd_external_waiting gauge\n");
    for (size_t place = 0; place <= NAMED_COUNTS_NAMES; place++)
        if (read_queue(segment, place, labels, counts))
            builder_printf(out, "stampd_external_waiting%s %lld\n", labels,
                           (long long)metrics_waiting_at(segment, place));
}

void task_metrics_write(const struct segment *segment, struct builder *out)
{
    const struct page page = {out, clock_monotonic_ms(), stamp_to_epoch_ms(stamp_now())};
    write_head(&page, "tasks", "Tasks at the last scan; each state is counted up to 10000 of a priority.");
    write_queues(&page, segment, write_counts);
    write_head(&page, "tasks_due_oldest_seconds", "How long the oldest task that may start has waited.");
    write_queues(&page, segment, write_oldest);
    write_head(
        &page, "tasks_look_age_seconds",
        "Age of these numbers: time since the last scan; ns=\"\": of any namespace, or since the start.");
    write_ages(&page, segment);
    write_counter(&page, segment, "task_wakeups_lost_total",
                  "Wake-ups that the full socket of the queue manager did not accept; they are sent again.",
                  offsetof(struct backlog, lost));
    write_counter(&page, segment, "tasks_expired_total",
                  "Tasks that were parked for longer than task_parked_days and deleted.",
                  offsetof(struct backlog, expired));
    write_operations(out, segment, "done_total", "Tasks that were done; op=\"\": of all other operations.",
                     TASK_COUNT_DONE);
    write_operations(out, segment, "failed_total", "Attempts at tasks that failed.", TASK_COUNT_FAILED);
    write_operations(out, segment, "seconds_total", "Time of attempts at tasks.", TASK_COUNT_US);
    write_external(out, segment);
}
