/* cmd_push: `stampctl push`: the key that identifies the server to push services. */
#include "control/control.h"

#include <stdio.h>
#include <stdlib.h>

#include "control/cmd_key.h"
#include "control/message.h"
#include "control/record.h"
#include "operation/push/push_send.h"

enum { PROBLEM_BYTES = 600 };

/* One value: as a member of that name, or as a line of the settings, or alone. */
static void print_value(const char *name, struct bytes value, bool is_setting, bool is_json)
{
    struct record record = {0};
    if (is_json) {
        record_add_text(&record, name, value);
        record_print(&record);
    } else {
        printf("%s%s%.*s\n", is_setting ? name : "", is_setting ? " = " : "", (int)value.size, value.data);
    }
}

static void print_public(const struct curve_key *key, bool is_json)
{
    struct builder line = {0};
    push_key_add_public(&line, key);
    print_value("applicationServerKey", builder_bytes(&line), false, is_json);
    builder_free(&line);
}

static int push_key(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "push key", "FILE", "Write a new key to a new file that only its owner can read.",
        "Prints the line for stampd's settings, which need push_contact too.  stampd's user must be able to\n"
        "read the file.  Keep the key: a new one invalidates all subscriptions of browsers.\n");
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    struct curve_key key;
    struct builder line = {0};
    curve_make_key(&key);
    push_key_add_secret(&line, &key);
    bool is_written = cmd_key_write(words[0], builder_bytes(&line));
    explicit_bzero(line.data, line.size);
    builder_free(&line);
    explicit_bzero(&key, sizeof key);
    if (!is_written)
        return CONTROL_FAILED;
    char *path = realpath(words[0], NULL);
    print_value("push_key_file", bytes_of(path ? path : words[0]), true, is_json);
    free(path);
    return CONTROL_DONE;
}

static int push_public(struct control *control UNUSED, int argc, char **argv)
{
    static const struct command command =
        COMMAND("push public", "FILE", "Print the applicationServerKey for browsers.", NULL);
    bool is_json = false;
    const struct option_line lines[] = {RECORD_JSON_LINE(&is_json)};
    char problem[PROBLEM_BYTES];
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    struct curve_key key;
    if (!push_key_read(words[0], &key, problem, sizeof problem))
        return message_end(CONTROL_FAILED, "%s", problem);
    explicit_bzero(key.secret, sizeof key.secret);
    print_public(&key, is_json);
    return CONTROL_DONE;
}

int control_push(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"key", "Create a key.", push_key},
        {"public", "Print the public half of a key.", push_public},
    };
    return options_choose("push", "Create the key that identifies the server to push services.\n", choices,
                          COUNT_OF(choices), control, argc, argv);
}
