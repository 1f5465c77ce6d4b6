/* archive_replace: documents of an archive, written exactly as its lines have them over what a namespace has,
 * which nobody else writes to meanwhile. */
#ifndef STAMPD_CONTROL_ARCHIVE_ARCHIVE_REPLACE_H
#define STAMPD_CONTROL_ARCHIVE_ARCHIVE_REPLACE_H

#include "control/archive/archive_reader.h"
#include "control/ns/ns_registry.h"

/* Stores the files of attachments of the archive, which its documents refer to, outside a transaction; checks
 * that the namespace has those that it leaves out.  On failure reports why. */
MUST_USE bool archive_replace_files(struct control *control, const struct ns_target *target, const char *path,
                                    const struct archive_contents *contents);

/* Makes each document of the archive what its line has, versions included, in the transaction that the caller
 * begins and ends.  The files are there.  Memory: one member of the archive.  On failure reports why. */
MUST_USE bool archive_replace_run(struct control *control, struct pg *pg, const char *path,
                                  const struct archive_contents *contents);

#endif
