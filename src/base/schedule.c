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

/* --- retries --- */

/* One word of a policy of retries. */
struct retry_word {
    int64_t first_ms, most_ms; /* delays that double from the first to the most */
    int64_t count;             /* how many; 0: the word is that of the jitter */
    int64_t percent;           /* jitter */
};

static struct bytes next_retry(struct bytes *rest)
{
    while (rest->size && strchr(" \t,", *rest->data))
        *rest = (struct bytes){rest->data + 1, rest->size - 1};
    struct bytes word = {rest->data, 0};
    while (word.size < rest->size && !strchr(" \t,", word.data[word.size]))
        word.size++;
    *rest = (struct bytes){rest->data + word.size, rest->size - word.size};
    return word;
}

bool schedule_delay_ms(struct bytes word, int64_t *delay_ms_r)
{
    static const struct {
        char letter;
        int64_t ms;
    } units[] = {{'s', 1000}, {'m', 60000}, {'h', 3600000}, {'d', 86400000}};
    const int64_t longest_ms = SCHEDULE_MINUTES_MAX * INT64_C(60000);
    int64_t number, unit_ms = 60000;
    for (size_t i = 0; word.size && i < COUNT_OF(units); i++)
        if (word.data[word.size - 1] == units[i].letter) {
            unit_ms = units[i].ms;
            word.size--;
            break;
        }
    if (!bytes_to_i64(word, &number) || number < 0 || number > longest_ms / unit_ms)
        return false;
    *delay_ms_r = number * unit_ms;
    return true;
}

/* "10s..1hx20", or one delay. */
static bool read_delays(struct bytes word, struct retry_word *read_r)
{
    struct bytes first = word, most = word;
    size_t dots = 0;
    while (dots + 1 < word.size && memcmp(word.data + dots, "..", 2) != 0)
        dots++;
    read_r->count = 1;
    if (dots + 1 < word.size) {
        const char *times = memchr(word.data, 'x', word.size);
        if (!times || times < word.data + dots + 2)
            return false;
        size_t digits = (size_t)(word.data + word.size - times) - 1;
        first.size = dots;
        most = (struct bytes){word.data + dots + 2, (size_t)(times - word.data) - dots - 2};
        if (!bytes_to_i64((struct bytes){times + 1, digits}, &read_r->count) || read_r->count < 1 ||
            read_r->count > SCHEDULE_RETRIES_MAX)
            return false;
    }
    return schedule_delay_ms(first, &read_r->first_ms) && schedule_delay_ms(most, &read_r->most_ms) &&
           read_r->first_ms <= read_r->most_ms;
}

static bool read_retry(struct bytes word, struct retry_word *read_r)
{
    *read_r = (struct retry_word){0};
    if (*word.data != '~')
        return read_delays(word, read_r);
    return bytes_to_i64((struct bytes){word.data + 1, word.size - 1}, &read_r->percent) &&
           read_r->percent >= 0 && read_r->percent <= 100;
}

bool schedule_is_retries(struct bytes retries)
{
    struct retry_word read;
    int64_t count = 0;
    for (struct bytes word; (word = next_retry(&retries)).size; count += read.count)
        if (!read_retry(word, &read))
            return false;
    return count <= SCHEDULE_RETRIES_MAX;
}

static int64_t nth_delay(const struct retry_word *word, int64_t nth)
{
    int64_t delay_ms = word->first_ms;
    for (int64_t i = 1; i < nth && delay_ms < word->most_ms; i++)
        delay_ms *= 2;
    return delay_ms < word->most_ms ? delay_ms : word->most_ms;
}

bool schedule_retry_ms(struct bytes retries, int64_t failure, uint32_t dice, int64_t *after_ms_r)
{
    struct retry_word read;
    int64_t left = failure, percent = 0;
    bool is_found = false;
    assert(failure >= 1);
    for (struct bytes word; (word = next_retry(&retries)).size && read_retry(word, &read);
         left -= read.count) {
        if (!read.count)
            percent = read.percent;
        if (left < 1 || left > read.count)
            continue;
        *after_ms_r = nth_delay(&read, left);
        is_found = true;
    }
    if (is_found)
        *after_ms_r += *after_ms_r * percent / 100 * (dice % 1001) / 1000;
    return is_found;
}

/* A word "Name=…". */
static bool split_retries(struct bytes word, struct bytes *operation_r, struct bytes *retries_r)
{
    const char *equals = memchr(word.data, '=', word.size);
    if (!equals || equals == word.data)
        return false;
    size_t size = (size_t)(equals - word.data);
    *operation_r = (struct bytes){word.data, size};
    *retries_r = (struct bytes){equals + 1, word.size - size - 1};
    return true;
}

bool schedule_is_retries_of(const char *list)
{
    struct bytes operation, retries;
    for (struct bytes word; (word = next_word(&list)).size;)
        if (!split_retries(word, &operation, &retries) || !schedule_is_retries(retries))
            return false;
    return true;
}

bool schedule_retries_of(const char *list, struct bytes operation, struct bytes *retries_r)
{
    struct bytes listed;
    for (struct bytes word; (word = next_word(&list)).size;)
        if (split_retries(word, &listed, retries_r) && bytes_equal(listed, operation))
            return true;
    return false;
}

/* --- queues --- */

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
