/* cmd_task_limit: rows of task_limit. */
#include "control/task/cmd_task_limit.h"

#include <stdio.h>

#include "control/message.h"
#include "model/quotas.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"

bool cmd_task_limit_print(const struct task_session *session)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, session->control->arena);
    if (!task_session_query(session, STATEMENT_TASK_LIMITS, &params, &rows))
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
    if (limit->is_by_key && limit->queue >= 0) {
        message_print("%s: --key is of an operation", command->name);
        return false;
    }
    if (!read_rate(control, rate, limit)) {
        message_print("%s: --rate %s: a rate is expected, as \"60/min, burst 20\"", command->name, rate);
        return false;
    }
    return true;
}

int cmd_task_limit(struct control *control, int argc, char **argv)
{
    static const struct command command = {"task limit",
                                           "CODE",
                                           1,
                                           1,
                                           "Limit the tasks of a queue, an operation or its keys.",
                                           "Holds for every queue manager and external worker, across "
                                           "restarts.  Without --running and --rate the\n"
                                           "limit ends.\n"};
    struct task_session session = {.control = control};
    int64_t queue = -1, running = 0;
    const char *operation = NULL, *rate = NULL;
    bool is_by_key = false;
    struct pg_params params;
    struct pg_result *row;
    int status;
    const struct option_line lines[] = {
        TASK_SUBJECT_LINES(&queue, &operation),
        OPTION_FLAG("key", &is_by_key, "The limit is of each key of the operation."),
        OPTION_NUMBER("running", "N", &running, 1, TASK_LIMIT_MOST, "At most so many at once."),
        OPTION_TEXT("rate", "RATE", &rate, "So many begin, as 60/min or '60/min, burst 20'."),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
    };
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
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
