/* runner: the requests to the server, and what their answers mean (doc/tasks.md). */
#include "queue/manager_private.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "document/stamp.h"
#include "edge/json.h"
#include "queue/alert.h"

enum {
    SCAN_LIMIT = 5000, /* tasks of a queue that a scan may tell of */
    SCAN_TIMEOUT_MS = 60000,
    UNTOLD_LIMIT = 100,
    RUN_GRACE_S = 25, /* beyond limit_task_s, nginx's own included */
    EARLY_MS = 1000,  /* our clock is ahead: until the next try */
    BUSY_MS = 100,
    BATCH_MAX = 1000,
    ALONG_MAX = 32,    /* tasks of one request, each with a commit of its own */
    ALONG_US = 100000, /* what they may take together, as far as can be guessed */
    QUICK_US = 500000, /* what takes no longer may have the last place of a queue */
    ANSWER_DEPTH = 16,
};

/* A request under way. */
struct errand {
    struct errand *next, *previous; /* of all */
    bool is_scan, is_note;          /* is_note: that administrators were told */
    int space;
    int64_t before_ms;          /* of a scan */
    int64_t begun_us, guess_us; /* of a run whose tasks have commits of their own */
    struct builder body;
    size_t count;
    struct agenda_task *tasks[]; /* of a run: the first one holds the place */
};

static struct errand *create_errand(struct manager *manager, int space, size_t room)
{
    struct errand *errand = calloc(1, sizeof *errand + room * sizeof(struct agenda_task *));
    if (!errand)
        log_fatal("out of memory");
    errand->space = space;
    errand->next = manager->errands;
    if (errand->next)
        errand->next->previous = errand;
    manager->errands = errand;
    return errand;
}

static void destroy_errand(struct manager *manager, struct errand *errand)
{
    if (errand->next)
        errand->next->previous = errand->previous;
    if (errand->previous)
        errand->previous->next = errand->next;
    else
        manager->errands = errand->next;
    builder_free(&errand->body);
    free(errand);
}

static void send(struct manager *manager, struct errand *errand, const char *id, struct bytes body,
                 int64_t timeout_ms)
{
    const struct space *space = &manager->spaces[errand->space];
    struct http_request request = {
        .method = "POST",
        .url = arena_printf(manager->arena, "%s/%s/od%s%s", manager->settings->queue_url, space->code,
                            id ? "/" : "", id ? id : ""),
        .content_type = "application/json",
        .body = body,
        .timeout_ms = timeout_ms,
        .owner = errand,
    };
    http_send(manager->http, &request);
}

/* --- out --- */

static int64_t run_timeout_ms(const struct manager *manager)
{
    return (manager->settings->limit_task_s + RUN_GRACE_S) * 1000;
}

static void run(struct manager *manager, struct errand *errand)
{
    if (errand->count == 1 && (errand->tasks[0]->batch <= 1 || *errand->tasks[0]->domain)) {
        send(manager, errand, errand->tasks[0]->id, builder_bytes(&manager->key_body),
             run_timeout_ms(manager));
        return;
    }
    builder_add_text(&errand->body, "{\"key\":");
    json_add_string(&errand->body, manager->key);
    builder_add_text(&errand->body, ",\"param\":{\"run\":[");
    for (size_t i = 0; i < errand->count; i++)
        builder_printf(&errand->body, "%s\"%s\"", i ? "," : "", errand->tasks[i]->id);
    builder_add_text(&errand->body, "]}}");
    send(manager, errand, NULL, builder_bytes(&errand->body), run_timeout_ms(manager));
}

/* Those that share a commit. */
static void run_batch(struct manager *manager, struct agenda_task *first, int64_t now_ms)
{
    size_t room = (size_t)(first->batch < BATCH_MAX ? first->batch : BATCH_MAX);
    struct errand *errand = create_errand(manager, first->space, room);
    errand->tasks[errand->count++] = first;
    for (struct agenda_task *task;
         errand->count < room && (task = agenda_see_along(manager->agenda, first, now_ms)) != NULL;
         errand->tasks[errand->count++] = task)
        agenda_take_along(manager->agenda, task);
    run(manager, errand);
}

static int64_t guess_us(const struct manager *manager, const struct agenda_task *task)
{
    return pace_guess_us(&manager->pace, task->space, task->operation);
}

bool runner_is_quick(void *context, const struct agenda_task *task)
{
    return guess_us(context, task) <= QUICK_US;
}

