/* cmd_import_firestore: `stampctl import-firestore`: options. */
#include "control/foreign/firestore/firestore_source.h"

int control_import_firestore(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import-firestore",
        "CODE FOLDER",
        2,
        2,
        "Store the documents of an export of Firestore.",
        "FOLDER is what `gcloud firestore export` has written, copied to this host.  The fields of a "
        "document\n"
        "become the item Main.  A mapping names the class of each collection, also of subcollections.  "
        "Every\n"
        "file is checked before the first document is stored.  After an interruption run the same command\n"
        "again: it continues.\n"};
    struct foreign_import_options options = {0};
    struct firestore_source firestore;
    const struct option_line lines[] = {
        FOREIGN_IMPORT_LINES(control, &options,
                             "The class of the one collection for which the mapping has none."),
    };
    int status;
    if (!foreign_import_begin(control, &command, lines, COUNT_OF(lines), argc, argv, &options, &status))
        return status;
    firestore_source_init(&firestore, control->arena, options.class);
    return foreign_import_run(control, &options, &firestore.source) ? CONTROL_DONE : CONTROL_FAILED;
}
