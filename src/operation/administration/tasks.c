/* tasks: administrators list tasks and their attempts, and start, move, hold and drop them (tasks.md).
 * param, one member: {"list":{…}}, {"everywhere":{…}} (in z), {"show":id}, {"history":{…}}, {"backlog":true},
 * {"rules":true},
 * {"run":id|{…}}, {"move":{"id","startat"}}, {"hold":id|{…}}, {"drop":id|{…}},
 * {"pause":{"qn"|"op","reason"}}, {"resume":{"qn"|"op"}}, {"limit":{"qn"|"op","key","running","rate"}},
 * {"redrive":id|{…}}. Changes take effect at once, outside the commit of the operation, and may be repeated.
 */
#include "operation/administration/tasks.h"

#include <inttypes.h>
#include <string.h>

#include "store/tasks/store_tasks.h"
#include "store/tasks/task_rows.h"
#include "operation/builtin.h"
#include "operation/tasks/task_wakeup.h"
#include "operation/reader.h"
#include "operation/reply.h"

enum {
    LIMIT_STANDARD = 100,
    LIMIT_MOST = 1000,
    EVERYWHERE_STANDARD = 20, /* of one namespace */
    EVERYWHERE_MOST = 100,
    SHOWN_ATTEMPTS = 20,
    BACKLOG_MOST = 10000,
    RULES_MOST = 1000
};

/* --- arguments --- */

static enum fault tasks_read_id(const struct tasks_inquiry *inquiry, const struct json *object,
                                const char *member, struct bytes *id_r)
{
    const struct json *value = json_member(object, member);
    if (!value || value->kind != JSON_STRING || !task_is_id(value->value))
        return reader_wrong(&inquiry->reader, object, member, "The name of a task is expected.");
    *id_r = value->value;
    return FAULT_NONE;
}

static enum fault read_stamp(const struct tasks_inquiry *inquiry, const char *member, int64_t standard,
                             int64_t *stamp_r)
{
    return reader_integer(&inquiry->reader, inquiry->wish, member, 0, STAMP_MAX, standard, stamp_r);
}

static bool read_pair(struct bytes text, int64_t *first_r, int64_t *second_r)
{
    const char *dot = text.size ? memchr(text.data, '.', text.size) : NULL;
    size_t size = dot ? (size_t)(dot - text.data) : 0;
    return dot && bytes_to_i64((struct bytes){text.data, size}, first_r) &&
           bytes_to_i64((struct bytes){dot + 1, text.size - size - 1}, second_r);
}

/* A cursor is "start.number", that of attempts "number", of redrive "number.until". */
static enum fault read_cursor(const struct tasks_inquiry *inquiry, bool has_start, struct task_filter *filter)
{
    struct bytes text;
    enum fault fault = reader_text(&inquiry->reader, inquiry->wish, "cursor", &text);
    if (fault || !text.data)
        return fault;
    if (has_start ? read_pair(text, &filter->after_start, &filter->after_number)
        : json_member(inquiry->param, "redrive")
            ? read_pair(text, &filter->after_number, &filter->after_start) && filter->after_number > 0
            : bytes_to_i64(text, &filter->after_number) && filter->after_number > 0)
        return FAULT_NONE;
    return reader_wrong(&inquiry->reader, inquiry->wish, "cursor",
                        "A cursor of an earlier answer is expected.");
}

static enum fault read_task_filter(const struct tasks_inquiry *inquiry, struct task_filter *filter)
{
    const struct reader *reader = &inquiry->reader;
    enum fault fault = reader_text(reader, inquiry->wish, "state", &filter->states);
    if (!fault && filter->states.data && !task_rows_is_state(filter->states))
        fault = reader_wrong(reader, inquiry->wish, "state",
                             "One of waiting, running, parked, held is expected.");
    if (!fault)
        fault = reader_text(reader, inquiry->wish, "exc", &filter->code);
    return fault ? fault : reader_text(reader, inquiry->wish, "domain", &filter->domain);
}

static enum fault read_attempt_filter(const struct tasks_inquiry *inquiry, struct task_filter *filter)
{
    const struct reader *reader = &inquiry->reader;
    return FAULT_FIRST(reader_boolean(reader, inquiry->wish, "failures", &filter->only_failures),
                       reader_text(reader, inquiry->wish, "exc", &filter->code),
                       reader_text(reader, inquiry->wish, "holder", &filter->holder));
}

