/* pg: PostgreSQL behind libpq: connect, prepare, run, pipelines, SQLSTATE to fault.
 *
 * Statements are prepared from the caller's table, each on its first use.  Parameters and results are binary:
 * no text is quoted, lengths are exact.  Every wait has a limit.  A failed connection is not reused:
 * pg_is_usable returns false and the owner closes it. */
#ifndef STAMPD_EDGE_PG_H
#define STAMPD_EDGE_PG_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/fault.h"

struct pg;        /* one connection */
struct pg_result; /* rows of one statement; lives until the arena's reset */

struct pg_statement {
    const char *name;
    const char *sql;
    int parameters;
};

struct pg_options {
    const char *conninfo;      /* without dbname; may be "" */
    const char *database;      /* dbname */
    const char *role_settings; /* value of libpq's `options`: "-c jit=off …"; may be "" */
    int connect_timeout_s;
    int64_t statement_timeout_ms; /* statement_timeout of the session; a wait for an answer lasts a little
                                     longer */
    int64_t lock_timeout_ms;
    bool is_absence_known; /* the missing database has been logged: do not log it again */
};

/* Connects to a primary only.  FAULT_XAWAY: not reached; FAULT_ODATABASE: no such database (3D000), or its
 * encoding is not UTF-8.  Logged once. */
MUST_USE enum fault pg_open(const struct pg_options *options, struct pg **pg_r);
/* Prepares the statements of this table, which outlives the connection, on their first use: within a
 * pipeline, or in a round trip of their own elsewhere.  A connection has one such table. */
void pg_prepare_on_use(struct pg *pg, const struct pg_statement *statements, size_t count);
/* Prepares all statements in one round trip. */
MUST_USE enum fault pg_prepare(struct pg *pg, const struct pg_statement *statements, size_t count);
/* Prepares a statement with all parameters typed as text, whatever their context. */
MUST_USE enum fault pg_prepare_texts(struct pg *pg, const struct pg_statement *statement);
void pg_close(struct pg *pg);           /* NULL is allowed */
bool pg_is_usable(const struct pg *pg); /* connected, idle, not in a transaction */
/* Checks the socket without waiting: false when the server has ended the session while it was idle. */
bool pg_is_alive(struct pg *pg);
int pg_backend_pid(const struct pg *pg);

/* --- parameters; arrays and numbers are encoded into the arena, texts are borrowed --- */
enum { PG_PARAMETERS_MAX = 32 };
struct pg_params {
    struct arena *arena;
    int count;
    size_t bytes; /* of all values */
    const char *values[PG_PARAMETERS_MAX];
    int lengths[PG_PARAMETERS_MAX];
};
void pg_params_start(struct pg_params *params, struct arena *arena);
void pg_add_i64(struct pg_params *params, int64_t value);
void pg_add_i32(struct pg_params *params, int32_t value);
void pg_add_f64(struct pg_params *params, double value);
void pg_add_text(struct pg_params *params, struct bytes text); /* data NULL: null */
void pg_add_i64_array(struct pg_params *params, const int64_t *values, size_t count);
void pg_add_i32_array(struct pg_params *params, const int32_t *values, size_t count);
void pg_add_text_array(struct pg_params *params, const struct bytes *values,
                       size_t count); /* data NULL: null */
void pg_add_bool_array(struct pg_params *params, const bool *values, size_t count);
/* Adds parameter `index` (from 0) of another statement, encoded once for both. */
void pg_add_same(struct pg_params *params, const struct pg_params *other, int index);
/* PostgreSQL accepts less than 1 GiB in one message; parameters that do not fit must not be sent in a
 * pipeline. */
MUST_USE bool pg_params_fit(const struct pg_params *params);

/* --- one statement --- */
/* Runs a prepared statement; not inside a pipeline.  The result lives in the arena of the parameters;
 * `result_r` may be NULL.  FAULT_ALIMIT: the parameters do not fit. */
MUST_USE enum fault pg_run(struct pg *pg, const struct pg_statement *statement,
                           const struct pg_params *params, struct pg_result **result_r);
/* Runs SQL text without parameters (begin, rollback, listen, migrations; no copy); discards results. */
MUST_USE enum fault pg_execute(struct pg *pg, const char *sql);
/* SQLSTATE of the last error, "" when there was none; its message (for logs and administrators only). */
const char *pg_sqlstate(const struct pg *pg);
const char *pg_message(const struct pg *pg);
/* The detail (JSON) of an error raised by one of our SQL functions (SQLSTATE ST…), "" when there is none; for
 * administrators. */
const char *pg_detail(const struct pg *pg);

