/* cmd_task: `stampctl task list, show, history, backlog, run, move, hold, drop`: tasks.md,
 * "Administration".
 */
#include "control/control.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns_registry.h"
#include "store/statements.h"
#include "store/task_rows.h"
#include "operation/tasks/task_wakeup.h"

enum { LIMIT_MOST = 100000, TASKS_MOST = 1000, SHOWN_ATTEMPTS = 20, BACKLOG_MOST = 10000 };

/* A running command, connected to the database of a namespace. */
struct task_session {
    struct control *control;
    const char *code;
    struct pg *pg;
    char **words; /* after the code */
    int count;
    bool as_json;
};

/* Options, settings, the namespace's database.  False: `status_r` is the exit status. */
static bool begin(struct task_session *session, const struct command *command,
                  const struct option_line *lines, size_t line_count, int argc, char **argv, int *status_r)
{
    char **words;
    struct ns_target target;
    if (!control_begin(session->control, command, lines, line_count, argc, argv, &words, status_r))
        return false;
    session->code = words[0];
    session->words = words + 1;
    while (session->words[session->count])
        session->count++;
    if (!ns_registry_connect(session->control, session->code, &target))
        return false;
    session->pg = target.pg;
    return true;
}

static bool query(const struct task_session *session, enum statement statement,
                  const struct pg_params *params, struct pg_result **rows_r)
{
    return control_query(session->control, session->pg, session->code, statements[statement].sql, params,
                         rows_r);
}

static void put(struct builder *text)
{
    if (text->size)
        fwrite(text->data, 1, text->size, stdout);
    builder_free(text);
}

/* A text as a column, "" for null; drops characters that must not reach a terminal. */
static const char *word(const struct task_session *session, const struct pg_result *rows, int row, int column)
{
    struct bytes text = pg_get_text(rows, row, column);
    char *copy = arena_copy(session->control->arena, text.data ? text.data : "", text.size);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '\x7f')
            *at = ' ';
    return copy;
}

/* --- list, history: by filters --- */

struct words {
    const char *operation, *info, *id;
};

static struct bytes optional(const char *text)
{
    return text ? bytes_of(text) : NO_BYTES;
}

/* clang-format off */
#define FILTER_LINES(words, filter, session, what)                                                              \
    {.name = "op", .argument = "NAME", .help = "List only those of this operation.", .text = &(words)->operation},      \
    {.name = "info", .argument = "TEXT", .help = "List only those whose info begins with TEXT.",                         \
     .text = &(words)->info},                                                                                \
    {.name = "from", .argument = "STAMP", .help = "List only " what " from this stamp on.",                        \
     .number = &(filter)->since, .most = STAMP_MAX},                                                         \
    {.name = "to", .argument = "STAMP", .help = "List only " what " up to this stamp.",                            \
     .number = &(filter)->until, .most = STAMP_MAX},                                                         \
    {.name = "limit", .argument = "N", .help = "List at most N (default: 100).",                            \
     .number = &(filter)->limit, .least = 1, .most = LIMIT_MOST},                                            \
    {.name = "json", .help = "Print each as JSON, with all its columns.", .flag = &(session)->as_json},              \
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
           word(session, rows, row, TASK_ID), word(session, rows, row, TASK_STATE),
           pg_get_i64(rows, row, TASK_QUEUE), pg_get_i64(rows, row, TASK_RETRY),
           pg_get_i64(rows, row, TASK_START), word(session, rows, row, TASK_OPERATION),
           pg_is_null(rows, row, TASK_CODE) ? "-" : word(session, rows, row, TASK_CODE),
           word(session, rows, row, TASK_INFO));
}

