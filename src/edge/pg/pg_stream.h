/* pg_stream: rows one by one: an answer of any size, in the memory of its largest row. */
#ifndef STAMPD_EDGE_PG_PG_STREAM_H
#define STAMPD_EDGE_PG_PG_STREAM_H

#include "edge/pg/pg.h"

/* Begins a prepared statement whose rows pg_stream_next returns; the connection can run nothing else
 * meanwhile. The parameters live until the end.  A caller that does not take all rows closes the connection.
 */
MUST_USE enum fault pg_stream_begin(struct pg *pg, const struct pg_statement *statement,
                                    const struct pg_params *params);
/* Takes the next row, as row 0 of the result, which lives until the next call; NULL: the end.  Waits until
 * `deadline_ms` (monotonic) at most. */
MUST_USE enum fault pg_stream_next(struct pg *pg, int64_t deadline_ms, const struct pg_result **row_r);

#endif
