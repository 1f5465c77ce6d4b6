/* couch_follow: brings the documents of a CouchDB that is served into a namespace in use: all of them by
 * pages of _all_docs, then what has changed meanwhile by pages of _changes, deletions included.
 *
 * The position is stored in the transaction of the documents: an interrupted import goes on there, and one
 * that was complete catches up. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_FOLLOW_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_FOLLOW_H

#include "control/foreign/couch/couch_server.h"
#include "control/foreign/foreign_import.h"

struct couch_follow_options {
    const struct foreign_import_options *import; /* `path` is the address of the database */
    const char *class;                           /* NULL: that of the mapping */
    struct couch_server_options server;
    bool begins_anew;
};

/* Reports what it does, and on failure why; wrong documents that are left out are a failure. */
MUST_USE bool couch_follow_run(struct control *control, const struct couch_follow_options *options);

#endif