static int task_list(struct control *control, int argc, char **argv)
{
    static const struct command command = {"task list",
                                           "CODE",
                                           1,
                                           1,
                                           "List the tasks of a namespace in the order of their starts.",
                                           "A task that is parked or held has the start 991231235959999.\n"};
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    struct words words = {0};
    const struct option_line lines[] = {
        {.name = "retry",
         .argument = "N",
         .help = "List only tasks that have failed at least N times.",
         .number = &filter.retry,
         .most = INT32_MAX},
        FILTER_LINES(&words, &filter, &session, "starts"),
    };
    int status;
    struct pg_params params;
    struct pg_result *rows;
    if (!begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    filter.operation = optional(words.operation);
    filter.info = optional(words.info);
    pg_params_start(&params, control->arena);
    task_rows_add_filter(&params, &filter);
    if (!query(&session, STATEMENT_TASK_LIST, &params, &rows))
        return CONTROL_FAILED;
    if (!session.as_json)
        printf("%-24s  %-7s  %2s  %5s  %-15s  %-16s  %-10s  %s\n", "ID", "STATE", "QN", "RETRY", "START",
               "OPERATION", "EXC", "INFO");
    for (int row = 0; row < pg_rows(rows); row++) {
        struct builder text = {0};
        if (session.as_json) {
            task_rows_write_task(&text, control->arena, rows, row);
            builder_add_text(&text, "\n");
            put(&text);
        } else {
            print_task(&session, rows, row);
        }
    }
    return print_rest(rows, &filter);
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
                   pg_get_i64(rows, row, ATTEMPT_STOP), word(session, rows, row, ATTEMPT_ID),
                   word(session, rows, row, ATTEMPT_OPERATION), pg_get_i64(rows, row, ATTEMPT_QUEUE),
                   pg_get_i64(rows, row, ATTEMPT_RETRY),
                   pg_is_null(rows, row, ATTEMPT_CODE) ? "done" : word(session, rows, row, ATTEMPT_CODE),
                   word(session, rows, row, ATTEMPT_INFO));
            continue;
        }
        task_rows_write_attempt(&text, session->control->arena, rows, row);
        builder_add_text(&text, "\n");
        put(&text);
    }
}

static bool find_attempts(const struct task_session *session, const struct task_filter *filter,
                          struct pg_result **rows_r)
{
    struct pg_params params;
    pg_params_start(&params, session->control->arena);
    task_rows_add_attempt_filter(&params, filter);
    return query(session, STATEMENT_TASK_ATTEMPTS, &params, rows_r);
}

static int task_history(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "task history",
        "CODE",
        1,
        1,
        "List attempts at tasks that have ended, newest first.",
        "An attempt succeeded, failed with a code, was LOST with its worker, was DROPPED, or ran out of "
        "time\n"
        "between two steps (MORE).  Attempts are kept for task_history_s.\n"};
    struct task_session session = {.control = control};
    struct task_filter filter = TASK_FILTER_ALL;
    struct words words = {0};
    const struct option_line lines[] = {
        {.name = "id", .argument = "ID", .help = "List only attempts at this task.", .text = &words.id},
        {.name = "failures",
         .help = "List only attempts that failed or were lost.",
         .flag = &filter.only_failures},
        FILTER_LINES(&words, &filter, &session, "ends"),
    };
    int status;
    struct pg_result *rows;
    if (!begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    filter.operation = optional(words.operation);
    filter.info = optional(words.info);
    filter.id = optional(words.id);
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
    static const struct command command = {
        "task show", "CODE ID", 2, 2, "Show a task with all its columns, and the attempts at it.", NULL};
    struct task_session session = {.control = control};
    const struct option_line lines[] = {
        {.name = "json", .help = "Print task and attempts as JSON, one a line.", .flag = &session.as_json},
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control)};
    struct task_filter filter = TASK_FILTER_ALL;
    struct pg_params params;
    struct pg_result *rows, *attempts;
    struct builder text = {0};
    int status;
    if (!begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    filter.id = bytes_of(session.words[0]);
    filter.limit = SHOWN_ATTEMPTS;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, filter.id);
    if (!query(&session, STATEMENT_TASK_SHOW, &params, &rows) || !find_attempts(&session, &filter, &attempts))
        return CONTROL_FAILED;
    if (!pg_rows(rows) && !pg_rows(attempts)) {
        message_print("task show: %s: there is no such task", session.words[0]);
        return CONTROL_FAILED;
    }
    if (pg_rows(rows) && session.as_json) {
        task_rows_write_task(&text, control->arena, rows, 0);
        builder_add_text(&text, "\n");
    } else if (pg_rows(rows)) {
        task_rows_write_task_lines(&text, rows, 0);
    }
    put(&text);
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
    static const struct command command = {
        "task backlog",
        "CODE",
        1,
        1,
        "Count the tasks of a namespace, by queue.",
        "Counts at most 10000 tasks of a priority.  OLDEST is the start of the first task that is due.\n"};
    struct task_session session = {.control = control};
    const struct option_line lines[] = {
        {.name = "json", .help = "Print each queue as JSON.", .flag = &session.as_json},
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control)};
    struct pg_params params;
    struct pg_result *rows;
    int status;
    if (!begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    pg_params_start(&params, control->arena);
    pg_params_add_i32(&params, BACKLOG_MOST);
    if (!query(&session, STATEMENT_TASK_BACKLOG, &params, &rows))
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
        builder_add_text(&text, "\n");
        put(&text);
    }
    return CONTROL_DONE;
}

