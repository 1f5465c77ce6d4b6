/* record_states: reads the configurations of all namespaces for stamp-journal, which has no PostgreSQL
 * (records/records_state.h).  A part of the relay, which learns of changes by others, and has a connection to
 * the database of z. */
#ifndef STAMPD_SERVE_RECORD_STATES_H
#define STAMPD_SERVE_RECORD_STATES_H

#include "base/arena.h"
#include "edge/pg/pg.h"
#include "records/records.h"

/* Reads and applies them.  False: they could not be read, and what was read before gets older.
 * `is_prepared` belongs to the connection and begins false. */
MUST_USE bool record_states_read(struct records *records, struct arena *arena, struct pg *pg,
                                 bool *is_prepared);

#endif
