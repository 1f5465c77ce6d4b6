/* importer_files: files of attachments out of an archive into the store of a namespace, before the documents
 * that refer to them (store/blobs/store_blobs.h has the order of the steps).
 *
 * Each file is whole, durable and registered, or not there: an interrupted import runs them again, and those
 * that the store has are not written twice.  The cleaner of the server removes what no document refers to. */
#ifndef STAMPD_CONTROL_ARCHIVE_IMPORTER_FILES_H
#define STAMPD_CONTROL_ARCHIVE_IMPORTER_FILES_H

#include "control/archive/archive_reader.h"
#include "control/ns/ns_registry.h"

/* Before anything is stored: does the namespace have the files that the archive leaves out?  On failure
 * reports why not. */
MUST_USE bool importer_files_check(struct control *control, const struct ns_target *target,
                                   const struct archive_contents *contents);

struct importer_files;
/* NULL: the data keys cannot be read, which is reported. */
struct importer_files *importer_files_open(struct control *control, const struct ns_target *target);
/* Stores the file that the reader has just returned.  On failure reports why. */
MUST_USE bool importer_files_store(struct importer_files *files, struct archive_reader *reader,
                                   struct bytes name);
/* The same of bytes in memory, with their digest. */
MUST_USE bool importer_files_put(struct importer_files *files, struct bytes bytes,
                                 const struct blob_digest *digest);
int64_t importer_files_stored(const struct importer_files *files); /* those that were there not counted */
void importer_files_close(struct importer_files *files);           /* NULL is allowed */

#endif
