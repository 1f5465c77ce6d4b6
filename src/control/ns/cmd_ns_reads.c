/* cmd_ns_reads: `stampctl ns reads` and `ns readers`: which namespaces a namespace reads, and which may read
 * it. */
#include "control/ns/cmd_ns.h"

#include <stdio.h>

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
    char **words;
    int status;
    if (!control_begin(control, command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    if (is_none && words[1]) {
        message_print("%s: expected --none or codes, not both", command->name);
        return CONTROL_WRONG;
    }
    bool is_done = words[1] || is_none ? cmd_ns_reads_set(control, words[0], member, words + 1)
                                       : print(control, words[0], member);
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

int cmd_ns_reads(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "ns reads",
        "CODE [OTHER...]",
        1,
        1 + NAMESPACE_READERS_MOST,
        "Set which other namespaces a namespace reads; without OTHER, list them.",
        "The other one must name it among its readers.  The given codes replace the former ones.\n"};
    return cmd_ns_reads_run(control, &command, "reads", argc, argv);
}

int cmd_ns_readers(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "ns readers",
        "CODE [OTHER...]",
        1,
        1 + NAMESPACE_READERS_MOST,
        "Set which other namespaces may read a namespace; without OTHER, list them.",
        "They must name it among those that they read.  The given codes replace the former ones.\n"};
    return cmd_ns_reads_run(control, &command, "readers", argc, argv);
}
