/* cmd_import: `stampctl import`: options. */
#include "control/archive/importer.h"

#include <string.h>

#include "control/archive/archive_key.h"
#include "control/message.h"

static bool cmd_import_are_right(const struct importer_options *options, bool is_abandoned, char **words)
{
    if (strcmp(words[0], "z") == 0)
        message_print("import: z has the configurations of the other namespaces, and is not imported");
    else if (is_abandoned == (words[1] != NULL))
        message_print("import: expected CODE and ARCHIVE, or --abandon CODE");
    else if (words[1] && strcmp(words[1], "-") == 0)
        message_print("import: an archive is read twice, to verify it first; it must be a file");
    else if (is_abandoned && (options->transform || options->is_merge || options->keeps_configuration))
        message_print("import: --abandon goes with no other option");
    else
        return true;
    return false;
}

int control_import(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import",
        "CODE ARCHIVE | --abandon CODE",
        1,
        2,
        "Bring the documents of an archive into a namespace.",
        "The archive is verified first.  Into an empty namespace its documents come back exactly, with their "
        "versions,\n"
        "then its configuration, resources and schema; meanwhile the namespace is off, and at the end it is "
        "verified by\n"
        "digest.  After an interruption run the same command again: it continues.  With --merge documents "
        "are "
        "written\n"
        "into a namespace that is in use, with new versions.\n"};
    struct importer_options options = {0};
    const char *key_path = NULL;
    bool is_abandoned = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("merge", &options.is_merge,
                    "Write into a namespace in use, with new versions; its configuration stays."),
        OPTION_FLAG("no-configuration", &options.keeps_configuration,
                    "Leave configuration, rules, schema and resources of the namespace as they are."),
        OPTION_TEXT("transform", "COMMAND", &options.transform,
                    "Pass the lines of documents through COMMAND, run by the shell for each piece."),
        ARCHIVE_KEY_LINE(&key_path),
        OPTION_FLAG("abandon", &is_abandoned,
                    "Give up an interrupted import; what it restored is removed, what it merged stays."),
    };
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!cmd_import_are_right(&options, is_abandoned, words))
        return CONTROL_WRONG;
    options.code = words[0];
    options.path = words[1];
    return control_load_settings(control) && archive_key_read(control, key_path, &options.key) &&
                   (is_abandoned ? importer_abandon(control, words[0]) : importer_run(control, &options))
               ? CONTROL_DONE
               : CONTROL_FAILED;
}
