/* task: ids, stamps of claims, merging of two requests. */
#include "model/task/task.h"

#include "base/builder.h"
#include "base/schedule.h"
#include "edge/crypto/crypto.h"
#include "edge/json/json.h"

struct bytes task_draw_id(struct arena *arena)
{
    static const char letters[] = "abcdefghijklmnopqrstuvwxyz234567"; /* 5 bits each */
    unsigned char random[TASK_ID_BYTES];
    char *id = arena_alloc(arena, TASK_ID_BYTES + 1);
    crypto_random(random, sizeof random);
    for (size_t i = 0; i < TASK_ID_BYTES; i++)
        id[i] = letters[random[i] & 31];
    id[TASK_ID_BYTES] = '\0';
    return (struct bytes){id, TASK_ID_BYTES};
}

bool task_is_id(struct bytes id)
{
    for (size_t i = 0; i < id.size; i++)
        if (!((id.data[i] >= 'a' && id.data[i] <= 'z') || (id.data[i] >= '0' && id.data[i] <= '9')))
            return false;
    return id.size >= TASK_ID_LEAST && id.size <= TASK_ID_MOST;
}

int64_t task_claim_stamp(void)
{
    static int64_t last;
    int64_t now = stamp_now();
    last = now > last ? now : stamp_next(last);
    return last;
}

void task_join(struct task *waiting, const struct task *newer)
{
    waiting->param = newer->param;
    waiting->info = newer->info;
    waiting->key = newer->key;
    if (newer->unique_until > waiting->unique_until)
        waiting->unique_until = newer->unique_until;
    waiting->account = newer->account;
    waiting->credential = newer->credential;
    waiting->is_of_client = newer->is_of_client;
    waiting->trace = newer->trace;
    int64_t latest = waiting->latest ? waiting->latest : STAMP_MAX;
    int64_t start = newer->start < latest ? newer->start : latest;
    if (start > waiting->start)
        waiting->start = start;
    if (newer->priority < waiting->priority)
        waiting->priority = newer->priority;
}

struct task task_of_document(struct arena *arena, const struct settings *settings, struct bytes operation,
                             int queue, struct bytes class, struct bytes id, struct bytes stored_id)
{
    struct builder param = {0}, name = {0};
    json_add_text(&param, "{\"c\":", class);
    json_add_text(&param, ",\"id\":", id);
    builder_add_text(&param, "}");
    builder_add_bytes(&name, class);
    builder_add_text(&name, ".");
    builder_add_bytes(&name, stored_id);
    struct task task = {
        .id = task_draw_id(arena),
        .operation = operation,
        .param = {arena_copy(arena, param.data, param.size), param.size},
        .info = {arena_copy(arena, name.data, name.size), name.size},
        .start = stamp_now(),
        .queue = schedule_queue(settings->task_queues, operation, queue),
        .priority = TASK_PRIORITY,
        .batch = 1,
    };
    task.resource = task.info;
    builder_free(&param);
    builder_free(&name);
    return task;
}
