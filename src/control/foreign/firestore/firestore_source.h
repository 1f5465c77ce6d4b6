/* firestore_source: an export of Firestore, one document an entity (import-firestore.md). */
#ifndef STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_SOURCE_H
#define STAMPD_CONTROL_FOREIGN_FIRESTORE_FIRESTORE_SOURCE_H

#include "control/foreign/firestore/firestore_folder.h"
#include "control/foreign/firestore/firestore_log.h"
#include "control/foreign/firestore/firestore_mapping.h"

struct firestore_source {
    struct foreign_source source; /* the first member */
    const char *class;            /* NULL: that of the mapping */
    /* of this pass */
    struct firestore_mapping *mapping;
    struct firestore_folder folder;
    size_t next; /* file to open */
    bool is_open;
    struct firestore_log log;
    int64_t before; /* bytes of the files that were read */
    struct digest *digest;
    struct arena *arena; /* of a document */
};
void firestore_source_init(struct firestore_source *firestore, struct arena *arena, const char *class);

#endif
