/* fuzz_wakeup: the datagrams by which a queue manager is woken, a line each, and the tasks that it starts
 * then. Whatever comes, a task that is started has a namespace of this manager, a queue, and an id as the
 * server gives them; no more tasks wait than may. */
#include "fuzz.h"

#include <string.h>

#include "edge/json/json.h"
#include "queue/endpoint.h"
#include "queue/manager_private.h"

const char fuzz_target[] = "wakeup";

enum { TASKS_MOST = 8 };

static bool is_id(const char *id)
{
    size_t size = strlen(id);
    return size && size <= AGENDA_ID_MAX && strspn(id, "abcdefghijklmnopqrstuvwxyz0123456789") == size;
}

static void take(struct manager *manager, struct bytes line)
{
    static const struct json_limits limits = {.depth = 4, .tree_depth = 4, .nodes = 100};
    struct json_problem problem;
    struct json *wakeup;
    if (json_read(manager->arena, line, &limits, &wakeup, &problem) == FAULT_NONE)
        (void)endpoint_take_wakeup(manager, wakeup);
    struct agenda_counts counts = agenda_count(manager->agenda);
    assert(counts.later + counts.due <= TASKS_MOST + AGENDA_RESERVE * (size_t)manager->ns_count);
}

static void run_all(struct manager *manager)
{
    struct agenda_task *task;
    while ((task = agenda_take(manager->agenda, INT64_MAX - 1))) {
        assert(is_id(task->id) && task->ns >= 0 && task->ns < manager->ns_count);
        assert(manager->namespaces[task->ns].is_ours && task->queue >= 0 && task->queue < AGENDA_QUEUES);
        assert(task->priority >= 0 && task->priority <= 255 && task->retry >= 0 && task->batch >= 0);
        agenda_end(manager->agenda, task, true, true);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const int concurrency[AGENDA_QUEUES] = {2, 0, 1};
    static const char *const codes[] = {"lab", "demo"};
    struct settings settings = {.task_wakeup_s = 60};
    struct manager manager = {.settings = &settings,
                              .arena = arena_create("fuzz"),
                              .agenda = agenda_create(concurrency, TASKS_MOST)};
    manager_namespaces_set(&manager, codes, COUNT_OF(codes));
    for (size_t at = 0; at < size;) {
        const uint8_t *end = memchr(data + at, '\n', size - at);
        size_t length = end ? (size_t)(end - data) - at : size - at;
        take(&manager, (struct bytes){(const char *)data + at, length});
        at += length + 1;
    }
    run_all(&manager);
    agenda_destroy(manager.agenda);
    arena_destroy(manager.arena);
    return 0;
}
