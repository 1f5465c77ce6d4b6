/* firestore_metadata: the metadata of an export: which files it has, and how many documents.
 *
 * The file *.overall_export_metadata has the log format (firestore_log.h): the version of the format, then a
 * record with the path of a metadata file of each group of kinds, and its number of documents.  Such a file
 * is one protocol buffer, with the names of the files output-N beside it. */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_METADATA_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_METADATA_H

#include "base/arena.h"
#include "base/bytes.h"

struct firestore_group {
    const char *path;  /* of its metadata, below the folder of the export; '/' between folders */
    int64_t documents; /* in all its files */
};
/* Reads the file *.overall_export_metadata.  False: why has been reported. */
MUST_USE bool firestore_metadata_groups(struct arena *arena, const char *path,
                                        struct firestore_group **groups_r, size_t *count_r);
/* Calls `add` with the name of each file that the metadata of a group names, until it returns a problem.
 * False: why has been reported. */
MUST_USE bool firestore_metadata_files(struct arena *arena, const char *path,
                                       const char *(*add)(void *context, struct bytes name), void *context);

#endif
