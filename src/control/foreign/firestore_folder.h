/* firestore_folder: the files of an export, a folder with a file *.overall_export_metadata and, in folders of
 * it, files output-0, output-1… */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FOLDER_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FOLDER_H

#include "base/arena.h"

struct firestore_file {
    const char *name;   /* below the folder */
    size_t folder_size; /* of the name, the part before output-N */
    int64_t number;     /* N */
    int64_t size;
};
struct firestore_folder {
    struct firestore_file *files; /* ordered by folder and number */
    size_t count;
    int64_t size; /* of all */
};

/* False: why has been reported; the folder is no export, or no whole one. */
MUST_USE bool firestore_folder_read(struct arena *arena, const char *path, struct firestore_folder *folder_r);

#endif
