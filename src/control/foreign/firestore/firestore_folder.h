/* firestore_folder: the files of an export: a folder with a file *.overall_export_metadata, which leads to
 * the metadata of groups of kinds in folders of it, and these name the files output-0, output-1… beside them.
 */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_FOLDER_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_FOLDER_H

#include "base/arena.h"

struct firestore_file {
    const char *name; /* below the folder */
    int64_t size;
};
struct firestore_folder {
    struct firestore_file *files; /* in the order of the metadata */
    size_t count;
    int64_t size;      /* of all */
    int64_t documents; /* in all, as the metadata has it */
};

/* False: why has been reported; the folder is no export, or no whole one. */
MUST_USE bool firestore_folder_read(struct arena *arena, const char *path, struct firestore_folder *folder_r);

#endif
