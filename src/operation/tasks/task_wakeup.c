/* task_wakeup: one datagram per task, or one for all when there are more than a few. */
#include "operation/tasks/task_wakeup.h"

#include <errno.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "edge/json/json.h"
#include "model/task/worker_queues.h"
#include "segment/counts/backlog.h"
#include "segment/namespaces.h"
#include "store/documents/store_commit.h"
#include "document/transaction.h"

/* The kernel queues ten datagrams of a socket (net.unix.max_dgram_qlen) until its owner reads them. */
enum { WAKEUPS_MOST = 4 };

void task_wakeup_add_members(struct builder *out, const struct task *task)
{
    json_add_text(out, "\"id\":", task->id);
    json_add_text(out, ",\"op\":", task->operation);
    builder_printf(out, ",\"qn\":%d,\"priority\":%d,\"startat\":%lld,\"retry\":%lld,\"batch\":%d",
                   task->queue, task->priority, (long long)task->start, (long long)task->attempt,
                   task->batch);
    if (task->domain.data)
        json_add_text(out, ",\"domain\":", task->domain);
}

/* One socket per process, created on first use; without it nothing is sent. */
static int get_socket(void)
{
    static int descriptor = -1;
    if (descriptor < 0)
        descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return descriptor;
}

/* False: the manager runs, but its socket is full. */
static bool send_text(const char *path, struct bytes text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path)
        return true;
    memcpy(address.sun_path, path, size);
    if (sendto(get_socket(), text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&address, sizeof address) >= 0)
        return true;
    if (errno == EAGAIN || errno == ENOBUFS)
        return false;
    log_debug("no queue manager listens at %s: %m", path);
    return true;
}

static bool send_wakeup(const char *path, struct bytes ns, const struct task *task)
{
    struct builder text = {0};
    json_add_text(&text, "{\"ns\":", ns);
    if (task) {
        builder_add_text(&text, ",");
        task_wakeup_add_members(&text, task);
    }
    builder_add_text(&text, "}");
    bool is_sent = send_text(path, builder_bytes(&text));
    builder_free(&text);
    return is_sent;
}

static int64_t soon(const struct settings *settings)
{
    return stamp_add_ms(stamp_now(), settings->task_wakeup_s * 1000);
}

void task_wakeup_ns(const struct settings *settings, struct bytes ns, int64_t start)
{
    char path[SETTINGS_PATH_BYTES];
    if (start <= soon(settings) && settings_wakeup_path(settings, path))
        (void)send_wakeup(path, ns, NULL);
}

/* Of the manager's: external workers look for theirs. */
static bool is_soon(const struct task *task, int64_t latest)
{
    return task->start <= latest && !worker_queues_is(task->queue);
}

static size_t count_soon(const struct task *tasks, size_t count, int64_t latest)
{
    size_t found = 0;
    for (size_t i = 0; i < count; i++)
        found += is_soon(&tasks[i], latest);
    return found;
}

static void offer(struct backlog *backlog, const struct task *tasks, size_t count)
{
    bool is_any = false;
    for (size_t i = 0; i < count; i++)
        is_any |= worker_queues_is(tasks[i].queue);
    if (is_any)
        backlog_offer(backlog);
}

void task_wakeup_tasks(const struct worker_context *worker_context, int number, struct bytes ns,
                       const struct task *tasks, size_t count)
{
    char path[SETTINGS_PATH_BYTES];
    const struct settings *settings = worker_context->settings;
    if (!count)
        return;
    struct backlog *backlog = backlog_of(worker_context->segment, number);
    offer(backlog, tasks, count);
    int64_t latest = soon(settings);
    size_t near = count_soon(tasks, count, latest);
    if (!near)
        return;
    if (*settings->queue_remotes)
        backlog_want(backlog, ns, BACKLOG_REMOTE);
    if (!settings_wakeup_path(settings, path))
        return;
    bool is_sent = near <= WAKEUPS_MOST || send_wakeup(path, ns, NULL);
    for (size_t i = 0; i < count && near <= WAKEUPS_MOST; i++)
        if (is_soon(&tasks[i], latest))
            is_sent &= send_wakeup(path, ns, &tasks[i]);
    if (!is_sent)
        backlog_want(backlog, ns, BACKLOG_LOCAL);
}

void task_wakeup_commit(const struct worker_context *worker_context, int number, struct bytes ns,
                        const struct transaction *transaction)
{
    size_t count;
    const struct task *tasks = transaction_tasks(transaction, &count);
    const struct match *match = transaction_match(transaction);
    task_wakeup_tasks(worker_context, number, ns, tasks, count);
    task_wakeup_tasks(worker_context, number, ns, match->woken, match->woken_count);
}

void task_wakeup_limited(const struct worker_context *worker_context, int number, struct bytes ns,
                         const struct task_claim *claims, size_t count)
{
    char path[SETTINGS_PATH_BYTES];
    const struct settings *settings = worker_context->settings;
    struct backlog *backlog = backlog_of(worker_context->segment, number);
    bool is_any = false;
    for (size_t i = 0; i < count; i++)
        is_any |= claims[i].result == CLAIM_DONE && claims[i].task.is_limited;
    if (is_any && *settings->queue_remotes)
        backlog_want(backlog, ns, BACKLOG_REMOTE);
    if (is_any && settings_wakeup_path(settings, path) && !send_wakeup(path, ns, NULL))
        backlog_want(backlog, ns, BACKLOG_LOCAL);
}

void task_wakeup_again(const struct settings *settings, struct segment *segment)
{
    char path[SETTINGS_PATH_BYTES], code[BACKLOG_CODE_BYTES + 1];
    if (!settings_wakeup_path(settings, path))
        return;
    for (int i = 0; i < namespaces_count(segment); i++) {
        struct backlog *backlog = backlog_of(segment, i);
        if (!backlog_take(backlog, BACKLOG_LOCAL, code))
            continue;
        if (send_wakeup(path, bytes_of(code), NULL))
            continue;
        backlog_want(backlog, bytes_of(code), BACKLOG_LOCAL);
        return; /* it is full: next time */
    }
}