/* One, and when more wait than there are places for: its share of them, as long as they are quick. */
static void run_with_commits(struct manager *manager, struct agenda_task *first, int64_t now_ms)
{
    size_t share = agenda_share(manager->agenda, first);
    size_t room = share < ALONG_MAX ? share : ALONG_MAX;
    struct errand *errand = create_errand(manager, first->space, room);
    errand->begun_us = clock_monotonic_us();
    errand->guess_us = guess_us(manager, first);
    errand->tasks[errand->count++] = first;
    for (struct agenda_task *task;
         errand->count < room && (task = agenda_see_along(manager->agenda, first, now_ms)) != NULL &&
         errand->guess_us + guess_us(manager, task) <= ALONG_US;
         errand->tasks[errand->count++] = task) {
        errand->guess_us += guess_us(manager, task);
        agenda_take_along(manager->agenda, task);
    }
    run(manager, errand);
}

void runner_start_due(struct manager *manager)
{
    int64_t now_ms = clock_wall_ms();
    for (struct agenda_task *task; (task = agenda_take(manager->agenda, now_ms)) != NULL;) {
        log_debug("start namespace=%s task=%s operation=%s retry=%d", manager->spaces[task->space].code,
                  task->id, task->operation, task->retry);
        if (task->batch > 1 && !*task->domain)
            run_batch(manager, task, now_ms);
        else
            run_with_commits(manager, task, now_ms);
    }
}

void runner_scan(struct manager *manager, int space, int64_t before_ms)
{
    struct errand *errand = create_errand(manager, space, 0);
    errand->is_scan = true;
    errand->before_ms = before_ms;
    builder_add_text(&errand->body, "{\"key\":");
    json_add_string(&errand->body, manager->key);
    builder_printf(&errand->body, ",\"param\":{\"scan\":{\"before\":%lld,\"limit\":%d",
                   (long long)stamp_from_epoch_ms(before_ms), SCAN_LIMIT);
    if (*manager->settings->mail_to)
        builder_printf(&errand->body, ",\"untold\":%d,\"failures\":%lld", UNTOLD_LIMIT,
                       (long long)manager->settings->mail_failures);
    builder_add_text(&errand->body, "}}}");
    manager->scans++;
    agenda_begin_scan(manager->agenda, space);
    send(manager, errand, NULL, builder_bytes(&errand->body), SCAN_TIMEOUT_MS);
}

/* --- in --- */

static const struct json *read_answer(struct manager *manager, struct bytes body)
{
    static const struct json_limits limits = {.depth = ANSWER_DEPTH, .tree_depth = ANSWER_DEPTH};
    struct json_problem problem;
    struct json *root;
    return json_read(manager->arena, body, &limits, &root, &problem) == FAULT_NONE ? root : NULL;
}

static struct bytes text_of(const struct json *object, const char *name)
{
    const struct json *member = json_member(object, name);
    return member && member->kind == JSON_STRING ? member->value : NO_BYTES;
}

static int64_t number_of(const struct json *object, const char *name, int64_t otherwise)
{
    int64_t number;
    return json_is_i64(json_member(object, name), &number) ? number : otherwise;
}

static int small(int64_t number, int most)
{
    return number < 0 ? 0 : number > most ? most : (int)number;
}

static bool is_id(struct bytes id)
{
    if (id.size < 1 || id.size > AGENDA_ID_MAX)
        return false;
    for (size_t i = 0; i < id.size; i++)
        if (!(id.data[i] >= 'a' && id.data[i] <= 'z') && !(id.data[i] >= '0' && id.data[i] <= '9'))
            return false;
    return true;
}

bool runner_read_row(int space, const struct json *row, struct agenda_entry *entry_r)
{
    *entry_r = (struct agenda_entry){
        .space = space,
        .id = text_of(row, "id"),
        .operation = text_of(row, "op"),
        .domain = text_of(row, "domain"),
        .start_ms = stamp_to_epoch_ms(number_of(row, "startat", STAMP_MIN)),
        .queue = small(number_of(row, "qn", 0), AGENDA_QUEUES - 1),
        .priority = small(number_of(row, "priority", 20), 255),
        .retry = small(number_of(row, "retry", 0), INT32_MAX),
        .batch = small(number_of(row, "batch", 1), BATCH_MAX),
    };
    return is_id(entry_r->id);
}

/* Notes a row when its start is near; false: it is none. */
static bool note(struct manager *manager, int space, const struct json *row)
{
    struct agenda_entry entry;
    int64_t horizon_ms = clock_wall_ms() + 2 * manager->settings->task_hint_s * 1000;
    if (!runner_read_row(space, row, &entry))
        return false;
    if (entry.start_ms <= horizon_ms && !agenda_put(manager->agenda, &entry))
        manager->spaces[space].was_cut = true;
    return true;
}

