/* cmd_task: `stampctl task list, show, history, backlog, run, move, hold, drop, pause, resume`: tasks.md,
 * "Administration".
 */
#include "control/task/cmd_task.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/task/task_session.h"
#include "store/statements.h"
#include "store/tasks/task_rows.h"
#include "operation/tasks/task_wakeup.h"

enum { LIMIT_MOST = 100000, TASKS_MOST = 1000, SHOWN_ATTEMPTS = 20, BACKLOG_MOST = 10000 };

static void cmd_task_put(struct builder *text)
{
    if (text->size)
        fwrite(text->data, 1, text->size, stdout);
    builder_free(text);
}

/* A line of JSON.  A result or an argument is there as it was sent: line ends in it are between its members.
 */
static void put_line(struct builder *text)
{
    for (size_t i = 0; i < text->size; i++)
        if (text->data[i] == '\n' || text->data[i] == '\r')
            text->data[i] = ' ';
    builder_add_text(text, "\n");
    cmd_task_put(text);
}

/* --- list, history: by filters --- */

struct words {
    const char *operation, *info, *id, *state, *code, *domain, *holder;
};

/* Those of tasks, not of attempts. */
static bool read_filter(const struct command *command, const struct words *words, struct task_filter *filter)
{
    filter->operation = bytes_of(words->operation);
    filter->info = bytes_of(words->info);
    filter->id = bytes_of(words->id);
    filter->states = bytes_of(words->state);
    filter->code = bytes_of(words->code);
    filter->domain = bytes_of(words->domain);
    filter->holder = bytes_of(words->holder);
    if (!words->state || task_rows_is_state(filter->states))
        return true;
    return message_refuse("%s: --state %s: expected waiting, running, parked or held", command->name,
                          words->state);
}

/* clang-format off */
#define TASK_LINES(words, filter)                                                                               \
    OPTION_NUMBER("retry", "N", &(filter)->retry, 0, INT32_MAX, "Only tasks that have failed at least N times."),                                                             \
    OPTION_TEXT("state", "STATE", &(words)->state, "Only those that are waiting, running, parked or held."),                                                                                   \
    OPTION_TEXT("exc", "CODE", &(words)->code, "Only those whose last attempt ended with this code."),                                                                                    \
    OPTION_TEXT("domain", "NAME", &(words)->domain, "Only those of this domain.")
#define BASE_LINES(words, filter, what)                                                              \
    OPTION_TEXT("op", "NAME", &(words)->operation, "Only those of this operation."),           \
    OPTION_TEXT("info", "TEXT", &(words)->info, "Only those whose info begins with TEXT."),                                                                                \
    OPTION_NUMBER("from", "STAMP", &(filter)->since, 0, STAMP_MAX, "Only " what " from this stamp on."),                                                         \
    OPTION_NUMBER("to", "STAMP", &(filter)->until, 0, STAMP_MAX, "Only " what " up to this stamp.")
#define FILTER_LINES(words, filter, session, what)                                                              \
    BASE_LINES(words, filter, what),                                                                            \
    OPTION_NUMBER("begun-from", "STAMP", &(filter)->begun_since, 0, STAMP_MAX, "Only attempts begun from this stamp on."),                                                      \
    OPTION_NUMBER("begun-to", "STAMP", &(filter)->begun_until, 0, STAMP_MAX, "Only attempts begun up to this stamp."),                                                      \
    OPTION_NUMBER("limit", "N", &(filter)->limit, 1, LIMIT_MOST, "List at most N (default: 100)."),                                            \
    OPTION_FLAG("json", &(session)->as_json, "Print each as JSON, with all its columns."),              \
    CONTROL_CONFIG_LINE((session)->control), CONTROL_ADMIN_LINE((session)->control)
/* clang-format on */

/* A partial list is marked as such. */
static int print_rest(const struct pg_result *rows, const struct task_filter *filter)
{
    fflush(stdout);
    if (pg_rows(rows) >= filter->limit)
        message_print("these are the first %" PRId64 ", there may be more: --limit", filter->limit);
    return CONTROL_DONE;
}

