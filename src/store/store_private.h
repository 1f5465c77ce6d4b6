/* store_private: what the files of the store share; for src/document/store*.c and its tests only. */
#ifndef STAMPD_STORE_STORE_PRIVATE_H
#define STAMPD_STORE_STORE_PRIVATE_H

#include "segment/namespaces.h"
#include "store/statements.h"
#include "store/store.h"
#include "edge/pg.h"

struct known_schema; /* what is applied, and statements for side tables: store_schema.c */

struct store_session {
    struct pg *pg;               /* NULL: closed */
    uint64_t used;               /* turn of its last use: the lowest is the least recently used */
    int64_t used_ms;             /* monotonic: its last use */
    bool in_snapshot;            /* between store_snapshot_begin and _end */
    bool is_held;                /* from store_begin_reservations to the end of store_end_reservations */
    int failures;                /* to open, since it was last opened */
    int64_t retry_ms;            /* monotonic: not tried again before */
    enum fault reason;           /* of the last failure to open */
    struct known_schema *schema; /* NULL: to be read before the next use */
    struct store_search *search; /* prepared searches; NULL: none */
    uint64_t schemas;            /* how many were read, so far */
    struct builder left; /* names of prepared statements of schemas that are forgotten, blanks between */
};

enum { NO_VISITOR = -1 };

/* What the present request may still read at length; all zero: without a limit. */
struct reading {
    bool is_limited;
    enum { READING_NOT, READING_ON_TRIAL, READING_FULLY } state; /* of this worker among those that read */
    uint64_t client;
    int64_t left_ms, trial_ms;
    const char *refused; /* the limit that has refused it, with this fault; NULL: none */
    enum fault refused_fault;
    int64_t refused_value;
};

struct store {
    const struct settings *settings;
    struct segment *segment;
    uint64_t turn;
    int open_count;
    int visitor; /* see store_set_visitor; NO_VISITOR: none */
    struct reading reading;
    struct store_session sessions[NAMESPACES_MOST];
};

/* The session for a read, opened when there is none. */
MUST_USE enum fault store_use(struct store *store, int ns, struct pg **pg_r);
/* After a read: closes a session that is of no more use.  True: it was found dead, read once more (a read may
 * be repeated, a commit never).  `attempt` counts from 0. */
bool store_reads_again(struct store *store, int ns, enum fault fault, int attempt);
void store_close(struct store *store, int ns);

/* The first and the last statement of a commit that keeps an answer. */
struct idempotency_params {
    struct pg_params keep, purge;
};
void store_idempotency_add(struct idempotency_params *params, const struct store *store, struct arena *arena,
                           const struct idempotency *idempotency);

/* The schema applied in the namespace, unless it is known. */
MUST_USE enum fault store_read_schema(struct store_session *session);
void store_forget_schema(struct store_session *session);
/* The one that is known, after store_read_schema. */
const struct schema *store_present_schema(const struct store_session *session);
/* An error that says that the schema has moved makes it forgotten, and FAULT_STALE; else `fault`. */
enum fault store_judge_schema(struct store_session *session, const char *sqlstate, enum fault fault);

/* What a commit changes in side tables; prepares their statements.  FAULT_STALE: the schema has moved. */
struct store_sides;
MUST_USE enum fault store_collect_sides(struct store_session *session, struct arena *arena,
                                        const struct commit *commit, struct store_sides **sides_r);
/* Behind everything that writes items. */
void store_send_sides(struct pg *pg, const struct store_sides *sides);

/* Brings collections and unique properties to what was written; behind everything that writes items. */
void store_send_members(struct pg *pg, struct arena *arena, const struct schema *schema,
                        const struct commit *commit);

/* May the commit take or give up values that are unique in all namespaces?  Then it is a transaction of its
 * own, begun before the pipeline, and ended behind it; the verdict becomes that of the whole. */
bool store_has_reservations(const struct schema *schema, const struct commit *commit);
MUST_USE enum fault store_begin_reservations(struct store_session *session);
void store_end_reservations(struct store *store, int ns, struct arena *arena, struct pg_verdict *verdict,
                            struct commit *commit);

