/* schedule: values of the settings about tasks, parsed on each use: they are few and short. */
#include "base/schedule.h"

#include <string.h>

/* The next word; empty at the end. */
static struct bytes next_word(const char **rest)
{
    *rest += strspn(*rest, " \t");
    struct bytes word = {*rest, strcspn(*rest, " \t")};
    *rest += word.size;
    return word;
}

bool schedule_is_retries(const char *retries)
{
    int64_t minutes;
    int count = 0;
    for (struct bytes word; (word = next_word(&retries)).size; count++)
        if (!bytes_to_i64(word, &minutes) || minutes < 0 || minutes > SCHEDULE_MINUTES_MAX)
            return false;
    return count <= SCHEDULE_RETRIES_MAX;
}

bool schedule_retry_ms(const char *retries, int64_t failure, int64_t *after_ms_r)
{
    struct bytes word;
    int64_t minutes, position = 0;
    assert(failure >= 1);
    do
        word = next_word(&retries);
    while (word.size && ++position < failure);
    if (!word.size || !bytes_to_i64(word, &minutes))
        return false;
    *after_ms_r = minutes * 60 * 1000;
    return true;
}

static bool split_queue(struct bytes word, struct bytes *operation_r, int64_t *queue_r)
{
    const char *equals = memchr(word.data, '=', word.size);
    if (!equals || equals == word.data)
        return false;
    size_t size = (size_t)(equals - word.data);
    *operation_r = (struct bytes){word.data, size};
    return bytes_to_i64((struct bytes){equals + 1, word.size - size - 1}, queue_r) && *queue_r >= 0 &&
           *queue_r < SCHEDULE_QUEUES;
}

bool schedule_is_queues(const char *queues)
{
    struct bytes operation;
    int64_t queue;
    for (struct bytes word; (word = next_word(&queues)).size;)
        if (!split_queue(word, &operation, &queue))
            return false;
    return true;
}

int schedule_queue(const char *queues, struct bytes operation, int otherwise)
{
    struct bytes listed;
    int64_t queue;
    for (struct bytes word; (word = next_word(&queues)).size;)
        if (split_queue(word, &listed, &queue) && bytes_equal(listed, operation))
            return (int)queue;
    return otherwise;
}

int schedule_concurrency(const char *numbers, int concurrency_r[SCHEDULE_QUEUES])
{
    int count = 0, sum = 0;
    memset(concurrency_r, 0, SCHEDULE_QUEUES * sizeof *concurrency_r);
    for (struct bytes word; (word = next_word(&numbers)).size; count++) {
        int64_t number;
        if (count == SCHEDULE_QUEUES || !bytes_to_i64(word, &number) || number < 0 ||
            number > SCHEDULE_CONCURRENCY_MAX)
            return 0;
        concurrency_r[count] = (int)number;
        sum += (int)number;
    }
    return concurrency_r[0] ? sum : 0;
}
