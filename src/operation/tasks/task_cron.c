/* task_cron: rules of modules, and the next time of each rule. */
#include "operation/tasks/task_cron.h"

#include <string.h>

#include "base/log.h"
#include "base/schedule.h"
#include "model/task/cron.h"
#include "model/document/stamp.h"
#include "store/tasks/store_cron.h"
#include "store/collections/store_subscriptions.h"
#include "store/tasks/store_tasks.h"
#include "operation/registry.h"
#include "operation/tasks/task_external.h"

/* All that the modules of this server declare. */
static size_t task_cron_collect(struct arena *arena, struct cron_declaration **declarations_r)
{
    size_t all = 0, count = 0;
    while (registry_get_added(all))
        all++;
    *declarations_r = ARENA_ARRAY(arena, struct cron_declaration, all);
    for (size_t i = 0; i < all; i++) {
        const struct operation *operation = registry_get_added(i);
        if (operation->task.period)
            (*declarations_r)[count++] =
                (struct cron_declaration){bytes_of(operation->name), bytes_of(operation->task.period),
                                          bytes_of(operation->task.module)};
    }
    return count;
}

/* Arguments of the server's own tasks may have secrets: the names of sessions, tickets of mails. */
static bool is_kept(const struct operation *operation)
{
    return !operation->task.is_internal && strcmp(operation->name, PUSH_OPERATION) != 0;
}

/* Those of the server, of its modules and of external workers, for task_create in SQL. */
static enum fault declare(struct worker_context *worker_context, struct arena *arena, int ns,
                          const struct worker_queues *workers)
{
    const struct settings *settings = worker_context->settings;
    size_t all = 0;
    while (registry_get(all))
        all++;
    struct task_declaration *declarations =
        ARENA_ARRAY(arena, struct task_declaration, all + worker_queues_operations(workers));
    for (size_t i = 0; i < all; i++) {
        const struct operation *operation = registry_get(i);
        struct bytes name = bytes_of(operation->name);
        declarations[i] = (struct task_declaration){
            .operation = name,
            .queue = schedule_queue(settings->task_queues, name, operation->task.queue),
            .batch = operation->task.batch ? operation->task.batch : 1,
            .kept_bytes = is_kept(operation) ? (int32_t)settings->task_history_param_bytes : 0,
        };
    }
    for (size_t i = 0; workers && i < workers->count; i++) {
        const struct json *names = workers->queues[i].operations;
        for (const struct json *name = names ? names->first : NULL; name; name = name->next)
            if (!registry_find(name->value))
                declarations[all++] =
                    (struct task_declaration){.operation = name->value,
                                              .queue = workers->queues[i].number,
                                              .batch = 1,
                                              .kept_bytes = (int32_t)settings->task_history_param_bytes};
    }
    return store_tasks_declare(documents_store(worker_context->documents), ns, arena, declarations, all,
                               settings->limit_task_param_bytes);
}

static int find_queue(const struct settings *settings, const struct call *call, struct bytes name)
{
    const struct operation *operation = task_external_find(call, name);
    if (operation && operation->task.is_external)
        return operation->task.queue;
    return schedule_queue(settings->task_queues, name, operation ? operation->task.queue : 0);
}

static enum fault task_cron_plan(struct worker_context *worker_context, const struct call *call, int ns,
                                 const struct cron_rule *rule)
{
    struct cron cron;
    bool is_made = false;
    if (!cron_parse(rule->period, &cron)) {
        log_error("periodic task name=%.*s: invalid period", (int)rule->name.size, rule->name.data);
        return FAULT_NONE;
    }
    int64_t next = stamp_from_epoch_ms(cron_next_ms(&cron, stamp_to_epoch_ms(rule->after)));
    int queue = find_queue(worker_context->settings, call, rule->operation);
    enum fault fault = store_cron_plan(documents_store(worker_context->documents), ns, call->arena, rule,
                                       next, queue, &is_made);
    if (is_made)
        log_info("periodic task planned name=%.*s start=%lld", (int)rule->name.size, rule->name.data,
                 (long long)next);
    return fault;
}

enum fault task_cron(struct worker_context *worker_context, const struct call *call, int ns)
{
    struct cron_declaration *declarations;
    struct cron_rule *rules;
    size_t count = task_cron_collect(call->arena, &declarations);
    if (bytes_equal(call->ns, BYTES("z")))
        count = 0;
    enum fault fault = store_cron_scan(documents_store(worker_context->documents), ns, call->arena,
                                       declarations, count, &rules, &count);
    if (!fault)
        fault = declare(worker_context, call->arena, ns, call->workers);
    for (size_t i = 0; !fault && i < count; i++)
        fault = task_cron_plan(worker_context, call, ns, &rules[i]);
    return fault;
}