/* Statements of a commit that notes or writes copies. */
struct copy_params {
    struct pg_params note, lock, write, done;
};
void store_add_copies(struct copy_params *params, struct arena *arena, const struct commit *commit);
MUST_USE bool store_copies_fit(const struct copy_params *params);
/* Locks the documents and writes their items; behind it come side tables and collections. */
void store_send_copies(struct pg *pg, const struct copy_params *params, const struct commit *commit);
/* Takes off what is done, notes what is due; behind everything that writes documents. */
void store_send_notes(struct pg *pg, const struct copy_params *params, const struct commit *commit);

/* The statement that finds the subscriptions which the commit touches; behind all that writes documents and
 * members.  False: it needs none. */
MUST_USE bool store_add_match(struct pg_params *params, const struct store *store, struct arena *arena,
                              const struct commit *commit, const struct schema *schema);
/* After the commit: what it has answered. */
void store_take_match(const struct pg_result *rows, const struct store *store, struct arena *arena,
                      struct match *match);

/* Before a session ends. */
void store_forget_statements(struct store_session *session);
void store_forget_searches(struct store_session *session);

/* What a refused commit tells, the JSON list [[class, id, version], …] of what has moved: flags those
 * documents of the commit and returns how many; 0 also when it is no such list. */
size_t store_flag_listed(struct commit *commit, struct arena *arena, const char *detail);

/* Statements of a commit that creates or ends tasks. */
struct task_params {
    struct pg_params end, make, next;
};
void store_add_tasks(struct task_params *params, struct arena *arena, const struct commit *commit);
MUST_USE bool store_tasks_fit(const struct task_params *params);
/* The statements that come first in the pipeline (after that of an answer), and those that come last (before
 * that of an answer). */
void store_send_ends(struct pg *pg, const struct task_params *params, const struct commit *commit);
void store_send_tasks(struct pg *pg, const struct task_params *params, const struct commit *commit);
/* After the commit: what those statements have answered; `results` begins with the first of them. */
void store_take_tasks(struct pg_result *const *results, struct commit *commit);
/* A row with the columns of TASK_DUE. */
struct task store_read_due(const struct pg_result *rows, int row);
/* Flags the fences that the detail of ST002 lists; all when it is not known which. */
void store_flag_fences(struct commit *commit, struct arena *arena, const char *detail);

/* One statement that may be said twice: a read, or a write that is guarded by what it has seen. */
MUST_USE enum fault store_run_again(struct store *store, int ns, enum statement statement,
                                    const struct pg_params *params, struct pg_result **result_r);

/* A long read, in front of each attempt: takes a place among those that read, and says how long the statement
 * may take: `most_ms` (0: no limit of its own) at most; limit_ms 0: as long as any.  Refused: FAULT_XBUSY,
 * FAULT_XTIME, and what store_reading_refused answers. */
struct long_read {
    int64_t limit_ms, since_ms;
    bool is_ours; /* the limit is that of long reads */
};
MUST_USE enum fault store_long_begin(struct store *store, int ns, int64_t most_ms, struct long_read *read_r);
/* Behind it, also when it failed.  True: a trial was not enough, and now there is room: once more. */
MUST_USE bool store_long_end(struct store *store, int ns, const struct long_read *read, enum fault *fault);
/* One statement that ends by itself after `limit_ms` (FAULT_XTIME); 0: as any. */
MUST_USE enum fault store_run_limited(struct store_session *session, int64_t limit_ms, int64_t answer_ms,
                                      const struct pg_statement *statement, const struct pg_params *params,
                                      struct pg_result **result_r);
/* As store_run_again, of a statement that reads much. */
MUST_USE enum fault store_run_long(struct store *store, int ns, enum statement statement,
                                   const struct pg_params *params, struct pg_result **result_r);

/* Limit of a whole pipeline: each of its statements has statement_timeout, waits for locks included. */
int64_t store_pipeline_ms(const struct store *store);

#endif
