/* hint: one datagram a task, or one for all when they are many. */
#include "operation/hint.h"

#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "base/log.h"
#include "edge/json.h"

enum { HINTS_MOST = 16 };

void hint_add_members(struct builder *out, const struct task *task)
{
    builder_add_text(out, "\"id\":");
    json_add_string(out, task->id);
    builder_add_text(out, ",\"op\":");
    json_add_string(out, task->operation);
    builder_printf(out, ",\"qn\":%d,\"priority\":%d,\"startat\":%lld,\"retry\":%lld,\"batch\":%d",
                   task->queue, task->priority, (long long)task->start, (long long)task->attempt,
                   task->batch);
    if (task->domain.data) {
        builder_add_text(out, ",\"domain\":");
        json_add_string(out, task->domain);
    }
}

/* A socket for each process, made when it is first needed; without one nothing is told. */
static int get_socket(void)
{
    static int descriptor = -1;
    if (descriptor < 0)
        descriptor = socket(AF_UNIX, SOCK_DGRAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    return descriptor;
}

static void send_text(const char *path, struct bytes text)
{
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    size_t size = strlen(path);
    if (size >= sizeof address.sun_path)
        return;
    memcpy(address.sun_path, path, size);
    if (sendto(get_socket(), text.data, text.size, MSG_DONTWAIT | MSG_NOSIGNAL,
               (const struct sockaddr *)&address, sizeof address) < 0)
        log_debug("the queue manager does not listen: %m");
}

static void send_hint(const char *path, struct bytes space, const struct task *task)
{
    struct builder text = {0};
    builder_add_text(&text, "{\"ns\":");
    json_add_string(&text, space);
    if (task) {
        builder_add_text(&text, ",");
        hint_add_members(&text, task);
    }
    builder_add_text(&text, "}");
    send_text(path, builder_bytes(&text));
    builder_free(&text);
}

static int64_t soon(const struct settings *settings)
{
    return stamp_add_ms(stamp_now(), settings->task_hint_s * 1000);
}

void hint_space(const struct settings *settings, struct bytes space, int64_t start)
{
    if (*settings->queue_socket && start <= soon(settings))
        send_hint(settings->queue_socket, space, NULL);
}

void hint_tasks(const struct workshop *workshop, struct bytes space, const struct task *tasks, size_t count)
{
    const char *path = workshop->settings->queue_socket;
    if (!count || !*path)
        return;
    int64_t latest = soon(workshop->settings);
    size_t sent = 0;
    for (size_t i = 0; i < count; i++) {
        if (tasks[i].start > latest)
            continue;
        if (sent++ < HINTS_MOST)
            send_hint(path, space, &tasks[i]);
    }
    if (sent > HINTS_MOST)
        send_hint(path, space, NULL);
}

void hint_commit(const struct workshop *workshop, struct bytes space, const struct transaction *transaction)
{
    size_t count;
    const struct task *tasks = transaction_tasks(transaction, &count);
    const struct touch *touch = transaction_touch(transaction);
    hint_tasks(workshop, space, tasks, count);
    hint_tasks(workshop, space, touch->woken, touch->woken_count);
}
