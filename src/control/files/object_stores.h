/* object_stores: the file that names object stores and has their keys (setting object_stores_file). */
#ifndef STAMPD_CONTROL_FILES_OBJECT_STORES_H
#define STAMPD_CONTROL_FILES_OBJECT_STORES_H

#include "control/control.h"
#include "edge/object_store.h"

/* Reads the store `name`; a file that every user may read is refused.  On failure reports why.  The texts are
 * in the arena. */
MUST_USE bool object_stores_read(struct control *control, const char *name,
                                 struct object_store_place *place_r);

#endif