/* One more than requested, only to detect that there is one. */
static enum fault read_filter(const struct tasks_inquiry *inquiry, bool is_of_tasks,
                              struct task_filter *filter)
{
    const struct reader *reader = &inquiry->reader;
    bool is_everywhere = json_member(inquiry->param, "everywhere");
    if (inquiry->wish->kind != JSON_OBJECT)
        return reader_wrong_value(reader, inquiry->wish, is_of_tasks ? "list" : "history",
                                  "An object is expected.");
    enum fault fault = reader_members(
        reader, inquiry->wish,
        json_member(inquiry->param, "redrive") ? "op info exc from to limit cursor dry"
        : !is_of_tasks ? "op info from to begunfrom begunto limit cursor failures id exc holder"
        : json_member(inquiry->param, "list") || is_everywhere
            ? "op info from to begunfrom begunto limit cursor retry state exc domain"
            : "op info from to limit retry state exc domain dry");
    if (!fault)
        fault = FAULT_FIRST(
            reader_text(reader, inquiry->wish, "op", &filter->operation),
            reader_text(reader, inquiry->wish, "info", &filter->info),
            read_stamp(inquiry, "from", 0, &filter->since),
            read_stamp(inquiry, "to", STAMP_MAX, &filter->until),
            read_stamp(inquiry, "begunfrom", 0, &filter->begun_since),
            read_stamp(inquiry, "begunto", STAMP_MAX, &filter->begun_until),
            reader_integer(reader, inquiry->wish, "limit", 1, is_everywhere ? EVERYWHERE_MOST : LIMIT_MOST,
                           is_everywhere ? EVERYWHERE_STANDARD : LIMIT_STANDARD, &filter->limit));
    if (!fault && !is_everywhere) /* its cursor is a namespace */
        fault = read_cursor(inquiry, is_of_tasks, filter);
    if (!fault && is_of_tasks)
        fault = reader_integer(reader, inquiry->wish, "retry", 0, INT32_MAX, 0, &filter->retry);
    if (!fault && is_of_tasks)
        fault = read_task_filter(inquiry, filter);
    if (!fault && !is_of_tasks)
        fault = read_attempt_filter(inquiry, filter);
    const struct json *id = is_of_tasks || fault ? NULL : json_member(inquiry->wish, "id");
    if (id)
        fault = tasks_read_id(inquiry, inquiry->wish, "id", &filter->id);
    filter->limit++;
    return fault;
}

/* --- queries --- */

static enum fault tasks_list(const struct tasks_inquiry *inquiry)
{
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_params params;
    struct pg_result *rows;
    enum fault fault = read_filter(inquiry, true, &filter);
    if (fault)
        return fault;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_filter(&params, &filter);
    fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_LIST, &params, &rows);
    if (fault)
        return fault;
    bool has_more = pg_rows(rows) == filter.limit;
    int count = pg_rows(rows) - has_more;
    builder_add_text(inquiry->out, "{\"tasks\":");
    tasks_inquiry_write_rows(inquiry, rows, count, task_rows_write_task);
    if (has_more)
        builder_printf(inquiry->out, ",\"cursor\":\"%" PRId64 ".%" PRId64 "\"",
                       pg_get_i64(rows, count - 1, TASK_START), pg_get_i64(rows, count - 1, TASK_NUMBER));
    builder_add_text(inquiry->out, "}");
    return FAULT_NONE;
}

static enum fault everywhere(const struct tasks_inquiry *inquiry)
{
    struct task_filter filter = TASK_FILTER_ALL;
    return FAULT_FIRST(read_filter(inquiry, true, &filter), tasks_everywhere(inquiry, &filter));
}

static enum fault write_attempts(const struct tasks_inquiry *inquiry, const struct task_filter *filter,
                                 bool *has_more_r, int64_t *last_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_attempt_filter(&params, filter);
    enum fault fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_ATTEMPTS, &params, &rows);
    if (fault)
        return fault;
    *has_more_r = pg_rows(rows) == filter->limit;
    int count = pg_rows(rows) - *has_more_r;
    *last_r = count ? pg_get_i64(rows, count - 1, ATTEMPT_NUMBER) : 0;
    builder_add_text(inquiry->out, "\"attempts\":");
    tasks_inquiry_write_rows(inquiry, rows, count, task_rows_write_attempt);
    return FAULT_NONE;
}