/* --- rows one by one: an answer of any size, in the memory of its largest row --- */
/* Begins a prepared statement whose rows pg_take_row returns; the connection can run nothing else meanwhile.
 * A caller that does not take all rows closes the connection. */
MUST_USE enum fault pg_begin_rows(struct pg *pg, const struct pg_statement *statement,
                                  const struct pg_params *params);
/* Takes the next row, as row 0 of the result, which lives until the next call; NULL: the end.  Waits until
 * `deadline_ms` (monotonic) at most. */
MUST_USE enum fault pg_take_row(struct pg *pg, int64_t deadline_ms, const struct pg_result **row_r);

int pg_rows(const struct pg_result *result);
bool pg_is_null(const struct pg_result *result, int row, int column);
int64_t pg_get_i64(const struct pg_result *result, int row, int column); /* int2, int4, int8; null is 0 */
bool pg_get_bool(const struct pg_result *result, int row, int column);
struct bytes pg_get_text(const struct pg_result *result, int row, int column); /* null: NO_BYTES */

/* --- a pipeline: one implicit transaction, one round trip --- */
enum pg_outcome {
    PG_COMMITTED, /* the sync arrived and no statement before it failed */
    PG_REFUSED,   /* the server reported an error; rolled back; the connection lives and is idle */
    PG_UNKNOWN,   /* anything else: the connection must be closed */
};
struct pg_verdict {
    enum pg_outcome outcome;
    int failed;                 /* refused: which statement, from 0 */
    enum fault fault;           /* refused: from SQLSTATE; unknown: XAWAY, or XTIME on a timeout */
    char sqlstate[6];           /* refused */
    const char *detail;         /* refused: DETAIL, in the arena; may be NULL */
    const char *constraint;     /* refused: its name, in the arena; may be NULL */
    struct pg_result **results; /* committed: one for each statement */
};
MUST_USE enum fault pg_pipeline_begin(struct pg *pg, struct arena *arena);
void pg_pipeline_add(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params);
/* Statements added so far: the index of the next one's result. */
int pg_pipeline_count(const struct pg *pg);
/* Sends everything, then one sync, and reads all answers; `timeout_ms` limits the whole.  Inside a
 * transaction begun by pg_execute the sync commits nothing; PG_COMMITTED then means that no statement
 * failed. */
void pg_pipeline_run(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r);

/* 40001 40P01 55P03 → STALE, 57014 → XTIME, 53100 → XFULL, 3D000 → ODATABASE; 08… 57P…, 53300 (too many
 * connections) and 25006 (no primary any more) → XAWAY; else XDATABASE. */
enum fault pg_fault_of_sqlstate(const char *sqlstate);

/* --- notifications (the relay) --- */
int pg_socket(const struct pg *pg);
/* Takes the next received notification, without waiting; false: none.  Texts live in the arena. */
bool pg_next_notification(struct pg *pg, struct arena *arena, struct bytes *channel_r,
                          struct bytes *payload_r);

/* --- without waiting (the queue manager's loop) --- */
/* Non-blocking connections: the owner polls pg_socket, read again each time, for the event that the last step
 * returned, until pg_deadline_ms at most, then calls the next step. */
enum pg_progress { PG_DONE, PG_FAILED, PG_WAITS_TO_READ, PG_WAITS_TO_WRITE };
/* Begins to connect; waits to write. */
struct pg *pg_start(const struct pg_options *options) __attribute__((returns_nonnull));
/* Continues with the same options.  PG_FAILED: as pg_open fails, but a missing database is FAULT_XAWAY. */
enum pg_progress pg_go_on_connecting(struct pg *pg, const struct pg_options *options, enum fault *fault_r);
/* Sends one unprepared statement; nothing else may be in progress.  Waits to write. */
MUST_USE enum fault pg_send(struct pg *pg, const struct pg_statement *statement,
                            const struct pg_params *params);
/* Continues to receive.  The caller clears `result_r` and `fault_r` before the first step and passes the same
 * ones in all steps of a statement. */
enum pg_progress pg_receive(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                            enum fault *fault_r);
int64_t pg_deadline_ms(const struct pg *pg);

/* --- administration --- */
/* Position of the last error of pg_execute in the SQL text, in characters from 1; 0: unknown. */
int64_t pg_position(const struct pg *pg);
/* Appends the name as a quoted SQL identifier. */
void pg_add_identifier(struct builder *sql, struct bytes name);
/* The value of a keyword in a connection string (words or URI); NULL: not set, or not a connection string. */
const char *pg_conninfo_value(struct arena *arena, const char *conninfo, const char *keyword);
/* The connection string without some keywords (NULL ends them); NULL: not a connection string. */
const char *pg_conninfo_without(struct arena *arena, const char *conninfo, const char *const *keywords);

#endif
