/* cmd_import_foreign: `stampctl import-csv` and `stampctl import-firestore`: options; programs in Python read
 * the files (foreign_reader.h). */
#include "control/control.h"

#include "control/foreign/foreign_import.h"
#include "control/message.h"

int control_import_csv(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "import-csv", "CODE FILE", "Store the rows of a CSV file as documents, one a row.",
        "The first line names the columns; commas separate them, or semicolons or tabs if it has no\n"
        "comma, or what a line sep=X before it names.  Without --mapping the first column is the id, and\n"
        "the others are texts in the item Main.  Every row is checked before the first is stored.\n"
        "Documents get exactly the items of their row; of several rows with one id the last is stored.\n"
        "A file can be imported again.  After an interruption run the same command again: it continues.\n");
    static const struct foreign_kind kind = {
        .name = "csv", .unit = "rows", .program = "import_csv.py", .has_repeats = true};
    struct foreign_import_options options = {.kind = &kind};
    const char *id = NULL;
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options, "The class of the documents, if the mapping has none."),
        OPTION_TEXT("id", "COLUMN", &id, "The column with the ids of documents (default: the first)."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    if (id)
        options.own = message_quote(control->arena, bytes_of(id));
    return foreign_import_run(control, &options) ? CONTROL_DONE : CONTROL_FAILED;
}

int control_import_firestore(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "import-firestore", "CODE FOLDER", "Store the documents of an export of Firestore.",
        "FOLDER is what `gcloud firestore export` has written, copied to this host.  The fields of a "
        "document\n"
        "become the item Main.  A mapping names the class of each collection, also of subcollections.  "
        "Every\n"
        "file is checked before the first document is stored.  After an interruption run the same command\n"
        "again: it continues.\n");
    static const struct foreign_kind kind = {
        .name = "firestore", .unit = "documents", .program = "import_firestore.py"};
    struct foreign_import_options options = {.kind = &kind};
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options,
                             "The class of the one collection for which the mapping has none."),
    };
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options))
        return control->status;
    return foreign_import_run(control, &options) ? CONTROL_DONE : CONTROL_FAILED;
}
