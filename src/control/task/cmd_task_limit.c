/* cmd_task_limit: rows of task_limit and task_paused; tasks that have ended run again. */
#include "control/task/cmd_task.h"

#include <inttypes.h>
#include <stdio.h>

#include "control/message.h"
#include "control/task/task_session.h"
#include "model/quotas.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"

bool cmd_task_limit_print(const struct task_session *session)
{
    struct pg_result *rows;
    if (!task_session_query(session, STATEMENT_TASK_LIMITS, PG_NO_PARAMS(session->control->arena), &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        builder_add_bytes(&text, session->as_json ? BYTES("{\"limit\":") : BYTES("limit: "));
        task_rows_write_limit(&text, session->control->arena, rows, row);
        builder_add_bytes(&text, session->as_json ? BYTES("}\n") : BYTES("\n"));
        fwrite(text.data, 1, text.size, stdout);
        builder_free(&text);
    }
    return true;
}

static bool read_rate(struct control *control, const char *text, struct task_limit *limit)
{
    struct quota_rate rate = {0};
    if (!text)
        return true;
    if (!quotas_read_rate(control->arena, bytes_of(text), &rate) || rate.count > TASK_LIMIT_RATE_MOST ||
        rate.burst > TASK_LIMIT_RATE_MOST)
        return false;
    limit->count = rate.count;
    limit->period_ms = rate.period_ms;
    limit->burst = rate.burst;
    return true;
}

static bool cmd_task_limit_check(struct control *control, const struct command *command, const char *rate,
                                 struct task_limit *limit)
{
    if (limit->is_by_key && limit->queue >= 0)
        return message_refuse("%s: --key is of an operation", command->name);
    if (!read_rate(control, rate, limit))
        return message_refuse("%s: --rate %s: a rate is expected, as \"60/min, burst 20\"", command->name,
                              rate);
    return true;
}

int cmd_task_limit(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("task limit", "CODE", "Limit the tasks of a queue, an operation or its keys.",
                "Holds for every queue manager and external worker, across "
                "restarts.  Without --running and --rate the\n"
                "limit ends.\n");
    struct task_session session = {.control = control};
    int64_t queue = -1, running = 0;
    const char *operation = NULL, *rate = NULL;
    bool is_by_key = false;
    struct pg_params params;
    struct pg_result *row;
    const struct option_line lines[] = {
        TASK_SUBJECT_LINES(&queue, &operation),
        OPTION_FLAG("key", &is_by_key, "The limit is of each key of the operation."),
        OPTION_NUMBER("running", "N", &running, 1, TASK_LIMIT_MOST, "At most so many at once."),
        OPTION_TEXT("rate", "RATE", &rate, "So many begin, as 60/min or '60/min, burst 20'."),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
    };
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    struct task_limit limit = {
        .queue = (int32_t)queue, .operation = bytes_of(operation), .is_by_key = is_by_key, .most = running};
    if (!task_session_has_subject(&command, queue, operation) ||
        !cmd_task_limit_check(control, &command, rate, &limit))
        return CONTROL_WRONG;
    pg_params_start(&params, control->arena);
    task_rows_add_limit(&params, &limit);
    if (!task_session_query(&session, STATEMENT_TASK_LIMIT, &params, &row))
        return CONTROL_FAILED;
    const char *now = limit.most || limit.count ? "limited"
                      : pg_get_bool(row, 0, 0)  ? "not limited"
                                                : "already not limited";
    if (operation)
        printf("operation %s%s: %s\n", operation, is_by_key ? ", each key" : "", now);
    else
        printf("queue %lld: %s\n", (long long)queue, now);
    task_wakeup_ns(&control->settings, bytes_of(session.code), stamp_now());
    return CONTROL_DONE;
}

/* --- cmd task pause --- */

bool cmd_task_pause_print(const struct task_session *session)
{
    struct pg_result *rows;
    if (!task_session_query(session, STATEMENT_TASK_PAUSED, PG_NO_PARAMS(session->control->arena), &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        if (session->as_json) {
            builder_add_text(&text, "{\"paused\":");
            task_rows_write_pause(&text, session->control->arena, rows, row);
            builder_add_text(&text, "}\n");
        } else if (pg_is_null(rows, row, PAUSE_QUEUE)) {
            builder_printf(&text, "paused: operation %s",
                           task_session_word(session, rows, row, PAUSE_OPERATION));
        } else {
            builder_printf(&text, "paused: queue %" PRId64, pg_get_i64(rows, row, PAUSE_QUEUE));
        }
        if (!session->as_json)
            builder_printf(&text, ", since %015" PRId64 "  %s\n", pg_get_i64(rows, row, PAUSE_SINCE),
                           task_session_word(session, rows, row, PAUSE_REASON));
        fwrite(text.data, 1, text.size, stdout);
        builder_free(&text);
    }
    return true;
}

static int set_pause(struct control *control, const struct command *command, int argc, char **argv,
                     bool is_paused)
{
    struct task_session session = {.control = control};
    int64_t queue = -1;
    const char *operation = NULL, *reason = "";
    struct pg_params params;
    struct pg_result *row;
    const struct option_line lines[] = {
        TASK_SUBJECT_LINES(&queue, &operation),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("reason", "TEXT", &reason, "Words for other administrators."),
    };
    if (!task_session_begin(&session, command, lines, COUNT_OF(lines) - !is_paused, argc, argv))
        return control->status;
    if (!task_session_has_subject(command, queue, operation))
        return CONTROL_WRONG;
    const struct task_pause pause = {(int32_t)queue, operation ? bytes_of(operation) : NO_BYTES,
                                     bytes_of(reason), is_paused};
    pg_params_start(&params, control->arena);
    task_rows_add_pause(&params, &pause);
    if (!task_session_query(&session, STATEMENT_TASK_PAUSE, &params, &row))
        return CONTROL_FAILED;
    const char *now = pg_get_bool(row, 0, 0) ? "" : "already ";
    if (operation)
        printf("operation %s: %s%s\n", operation, now, is_paused ? "paused" : "runs");
    else
        printf("queue %" PRId64 ": %s%s\n", queue, now, is_paused ? "paused" : "runs");
    if (!is_paused)
        task_wakeup_ns(&control->settings, bytes_of(session.code), stamp_now());
    return CONTROL_DONE;
}

int cmd_task_pause_set(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "task pause", "CODE", "Begin no more tasks of a queue or an operation.",
        "Holds for every queue manager and external worker, across restarts.  What runs continues.\n");
    return set_pause(control, &command, argc, argv, true);
}

int cmd_task_pause_end(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("task resume", "CODE", "End the pause of a queue or an operation.", NULL);
    return set_pause(control, &command, argc, argv, false);
}

/* --- cmd task redrive --- */

enum { TASKS_MOST = 1000, STEP = 1000 };

static bool step(const struct task_session *session, bool is_dry, const struct task_filter *filter,
                 struct pg_result **row_r)
{
    struct pg_params params;
    pg_params_start(&params, session->control->arena);
    task_rows_add_redrive(&params, is_dry, filter);
    return task_session_query(session, STATEMENT_TASK_REDRIVE, &params, row_r);
}

static int redrive_all(const struct task_session *session, bool is_dry, struct task_filter *filter)
{
    int64_t found = 0, done = 0, limit = filter->limit;
    do {
        struct pg_result *row;
        filter->limit = limit - found < STEP ? limit - found : STEP;
        if (!step(session, is_dry, filter, &row))
            return CONTROL_FAILED;
        filter->after_number = pg_get_i64(row, 0, TASK_REDRIVE_LAST);
        found += pg_get_i64(row, 0, TASK_REDRIVE_FOUND);
        done += pg_get_i64(row, 0, TASK_REDRIVE_DONE);
    } while (filter->after_number && found < limit);
    if (is_dry)
        printf("%" PRId64 " tasks: found, nothing was done\n", found);
    else
        printf("%" PRId64 " tasks of %" PRId64 ": run again\n", done, found);
    return CONTROL_DONE;
}

static int redrive_each(const struct task_session *session)
{
    int status = CONTROL_DONE;
    for (int i = 0; i < session->count; i++) {
        struct task_filter filter = TASK_FILTER_ALL;
        struct pg_result *row;
        filter.id = bytes_of(session->words[i]);
        if (!step(session, false, &filter, &row))
            return CONTROL_FAILED;
        if (pg_get_i64(row, 0, TASK_REDRIVE_DONE)) {
            printf("%s: runs again\n", session->words[i]);
            continue;
        }
        message_print("%s: %s", session->words[i],
                      pg_get_i64(row, 0, TASK_REDRIVE_FOUND)
                          ? "its argument was not kept, or it waits, or another for its resource"
                          : "the history has no end of such a task");
        status = CONTROL_FAILED;
    }
    return status;
}

int cmd_task_redrive(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND_OF("task redrive", "CODE [ID...]", 1, 1 + TASKS_MOST, "Let tasks that have ended run again.",
                   "By their names, or those that a filter finds in the history.  "
                   "They keep their names and arguments.\n");
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    const char *operation = NULL, *info = NULL, *code = NULL;
    bool is_dry = false;
    filter.limit = INT32_MAX;
    const struct option_line lines[] = {
        OPTION_FLAG("dry-run", &is_dry, "Only count what the filter finds."),
        OPTION_TEXT("op", "NAME", &operation, "Only those of this operation."),
        OPTION_TEXT("info", "TEXT", &info, "Only those whose info begins with TEXT."),
        OPTION_TEXT("exc", "CODE", &code, "Only those that ended so: DONE, DROPPED, CANCELLED, EXPIRED."),
        OPTION_NUMBER("from", "STAMP", &filter.since, 0, STAMP_MAX, "Only ends from this stamp on."),
        OPTION_NUMBER("to", "STAMP", &filter.until, 0, STAMP_MAX, "Only ends up to this stamp."),
        OPTION_NUMBER("limit", "N", &filter.limit, 1, INT32_MAX, "At most N of them (default: all)."),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
    };
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    filter.operation = operation ? bytes_of(operation) : NO_BYTES;
    filter.info = info ? bytes_of(info) : NO_BYTES;
    filter.code = code ? bytes_of(code) : NO_BYTES;
    if (!task_session_has_choice(&session, &command, &filter, is_dry))
        return CONTROL_WRONG;
    int64_t now = stamp_now(); /* what ends later is not found by the steps */
    filter.until = filter.until < now ? filter.until : now;
    int status = session.count ? redrive_each(&session) : redrive_all(&session, is_dry, &filter);
    if (!is_dry)
        task_wakeup_ns(&control->settings, bytes_of(session.code), stamp_now());
    return status;
}
