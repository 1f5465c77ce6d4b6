/* pg_pipeline: several statements in one implicit transaction and one round trip. */
#ifndef STAMPD_EDGE_PG_PG_PIPELINE_H
#define STAMPD_EDGE_PG_PG_PIPELINE_H

#include "edge/pg/pg.h"

enum pg_outcome {
    PG_COMMITTED, /* the sync arrived and no statement before it failed */
    PG_REFUSED,   /* the server reported an error; rolled back; the connection lives and is idle */
    PG_UNKNOWN,   /* anything else: the connection must be closed */
};
struct pg_verdict {
    enum pg_outcome outcome;
    int failed;                 /* refused: which statement, from 0 */
    enum fault fault;           /* refused: from SQLSTATE; unknown: XAWAY, or XTIME on a timeout; committed:
                                   that of reading the rows (pg_translation.h) */
    char sqlstate[6];           /* refused */
    const char *detail;         /* refused: DETAIL, in the arena; may be NULL */
    const char *constraint;     /* refused: its name, in the arena; may be NULL */
    struct pg_result **results; /* committed: one for each statement */
};
MUST_USE enum fault pg_pipeline_begin(struct pg *pg, struct arena *arena);
void pg_pipeline_add(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params);
/* Statements added so far: the index of the next one's result. */
int pg_pipeline_count(struct pg *pg);
/* Sends everything, then one sync, and reads all answers; `timeout_ms` limits the whole.  Inside a
 * transaction begun by pg_execute the sync commits nothing; PG_COMMITTED then means that no statement
 * failed. */
void pg_pipeline_run(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r);
/* The same; in a long wait `gives_up` is asked now and then whether it is over, as by the timeout. */
void pg_pipeline_run_patiently(struct pg *pg, int64_t timeout_ms, bool (*gives_up)(void *context),
                               void *context, struct pg_verdict *verdict_r);

#endif
