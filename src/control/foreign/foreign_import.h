/* foreign_import: brings the documents of a file of another system into a namespace in use.
 *
 * The file is read twice: first to check every document, then to store them, in transactions that also record
 * how far the import has come. */
#ifndef STAMPD_CONTROL_FOREIGN_FOREIGN_IMPORT_H
#define STAMPD_CONTROL_FOREIGN_FOREIGN_IMPORT_H

#include "control/archive/importer_files.h"
#include "control/ns/ns_registry.h"

struct foreign_import_options {
    const char *code, *path;
    const char *class;   /* NULL: that of the mapping */
    const char *mapping; /* a file; NULL: none */
    bool is_dry_run;
    bool skips_wrong; /* stores the other documents; otherwise none is stored */
};

/* FOREIGN_LEFT_OUT: nothing is to be stored, and that is right.  FOREIGN_WRONG: reading may go on. */
enum foreign_event { FOREIGN_DOCUMENT, FOREIGN_LEFT_OUT, FOREIGN_WRONG, FOREIGN_END, FOREIGN_FAILED };

/* A kind of file. */
struct foreign_source;
struct foreign_calls {
    const char *kind, *unit; /* "csv", "rows" */
    bool attaches;           /* documents get the attachments that the file has, and no others */
    /* Begins a pass; false: why has been reported.  `arena` is of the pass. */
    bool (*open)(struct foreign_source *source, struct control *control, struct arena *arena);
    /* Appends a document as a line of an archive, of the version `number`; its files go to `files`, if not
     * NULL.  FOREIGN_WRONG and FOREIGN_FAILED: `problem_r` says why, NULL: it has been reported, or sum_up
     * does. */
    enum foreign_event (*next)(struct foreign_source *source, struct importer_files *files, int64_t number,
                               struct builder *lines, const char **problem_r);
    /* After FOREIGN_END of the pass that checks: reports what many documents have in common.  May be NULL. */
    void (*sum_up)(struct foreign_source *source);
    void (*close)(struct foreign_source *source); /* after open has succeeded */
};
struct foreign_source {
    const struct foreign_calls *calls;
    const char *path;
    const char *options; /* those that decide what is stored, besides the mapping */
    struct bytes mapping_text;
    const char *mapping_path; /* NULL: none */
    struct bytes id;          /* of the document that `next` returned; NO_BYTES: ids are not compared */
    int64_t line, last_line;  /* of what `next` returned; a count if the file has no lines */
    int64_t offset, size;
    char digest[CRYPTO_SHA256_HEX + 1]; /* at FOREIGN_END: of the file */
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
/* Continues an interrupted import of the same file.  Reports what it does, and on failure why; wrong
 * documents that are left out are a failure. */
MUST_USE bool foreign_import_run(struct control *control, const struct foreign_import_options *options,
                                 struct foreign_source *source);

#endif