static void print_task(const struct task_session *session, const struct pg_result *rows, int row)
{
    printf("%-24s  %-7s  %2" PRId64 "  %5" PRId64 "  %015" PRId64 "  %-16s  %-10s  %s\n",
           task_session_word(session, rows, row, TASK_ID), task_session_word(session, rows, row, TASK_STATE),
           pg_get_i64(rows, row, TASK_QUEUE), pg_get_i64(rows, row, TASK_RETRY),
           pg_get_i64(rows, row, TASK_START), task_session_word(session, rows, row, TASK_OPERATION),
           pg_is_null(rows, row, TASK_CODE) ? "-" : task_session_word(session, rows, row, TASK_CODE),
           task_session_word(session, rows, row, TASK_INFO));
}

static bool list_one(const struct task_session *session, const struct task_filter *filter, bool with_code,
                     struct pg_result **rows_r)
{
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, session->control->arena);
    task_rows_add_filter(&params, filter);
    if (!task_session_query(session, STATEMENT_TASK_LIST, &params, &rows))
        return false;
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        if (session->as_json && with_code)
            builder_printf(&text, "{\"ns\":\"%s\",\"task\":", session->code);
        if (session->as_json) {
            task_rows_write_task(&text, session->control->arena, rows, row);
            builder_printf(&text, "%s", with_code ? "}" : "");
            put_line(&text);
        } else {
            if (with_code)
                printf("%-16s  ", session->code);
            print_task(session, rows, row);
        }
    }
    *rows_r = rows;
    return true;
}

/* Those of all namespaces, each with at most `limit`. */
static int list_all(struct task_session *session, const struct task_filter *filter)
{
    struct pg *z;
    struct namespace_conf *confs;
    size_t count;
    bool is_good = true;
    if (!ns_registry_open(session->control, &z) || !ns_registry_read(session->control, z, &confs, &count))
        return CONTROL_FAILED;
    for (size_t i = 0; i < count; i++) {
        struct ns_target target;
        struct pg_result *rows;
        session->code = confs[i].code;
        if (!ns_registry_connect(session->control, session->code, &target)) {
            is_good = false;
            continue;
        }
        session->pg = target.pg;
        is_good = list_one(session, filter, true, &rows) && is_good;
        if (is_good && pg_rows(rows) >= filter->limit)
            message_print("%s: these are the first %" PRId64 ", there may be more: --limit", session->code,
                          filter->limit);
    }
    return is_good ? CONTROL_DONE : CONTROL_FAILED;
}

static int task_list(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "task list", "CODE|--all", 0, 1, "List the tasks of a namespace in the order of their starts.",
        "A task that is parked or held has the start 991231235959999.\n");
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    struct words words = {0};
    bool is_all = false;
    const struct option_line lines[] = {
        OPTION_FLAG("all", &is_all, "List those of all namespaces."),
        TASK_LINES(&words, &filter),
        FILTER_LINES(&words, &filter, &session, "starts"),
    };
    struct pg_result *rows;
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (is_all == (session.code != NULL))
        return message_end(CONTROL_WRONG, "task list: either the code of a namespace or --all is expected");
    if (!read_filter(&command, &words, &filter))
        return CONTROL_WRONG;
    if (!session.as_json)
        printf("%s%-24s  %-7s  %2s  %5s  %-15s  %-16s  %-10s  %s\n", is_all ? "NAMESPACE         " : "", "ID",
               "STATE", "QN", "RETRY", "START", "OPERATION", "EXC", "INFO");
    if (is_all)
        return list_all(&session, &filter);
    return list_one(&session, &filter, false, &rows) ? print_rest(rows, &filter) : CONTROL_FAILED;
}

