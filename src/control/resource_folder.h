/* resource_folder: the files of a folder, with their folders, for `stampctl resource put`. */
#ifndef STAMPD_CONTROL_RESOURCE_FOLDER_H
#define STAMPD_CONTROL_RESOURCE_FOLDER_H

#include "control/control.h"

struct folder_file {
    const char *name; /* from the folder on, as a/b.css */
    const char *path; /* to open it */
};

/* All regular files of the folder, or the one file, in the order of their names.  What begins with a dot is
 * left out, except .well-known.  False: something cannot be read, or there are more than `most`; reported. */
MUST_USE bool resource_folder_read(struct control *control, const char *path, size_t most,
                                   struct folder_file **files_r, size_t *count_r);

#endif
