/* cmd_ns_reads: `stampctl ns reads` and `ns readers`: which namespaces a namespace reads, and which may read
 * it; `ns quotas` and `ns records`, members that are given as JSON; and `ns spread`. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "edge/json/json.h"
#include "model/namespace.h"

/* One code on each line. */
static bool print(struct control *control, const char *code, const char *member)
{
    const struct json *codes;
    if (!cmd_ns_read(control, code, member, &codes))
        return false;
    for (const struct json *one = codes ? codes->first : NULL; one; one = one->next)
        if (one->kind == JSON_STRING)
            printf("%.*s\n", (int)one->value.size, one->value.data);
    return true;
}

static bool cmd_ns_reads_set(struct control *control, const char *code, const char *member, char **codes)
{
    struct builder json = {0};
    for (size_t i = 0; codes[i]; i++) {
        builder_add(&json, i ? "," : "[", 1);
        json_add_string(&json, bytes_of(codes[i]));
    }
    if (json.size)
        builder_add_text(&json, "]");
    bool is_done = cmd_ns_set(control, code, member, json.size ? builder_bytes(&json) : NO_BYTES);
    builder_free(&json);
    return is_done;
}

static int cmd_ns_reads_run(struct control *control, const struct command *command, const char *member,
                            int argc, char **argv)
{
    bool is_none = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        OPTION_FLAG("none", &is_none, "No other namespace.")};
    char **words = control_begin(control, command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_none && words[1])
        return message_end(CONTROL_WRONG, "%s: expected --none or codes, not both", command->name);
    bool is_done = words[1] || is_none ? cmd_ns_reads_set(control, words[0], member, words + 1)
                                       : print(control, words[0], member);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

int cmd_ns_reads(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "ns reads", "CODE [OTHER...]", 1, 1 + NAMESPACE_READERS_MOST,
        "Set which other namespaces a namespace reads; without OTHER, list them.",
        "The other one must name it among its readers.  The given codes replace the former ones.\n");
    return cmd_ns_reads_run(control, &command, "reads", argc, argv);
}

int cmd_ns_readers(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "ns readers", "CODE [OTHER...]", 1, 1 + NAMESPACE_READERS_MOST,
        "Set which other namespaces may read a namespace; without OTHER, list them.",
        "They must name it among those that they read.  The given codes replace the former ones.\n");
    return cmd_ns_reads_run(control, &command, "readers", argc, argv);
}

/* --- quotas, records --- */

/* As it is configured; nothing where it is absent. */
static bool print_member(struct control *control, const char *code, const char *member)
{
    const struct json *value;
    if (!cmd_ns_read(control, code, member, &value))
        return false;
    if (value)
        printf("%.*s\n", (int)value->text.size, value->text.data);
    return true;
}

/* The member has the name of the command's last word; `none` is what --none does. */
static int set_member(struct control *control, const struct command *command, const char *member,
                      const char *none, int argc, char **argv)
{
    bool is_none = false;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        OPTION_FLAG("none", &is_none, none)};
    char **words = control_begin(control, command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_none && words[1])
        return message_end(CONTROL_WRONG, "%s: expected --none or JSON, not both", command->name);
    struct bytes value = is_none ? NO_BYTES : bytes_of(words[1] ? words[1] : "");
    bool is_done = words[1] || is_none ? cmd_ns_set(control, words[0], member, value)
                                       : print_member(control, words[0], member);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

int cmd_ns_quotas(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns quotas", "CODE [QUOTAS]", "Set the quotas of callers; without QUOTAS, print them.",
        "QUOTAS is a JSON object, as "
        "{\"address\":{\"requests\":\"600/min\",\"live_open\":10},\"namespace\":{\"writes\":\"50/s\"}}.\n"
        "A namespace without quotas has those of z.  Those of an address do not hold for exempt_clients.\n");
    return set_member(control, &command, "quotas", "Remove them: those of z apply.", argc, argv);
}

int cmd_ns_records(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns records", "CODE [RULES]", "Set who may read and write which records; without RULES, print it.",
        "RULES is a JSON array, as\n"
        "[{\"prefix\":\"presence.{account}.\",\"read\":\"anyone\",\"write\":\"account\",\"ttl_ms\":30000}].\n"
        "What no rule allows, only the administrator may do.\n");
    return set_member(control, &command, "records", "Remove them: only the administrator may use records.",
                      argc, argv);
}

int cmd_ns_spread(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "ns spread", "CODE on|off", "Set whether several hosts hold the records of a namespace together.",
        "on: they are on the hosts of `stampctl host list`, and only stamp-journal serves them.  off: each "
        "host has its own.\nRecords are not moved: they stay where they were, and are not seen.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    bool is_on;
    if (!cmd_ns_read_switch(command.name, words[1], &is_on))
        return CONTROL_WRONG;
    return cmd_ns_set(control, words[0], "spread", is_on ? BYTES("true") : NO_BYTES) ? CONTROL_DONE
                                                                                     : CONTROL_FAILED;
}