static void print_attempts(const struct task_session *session, const struct pg_result *rows)
{
    if (!session->as_json)
        printf("%-15s  %-24s  %-16s  %2s  %5s  %-10s  %s\n", "END", "ID", "OPERATION", "QN", "RETRY", "EXC",
               "INFO");
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        if (!session->as_json) {
            printf("%015" PRId64 "  %-24s  %-16s  %2" PRId64 "  %5" PRId64 "  %-10s  %s\n",
                   pg_get_i64(rows, row, ATTEMPT_STOP), task_session_word(session, rows, row, ATTEMPT_ID),
                   task_session_word(session, rows, row, ATTEMPT_OPERATION),
                   pg_get_i64(rows, row, ATTEMPT_QUEUE), pg_get_i64(rows, row, ATTEMPT_RETRY),
                   pg_is_null(rows, row, ATTEMPT_CODE) ? "done"
                                                       : task_session_word(session, rows, row, ATTEMPT_CODE),
                   task_session_word(session, rows, row, ATTEMPT_INFO));
            continue;
        }
        task_rows_write_attempt(&text, session->control->arena, rows, row);
        put_line(&text);
    }
}

static bool find_attempts(const struct task_session *session, const struct task_filter *filter,
                          struct pg_result **rows_r)
{
    struct pg_params params;
    pg_params_start(&params, session->control->arena);
    task_rows_add_attempt_filter(&params, filter);
    return task_session_query(session, STATEMENT_TASK_ATTEMPTS, &params, rows_r);
}

static int task_history(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "task history", "CODE", "List attempts at tasks that have ended, newest first.",
        "An attempt succeeded, failed with a code, was LOST with its worker, or ran out of time between\n"
        "two steps (MORE).  A task that is DROPPED, CANCELLED or, parked for too long, EXPIRED has a line\n"
        "too.  Lines are kept for task_history_s.\n");
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    struct words words = {0};
    const struct option_line lines[] = {
        OPTION_TEXT("id", "ID", &words.id, "List only attempts at this task."),
        OPTION_FLAG("failures", &filter.only_failures, "List only attempts that failed or were lost."),
        OPTION_TEXT("exc", "CODE", &words.code,
                    "List only attempts that ended with this code; DONE: a success."),
        OPTION_TEXT("holder", "NAME", &words.holder,
                    "List only attempts of holders whose name begins with NAME."),
        FILTER_LINES(&words, &filter, &session, "ends"),
    };
    struct pg_result *rows;
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    (void)read_filter(&command, &words, &filter);
    if (!find_attempts(&session, &filter, &rows))
        return CONTROL_FAILED;
    print_attempts(&session, rows);
    return print_rest(rows, &filter);
}

/* --- show, backlog --- */

static void print_text(const char *name, struct bytes text)
{
    if (text.data)
        printf("%s: %.*s\n", name, (int)text.size, text.data);
}

