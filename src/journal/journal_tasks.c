/* journal_tasks: requests by libcurl, which is asked again and again while some are under way.  An end that
 * waits is up to three of them, one after the other, in one place. */
#include "journal/journal_tasks.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arena.h"
#include "base/builder.h"
#include "base/clock.h"
#include "base/log.h"
#include "base/memory.h"
#include "edge/http.h"
#include "edge/json/json.h"
#include "journal/journal_ends.h"

/* An answer is noticed so much later: a request that has just begun is about to be answered, one that waits
 * for a task is not. */
enum { SOON_MS = 1, LATER_MS = 20, SOON_FOR_MS = 100, SPARE_MS = 30000, CONNECT_MS = 5000, CODE_MOST = 32 };
static const int64_t BUSY_MS = 1000; /* until it makes sense to come again, where nobody says it */

enum pending_step {
    STEP_WHOLE, /* the request is all that there is to do */
    STEP_END,   /* the end of a task; then perhaps STEP_WAIT */
    STEP_WAIT,  /* `take`, which waits */
    STEP_LOOK   /* the same without a wait, when STEP_WAIT has failed: what it may have claimed */
};

struct journal_pending {
    struct journal_tasks *tasks; /* NULL: the place is free */
    journal_tasks_done *done;    /* NULL: nobody waits for it any more */
    void *context;
    enum pending_step step;
    bool is_waiting; /* it may wait long */
    char digest[CRYPTO_SHA256_HEX + 1];
    size_t url_size; /* without the operation */
    struct builder url, body, authorization;
    struct builder following; /* STEP_END and later: the param of STEP_WAIT, journal_ends.h */
    struct builder ended;     /* STEP_WAIT and later: the answer to STEP_END */
};

struct journal_tasks {
    const struct settings *settings;
    struct http *http;
    struct events_timer *timer;
    int64_t begun_ms; /* when the last one was sent */
    struct journal_pending pending[JOURNAL_TASKS_MOST];
};

static void free_pending(struct journal_pending *pending)
{
    builder_free(&pending->url);
    builder_free(&pending->body);
    if (pending->authorization.data)
        explicit_bzero(pending->authorization.data, pending->authorization.size);
    builder_free(&pending->authorization);
    builder_free(&pending->following);
    builder_free(&pending->ended);
    *pending = (struct journal_pending){0};
}

/* The word of a refusal: its code; XBUSY, a blank and the milliseconds to wait, as everywhere. */
static void read_refusal(const struct http_result *result, char word[CODE_MOST])
{
    struct json *root = NULL;
    struct arena *arena = arena_create("refusal");
    const struct json *code =
        result->status && json_is_tree(arena, result->body, 64, 1, &root) ? json_member(root, "code") : NULL;
    if (code && code->kind == JSON_STRING && code->value.size && code->value.size < CODE_MOST)
        snprintf(word, CODE_MOST, "%.*s", (int)code->value.size, code->value.data);
    else
        snprintf(word, CODE_MOST, "SERVER");
    if (strcmp(word, "XBUSY") == 0)
        snprintf(word, CODE_MOST, "XBUSY %" PRId64,
                 result->retry_after_s > 0 ? result->retry_after_s * 1000 : BUSY_MS);
    arena_destroy(arena);
}

/* --- an end that waits --- */

static bool may_wait(const struct journal_tasks *tasks, const char *digest)
{
    int all = 0, of_key = 0;
    for (size_t i = 0; i < JOURNAL_TASKS_MOST; i++) {
        const struct journal_pending *one = &tasks->pending[i];
        all += one->is_waiting;
        of_key += one->is_waiting && strcmp(one->digest, digest) == 0;
    }
    return all < JOURNAL_TASKS_NEXT && of_key < JOURNAL_TASKS_NEXT_OF_KEY;
}

static void send_step(struct journal_pending *pending, enum pending_step step, const char *operation,
                      struct bytes param, int64_t wait_ms);

/* Behind an end, which has happened, whatever comes of this. */
static void send_following(struct journal_pending *pending, enum pending_step step, int64_t wait_s)
{
    struct builder param = {0};
    builder_add_bytes(&param, builder_bytes(&pending->following));
    journal_ends_add_wait(&param, wait_s);
    pending->is_waiting = true;
    send_step(pending, step, "take", builder_bytes(&param), wait_s * 1000);
    builder_free(&param);
}

