/* store_long: long requests of callers other than administrators: the workers that may serve them
 * (long_requests.h), and the time that their reads may take together, and their commit. */
#ifndef STAMPD_STORE_STORE_LONG_H
#define STAMPD_STORE_STORE_LONG_H

#include "store/store_run.h"

/* Work of a long read, with a time limit of `limit_ms` (0: the general one); it may be repeated. */
typedef enum fault long_work(struct store *store, int ns, int64_t limit_ms, void *context);
/* As store_run, between store_long_begin and store_long_end. */
MUST_USE enum fault store_long_run(struct store *store, int ns, int64_t most_ms, long_work *work,
                                   void *context);
MUST_USE enum fault store_long_run_statement(struct store *store, int ns, enum statement statement,
                                             const struct pg_params *params, struct pg_result **result_r);

/* The request is long, whatever it does: takes a place.  FAULT_XBUSY: there is none (store_reading_refused).
 * Nothing happens if the request has a place. */
MUST_USE enum fault store_long_enter(struct store *store, int ns);
/* The same if the request has worked for 100 ms. */
MUST_USE enum fault store_long_enter_late(struct store *store, int ns);
/* Called before a commit is sent that changes so many items, and bytes of their contents: the same if they
 * are many.  A request that has a place already is long.  limit_ms_r: the time that the commit may take; 0:
 * the general limit. */
MUST_USE enum fault store_long_begin_commit(struct store *store, int ns, size_t items, size_t bytes,
                                            int64_t *limit_ms_r);
/* The commit took longer than limit_ms_r. */
void store_long_note_slow_commit(struct store *store, int64_t limit_ms);

/* Called before each attempt of a long read: takes a place (long_requests.h) and sets the time limit of the
 * statement: at most `most_ms` (0: no limit of its own); limit_ms 0: the general limit.  Refused:
 * FAULT_XBUSY, FAULT_XTIME, and the result of store_reading_refused. */
struct long_read {
    int64_t limit_ms, since_ms;
    bool is_ours; /* the limit is that of long reads */
};
MUST_USE enum fault store_long_begin(struct store *store, int ns, int64_t most_ms, struct long_read *read_r);
/* Called after a long read, also if it failed.  True: a trial was too short, and there is room now: repeat.
 */
MUST_USE bool store_long_end(struct store *store, int ns, const struct long_read *read, enum fault *fault);
/* Counts documents to be loaded for the present request; true: with them, its loads are a long read. */
bool store_long_count_loads(struct store *store, size_t count);
/* Adds a time limit of all the statements that follow; store_long_add_left is called before each of them. */
void store_long_add_limit_of_all(struct pg *pg, struct arena *arena, int64_t limit_ms);
void store_long_add_left(struct pg *pg, struct arena *arena);
/* Runs one statement with a time limit of `limit_ms` (FAULT_XTIME); 0: the general limit. */
MUST_USE enum fault store_long_run_limited(struct pg *pg, int64_t limit_ms, int64_t answer_ms,
                                           const struct pg_statement *statement,
                                           const struct pg_params *params, struct pg_result **result_r);

#endif