static enum fault history(const struct tasks_inquiry *inquiry)
{
    struct task_filter filter = TASK_FILTER_ALL;
    bool has_more = false;
    int64_t last = 0;
    enum fault fault = read_filter(inquiry, false, &filter);
    builder_add_text(inquiry->out, "{");
    if (!fault)
        fault = write_attempts(inquiry, &filter, &has_more, &last);
    if (has_more)
        builder_printf(inquiry->out, ",\"cursor\":\"%" PRId64 "\"", last);
    builder_add_text(inquiry->out, "}");
    return fault;
}

/* The task, unless it is gone, and its last attempts. */
static enum fault tasks_show(const struct tasks_inquiry *inquiry)
{
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_result *rows;
    bool has_more;
    int64_t last;
    enum fault fault = FAULT_FIRST(tasks_read_id(inquiry, inquiry->param, "show", &filter.id),
                                   tasks_inquiry_ask(inquiry, STATEMENT_TASK_SHOW,
                                                     PG_PARAMS(inquiry->arena, PG_TEXT(filter.id)), &rows));
    if (fault)
        return fault;
    builder_add_text(inquiry->out, "{");
    if (pg_rows(rows)) {
        builder_add_text(inquiry->out, "\"task\":");
        task_rows_write_task(inquiry->out, inquiry->arena, rows, 0);
        builder_add_text(inquiry->out, ",");
    }
    filter.limit = SHOWN_ATTEMPTS + 1;
    fault = write_attempts(inquiry, &filter, &has_more, &last);
    builder_add_text(inquiry->out, "}");
    return fault;
}

static enum fault backlog(const struct tasks_inquiry *inquiry)
{
    struct pg_result *rows;
    enum fault fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_BACKLOG,
                                         PG_PARAMS(inquiry->arena, PG_I32(BACKLOG_MOST)), &rows);
    if (fault)
        return fault;
    builder_add_text(inquiry->out, "{\"queues\":");
    tasks_inquiry_write_rows(inquiry, rows, pg_rows(rows), task_rows_write_backlog);
    fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_PAUSED, PG_NO_PARAMS(inquiry->arena), &rows);
    if (fault)
        return fault;
    builder_add_text(inquiry->out, ",\"paused\":");
    tasks_inquiry_write_rows(inquiry, rows, pg_rows(rows), task_rows_write_pause);
    fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_LIMITS, PG_NO_PARAMS(inquiry->arena), &rows);
    if (fault)
        return fault;
    builder_add_text(inquiry->out, ",\"limits\":");
    tasks_inquiry_write_rows(inquiry, rows, pg_rows(rows), task_rows_write_limit);
    builder_add_text(inquiry->out, "}");
    return FAULT_NONE;
}

/* The periodic tasks with their next times. */
static enum fault rules(const struct tasks_inquiry *inquiry)
{
    struct pg_result *rows;
    enum fault fault = tasks_inquiry_ask(inquiry, STATEMENT_TASK_RULES,
                                         PG_PARAMS(inquiry->arena, PG_I32(RULES_MOST)), &rows);
    if (fault)
        return fault;
    builder_add_text(inquiry->out, "{\"rules\":");
    tasks_inquiry_write_rows(inquiry, rows, pg_rows(rows), task_rows_write_rule);
    builder_add_text(inquiry->out, "}");
    return FAULT_NONE;
}

/* --- changes --- */

static enum fault do_deed(const struct tasks_inquiry *inquiry, enum statement statement,
                          struct pg_params *params, struct bytes id, const char *done)
{
    struct pg_result *rows;
    enum fault fault = tasks_inquiry_change(inquiry, statement, params, &rows);
    if (fault)
        return fault;
    bool is_done = !pg_is_null(rows, 0, DEED_RESULT);
    json_add_text(inquiry->out, "{\"id\":", id);
    builder_printf(inquiry->out, ",\"result\":\"%s\"",
                   is_done                               ? done
                   : pg_get_bool(rows, 0, DEED_IS_THERE) ? "running"
                                                         : "gone");
    if (is_done && statement == STATEMENT_TASK_MOVE) {
        int64_t start = pg_get_i64(rows, 0, DEED_RESULT);
        builder_printf(inquiry->out, ",\"startat\":%" PRId64, start);
        task_wakeup_ns(inquiry->reader.settings, inquiry->attempt->call->ns, start);
    }
    builder_add_text(inquiry->out, "}");
    return FAULT_NONE;
}

