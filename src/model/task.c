/* task: ids, stamps of claims, merging of two requests. */
#include "model/task.h"

#include "edge/crypto.h"

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
