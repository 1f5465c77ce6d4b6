/* cmd_import_csv: `stampctl import-csv`: options. */
#include "control/foreign/csv_source.h"

#include <string.h>

#include "control/message.h"

int control_import_csv(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import-csv",
        "CODE FILE",
        2,
        2,
        "Store the rows of a CSV file as documents, one a row.",
        "The first line names the columns.  Without --mapping the first column is the id, and the others "
        "are\n"
        "texts in the item Main.  Every row is checked before the first is stored.  Documents get exactly "
        "the\n"
        "items of their row; a file can be imported again.  After an interruption run the same command "
        "again:\n"
        "it continues.\n"};
    struct foreign_import_options options = {0};
    struct csv_source csv;
    const char *class = NULL, *id = NULL;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        {.name = "class",
         .argument = "NAME",
         .help = "The class of the documents, if the mapping has none.",
         .text = &class},
        {.name = "id",
         .argument = "COLUMN",
         .help = "The column with the ids of documents (default: the first).",
         .text = &id},
        {.name = "mapping",
         .argument = "FILE",
         .help = "Which columns become which fields, and their types, as JSON.",
         .text = &options.mapping},
        {.name = "dry-run", .help = "Check the rows, and store nothing.", .flag = &options.is_dry_run},
        {.name = "skip-wrong",
         .help = "Store the rows that are right when others are wrong.",
         .flag = &options.skips_wrong},
    };
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!foreign_import_take(&options, command.name, words))
        return CONTROL_WRONG;
    if (strcmp(words[1], "-") == 0) {
        message_print("import-csv: the rows are read twice, to check them first; expected a file");
        return CONTROL_WRONG;
    }
    csv_source_init(&csv, control->arena, class, id);
    return control_load_settings(control) && foreign_import_run(control, &options, &csv.source)
               ? CONTROL_DONE
               : CONTROL_FAILED;
}