/* A busy server, which says when to come again, has done nothing. */
static bool may_have_claimed(const struct http_result *result)
{
    return result->status == 0 || (result->status >= 500 && !result->retry_after_s);
}

/* The answer to an end that has waited, or could not: the tasks are in `later`; NO_BYTES: there are none. */
static void end_joined(struct journal_pending *pending, struct bytes later, int64_t pause_ms)
{
    struct builder text = {0};
    journal_tasks_done *done = pending->done;
    void *context = pending->context;
    journal_ends_join(&text, builder_bytes(&pending->ended), later, pause_ms);
    free_pending(pending);
    if (done)
        done(context, "", builder_bytes(&text));
    builder_free(&text);
}

/* Goes on with an end, or with the wait behind it.  False: this is no such request, or it was refused. */
static bool go_on(struct journal_pending *pending, const struct http_result *result)
{
    bool is_end = pending->step == STEP_END, is_done = result->status == 200;
    int64_t wait_s = is_end && is_done ? journal_ends_wait_s(result->body) : 0;
    if (pending->step == STEP_WHOLE || (is_end && !wait_s))
        return false;
    if (is_end)
        builder_add_bytes(&pending->ended, result->body);
    if (is_end && pending->done && may_wait(pending->tasks, pending->digest))
        send_following(pending, STEP_WAIT, wait_s);
    else if (pending->step == STEP_WAIT && may_have_claimed(result))
        send_following(pending, STEP_LOOK, 0);
    else
        end_joined(pending, !is_end && is_done ? result->body : NO_BYTES,
                   result->retry_after_s > 0 ? result->retry_after_s * 1000 : BUSY_MS);
    return true;
}

static void end_pending(struct journal_pending *pending, const struct http_result *result)
{
    char word[CODE_MOST] = "";
    journal_tasks_done *done = pending->done;
    void *context = pending->context;
    if (go_on(pending, result))
        return;
    free_pending(pending);
    if (result->status != 200)
        read_refusal(result, word);
    if (done)
        done(context, word, *word ? NO_BYTES : result->body);
}

static void start_timer(struct journal_tasks *tasks)
{
    bool is_soon = clock_monotonic_ms() - tasks->begun_ms < SOON_FOR_MS;
    if (http_in_flight(tasks->http))
        events_timer_start(tasks->timer, is_soon ? SOON_MS : LATER_MS);
}

static void on_time(void *context)
{
    struct journal_tasks *tasks = context;
    struct http_result result;
    while (http_receive(tasks->http, 0, &result)) {
        if (!result.status)
            log_often(LOG_LEVEL_WARNING, "journal_tasks", "queue_url: %s", result.problem);
        end_pending(result.owner, &result);
    }
    start_timer(tasks);
}

struct journal_tasks_room journal_tasks_room(const struct settings *settings)
{
    enum { NAMES = 5, ESCAPED = 6, NUMBERS = 1024 };
    size_t task =
        (size_t)(settings->limit_task_param_bytes + NAMES * ESCAPED * settings->limit_name_bytes) + NUMBERS;
    size_t all = JOURNAL_TASKS_TAKEN * task;
    return (struct journal_tasks_room){.answer = all < HTTP_ANSWER_MAX ? all : HTTP_ANSWER_MAX, .task = task};
}

struct journal_tasks *journal_tasks_create(struct events *events, const struct settings *settings)
{
    struct journal_tasks *tasks = memory_zeroed(1, sizeof *tasks, "starting");
    const struct http_options options = {.parallel = JOURNAL_TASKS_MOST,
                                         .ca_file = *settings->queue_ca_file ? settings->queue_ca_file : NULL,
                                         .connect_timeout_ms = CONNECT_MS,
                                         .answer_most = journal_tasks_room(settings).answer};
    tasks->settings = settings;
    tasks->http = http_open(&options);
    tasks->timer = events_timer_create(events, on_time, tasks);
    return tasks;
}

void journal_tasks_destroy(struct journal_tasks *tasks)
{
    if (!tasks)
        return;
    http_close(tasks->http);
    events_timer_destroy(tasks->timer);
    for (size_t i = 0; i < JOURNAL_TASKS_MOST; i++)
        if (tasks->pending[i].tasks)
            free_pending(&tasks->pending[i]);
    free(tasks);
}

static const struct json_limits param_limits = {.depth = 64, .tree_depth = 1, .nodes = 1000};

