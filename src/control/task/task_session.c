/* task_session: beginning, statements, texts. */
#include "control/task/task_session.h"

#include "control/message.h"
#include "control/ns/ns_registry.h"

bool task_session_begin(struct task_session *session, const struct command *command,
                        const struct option_line *lines, size_t line_count, int argc, char **argv)
{
    struct ns_target target;
    char **words = control_begin(session->control, command, lines, line_count, argc, argv);
    if (!words)
        return false;
    session->code = words[0];
    session->words = words[0] ? words + 1 : words;
    while (session->words[session->count])
        session->count++;
    if (!session->code)
        return true;
    if (!ns_registry_connect(session->control, session->code, &target))
        return false;
    session->pg = target.pg;
    return true;
}

bool task_session_query(const struct task_session *session, enum statement statement,
                        const struct pg_params *params, struct pg_result **rows_r)
{
    return control_query(session->control, session->pg, session->code, statements[statement].sql, params,
                         rows_r);
}

const char *task_session_word(const struct task_session *session, const struct pg_result *rows, int row,
                              int column)
{
    struct bytes text = pg_get_text(rows, row, column);
    char *copy = arena_copy(session->control->arena, text.data ? text.data : "", text.size);
    for (char *at = copy; *at; at++)
        if ((unsigned char)*at < ' ' || *at == '\x7f')
            *at = ' ';
    return copy;
}

bool task_session_has_subject(const struct command *command, int64_t queue, const char *operation)
{
    bool is_one = (queue >= 0) != (operation != NULL);
    if (!is_one)
        message_print("%s: either --queue or --op is expected", command->name);
    return is_one;
}

bool task_session_has_choice(const struct task_session *session, const struct command *command,
                             const struct task_filter *filter, bool is_dry)
{
    bool has_tasks = session->count > 0;
    bool is_choice = has_tasks != task_rows_is_filtered(filter) && !(has_tasks && is_dry);
    if (!is_choice)
        message_print("%s: either tasks or a filter are expected", command->name);
    return is_choice;
}
