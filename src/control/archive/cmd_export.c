/* cmd_export: `stampctl export` and `stampctl import`: options, and the summaries at the end. */
#include "control/archive/exporter.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "base/clock.h"
#include "control/archive/archive_reader.h"
#include "control/archive/importer.h"
#include "control/message.h"
#include "model/document/stamp.h"

enum { PIECE_BYTES = 4 << 20, LEVEL = 3, LEVEL_MOST = 19 };

struct export_options {
    struct option_words classes, ids;
    const char *since, *key_path;
    int64_t level;
    bool leaves_files;
};

static bool cmd_export_are_right(const struct export_options *options, const char *path)
{
    for (int i = 0; i < options->classes.count; i++)
        if (!control_check_class("export", options->classes.words[i]))
            return false;
    if (strcmp(path, "-") == 0 && isatty(STDOUT_FILENO))
        return message_refuse("export: an archive is not for a terminal; name a FILE or redirect it");
    return true;
}

static void cmd_export_report(const char *path, const struct exporter_report *report, int64_t spent_ms)
{
    const struct archive_sum *sum = &report->sum;
    fprintf(
        strcmp(path, "-") == 0 ? stderr : stdout,
        "%lld documents, %lld deleted ones, %lld items, %zu files, as of %lld: %lld bytes in %lld.%lld s\n",
        (long long)sum->documents, (long long)sum->deleted, (long long)sum->items, report->files.count,
        (long long)report->snapshot.at, (long long)report->bytes, (long long)(spent_ms / 1000),
        (long long)(spent_ms / 100 % 10));
}

static int export(struct control *control, const struct export_options *options, const char *code,
                  const char *path)
{
    struct ns_target target;
    struct exporter_report result;
    struct exporter_options exporter = {
        .filter = {.classes = options->classes.words,
                   .class_count = (size_t)options->classes.count,
                   .ids = options->ids.words,
                   .id_count = (size_t)options->ids.count},
        .archive = {.path = path, .level = (int)options->level},
        .since = options->since,
        .leaves_files = options->leaves_files,
        .piece_bytes = PIECE_BYTES,
    };
    int64_t start_ms = clock_monotonic_ms();
    if (!control_load_settings(control) ||
        !archive_key_read(control, options->key_path, &exporter.archive.key) ||
        !ns_registry_connect(control, code, &target) || !exporter_run(control, &target, &exporter, &result))
        return CONTROL_FAILED;
    cmd_export_report(path, &result, clock_monotonic_ms() - start_ms);
    return CONTROL_DONE;
}

int control_export(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "export", "CODE FILE", "Write a namespace into an archive, as it is at one instant.",
        "The archive has the documents exactly as they are stored, deleted ones included, and the "
        "configuration,\n"
        "schema, access rules and resources of the namespace.  The server goes on meanwhile; `import` "
        "reads the\n"
        "archive, `verify` checks it.  FILE - is standard output.  An archive holds everything that the "
        "namespace\n"
        "holds, digests of passwords included.\n");
    struct export_options options = {.level = LEVEL};
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_WORDS("class", "NAME", &options.classes,
                     "Write only documents of this class, without configuration.  May be repeated."),
        OPTION_WORDS("id", "ID", &options.ids,
                     "Write only documents with this id, without configuration.  May be repeated."),
        OPTION_TEXT("since", "ARCHIVE|VERSION", &options.since,
                    "Write only documents changed since that archive was made, or of a later version."),
        OPTION_FLAG("no-files", &options.leaves_files,
                    "Leave out the files of attachments; where it is imported they must be there."),
        ARCHIVE_KEY_LINE(&options.key_path),
        OPTION_NUMBER("level", "N", &options.level, 1, LEVEL_MOST,
                      "Compress at this level of Zstandard (default: 3)."),
    };
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return cmd_export_are_right(&options, words[1]) ? export(control, &options, words[0], words[1])
                                                    : CONTROL_WRONG;
}

/* --- import --- */

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
    static const struct command command = COMMAND_OF(
        "import", "CODE ARCHIVE | --abandon CODE", 1, 2,
        "Bring the documents of an archive into a namespace.",
        "The archive is verified first.  Into an empty namespace its documents come back exactly, with their "
        "versions,\n"
        "then its configuration, resources and schema; meanwhile the namespace is off, and at the end it is "
        "verified by\n"
        "digest.  After an interruption run the same command again: it continues.  With --merge documents "
        "are "
        "written\n"
        "into a namespace that is in use, with new versions.\n");
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
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_import_are_right(&options, is_abandoned, words))
        return CONTROL_WRONG;
    options.code = words[0];
    options.path = words[1];
    return control_load_settings(control) && archive_key_read(control, key_path, &options.key) &&
                   (is_abandoned ? importer_abandon(control, words[0]) : importer_run(control, &options))
               ? CONTROL_DONE
               : CONTROL_FAILED;
}
