/* pg_async: connections without waiting, for an event loop. */
#ifndef STAMPD_EDGE_PG_PG_ASYNC_H
#define STAMPD_EDGE_PG_PG_ASYNC_H

#include "edge/pg/pg.h"

/* Non-blocking connections: the owner polls pg_socket, read again each time, for the event that the last step
 * returned, until pg_async_deadline_ms at most, then calls the next step. */
enum pg_progress { PG_DONE, PG_FAILED, PG_WAITS_TO_READ, PG_WAITS_TO_WRITE };
/* Begins to connect, to one of the hosts after the other, each for connect_timeout_s at most; waits to write.
 */
struct pg *pg_async_start(const struct pg_options *options) __attribute__((returns_nonnull));
/* Continues with the same options, also when the deadline has passed without an event.  PG_FAILED: as pg_open
 * fails, but a missing database is FAULT_XAWAY. */
enum pg_progress pg_async_connect(struct pg *pg, const struct pg_options *options, enum fault *fault_r);
/* Sends one unprepared statement, whose parameters live until its answer is complete; nothing else may be in
 * progress.  Waits to write. */
MUST_USE enum fault pg_async_send(struct pg *pg, const struct pg_statement *statement,
                                  const struct pg_params *params);
/* Continues to receive.  The caller clears `result_r` and `fault_r` before the first step and passes the same
 * ones in all steps of a statement. */
enum pg_progress pg_async_receive(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                                  enum fault *fault_r);
int64_t pg_async_deadline_ms(struct pg *pg);

#endif
