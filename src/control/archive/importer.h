/* importer: brings the documents of an archive into a namespace, member by member, each in a transaction that
 * also records how far the import has come.
 *
 * Into an empty namespace every row is restored exactly.  Meanwhile the namespace is off; its state comes
 * back when all is there and its digest is that of the archive.  Into one that is in use (`is_merge`)
 * documents are written with new versions, while it is served. */
#ifndef STAMPD_CONTROL_ARCHIVE_IMPORTER_H
#define STAMPD_CONTROL_ARCHIVE_IMPORTER_H

#include "control/archive/archive_reader.h"
#include "control/ns/ns_registry.h"

struct importer_options {
    const char *code, *path;
    struct bytes key;      /* of the archive; NO_BYTES: it is not encrypted */
    const char *transform; /* a command; NULL: none */
    bool is_merge;
    bool keeps_configuration; /* that of the namespace stays */
    bool stays_off;           /* it is not opened: changes follow (import_progress_follow) */
};

/* Verifies the archive first.  Continues an interrupted import of the same archive.  Reports what it does,
 * and on failure why. */
MUST_USE bool importer_run(struct control *control, const struct importer_options *options);
/* Stores the configuration of a verified archive in a namespace, and applies its schema.  On failure reports
 * why. */
MUST_USE bool importer_configure(struct control *control, const struct importer_options *options,
                                 const struct archive_contents *contents);
/* Removes what an interrupted import has stored, and its record. */
MUST_USE bool importer_abandon(struct control *control, const char *code);

#endif