static enum fault move_to(const struct tasks_inquiry *inquiry, struct bytes id, int64_t start)
{
    return do_deed(inquiry, STATEMENT_TASK_MOVE, PG_PARAMS(inquiry->arena, PG_TEXT(id), PG_I64(start)), id,
                   "moved");
}

/* What a filter finds, a bounded number with each call. */
static enum fault do_all(const struct tasks_inquiry *inquiry, const char *deed)
{
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_params params;
    struct pg_result *rows;
    bool is_dry = false;
    enum fault fault = FAULT_FIRST(read_filter(inquiry, true, &filter),
                                   reader_boolean(&inquiry->reader, inquiry->wish, "dry", &is_dry));
    if (fault)
        return fault;
    if (!task_rows_is_filtered(&filter))
        return reader_wrong_value(&inquiry->reader, inquiry->wish, deed, "A filter is expected.");
    filter.limit--;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_deed(&params, deed, is_dry, &filter);
    fault = tasks_inquiry_count(inquiry, is_dry, STATEMENT_TASK_DO, &params, &rows);
    if (fault)
        return fault;
    int64_t found = pg_get_i64(rows, 0, TASK_DO_FOUND), done = pg_get_i64(rows, 0, TASK_DO_DONE);
    builder_printf(inquiry->out, "{\"found\":%" PRId64 ",\"done\":%" PRId64 ",\"more\":%s}", found, done,
                   found == filter.limit || (!is_dry && done < found) ? "true" : "false");
    if (done && strcmp(deed, "hold") != 0)
        task_wakeup_ns(inquiry->reader.settings, inquiry->attempt->call->ns, stamp_now());
    return FAULT_NONE;
}

/* Tasks that have ended: one, or what a filter finds, a bounded number with each call.  All pages have the
 * same latest end, in their cursors: what a page lets run ends later, and is not found by the next. */
static enum fault redrive(const struct tasks_inquiry *inquiry)
{
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_params params;
    struct pg_result *rows;
    bool is_dry = false;
    enum fault fault = inquiry->wish->kind == JSON_STRING
                           ? tasks_read_id(inquiry, inquiry->param, "redrive", &filter.id)
                           : read_filter(inquiry, false, &filter);
    if (!fault && inquiry->wish->kind == JSON_OBJECT)
        fault = reader_boolean(&inquiry->reader, inquiry->wish, "dry", &is_dry);
    if (fault)
        return fault;
    if (!filter.id.data && !task_rows_is_filtered(&filter))
        return reader_wrong_value(&inquiry->reader, inquiry->wish, "redrive", "A filter is expected.");
    int64_t latest = filter.after_number ? filter.after_start : stamp_now();
    filter.until = filter.until < latest ? filter.until : latest;
    filter.limit -= !filter.id.data;
    pg_params_start(&params, inquiry->arena);
    task_rows_add_redrive(&params, is_dry, &filter);
    fault = tasks_inquiry_count(inquiry, is_dry, STATEMENT_TASK_REDRIVE, &params, &rows);
    if (fault)
        return fault;
    int64_t found = pg_get_i64(rows, 0, TASK_REDRIVE_FOUND), done = pg_get_i64(rows, 0, TASK_REDRIVE_DONE);
    builder_printf(inquiry->out, "{\"found\":%" PRId64 ",\"done\":%" PRId64, found, done);
    int64_t last = pg_get_i64(rows, 0, TASK_REDRIVE_LAST);
    if (!filter.id.data && last)
        builder_printf(inquiry->out, ",\"cursor\":\"%" PRId64 ".%" PRId64 "\"", last, filter.until);
    builder_add_text(inquiry->out, "}");
    if (done)
        task_wakeup_ns(inquiry->reader.settings, inquiry->attempt->call->ns, stamp_now());
    return FAULT_NONE;
}

