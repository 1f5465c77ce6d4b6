/* files_place: `stampctl files place`: where the files of a namespace belong, and where they are; and the
 * object stores that the settings name. */
#ifndef STAMPD_CONTROL_FILES_FILES_PLACE_H
#define STAMPD_CONTROL_FILES_FILES_PLACE_H

#include "control/control.h"
#include "blob/object_store.h"

/* The store `name`; on failure reports why.  The texts are in the arena. */
MUST_USE bool files_place_find(struct control *control, const char *name, struct object_store_place *place_r);

int files_place(struct control *control, int argc, char **argv);

#endif