/* How many tasks the answer may have. */
static int64_t count_wanted(const struct json *take)
{
    const struct json *n = json_member(take, "n");
    int64_t count = 0;
    return n && json_is_i64(n, &count) ? count : 0;
}

/* The word of a refusal; NULL: it may be sent.  Text that is no JSON object could change the body around it.
 */
static const char *check_param(const struct journal_tasks *tasks, struct bytes text, bool is_next)
{
    const struct journal_tasks_room room = journal_tasks_room(tasks->settings);
    struct json_problem problem;
    struct json *root = NULL;
    struct arena *arena = arena_create("param");
    const struct json *take = NULL;
    const char *word = NULL;
    if (json_read(arena, text, &param_limits, &root, &problem) != FAULT_NONE || root->kind != JSON_OBJECT)
        word = "VALUE";
    else
        take = is_next ? root : journal_ends_take(arena, root);
    if (take && count_wanted(take) > (int64_t)(room.answer / room.task))
        word = "OUT_OF_RANGE";
    arena_destroy(arena);
    return word;
}

static struct journal_pending *journal_tasks_find_place(struct journal_tasks *tasks,
                                                        const struct journal_caller *caller, bool is_next)
{
    struct journal_pending *place = NULL;
    int of_key = 0;
    for (size_t i = 0; i < JOURNAL_TASKS_MOST; i++) {
        const struct journal_pending *one = &tasks->pending[i];
        if (!one->tasks) {
            place = &tasks->pending[i];
            continue;
        }
        of_key += strcmp(one->digest, caller->digest) == 0;
    }
    bool has_room = of_key < JOURNAL_TASKS_OF_KEY && !http_is_full(tasks->http);
    return has_room && (!is_next || may_wait(tasks, caller->digest)) ? place : NULL;
}

static void send_step(struct journal_pending *pending, enum pending_step step, const char *operation,
                      struct bytes param, int64_t wait_ms)
{
    struct journal_tasks *tasks = pending->tasks;
    pending->step = step;
    pending->url.size = pending->url_size;
    builder_printf(&pending->url, "%s", operation);
    builder_clear(&pending->body, 0);
    builder_add_text(&pending->body, "{\"param\":");
    builder_add_bytes(&pending->body, param);
    builder_add_text(&pending->body, "}");
    const char *const headers[] = {pending->authorization.data, NULL};
    const struct http_request request = {.method = "POST",
                                         .url = pending->url.data,
                                         .content_type = "application/json",
                                         .body = builder_bytes(&pending->body),
                                         .headers = headers,
                                         .timeout_ms = wait_ms + SPARE_MS,
                                         .owner = pending};
    http_send(tasks->http, &request);
    tasks->begun_ms = clock_monotonic_ms();
}

struct journal_pending *journal_tasks_send(struct journal_tasks *tasks, const struct journal_caller *caller,
                                           const char *key, const char *operation, struct bytes param,
                                           journal_tasks_done *done, void *context, const char **error_r)
{
    bool is_next = strcmp(operation, "take") == 0;
    struct journal_pending *pending = journal_tasks_find_place(tasks, caller, is_next);
    *error_r = check_param(tasks, param, is_next);
    if (!*error_r && !pending)
        *error_r = "XBUSY 1000";
    if (*error_r)
        return NULL;
    *pending =
        (struct journal_pending){.tasks = tasks, .done = done, .context = context, .is_waiting = is_next};
    memcpy(pending->digest, caller->digest, sizeof pending->digest);
    builder_printf(&pending->url, "%s/%.*s/op/", tasks->settings->queue_url, (int)caller->ns.size,
                   caller->ns.data);
    pending->url_size = pending->url.size;
    builder_printf(&pending->authorization, "Authorization: Bearer %s", key);
    builder_add(&pending->url, "", 1);
    builder_add(&pending->authorization, "", 1);
    struct builder end = {0};
    bool is_split = !is_next && journal_ends_split(param, &end, &pending->following);
    send_step(pending, is_split ? STEP_END : STEP_WHOLE, operation, is_split ? builder_bytes(&end) : param,
              tasks->settings->task_wait_s * 1000);
    builder_free(&end);
    start_timer(tasks);
    return pending;
}

void journal_tasks_forget(struct journal_pending *pending)
{
    if (!pending)
        return;
    pending->done = NULL;
    if (!pending->is_waiting)
        return;
    http_cancel(pending->tasks->http, pending);
    free_pending(pending);
}