/* The same task again at another time; the answer tells when it has failed once more. */
static void again(struct manager *manager, const struct agenda_task *task, const struct json *member,
                  int64_t start_ms)
{
    struct agenda_entry entry = {.space = task->space,
                                 .id = bytes_of(task->id),
                                 .operation = bytes_of(task->operation),
                                 .domain = bytes_of(task->domain),
                                 .start_ms = start_ms,
                                 .queue = task->queue,
                                 .priority = task->priority,
                                 .retry = small(number_of(member, "retry", task->retry), INT32_MAX),
                                 .batch = task->batch};
    if (start_ms <= clock_wall_ms() + 2 * manager->settings->task_hint_s * 1000)
        (void)agenda_put(manager->agenda, &entry); /* it runs still: there is room */
}

static void failed(struct manager *manager, const struct agenda_task *task, const struct json *member,
                   const struct json *answer)
{
    const struct json *told = json_member(member, "message") ? member : answer;
    struct alert_cause cause = {
        .space = manager->spaces[task->space].code,
        .task = task->id,
        .operation = bytes_of(task->operation),
        .code = text_of(member, "code"),
        .words = text_of(told, "message"),
        .detail = text_of(told, "detail"),
        .failures = number_of(member, "retry", 0),
        .startat = number_of(member, "startat", 0), /* none: it could not be put back, a scan tells */
    };
    log_info("failed namespace=%s task=%s operation=%s code=%.*s failures=%lld", cause.space, cause.task,
             task->operation, (int)cause.code.size, cause.code.data ? cause.code.data : "",
             (long long)cause.failures);
    alert_tell(manager->alert, &cause, false);
    if (cause.startat && cause.startat < STAMP_MAX)
        again(manager, task, member, stamp_to_epoch_ms(cause.startat));
}

/* Whether this start of the task is known to be done with. */
static bool judge(struct manager *manager, const struct agenda_task *task, const struct json *member,
                  const struct json *answer)
{
    struct bytes result = text_of(member, "result");
    int64_t now_ms = clock_wall_ms();
    int64_t start_ms = stamp_to_epoch_ms(number_of(member, "startat", STAMP_MAX));
    if (bytes_equal(result, BYTES("failed")))
        failed(manager, task, member, answer);
    else if (bytes_equal(result, BYTES("more")))
        again(manager, task, member, start_ms);
    else if (bytes_equal(result, BYTES("waiting")))
        again(manager, task, member, start_ms > now_ms + EARLY_MS ? start_ms : now_ms + EARLY_MS);
    else if (bytes_equal(result, BYTES("busy")))
        again(manager, task, member, now_ms + BUSY_MS);
    return bytes_equal(result, BYTES("done")) || bytes_equal(result, BYTES("gone"));
}

static const struct json *find_member(const struct json *tasks, const char *id)
{
    for (const struct json *member = tasks ? tasks->first : NULL; member; member = member->next)
        if (bytes_equal(text_of(member, "id"), bytes_of(id)))
            return member;
    return NULL;
}

/* Members come in the order of the request. */
static const struct json *next_member(const struct json *tasks, const struct json *expected, const char *id)
{
    return expected && bytes_equal(text_of(expected, "id"), bytes_of(id)) ? expected : find_member(tasks, id);
}

/* Were all attempted?  Those that are refused tell nothing about how long they take. */
static bool were_attempts(const struct json *tasks)
{
    for (const struct json *member = tasks->first; member; member = member->next) {
        struct bytes result = text_of(member, "result");
        if (!bytes_equal(result, BYTES("done")) && !bytes_equal(result, BYTES("failed")) &&
            !bytes_equal(result, BYTES("more")))
            return false;
    }
    return true;
}

/* `tasks`: of the answer; NULL: there was none. */
static void learn_pace(struct manager *manager, const struct errand *errand, const struct json *tasks)
{
    if (!errand->guess_us || (tasks && !were_attempts(tasks)))
        return;
    int64_t took_us = tasks ? clock_monotonic_us() - errand->begun_us : PACE_UNKNOWN_US;
    const char **operations = ARENA_ARRAY(manager->arena, const char *, errand->count);
    for (size_t i = 0; i < errand->count; i++)
        operations[i] = errand->tasks[i]->operation;
    pace_learn(&manager->pace, errand->space, operations, errand->count, errand->guess_us, took_us);
}

static void end_run(struct manager *manager, struct errand *errand, const struct http_result *result)
{
    bool is_told = result->status == 200 || result->status == 500;
    const struct json *answer = is_told ? read_answer(manager, result->body) : NULL;
    const struct json *tasks = json_member(answer, "tasks"), *expected = tasks ? tasks->first : NULL;
    learn_pace(manager, errand, tasks);
    for (size_t i = 0; i < errand->count; i++) {
        struct agenda_task *task = errand->tasks[i];
        const struct json *member = next_member(tasks, expected, task->id);
        bool is_over = member && judge(manager, task, member, answer);
        if (member)
            expected = member->next;
        agenda_end(manager->agenda, task, i == 0, is_over);
    }
    for (const struct json *member = tasks ? tasks->first : NULL; member; member = member->next)
        (void)note(manager, errand->space, json_member(member, "next"));
    if (!tasks)
        spaces_rest(manager, errand->space, "running a task", result);
}

