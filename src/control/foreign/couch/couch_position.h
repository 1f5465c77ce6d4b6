/* couch_position: how far a database of CouchDB has been brought in, in the table `import_source` of the
 * namespace.
 *
 * {"made":…,"since":…,"copies":true,"after":…}: the creation of the database as it states it; the sequence
 * that _changes goes on from; whether _all_docs is still being read, and the id up to which it was.  All
 * values are as CouchDB writes them. */
#ifndef STAMPD_CONTROL_FOREIGN_COUCH_COUCH_POSITION_H
#define STAMPD_CONTROL_FOREIGN_COUCH_COUCH_POSITION_H

#include "control/ns/ns_registry.h"

struct couch_position {
    const char *source;              /* address, and digest of the mapping */
    struct bytes made, since, after; /* texts of JSON; `after` NO_BYTES: nothing was read */
    bool is_copying;
    int64_t documents; /* read so far */
};

/* Each on failure reports why. */
/* Excludes other imports, and reads the row; without one `is_there_r` is false. */
MUST_USE bool couch_position_take(struct control *control, struct pg *pg, const char *code,
                                  struct couch_position *position, bool *is_there_r);
/* Stores the position, within the transaction that stores documents, or alone. */
MUST_USE bool couch_position_store(struct control *control, struct pg *pg,
                                   const struct couch_position *position);
/* The next import begins anew. */
MUST_USE bool couch_position_forget(struct control *control, struct pg *pg, const char *source);

#endif
