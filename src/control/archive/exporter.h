/* exporter: writes a namespace into an archive, as it is in one snapshot of its database. */
#ifndef STAMPD_CONTROL_ARCHIVE_EXPORTER_H
#define STAMPD_CONTROL_ARCHIVE_EXPORTER_H

#include "control/archive/archive_files.h"
#include "control/archive/archive_rows.h"
#include "control/archive/archive_writer.h"
#include "control/ns/ns_registry.h"

struct exporter_options {
    struct archive_filter filter; /* its members `since…`: set by `since` */
    struct archive_writer_options archive;
    const char *since;   /* a version, or the path of the archive to go on from; NULL: all */
    bool leaves_files;   /* those of attachments are named, and are not in the archive */
    int64_t piece_bytes; /* a member with documents is written when it has so many */
};

struct exporter_report {
    struct archive_snapshot snapshot;
    struct archive_sum sum;
    struct archive_files files;
    int64_t left_out; /* files that are named only */
    int64_t bytes;    /* of the archive */
};

/* On failure reports why. */
MUST_USE bool exporter_run(struct control *control, const struct ns_target *target,
                           const struct exporter_options *options, struct exporter_report *report_r);

#endif
