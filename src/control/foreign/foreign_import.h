/* foreign_import: brings the documents of a file of another system into a namespace in use.
 *
 * The file is read twice: first to check every document, then to store them, in transactions that also record
 * how far the import has come. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_IMPORT_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_IMPORT_H

#include "control/ns/ns_registry.h"
#include "edge/crypto/crypto.h"

/* A kind of file. */
struct foreign_kind {
    const char *name, *unit, *program; /* "csv", "rows", "import_csv.py" */
    bool attaches;                     /* documents get the attachments that the file has, and no others */
    bool has_repeats;                  /* of several documents with one id the last is stored */
};

struct foreign_import_options {
    const struct foreign_kind *kind;
    const char *command; /* "import-csv" */
    const char *code, *path;
    const char *class;   /* NULL: that of the mapping */
    const char *mapping; /* a file; NULL: none */
    const char *own;     /* of this kind, what decides what is stored: a JSON text */
    bool is_dry_run;
    bool skips_wrong; /* stores the other documents; otherwise none is stored */
};

/* The options of every command that imports. */
#define FOREIGN_IMPORT_LINES(control, options, class_help)                                                   \
    CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),                                               \
        OPTION_TEXT("class", "NAME", &(options)->class, class_help),                                         \
        OPTION_TEXT("mapping", "FILE", &(options)->mapping,                                                  \
                    "What becomes of classes, items and fields, as JSON."),                                  \
        OPTION_FLAG("dry-run", &(options)->is_dry_run, "Check everything, and store nothing."),              \
    {                                                                                                        \
        .name = "skip-wrong", .help = "Store what is right when something else is wrong.",                   \
        .flag = &(options)->skips_wrong                                                                      \
    }
/* Reads the options of such a command, with CODE and FILE as its words, and the settings.  False: the command
 * ends with control->status, and why has been reported. */
MUST_USE bool foreign_import_begin(struct control *control, const struct command *command,
                                   const struct option_line *lines, size_t count, int argc, char **argv,
                                   struct foreign_import_options *options);
/* The members that the program of the kind gets (foreign_reader.h), and with `of_r` a digest of those that
 * decide what is stored.  On failure reports why. */
MUST_USE bool foreign_import_compose(struct control *control, const struct foreign_import_options *options,
                                     struct bytes *members_r, char of_r[CRYPTO_SHA256_HEX + 1]);
/* Continues an interrupted import of the same file.  Reports what it does, and on failure why; wrong
 * documents that are left out are a failure. */
MUST_USE bool foreign_import_run(struct control *control, const struct foreign_import_options *options);

#endif
