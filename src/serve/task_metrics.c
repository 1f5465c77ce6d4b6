/* task_metrics: three metrics over the same namespaces and queues. */
#include "serve/task_metrics.h"

#include <inttypes.h>

#include "base/clock.h"
#include "model/stamp.h"
#include "segment/backlog.h"
#include "segment/namespaces.h"
#include "segment/task_counts.h"

enum { FORGOTTEN_MS = 24 * 3600 * 1000 };

static int64_t started_ms;

void task_metrics_start(void)
{
    started_ms = clock_monotonic_ms();
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

static bool is_current(const struct page *page, const struct backlog *backlog)
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
        if (!is_current(page, backlog))
            continue;
        backlog_read_code(backlog, code);
        for (int queue = 0; queue < BACKLOG_QUEUES; queue++)
            if (backlog_read(backlog, queue, &numbers))
                write(page, code, queue, &numbers);
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
        if (!is_current(page, backlog))
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
        if (!is_current(page, backlog))
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
                             const char *help, size_t offset)
{
    builder_printf(out, "# HELP stampd_task_operation_%s %s\n# TYPE stampd_task_operation_%s counter\n", name,
                   help, name);
    for (size_t i = 0; i <= TASK_COUNTS_NAMES; i++) {
        struct task_counts counts;
        uint64_t count;
        if (!task_counts_read(segment, i, &counts))
            continue;
        memcpy(&count, (const char *)&counts + offset, sizeof count);
        builder_printf(out, "stampd_task_operation_%s{op=\"%s\"} ", name, counts.name);
        if (offset == offsetof(struct task_counts, us))
            builder_printf(out, "%" PRIu64 ".%06" PRIu64 "\n", count / 1000000, count % 1000000);
        else
            builder_printf(out, "%" PRIu64 "\n", count);
    }
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
                     offsetof(struct task_counts, done));
    write_operations(out, segment, "failed_total", "Attempts at tasks that failed.",
                     offsetof(struct task_counts, failed));
    write_operations(out, segment, "seconds_total", "Time of attempts at tasks.",
                     offsetof(struct task_counts, us));
}
