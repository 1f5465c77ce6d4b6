/* cmd_task_pause: rows of task_paused. */
#include "control/task/cmd_task_pause.h"

#include <inttypes.h>
#include <stdio.h>

#include "control/message.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"

bool cmd_task_pause_print(const struct task_session *session)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, session->control->arena);
    if (!task_session_query(session, STATEMENT_TASK_PAUSED, &params, &rows))
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
    int status;
    const struct option_line lines[] = {
        TASK_SUBJECT_LINES(&queue, &operation),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("reason", "TEXT", &reason, "Words for other administrators."),
    };
    if (!task_session_begin(&session, command, lines, COUNT_OF(lines) - !is_paused, argc, argv, &status))
        return status;
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
    static const struct command command = {
        "task pause",
        "CODE",
        1,
        1,
        "Begin no more tasks of a queue or an operation.",
        "Holds for every queue manager and external worker, across restarts.  What runs continues.\n"};
    return set_pause(control, &command, argc, argv, true);
}

int cmd_task_pause_end(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "task resume", "CODE", 1, 1, "End the pause of a queue or an operation.", NULL};
    return set_pause(control, &command, argc, argv, false);
}
