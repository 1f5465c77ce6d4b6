/* store_private: shared by the files of the store; for src/store/store*.c and its tests only. */
#ifndef STAMPD_STORE_STORE_PRIVATE_H
#define STAMPD_STORE_STORE_PRIVATE_H

#include "segment/namespaces.h"
#include "store/statements.h"
#include "store/store.h"
#include "edge/pg.h"
#include "store/store_commit.h"
#include "store/store_search.h"

struct known_schema; /* the applied schema, and statements for side tables: store_schema.c */

struct store_session {
    struct pg *pg;               /* NULL: closed */
    uint64_t used;               /* sequence number of its last use: the lowest is the LRU */
    int64_t used_ms;             /* monotonic: its last use */
    bool in_snapshot;            /* between store_snapshot_begin and _end */
    bool is_held;                /* from store_begin_reservations to the end of store_end_reservations */
    int failures;                /* failed openings since it was last open */
    int64_t retry_ms;            /* monotonic: not tried again before */
    enum fault reason;           /* of the last failure to open */
    struct known_schema *schema; /* NULL: read before the next use */
    struct store_search *search; /* prepared searches; NULL: none */
    uint64_t schemas;            /* number read so far */
    struct builder left;         /* names of prepared statements of discarded schemas, separated by blanks */
};

enum { NO_VISITOR = -1 };

/* The remaining allowance of the present request for long reads; all zero: no limit. */
struct reading {
    bool is_limited;
    enum { READING_NOT, READING_ON_TRIAL, READING_FULLY } state; /* of this worker in reads.h */
    uint64_t client;
    int64_t left_ms, trial_ms;
    size_t loads;        /* documents loaded for it */
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

/* The session for a read, opened if there is none. */
MUST_USE enum fault store_use(struct store *store, int ns, struct pg **pg_r);
/* After work that may be repeated: closes the session if it is unusable.  True: it was found dead, repeat.
 * `attempt` counts from 0. */
bool store_run_again(struct store *store, int ns, enum fault fault, int attempt);
/* Work that may be repeated: a read, or a write guarded by the state that it has seen.  Called with an open
 * session. */
typedef enum fault store_work(struct store *store, int ns, void *context);
/* Runs the work, once more if its session was found dead. */
MUST_USE enum fault store_run(struct store *store, int ns, store_work *work, void *context);
/* The same, for one statement. */
MUST_USE enum fault store_run_statement(struct store *store, int ns, enum statement statement,
                                        const struct pg_params *params, struct pg_result **result_r);
void store_close(struct store *store, int ns);

/* Reads the schema applied in the namespace, unless it is cached. */
MUST_USE enum fault store_read_schema(struct store_session *session);
void store_forget_schema(struct store_session *session);
/* The cached schema, after store_read_schema. */
const struct schema *store_present_schema(const struct store_session *session);
/* On an error that means that the schema has changed, discards it and returns FAULT_STALE; else returns
 * `fault`. */
enum fault store_judge_schema(struct store_session *session, const char *sqlstate, enum fault fault);

/* Whether the commit may take or give up values that are unique in all namespaces.  If so, it is a
 * transaction of its own, begun before the pipeline and ended after it; the verdict becomes that of the
 * whole. */
bool store_has_reservations(const struct schema *schema, const struct commit *commit);
MUST_USE enum fault store_begin_reservations(struct store_session *session);
void store_end_reservations(struct store *store, int ns, struct arena *arena, struct pg_verdict *verdict,
                            struct commit *commit);

/* Called before a session ends. */
void store_forget_statements(struct store_session *session);
void store_forget_searches(struct store_session *session);

/* The detail of a refused commit is a JSON list [[class, id, version], …] of the documents that moved:
 * flags those documents of the commit and returns their number; 0 also if it is not such a list. */
size_t store_flag_listed(struct commit *commit, struct arena *arena, const char *detail);

/* A row with the columns of TASK_DUE. */
struct task store_read_due(const struct pg_result *rows, int row);
/* Flags the fences listed in the detail of ST002; all if it is unknown which. */
void store_flag_fences(struct commit *commit, struct arena *arena, const char *detail);

/* Called before each attempt of a long read: takes a place (reads.h) and sets the time limit of the
 * statement: at most `most_ms` (0: no limit of its own); limit_ms 0: the general limit.  Refused:
 * FAULT_XBUSY, FAULT_XTIME, and the result of store_reading_refused. */
struct long_read {
    int64_t limit_ms, since_ms;
    bool is_ours; /* the limit is that of long reads */
};
MUST_USE enum fault store_long_begin(struct store *store, int ns, int64_t most_ms, struct long_read *read_r);
/* Counts documents to be loaded for the present request; true: with them, its loads are a long read. */
bool store_count_loads(struct store *store, size_t count);
/* Called after a long read, also if it failed.  True: a trial was too short, and there is room now: repeat.
 */
MUST_USE bool store_long_end(struct store *store, int ns, const struct long_read *read, enum fault *fault);
/* Adds to a pipeline the time limit of each of the statements that follow in it. */
void store_add_limit(struct store_session *session, struct arena *arena, int64_t limit_ms);
/* Runs one statement with a time limit of `limit_ms` (FAULT_XTIME); 0: the general limit. */
MUST_USE enum fault store_run_limited(struct store_session *session, int64_t limit_ms, int64_t answer_ms,
                                      const struct pg_statement *statement, const struct pg_params *params,
                                      struct pg_result **result_r);
/* Work of a long read, with a time limit of `limit_ms` (0: the general one); it may be repeated. */
typedef enum fault long_work(struct store *store, int ns, int64_t limit_ms, void *context);
/* As store_run, between store_long_begin and store_long_end. */
MUST_USE enum fault store_long_run(struct store *store, int ns, int64_t most_ms, long_work *work,
                                   void *context);
MUST_USE enum fault store_long_run_statement(struct store *store, int ns, enum statement statement,
                                             const struct pg_params *params, struct pg_result **result_r);

/* Time limit of a whole pipeline: each of its statements has statement_timeout, lock waits included. */
int64_t store_pipeline_ms(const struct store *store);

/* A statement to be run, and where its result goes: the context of store_run_statement and its long twin. */
struct statement_run {
    enum statement statement;
    const struct pg_params *params;
    struct pg_result **result_r;
};

#endif