static int task_show(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("task show", "CODE ID", "Show a task with all its columns, and the attempts at it.", NULL);
    struct task_session session = {.control = control};
    const struct option_line lines[] = {
        OPTION_FLAG("json", &session.as_json, "Print task and attempts as JSON, one a line."),
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_result *rows, *attempts;
    struct builder text = {0};
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    filter.id = bytes_of(session.words[0]);
    filter.limit = SHOWN_ATTEMPTS;
    if (!task_session_query(&session, STATEMENT_TASK_SHOW, PG_PARAMS(control->arena, PG_TEXT(filter.id)),
                            &rows) ||
        !find_attempts(&session, &filter, &attempts))
        return CONTROL_FAILED;
    if (!pg_rows(rows) && !pg_rows(attempts))
        return message_end(CONTROL_FAILED, "task show: %s: there is no such task", session.words[0]);
    if (pg_rows(rows) && session.as_json) {
        task_rows_write_task(&text, control->arena, rows, 0);
        put_line(&text);
    } else if (pg_rows(rows)) {
        task_rows_write_task_lines(&text, rows, 0);
        cmd_task_put(&text);
    }
    if (pg_rows(rows) && !session.as_json) {
        print_text("param", pg_get_text(rows, 0, TASK_PARAM));
        print_text("checkpoint", pg_get_text(rows, 0, TASK_CHECKPOINT));
        printf("\n");
    }
    print_attempts(&session, attempts);
    return CONTROL_DONE;
}

static int task_backlog(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "task backlog", "CODE", "Count the tasks of a namespace, by queue.",
        "Counts at most 10000 tasks of a priority.  OLDEST is the start of the first task that is due.\n");
    struct task_session session = {.control = control};
    const struct option_line lines[] = {OPTION_FLAG("json", &session.as_json, "Print each queue as JSON."),
                                        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct pg_result *rows;
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!task_session_query(&session, STATEMENT_TASK_BACKLOG, PG_PARAMS(control->arena, PG_I32(BACKLOG_MOST)),
                            &rows))
        return CONTROL_FAILED;
    if (!session.as_json)
        printf("%2s  %9s  %9s  %9s  %9s  %9s  %s\n", "QN", "DUE", "LATER", "RUNNING", "PARKED", "FAILING",
               "OLDEST");
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        if (session.as_json) {
            task_rows_write_backlog(&text, control->arena, rows, row);
        } else {
            builder_printf(&text, "%2" PRId64, pg_get_i64(rows, row, BACKLOG_QUEUE));
            for (int column = BACKLOG_DUE; column <= BACKLOG_FAILING; column++)
                builder_printf(&text, "  %9" PRId64, pg_get_i64(rows, row, column));
            if (!pg_is_null(rows, row, BACKLOG_OLDEST))
                builder_printf(&text, "  %015" PRId64, pg_get_i64(rows, row, BACKLOG_OLDEST));
        }
        put_line(&text);
    }
    return cmd_task_pause_print(&session) && cmd_task_limit_print(&session) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- run, move, hold, drop --- */

/* One task; reports what was done, or why not. */
static bool do_deed(const struct task_session *session, const char *id, enum statement statement,
                    int64_t start, const char *done)
{
    struct pg_result *row;
    struct pg_params *params = PG_PARAMS(session->control->arena, PG_TEXT(bytes_of(id)));
    if (statement == STATEMENT_TASK_MOVE)
        pg_params_add_i64(params, start);
    if (!task_session_query(session, statement, params, &row))
        return false;
    if (pg_is_null(row, 0, DEED_RESULT))
        return message_refuse("%s: %s", id,
                              pg_get_bool(row, 0, DEED_IS_THERE) ? "it runs" : "there is no such task");
    printf("%s: %s\n", id, done);
    if (statement == STATEMENT_TASK_MOVE)
        task_wakeup_ns(&session->control->settings, bytes_of(session->code), start);
    return true;
}

/* What a filter finds, in bounded steps. */
static int do_all(const struct task_session *session, const char *deed, const char *words, bool is_dry,
                  struct task_filter *filter)
{
    enum { STEP = 1000 };
    int64_t done = 0, limit = filter->limit, found = 0;
    do {
        struct pg_params params;
        struct pg_result *row;
        filter->limit = is_dry || limit - done > STEP ? STEP : limit - done;
        pg_params_start(&params, session->control->arena);
        task_rows_add_deed(&params, deed, is_dry, filter);
        if (!task_session_query(session, STATEMENT_TASK_DO, &params, &row))
            return CONTROL_FAILED;
        found = pg_get_i64(row, 0, TASK_DO_FOUND);
        done += is_dry ? found : pg_get_i64(row, 0, TASK_DO_DONE);
        if (!pg_get_i64(row, 0, TASK_DO_DONE))
            break;
    } while (found == STEP && done < limit);
    printf("%" PRId64 " tasks%s: %s\n", done, is_dry && found == STEP ? " or more" : "",
           is_dry ? "found, nothing was done" : words);
    if (!is_dry && strcmp(deed, "hold") != 0)
        task_wakeup_ns(&session->control->settings, bytes_of(session->code), stamp_now());
    return CONTROL_DONE;
}

