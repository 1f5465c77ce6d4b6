/* cmd_task_redrive: one after the other, or what a filter finds, in bounded steps. */
#include "control/task/cmd_task_redrive.h"

#include <inttypes.h>
#include <stdio.h>

#include "control/message.h"
#include "control/task/task_session.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"

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
    static const struct command command = {"task redrive",
                                           "CODE [ID...]",
                                           1,
                                           1 + TASKS_MOST,
                                           "Let tasks that have ended run again.",
                                           "By their names, or those that a filter finds in the history.  "
                                           "They keep their names and arguments.\n"};
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    const char *operation = NULL, *info = NULL, *code = NULL;
    bool is_dry = false;
    int status;
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
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    filter.operation = operation ? bytes_of(operation) : NO_BYTES;
    filter.info = info ? bytes_of(info) : NO_BYTES;
    filter.code = code ? bytes_of(code) : NO_BYTES;
    if (!task_session_has_choice(&session, &command, &filter, is_dry))
        return CONTROL_WRONG;
    int64_t now = stamp_now(); /* what ends later is not found by the steps */
    filter.until = filter.until < now ? filter.until : now;
    status = session.count ? redrive_each(&session) : redrive_all(&session, is_dry, &filter);
    if (!is_dry)
        task_wakeup_ns(&control->settings, bytes_of(session.code), stamp_now());
    return status;
}
