/* exporter_files: the files of attachments that documents of a snapshot have, on their way into an archive.
 */
#ifndef STAMPD_CONTROL_ARCHIVE_EXPORTER_FILES_H
#define STAMPD_CONTROL_ARCHIVE_EXPORTER_FILES_H

#include "control/archive/archive_files.h"
#include "control/archive/archive_rows.h"
#include "control/archive/archive_writer.h"

struct exporter_files {
    struct control *control;
    const char *database;
    const struct archive_snapshot *snapshot;
    const struct archive_filter *filter; /* of the documents */
    struct archive_writer *writer;
    bool are_left_out;                          /* all of them */
    const struct archive_files *former, *other; /* that are left out too; NULL: none */
};

/* Writes each file once; those that are left out are named and counted only.  What was written is added to
 * `files`, which is in the arena of `control`.  A file that the store does not have as it was is a failure.
 * On failure reports why. */
MUST_USE bool exporter_files_write(const struct exporter_files *export, struct archive_files *files,
                                   int64_t *left_out);

#endif