/* --- run, move, hold, drop --- */

/* One task; reports what was done, or why not. */
static bool do_deed(const struct task_session *session, const char *id, enum statement statement,
                    int64_t start, const char *done)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, session->control->arena);
    pg_params_add_text(&params, bytes_of(id));
    if (statement == STATEMENT_TASK_MOVE)
        pg_params_add_i64(&params, start);
    if (!query(session, statement, &params, &row))
        return false;
    if (pg_is_null(row, 0, DEED_RESULT)) {
        message_print("%s: %s", id, pg_get_bool(row, 0, DEED_IS_THERE) ? "it runs" : "there is no such task");
        return false;
    }
    printf("%s: %s\n", id, done);
    if (statement == STATEMENT_TASK_MOVE)
        task_wakeup_ns(&session->control->settings, bytes_of(session->code), start);
    return true;
}

static int do_deeds(struct control *control, const struct command *command, int argc, char **argv,
                    enum statement statement, const char *done)
{
    struct task_session session = {.control = control};
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    int status;
    bool is_done = true;
    if (!begin(&session, command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    for (int i = 0; i < session.count; i++)
        is_done = do_deed(&session, session.words[i], statement, stamp_now(), done) && is_done;
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static int task_run(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "task run",
        "CODE ID...",
        2,
        1 + TASKS_MOST,
        "Start tasks as soon as possible.",
        "A task that was parked or held starts over, as if it had never failed.\n"};
    return do_deeds(control, &command, argc, argv, STATEMENT_TASK_MOVE, "starts now");
}

static int task_move(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "task move",
        "CODE ID STAMP",
        3,
        3,
        "Move the start of a task to a stamp, yymmddhhmmssmmm, UTC.",
        "A task that was parked or held starts over, as if it had never failed.\n"};
    struct task_session session = {.control = control};
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    int status;
    int64_t start;
    if (!begin(&session, &command, lines, COUNT_OF(lines), argc, argv, &status))
        return status;
    if (!bytes_to_i64(bytes_of(session.words[1]), &start) || !stamp_is_valid(start) || start >= TASK_PARKED) {
        message_print("task move: %s: expected a stamp, yymmddhhmmssmmm", session.words[1]);
        return CONTROL_WRONG;
    }
    return do_deed(&session, session.words[0], STATEMENT_TASK_MOVE, start, "moved") ? CONTROL_DONE
                                                                                    : CONTROL_FAILED;
}

static int task_hold(struct control *control, int argc, char **argv)
{
    static const struct command command = {"task hold",
                                           "CODE ID...",
                                           2,
                                           1 + TASKS_MOST,
                                           "Park tasks until `task run` or `task move`.",
                                           "A running task continues, and is not held.\n"};
    return do_deeds(control, &command, argc, argv, STATEMENT_TASK_HOLD, "held");
}

static int task_drop(struct control *control, int argc, char **argv)
{
    static const struct command command = {"task drop",
                                           "CODE ID...",
                                           2,
                                           1 + TASKS_MOST,
                                           "Delete tasks; their history records it.",
                                           "A running task will not be committed.\n"};
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
    };
    static const char details[] = "Administer tasks: operations that run later.\n";
    return options_choose("task", details, choices, COUNT_OF(choices), control, argc, argv);
}