/* --- the end of a scan --- */

static void tell_of_lost(struct manager *manager, int space, const struct json *lost)
{
    for (const struct json *row = lost ? lost->first : NULL; row; row = row->next) {
        struct bytes id = text_of(row, "id");
        if (!is_id(id))
            continue;
        struct alert_cause cause = {
            .space = manager->spaces[space].code,
            .task = arena_copy(manager->arena, id.data, id.size),
            .operation = text_of(row, "op"),
            .code = BYTES("LOST"),
            .words = text_of(row, "report"),
            .failures = number_of(row, "retry", 0),
            .startat = number_of(row, "startat", STAMP_MAX),
        };
        log_info("lost namespace=%s task=%s", cause.space, cause.task);
        alert_tell(manager->alert, &cause, false);
    }
}

/* Those that nobody was told of, by this manager or another, now or before its start. */
static void tell_of_untold(struct manager *manager, int space, const struct json *untold)
{
    for (const struct json *row = untold ? untold->first : NULL; row; row = row->next) {
        struct bytes id = text_of(row, "id");
        struct alert_cause cause = {
            .space = manager->spaces[space].code,
            .operation = text_of(row, "op"),
            .code = text_of(row, "code"),
            .words = text_of(row, "report"),
            .failures = number_of(row, "retry", 0),
            .startat = number_of(row, "startat", 0),
        };
        if (!is_id(id))
            continue;
        cause.task = arena_copy(manager->arena, id.data, id.size);
        alert_tell(manager->alert, &cause, true);
    }
}

static void take_due(struct manager *manager, int number, const struct json *due, int64_t before_ms)
{
    struct space *space = &manager->spaces[number];
    int told[AGENDA_QUEUES] = {0};
    space->was_cut = false;
    for (const struct json *row = due->first; row; row = row->next)
        if (note(manager, number, row) &&
            ++told[small(number_of(row, "qn", 0), AGENDA_QUEUES - 1)] >= SCAN_LIMIT)
            space->was_cut = true;
    if (!space->was_cut)
        agenda_end_scan(manager->agenda, number, before_ms);
}

static void end_scan(struct manager *manager, struct errand *errand, const struct http_result *result)
{
    struct space *space = &manager->spaces[errand->space];
    const struct json *answer = result->status == 200 ? read_answer(manager, result->body) : NULL;
    const struct json *due = json_member(answer, "due");
    manager->scans--;
    space->is_scanning = false;
    if (!space->is_ours)
        return;
    if (!due || due->kind != JSON_ARRAY) {
        spaces_rest(manager, errand->space, "scan", result);
        return;
    }
    if (space->failures)
        log_info("namespace=%s answers again", space->code);
    space->failures = 0;
    take_due(manager, errand->space, due, errand->before_ms);
    tell_of_lost(manager, errand->space, json_member(answer, "lost"));
    tell_of_untold(manager, errand->space, json_member(answer, "untold"));
    if (space->is_wanted)
        spaces_want_scan(manager, errand->space);
}

/* The server is to know that the administrators do. */
static void note_told(void *context, const struct alert_cause *cause)
{
    struct manager *manager = context;
    int space = spaces_find(manager, bytes_of(cause->space));
    if (space < 0 || http_is_full(manager->http))
        return;
    struct errand *errand = create_errand(manager, space, 0);
    errand->is_note = true;
    builder_add_text(&errand->body, "{\"key\":");
    json_add_string(&errand->body, manager->key);
    builder_printf(&errand->body, ",\"param\":{\"told\":[{\"id\":\"%s\",\"retry\":%lld}]}}", cause->task,
                   (long long)cause->failures);
    send(manager, errand, NULL, builder_bytes(&errand->body), SCAN_TIMEOUT_MS);
}

void runner_end(struct manager *manager, const struct http_result *result)
{
    struct errand *errand = result->owner;
    if (!errand) {
        alert_end(manager->alert, result, note_told, manager);
        return;
    }
    if (errand->is_note)
        ; /* should it be lost, they are told once more */
    else if (errand->is_scan)
        end_scan(manager, errand, result);
    else
        end_run(manager, errand, result);
    destroy_errand(manager, errand);
}

void runner_drop_all(struct manager *manager)
{
    while (manager->errands)
        destroy_errand(manager, manager->errands);
}
