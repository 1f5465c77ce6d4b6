/* metrics: a table of single numbers, then those by queue and by namespace. */
#include "queue/metrics.h"

#include "queue/alert.h"
#include "queue/manager_private.h"

static void add_head(struct builder *out, const char *type, const char *name, const char *help)
{
    builder_printf(out, "# HELP stampd_queue_%s %s\n# TYPE stampd_queue_%s %s\n", name, help, name, type);
}

static void add_singles(const struct manager *manager, struct builder *out)
{
    struct agenda_counts counts = agenda_count(manager->agenda);
    struct alert_counts mails = alert_count(manager->alert);
    const struct {
        const char *type, *name, *help;
        uint64_t value;
    } singles[] = {
        {"gauge", "suspended", "1: suspend was sent, nothing new is started.", manager->is_suspended},
        {"gauge", "tasks_later", "Tasks in memory that start soon.", counts.later},
        {"gauge", "tasks_due", "Tasks in memory that wait for a place.", counts.due},
        {"gauge", "tasks_running", "Tasks of in-flight requests.", counts.running},
        {"counter", "requests_failed_total", "Scans and runs that no worker answered.",
         manager->failed_requests},
        {"counter", "tasks_overlooked_total",
         "Tasks that only a scan has found, 5 s or more after their start, while a place was free.",
         manager->overlooked},
        {"counter", "mails_sent_total", "Mails about failures that the mail server accepted.", mails.sent},
        {"counter", "mails_failed_total", "Mails that the mail server did not accept; they are sent again.",
         mails.failed},
        {"gauge", "failures_unreported", "Failures not yet reported by mail.", mails.waiting},
    };
    for (size_t i = 0; i < COUNT_OF(singles); i++) {
        add_head(out, singles[i].type, singles[i].name, singles[i].help);
        builder_printf(out, "stampd_queue_%s{qm=\"%s\"} %llu\n", singles[i].name,
                       manager->settings->queue_code, (unsigned long long)singles[i].value);
    }
}

static void add_slots(const struct manager *manager, struct builder *out, const char *name, const char *help,
                      bool is_taken)
{
    add_head(out, "gauge", name, help);
    for (int queue = 0; queue < AGENDA_QUEUES; queue++) {
        int taken, slots = agenda_slots(manager->agenda, queue, &taken);
        if (slots)
            builder_printf(out, "stampd_queue_%s{qm=\"%s\",queue=\"%d\"} %d\n", name,
                           manager->settings->queue_code, queue, is_taken ? taken : slots);
    }
}

static void add_namespaces(const struct manager *manager, struct builder *out, const char *name,
                           const char *help, bool is_waiting)
{
    add_head(out, "gauge", name, help);
    for (int i = 0; i < manager->ns_count; i++) {
        const struct queue_namespace *ns = &manager->namespaces[i];
        size_t value = is_waiting ? agenda_waiting(manager->agenda, i) : (size_t)ns->failures;
        if (ns->is_ours)
            builder_printf(out, "stampd_queue_%s{qm=\"%s\",ns=\"%s\"} %zu\n", name,
                           manager->settings->queue_code, ns->code, value);
    }
}

void metrics_write(const struct manager *manager, struct builder *out)
{
    add_singles(manager, out);
    add_slots(manager, out, "slots", "Requests of the queue that may run at once: queue_concurrency.", false);
    add_slots(manager, out, "slots_used", "In-flight requests with tasks of the queue.", true);
    add_namespaces(manager, out, "namespace_tasks", "Waiting tasks of the namespace in memory.", true);
    add_namespaces(manager, out, "namespace_failures",
                   "Requests in a row that no worker answered; the manager backs off from the namespace.",
                   false);
}
