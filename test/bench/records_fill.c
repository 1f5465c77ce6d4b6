/* records_fill: for test/bench/records: how many records of a size a memory takes until it refuses, and how
 * fast one process makes, sets and gets so many.
 *
 *     records_fill FILE MB BYTES */
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "records/records.h"

static double took_us(int64_t begin_us)
{
    return (double)(clock_monotonic_us() - begin_us);
}

/* Runs the command with so many keys; how many before one was refused. */
static long run_all(struct records *records, struct records_command *command, long count)
{
    struct records_found found;
    for (long i = 0; i < count; i++) {
        char key[32];
        snprintf(key, sizeof key, "%012ld", i * 7919 % 1000003 + i / 1000003 * 1000003); /* in no order */
        command->key = bytes_of(key);
        if (records_run(records, BYTES("lab"), 0, command, &found) != RECORDS_OK)
            return i;
    }
    return count;
}

int main(int count, char **words)
{
    char problem[300], *content;
    struct records *records;
    if (count != 4)
        return 2;
    size_t bytes = (size_t)atol(words[2]) << 20, size = (size_t)atol(words[3]);
    content = malloc(size);
    if (!content || !records_open(&records, words[1], bytes, 60, problem, sizeof problem))
        return 1;
    memset(content, 'x', size);
    struct records_command command = {
        .deed = RECORDS_SET, .type = RECORDS_STRING, .content = {content, size}, .may_overwrite = true};
    int64_t begin_us = clock_monotonic_us();
    long made = run_all(records, &command, LONG_MAX);
    double make = (double)made * 1e6 / took_us(begin_us);
    begin_us = clock_monotonic_us();
    bool is_set = run_all(records, &command, made) == made;
    double set = (double)made * 1e6 / took_us(begin_us);
    command.deed = RECORDS_GET;
    begin_us = clock_monotonic_us();
    bool is_got = run_all(records, &command, made) == made;
    double got = (double)made * 1e6 / took_us(begin_us);
    printf("{\"records\": %ld, \"bytes\": %zu, \"make\": %.0f, \"set\": %.0f, \"get\": %.0f}\n", made, bytes,
           make, set, got);
    records_close(records);
    free(content);
    return is_set && is_got ? 0 : 1;
}
