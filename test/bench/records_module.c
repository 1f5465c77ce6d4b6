/* records_module: for test/bench/records: how often a module gets and sets a record in a while. */
#include <stampd.h>
#include <stampd_record.h>

#include <stdio.h>
#include <string.h>
#include <time.h>

enum { KEYS = 1000 };

static int64_t now_us(void)
{
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

static enum stampd_outcome measure(struct stampd_call *call)
{
    static const char *const deeds[] = {"get", "set", NULL};
    const struct stampd_json *param = stampd_param(call);
    bool is_set = stampd_read_choice(call, param, "do", deeds) == 1;
    int64_t most = stampd_read_integer(call, param, "count", 1, 10000000), done = 0;
    static char keys[KEYS][16]; /* made before, as the requests to Redis are */
    char text[100];
    memset(text, 'x', sizeof text);
    for (int i = 0; i < KEYS; i++)
        snprintf(keys[i], sizeof keys[i], "key:%06d", i);
    const struct stampd_record_value value = {.type = STAMPD_RECORD_STRING, .bytes = {text, sizeof text}};
    int64_t begin_us = now_us();
    for (; done < most && !stampd_failed(call); done++) {
        struct stampd_record record;
        const char *key = keys[done % KEYS];
        enum stampd_record_state state =
            is_set ? stampd_record_set(call, key, &value, NULL) : stampd_record_get(call, key, &record);
        if (state != STAMPD_RECORD_OK)
            return stampd_raise(call, "ABENCH", "A record was refused.", NULL);
    }
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "count", done);
    stampd_add_integer(result, "us", now_us() - begin_us);
    return stampd_result(call, result);
}

static const struct stampd_operation operations[] = {
    {.name = "Measure", .access = STAMPD_PUBLIC, .work = measure}, {.name = NULL}};

const struct stampd_module stampd_module = {
    .abi = STAMPD_ABI, .name = "measure", .version = "1.0", .operations = operations};
