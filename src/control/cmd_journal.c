/* cmd_journal: `stampctl journal`: tests a stamp-journal without a program. */
#include "control/control.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "control/journal_shell.h"
#include "control/message.h"

enum { LINES_MOST = 20, PAGE = 1000, PING_S = 30 };

/* Reads options and arguments, and connects.  NULL: the command ends with control->status. */
static char **cmd_journal_begin(struct journal_shell *shell, const struct command *command,
                                const struct option_line *own, size_t own_count, int argc, char **argv)
{
    const struct option_line common[] = {JOURNAL_SHELL_LINES(shell)};
    struct option_line lines[LINES_MOST];
    if (own_count)
        memcpy(lines, own, own_count * sizeof *own);
    memcpy(lines + own_count, common, sizeof common);
    struct control *control = shell->control;
    char **words = options_read(control, command, lines, own_count + COUNT_OF(common), argc, argv);
    if (words)
        control->status =
            journal_shell_open(shell, command->name, strcmp(command->name, "journal ping") != 0);
    return control->status == CONTROL_DONE ? words : NULL;
}

/* Runs it, prints the record that is returned, and closes. */
static int cmd_journal_finish(struct journal_shell *shell, const struct command *command,
                              const struct stampd_journal_request *request, bool has_value)
{
    struct stampd_journal_answer answer;
    struct stampd_journal_record record;
    int status = journal_shell_run(shell, command->name, request, &answer);
    if (status == CONTROL_DONE)
        journal_shell_print(shell, &answer,
                            stampd_journal_next_record(&answer, &record) == 0 ? &record : NULL, has_value);
    journal_shell_close(shell);
    return status;
}

static int ping(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("journal ping", "", "Check that a stamp-journal answers.",
                "With --ns and --key-file it also checks the key and that the namespace is served.\n");
    struct journal_shell shell = JOURNAL_SHELL(control);
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    struct stampd_journal_answer answer;
    struct record line = {0};
    char **words = cmd_journal_begin(&shell, &command, NULL, 0, argc, argv);
    if (!words)
        return control->status;
    request.function = STAMPD_JOURNAL_PING;
    int64_t start_us = clock_monotonic_us();
    int status = journal_shell_run(&shell, command.name, &request, &answer);
    int64_t spent_us = clock_monotonic_us() - start_us;
    if (status == CONTROL_DONE && shell.ns) { /* a key that no record has is as good as any */
        request.function = STAMPD_JOURNAL_GET;
        request.key = journal_shell_text("stampctl.ping");
        int error = stampd_journal_run(shell.journal, &request, &answer);
        struct bytes word = {answer.error.size ? answer.error.data : "", answer.error.size};
        if (error ||
            (word.size && !bytes_equal(word, BYTES("NOT_FOUND")) && !bytes_equal(word, BYTES("RIGHT")))) {
            message_print("%s: %s", command.name,
                          error ? strerror(error) : message_quote(control->arena, word));
            status = CONTROL_FAILED;
        }
    }
    journal_shell_close(&shell);
    if (status == CONTROL_DONE && shell.is_json) {
        record_add_i64(&line, "microseconds", spent_us);
        record_print(&line);
    } else if (status == CONTROL_DONE) {
        printf("OK  %lld us\n", (long long)spent_us);
    }
    return status;
}

