/* cmd_import_csv: `stampctl import-csv`: options. */
#include "control/foreign/csv/csv_source.h"

int control_import_csv(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import-csv",
        "CODE FILE",
        2,
        2,
        "Store the rows of a CSV file as documents, one a row.",
        "The first line names the columns; commas separate them, or semicolons or tabs if it has no\n"
        "comma, or what a line sep=X before it names.  Without --mapping the first column is the id, and\n"
        "the others are texts in the item Main.  Every row is checked before the first is stored.\n"
        "Documents get exactly the items of their row; of several rows with one id the last is stored.\n"
        "A file can be imported again.  After an interruption run the same command again: it continues.\n"};
    struct foreign_import_options options = {0};
    struct csv_source csv;
    const char *id = NULL;
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of the documents, if the mapping has none."),
        {.name = "id",
         .argument = "COLUMN",
         .help = "The column with the ids of documents (default: the first).",
         .text = &id},
    };
    int status;
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options, &status))
        return status;
    csv_source_init(&csv, control->arena, options.class, id);
    return foreign_import_run(control, &options, &csv.source) ? CONTROL_DONE : CONTROL_FAILED;
}
