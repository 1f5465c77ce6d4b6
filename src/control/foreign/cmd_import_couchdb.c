/* cmd_import_couchdb: `stampctl import-couchdb`: options. */
#include "control/foreign/couch_source.h"

int control_import_couchdb(struct control *control, int argc, char **argv)
{
    static const struct command command = {
        "import-couchdb",
        "CODE FILE",
        2,
        2,
        "Store the documents of a CouchDB database, with attachments.",
        "FILE is the answer of CouchDB to _all_docs?include_docs=true&attachments=true.  The members of a\n"
        "document become the item Main, without those that begin with _; its attachments become files.\n"
        "Every document is checked before the first is stored; a file can be imported again.  After an\n"
        "interruption run the same command again: it continues.\n"};
    struct foreign_import_options options = {0};
    struct couch_source couch;
    const char *class = NULL;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        {.name = "class",
         .argument = "NAME",
         .help = "The class of documents for which the mapping has none.",
         .text = &class},
        {.name = "mapping",
         .argument = "FILE",
         .help = "Which class and item documents become, as JSON.",
         .text = &options.mapping},
        {.name = "dry-run", .help = "Check the documents, and store nothing.", .flag = &options.is_dry_run},
        {.name = "skip-wrong",
         .help = "Store the documents that are right when others are wrong.",
         .flag = &options.skips_wrong},
    };
    char **words;
    int count;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    if (!foreign_import_take(&options, command.name, words))
        return CONTROL_WRONG;
    couch_source_init(&couch, control->arena, class);
    return control_load_settings(control) && foreign_import_run(control, &options, &couch.source)
               ? CONTROL_DONE
               : CONTROL_FAILED;
}
