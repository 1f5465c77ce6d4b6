/* cmd_ns_move: `stampctl ns move`: options. */
#include "control/ns/cmd_ns.h"

#include <string.h>

#include "control/message.h"
#include "control/move/ns_mover.h"

struct move_words {
    const char *to, *to_admin_conninfo, *folder, *message;
    bool is_abandoned;
};

static bool cmd_ns_move_are_right(const struct move_words *words, const char *code)
{
    if (strcmp(code, "z") == 0)
        message_print("ns move: z has the configurations of the other namespaces, and is not moved");
    else if (!words->to && !words->is_abandoned)
        message_print("ns move: name the settings of the other site: --to FILE");
    else if (words->is_abandoned && (words->to || words->message))
        message_print("ns move: --abandon goes with --folder only");
    else
        return true;
    return false;
}

static bool cmd_ns_move_run(struct control *control, const struct move_words *words, const char *code)
{
    struct control to = {
        .arena = control->arena, .config = words->to, .admin_conninfo = words->to_admin_conninfo};
    const struct ns_mover_options options = {
        .code = code,
        .folder = words->folder ? words->folder : arena_printf(control->arena, "%s.move", code),
        .message = words->message ? words->message : "The namespace has moved to another server.",
    };
    if (words->is_abandoned)
        return ns_mover_abandon(control, &options);
    bool is_moved = control_load_settings(&to) && ns_mover_run(control, &to, &options);
    if (to.has_settings)
        settings_free(&to.settings);
    return is_moved;
}

int cmd_ns_move(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "ns move",
        "CODE --to FILE",
        1,
        1,
        "Move a namespace to another site while it is served.",
        "The other site has its own PostgreSQL, namespace z and servers; FILE is a copy of its settings, and "
        "the\n"
        "namespace has been created there, empty.  All documents are copied, then what has changed "
        "meanwhile,\n"
        "again and again; then the namespace is read-only for the seconds that the rest takes, gone here "
        "and\n"
        "open there.  Clients keep their copies.  After an interruption run the same command again.\n"};
    struct move_words move = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        {.name = "to",
         .argument = "FILE",
         .help = "Read the settings of the other site from FILE.",
         .text = &move.to},
        {.name = "to-admin-conninfo",
         .argument = "CONNINFO",
         .help = "Connect to PostgreSQL of the other site as administrator with this string.",
         .text = &move.to_admin_conninfo},
        {.name = "folder",
         .argument = "FOLDER",
         .help = "Keep archives here meanwhile (default: CODE.move); they are as secret as the database.",
         .text = &move.folder},
        {.name = "message",
         .argument = "TEXT",
         .help = "Tell callers of the former site this.",
         .text = &move.message},
        {.name = "abandon", .help = "Open the namespace here again.", .flag = &move.is_abandoned},
    };
    char **words;
    int status;
    if (!control_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &words, &status))
        return status;
    if (!cmd_ns_move_are_right(&move, words[0]))
        return CONTROL_WRONG;
    return cmd_ns_move_run(control, &move, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
