/* task_session: a command of `stampctl task`, connected to the database of a namespace. */
#ifndef STAMPD_CONTROL_TASK_TASK_SESSION_H
#define STAMPD_CONTROL_TASK_TASK_SESSION_H

#include "control/control.h"
#include "model/task/worker_queues.h"
#include "store/statements.h"
#include "store/tasks/task_rows.h"

struct task_session {
    struct control *control;
    const char *code;
    struct pg *pg;
    char **words; /* after the code */
    int count;
    bool as_json;
};

/* Options, settings, the namespace's database.  False: the command ends with control->status. */
MUST_USE bool task_session_begin(struct task_session *session, const struct command *command,
                                 const struct option_line *lines, size_t line_count, int argc, char **argv);
MUST_USE bool task_session_query(const struct task_session *session, enum statement statement,
                                 const struct pg_params *params, struct pg_result **rows_r);
/* The options of a command about a queue or an operation; `queue` begins as -1. */
/* clang-format off */
#define TASK_SUBJECT_LINES(queue, operation)                                                                 \
    OPTION_NUMBER("queue", "QN", (queue), 0, WORKER_QUEUES_END - 1, "The queue, 0 to 31."),                                                                         \
    OPTION_TEXT("op", "NAME", (operation), "The operation.")
/* clang-format on */
/* False, with a message: not exactly one of them was given. */
MUST_USE bool task_session_has_subject(const struct command *command, int64_t queue, const char *operation);
/* False, with a message: neither tasks nor a filter were given, or both, or a dry run of tasks. */
MUST_USE bool task_session_has_choice(const struct task_session *session, const struct command *command,
                                      const struct task_filter *filter, bool is_dry);
/* A text as a column, "" for null; drops characters that must not reach a terminal. */
const char *task_session_word(const struct task_session *session, const struct pg_result *rows, int row,
                              int column);

#endif