static enum fault tasks_run(const struct tasks_inquiry *inquiry)
{
    if (inquiry->wish->kind == JSON_OBJECT)
        return do_all(inquiry, "run");
    struct bytes id;
    return FAULT_FIRST(tasks_read_id(inquiry, inquiry->param, "run", &id), move_to(inquiry, id, stamp_now()));
}

static enum fault move(const struct tasks_inquiry *inquiry)
{
    struct bytes id;
    int64_t start;
    enum fault fault = FAULT_FIRST(reader_members(&inquiry->reader, inquiry->wish, "id startat"),
                                   tasks_read_id(inquiry, inquiry->wish, "id", &id),
                                   read_stamp(inquiry, "startat", 0, &start));
    if (!fault && (start >= TASK_PARKED || !stamp_is_valid(start)))
        fault = reader_wrong(&inquiry->reader, inquiry->wish, "startat",
                             "A stamp is expected: yymmddhhmmssmmm, UTC.");
    return fault ? fault : move_to(inquiry, id, start);
}

static enum fault hold_or_drop(const struct tasks_inquiry *inquiry, enum statement statement,
                               const char *member, const char *done)
{
    struct bytes id;
    return FAULT_FIRST(tasks_read_id(inquiry, inquiry->param, member, &id),
                       do_deed(inquiry, statement, PG_PARAMS(inquiry->arena, PG_TEXT(id)), id, done));
}

static enum fault tasks_hold(const struct tasks_inquiry *inquiry)
{
    if (inquiry->wish->kind == JSON_OBJECT)
        return do_all(inquiry, "hold");
    return hold_or_drop(inquiry, STATEMENT_TASK_HOLD, "hold", "held");
}

static enum fault tasks_drop(const struct tasks_inquiry *inquiry)
{
    if (inquiry->wish->kind == JSON_OBJECT)
        return do_all(inquiry, "drop");
    return hold_or_drop(inquiry, STATEMENT_TASK_DROP, "drop", "dropped");
}

static bool tasks_is_look(const struct call *call)
{
    static const char *const queries[] = {"list", "everywhere", "show", "history", "backlog", "rules"};
    const struct json *first = call->param ? call->param->first : NULL;
    for (size_t i = 0; first && !first->next && i < COUNT_OF(queries); i++)
        if (bytes_equal(first->name, bytes_of(queries[i])))
            return true;
    return false;
}

static enum fault tasks_work(struct attempt *attempt)
{
    static const struct {
        const char *member;
        enum fault (*act)(const struct tasks_inquiry *inquiry);
    } acts[] = {{"list", tasks_list},
                {"everywhere", everywhere},
                {"show", tasks_show},
                {"history", history},
                {"backlog", backlog},
                {"rules", rules},
                {"run", tasks_run},
                {"move", move},
                {"hold", tasks_hold},
                {"drop", tasks_drop},
                {"pause", tasks_queues_pause},
                {"resume", tasks_queues_resume},
                {"limit", tasks_queues_limit},
                {"redrive", redrive}};
    struct tasks_inquiry inquiry = {
        .attempt = attempt,
        .reader = {attempt->worker_context->settings, attempt->call, attempt->reply},
        .arena = attempt->call->arena,
        .out = attempt->reply->body,
        .param = attempt->call->param};
    enum fault fault = reader_members(
        &inquiry.reader, inquiry.param,
        "list everywhere show history backlog rules run move hold drop pause resume limit redrive");
    if (fault)
        return fault;
    enum fault (*act)(const struct tasks_inquiry *inquiry) = NULL;
    for (size_t i = 0; i < COUNT_OF(acts); i++) {
        const struct json *wish = json_member(attempt->call->param, acts[i].member);
        if (!wish)
            continue;
        if (act)
            return reader_wrong(&inquiry.reader, NULL, acts[i].member, "Exactly one member is expected.");
        inquiry.wish = wish;
        act = acts[i].act;
    }
    if (!act)
        return reader_wrong_value(
            &inquiry.reader, NULL, "param",
            "One of list, everywhere, show, history, backlog, rules, run, move, hold, drop, pause, "
            "resume, limit, redrive is expected.");
    return act(&inquiry);
}

const struct operation builtin_tasks = {
    .name = "tasks", .right = RIGHT_ADMIN, .only_reads = true, .work = tasks_work, .is_look = tasks_is_look};
