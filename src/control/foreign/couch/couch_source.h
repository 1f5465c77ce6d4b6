/* couch_source: the documents of a database of CouchDB that was saved in a file (import-couchdb.md). */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_SOURCE_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_SOURCE_H

#include "control/foreign/couch/couch_mapping.h"
#include "control/foreign/couch/couch_reader.h"

struct couch_source {
    struct foreign_source source; /* the first member */
    struct foreign_calls calls;
    const char *class; /* NULL: that of the mapping */
    bool leaves_attachments;
    struct couch_reader reader;
    struct couch_mapping *mapping; /* of this pass */
    struct arena *arena;           /* of one row */
    struct builder row;            /* of a document that stands alone */
};
/* `leaves_attachments`: documents keep those that they have in the namespace. */
void couch_source_init(struct couch_source *couch, struct arena *arena, const char *class,
                       bool leaves_attachments);

#endif