static int cmd_journal_get(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND("journal get", "KEY", "Print a record.", NULL);
    struct journal_shell shell = JOURNAL_SHELL(control);
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    bool is_probe = false, is_idle = false;
    int64_t work_ms = 0, ttl_ms = 0;
    const struct option_line lines[] = {
        OPTION_FLAG("probe", &is_probe, "Without the value; it is no use of the record."),
        OPTION_NUMBER("work", "MS", &work_ms, 0, INT32_MAX, "Mark it as worked on."),
        OPTION_FLAG("idle", &is_idle, "Leave alone what is worked on."),
        OPTION_NUMBER("ttl", "MS", &ttl_ms, 0, INT64_MAX, "Move its end so far from now.")};
    char **words = cmd_journal_begin(&shell, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    request.function = STAMPD_JOURNAL_GET;
    request.key = journal_shell_text(words[0]);
    request.timeout_ms = (uint64_t)(ttl_ms ? ttl_ms : work_ms);
    request.flags = (is_probe ? 0u : STAMPD_JOURNAL_DATA) | (is_idle ? STAMPD_JOURNAL_WORKED_ON : 0u) |
                    (ttl_ms ? STAMPD_JOURNAL_UPDATE_TIMEOUT : 0u) | STAMPD_JOURNAL_STAMP;
    return cmd_journal_finish(&shell, &command, &request, !is_probe);
}

/* All pages, up to `most` records; 0: all. */
static int print_pages(struct journal_shell *shell, const char *command,
                       struct stampd_journal_request *request, int64_t most)
{
    struct stampd_journal_answer answer;
    struct stampd_journal_record record;
    int status;
    for (int64_t left = most ? most : INT64_MAX; left > 0;) {
        request->count = left < PAGE ? (unsigned)left : PAGE;
        status = journal_shell_run(shell, command, request, &answer);
        if (status != CONTROL_DONE)
            return status;
        for (; stampd_journal_next_record(&answer, &record) == 0; left--)
            journal_shell_print(shell, &answer, &record, request->flags & STAMPD_JOURNAL_DATA);
        if (!answer.cursor.size)
            break;
        request->query = STAMPD_JOURNAL_CURSOR;
        request->key.data = arena_copy(shell->control->arena, answer.cursor.data, answer.cursor.size);
        request->key.size = answer.cursor.size;
    }
    return CONTROL_DONE;
}

static int cmd_journal_list(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("journal list", "[FROM [TO]]", "Print the records from one key to another, both included.",
                "Needs a key that is valid for all records of the namespace.\n");
    struct journal_shell shell = JOURNAL_SHELL(control);
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    bool is_probe = false;
    const char *pattern = NULL;
    int64_t most = 0;
    const struct option_line lines[] = {
        OPTION_TEXT("pattern", "REGEX", &pattern, "Those whose key matches, instead of FROM and TO."),
        OPTION_NUMBER("limit", "COUNT", &most, 0, INT64_MAX, "At most so many (default: all)."),
        OPTION_FLAG("probe", &is_probe, "Without the values.")};
    char **words = cmd_journal_begin(&shell, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (pattern && control->word_count) {
        message_print("%s: either --pattern or keys are expected", command.name);
        journal_shell_close(&shell);
        return CONTROL_WRONG;
    }
    request.function = STAMPD_JOURNAL_GET;
    request.flags = is_probe ? 0u : STAMPD_JOURNAL_DATA;
    request.query = pattern ? STAMPD_JOURNAL_PATTERN : STAMPD_JOURNAL_RANGE;
    request.key = journal_shell_text(pattern ? pattern : control->word_count > 0 ? words[0] : "");
    request.other = journal_shell_text(control->word_count > 1 ? words[1] : "");
    int status = print_pages(&shell, command.name, &request, most);
    journal_shell_close(&shell);
    return status;
}

static int cmd_journal_set(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND("journal set", "KEY VALUE", "Store a record.", NULL);
    struct journal_shell shell = JOURNAL_SHELL(control);
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    const char *type = "string", *stamp = NULL;
    bool is_only_present = false, may_overwrite = false, is_touched = false, is_persisted = false;
    int64_t ttl_ms = 0;
    unsigned char bytes[8];
    const struct option_line lines[] = {
        OPTION_TEXT("type", "TYPE", &type, "string (default), integer, float, boolean, buffer or void."),
        OPTION_NUMBER("ttl", "MS", &ttl_ms, 0, INT64_MAX,
                      "It ends so many milliseconds from now (default: never)."),
        OPTION_FLAG("touch", &is_touched, "Each get of its value moves its end again."),
        OPTION_FLAG("overwrite", &may_overwrite, "Also where there is a record."),
        OPTION_FLAG("present", &is_only_present, "Only where there is a record."),
        OPTION_TEXT("if", "STAMP", &stamp, "Only if the record has this stamp, as get --json prints it."),
        OPTION_FLAG("persist", &is_persisted, "It is kept on disk.")};
    char **words = cmd_journal_begin(&shell, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    request.function = STAMPD_JOURNAL_SET;
    request.key = journal_shell_text(words[0]);
    request.timeout_ms = (uint64_t)ttl_ms;
    request.flags =
        (may_overwrite ? STAMPD_JOURNAL_OVERWRITE : 0u) | (is_touched ? STAMPD_JOURNAL_UPDATE_TIMEOUT : 0u) |
        (is_only_present ? STAMPD_JOURNAL_ONLY_PRESENT : 0u) | (stamp ? STAMPD_JOURNAL_IF_STAMP : 0u) |
        STAMPD_JOURNAL_STAMP | (is_persisted ? STAMPD_JOURNAL_PERSIST : 0u);
    request.stamp = stamp ? strtoull(stamp, NULL, 16) : 0;
    if (!journal_shell_read_value(command.name, type, words[1], bytes, &request)) {
        journal_shell_close(&shell);
        return CONTROL_WRONG;
    }
    return cmd_journal_finish(&shell, &command, &request, false);
}

/* Waits for a change; over TCP the server would close an idle connection. */
static int await_change(struct journal_shell *shell)
{
    struct stampd_journal_request ping = STAMPD_JOURNAL_REQUEST;
    struct stampd_journal_answer answer;
    struct stampd_journal_text changed;
    int64_t pause_s = shell->timeout_s < PING_S ? shell->timeout_s : PING_S;
    int error;
    ping.function = STAMPD_JOURNAL_PING;
    while ((error = stampd_journal_next_notice(shell->journal, (int)pause_s * 1000, &changed)) == ETIMEDOUT)
        if ((error = stampd_journal_run(shell->journal, &ping, &answer)) != 0)
            break;
    return error;
}

/* Prints the record, or null, at first and after each change. */
static int cmd_journal_follow(struct journal_shell *shell, const struct command *command, const char *key,
                              int64_t most)
{
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    struct stampd_journal_answer answer;
    struct stampd_journal_record record;
    int error = 0;
    request.function = STAMPD_JOURNAL_GET;
    request.flags = STAMPD_JOURNAL_DATA | STAMPD_JOURNAL_LISTEN;
    request.key = journal_shell_text(key);
    for (int64_t count = 0; !error && (!most || count < most); count++) {
        if (count)
            error = await_change(shell);
        if (!error)
            error = stampd_journal_run(shell->journal, &request, &answer);
        if (error)
            break;
        bool is_there = stampd_journal_next_record(&answer, &record) == 0;
        struct bytes word = {answer.error.size ? answer.error.data : "", answer.error.size};
        if (word.size && !bytes_equal(word, BYTES("NOT_FOUND")))
            return message_end(CONTROL_FAILED, "%s: %s", command->name,
                               message_quote(shell->control->arena, word));
        if (is_there)
            journal_shell_print(shell, &answer, &record, true);
        else
            puts("null");
        fflush(stdout);
    }
    if (error)
        message_print("%s: %s", command->name, strerror(error));
    return error ? CONTROL_FAILED : CONTROL_DONE;
}

static int listen_to(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("journal listen", "KEY", "Print a record, and again after each change.", NULL);
    struct journal_shell shell = JOURNAL_SHELL(control);
    int64_t most = 0;
    const struct option_line line =
        OPTION_NUMBER("count", "COUNT", &most, 0, INT64_MAX, "End after so many lines (default: never).");
    char **words = cmd_journal_begin(&shell, &command, &line, 1, argc, argv);
    if (!words)
        return control->status;
    int status = cmd_journal_follow(&shell, &command, words[0], most);
    journal_shell_close(&shell);
    return status;
}

static int cmd_journal_delete(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND("journal delete", "KEY", "Delete a record.", NULL);
    struct journal_shell shell = JOURNAL_SHELL(control);
    struct stampd_journal_request request = STAMPD_JOURNAL_REQUEST;
    char **words = cmd_journal_begin(&shell, &command, NULL, 0, argc, argv);
    if (!words)
        return control->status;
    request.function = STAMPD_JOURNAL_DELETE;
    request.key = journal_shell_text(words[0]);
    return cmd_journal_finish(&shell, &command, &request, false);
}

int control_journal(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"ping", "Check that a stamp-journal answers.", ping},
        {"get", "Print a record.", cmd_journal_get},
        {"list", "Print many records.", cmd_journal_list},
        {"listen", "Print a record after each change.", listen_to},
        {"set", "Store a record.", cmd_journal_set},
        {"delete", "Delete a record.", cmd_journal_delete},
    };
    return options_choose("journal", "Test a stamp-journal without a program of yours.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