static int do_deeds(struct control *control, const struct command *command, int argc, char **argv,
                    enum statement statement, const char *done)
{
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    struct words words = {0};
    bool is_dry = false, is_done = true;
    filter.limit = INT32_MAX;
    const struct option_line lines[] = {
        OPTION_FLAG("dry-run", &is_dry, "Only count the tasks that the filter finds."),
        TASK_LINES(&words, &filter),
        BASE_LINES(&words, &filter, "starts"),
        OPTION_NUMBER("limit", "N", &filter.limit, 1, INT32_MAX, "At most N of them (default: all)."),
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
    };
    if (!task_session_begin(&session, command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!read_filter(command, &words, &filter))
        return CONTROL_WRONG;
    if (!task_session_has_choice(&session, command, &filter, is_dry))
        return CONTROL_WRONG;
    if (!session.count)
        return do_all(&session, strchr(command->name, ' ') + 1, done, is_dry, &filter);
    for (int i = 0; i < session.count; i++)
        is_done = do_deed(&session, session.words[i], statement, stamp_now(), done) && is_done;
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static int task_run(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND_OF("task run", "CODE [ID...]", 1, 1 + TASKS_MOST, "Start tasks as soon as possible.",
                   "A task that was parked or held starts over, as if it had never failed.\n");
    return do_deeds(control, &command, argc, argv, STATEMENT_TASK_MOVE, "starts now");
}

static int task_move(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("task move", "CODE ID STAMP", "Move the start of a task to a stamp, yymmddhhmmssmmm, UTC.",
                "A task that was parked or held starts over, as if it had never failed.\n");
    struct task_session session = {.control = control};
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    int64_t start;
    if (!task_session_begin(&session, &command, lines, COUNT_OF(lines), argc, argv))
        return control->status;
    if (!bytes_to_i64(bytes_of(session.words[1]), &start) || !stamp_is_valid(start) || start >= TASK_PARKED)
        return message_end(CONTROL_WRONG, "task move: %s: expected a stamp, yymmddhhmmssmmm",
                           session.words[1]);
    return do_deed(&session, session.words[0], STATEMENT_TASK_MOVE, start, "moved") ? CONTROL_DONE
                                                                                    : CONTROL_FAILED;
}

static int task_hold(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF("task hold", "CODE [ID...]", 1, 1 + TASKS_MOST,
                                                     "Park tasks until `task run` or `task move`.",
                                                     "A running task continues, and is not held.\n");
    return do_deeds(control, &command, argc, argv, STATEMENT_TASK_HOLD, "held");
}

static int task_drop(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND_OF("task drop", "CODE [ID...]", 1, 1 + TASKS_MOST, "Delete tasks; their history records it.",
                   "A running task will not be committed.\n");
    return do_deeds(control, &command, argc, argv, STATEMENT_TASK_DROP, "dropped");
}

int control_task(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"list", "List tasks.", task_list},
        {"show", "Show a task with all its columns.", task_show},
        {"history", "List attempts that have ended.", task_history},
        {"backlog", "Count tasks by queue.", task_backlog},
        {"run", "Start tasks as soon as possible.", task_run},
        {"move", "Move the start of a task.", task_move},
        {"hold", "Park tasks.", task_hold},
        {"drop", "Delete tasks.", task_drop},
        {"redrive", "Let tasks that have ended run again.", cmd_task_redrive},
        {"pause", "Begin no more tasks of a queue or an operation.", cmd_task_pause_set},
        {"resume", "End such a pause.", cmd_task_pause_end},
        {"limit", "Limit the tasks of a queue, an operation or its keys.", cmd_task_limit},
    };
    static const char details[] = "Administer tasks: operations that run later.\n";
    return options_choose("task", details, choices, COUNT_OF(choices), control, argc, argv);
}
