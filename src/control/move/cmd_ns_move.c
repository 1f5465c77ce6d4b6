/* cmd_ns_move: `stampctl ns move`: options. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/move/ns_mover.h"
#include "control/ns/cmd_ns.h"
#include "control/ns/ns_registry.h"

/* --- the command --- */

struct move_words {
    const char *to, *to_admin_conninfo, *cell, *folder, *message;
    struct map_options map;
    bool is_abandoned, drops_former;
};

static bool cmd_ns_move_are_right(const struct move_words *words, const char *code)
{
    if (strcmp(code, "z") == 0)
        message_print("ns move: z has the configurations of the other namespaces, and is not moved");
    else if (!words->to && !words->cell && !words->is_abandoned)
        message_print(
            "ns move: name the settings of the other site, --to FILE, or another cell, --cell NAME");
    else if (words->to && words->cell)
        message_print("ns move: --to names another site, --cell a cell of this one: give one of them");
    else if (words->drops_former && !words->cell)
        message_print("ns move: --drop goes with --cell only");
    else if (words->is_abandoned && (words->to || words->cell || words->message))
        message_print("ns move: --abandon goes with --folder only");
    else
        return true;
    return false;
}

/* The database has the same name there. */
static const char *find_place(struct control *control, const char *code, const char *cell)
{
    struct pg *z;
    struct namespace_conf *confs;
    size_t count;
    const char *name = strcmp(cell, "-") == 0 ? "" : cell;
    if (!settings_conninfo_of_cell(&control->settings, name)) {
        message_print("ns move: --cell %s: there is no setting database.%s", cell, cell);
        return NULL;
    }
    const struct namespace_conf *conf =
        ns_registry_open(control, &z) && ns_registry_read(control, z, &confs, &count)
            ? ns_registry_require(confs, count, code)
            : NULL;
    if (!conf)
        return NULL;
    const char *place =
        arena_printf(control->arena, "%s%s%s", control_database_name(control->arena, conf->database),
                     *name ? "@" : "", name);
    if (namespace_is_database(place))
        return place;
    message_print("%s: the name of a database is made of letters, digits, _ and -, at most 63", place);
    return NULL;
}

static bool move_to_cell(struct control *control, const struct move_words *words,
                         const struct ns_mover_options *options)
{
    struct control to = *control;
    to.place = find_place(control, options->code, words->cell);
    return to.place && ns_mover_run(control, &to, options);
}

static bool cmd_ns_move_run(struct control *control, const struct move_words *words, const char *code)
{
    struct control to = {
        .arena = control->arena, .config = words->to, .admin_conninfo = words->to_admin_conninfo};
    const struct ns_mover_options options = {
        .code = code,
        .folder = words->folder ? words->folder : arena_printf(control->arena, "%s.move", code),
        .message = words->message ? words->message : "The namespace has moved to another server.",
        .map = &words->map,
        .drops_former = words->drops_former,
    };
    if (words->is_abandoned)
        return ns_mover_abandon(control, &options);
    if (words->cell)
        return move_to_cell(control, words, &options);
    bool is_moved = control_load_settings(&to) && ns_mover_run(control, &to, &options);
    if (to.has_settings)
        settings_free(&to.settings);
    return is_moved;
}

int cmd_ns_move(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "ns move", "CODE --to FILE|--cell NAME", 1, 1,
        "Move a namespace to another site, or to another cell, while it is served.",
        "The other site has its own PostgreSQL, namespace z and servers; FILE is a copy of its settings, and "
        "the\n"
        "namespace has been created there, empty.  All documents are copied, then what has changed "
        "meanwhile,\n"
        "again and again; then the namespace is read-only for the seconds that the rest takes, gone here "
        "and\n"
        "open there.  Clients keep their copies.  After an interruption run the same command again.\n"
        "To another cell of this site, setting database.NAME (-: that of z), the namespace needs nothing: "
        "its database\n"
        "is made there, and one commit in z moves it.\n");
    struct move_words move = {0};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_TEXT("to", "FILE", &move.to, "Read the settings of the other site from FILE."),
        OPTION_TEXT("to-admin-conninfo", "CONNINFO", &move.to_admin_conninfo,
                    "Connect to PostgreSQL of the other site as administrator with this string."),
        OPTION_TEXT("cell", "NAME", &move.cell, "Move it to this cell of this site."),
        OPTION_FLAG("drop", &move.drops_former, "Drop the database that it has left in the former cell."),
        NS_MAP_LINES(&move.map),
        OPTION_TEXT("folder", "FOLDER", &move.folder,
                    "Keep archives here meanwhile (default: CODE.move); they are as secret as the database."),
        OPTION_TEXT("message", "TEXT", &move.message, "Tell callers of the former site this."),
        OPTION_FLAG("abandon", &move.is_abandoned, "Open the namespace here again."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_ns_move_are_right(&move, words[0]))
        return CONTROL_WRONG;
    return cmd_ns_move_run(control, &move, words[0]) ? CONTROL_DONE : CONTROL_FAILED;
}
