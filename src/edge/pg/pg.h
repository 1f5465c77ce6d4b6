/* pg: PostgreSQL behind libpq: connect, prepare, run, pipelines, SQLSTATE to fault.
 *
 * Statements are prepared from the caller's table, each on its first use.  Parameters and results are binary:
 * no text is quoted, lengths are exact.  Every wait has a limit.  A failed connection is not reused:
 * pg_is_usable returns false and the owner closes it.  Further: pg_params.h, pg_pipeline.h, pg_stream.h,
 * pg_async.h. */
#ifndef STAMPD_EDGE_PG_PG_H
#define STAMPD_EDGE_PG_PG_H

#include "base/arena.h"
#include "base/builder.h"
#include "base/fault.h"
#include "edge/pg/pg_params.h"

struct pg;        /* one connection */
struct pg_result; /* rows of one statement; lives until the arena's reset */

struct pg_statement {
    const char *name;
    const char *sql;
    int parameters;
};

struct pg_options {
    const char *conninfo;      /* without dbname; may be ""; NULL: the cell is not known */
    const char *database;      /* dbname; what follows an @ names its cell, for messages */
    const char *name;          /* of the session in pg_stat_activity, unless conninfo has one; NULL: stampd */
    const char *role_settings; /* value of libpq's `options`: "-c jit=off …"; may be "" */
    int connect_timeout_s;
    int64_t statement_timeout_ms; /* statement_timeout of the session; a wait for an answer lasts a little
                                     longer */
    int64_t lock_timeout_ms;
    bool takes_standby;    /* else a primary only */
    bool is_absence_known; /* the missing database has been logged: do not log it again */
};

/* Connects to a primary only.  FAULT_XAWAY: not reached; FAULT_ODATABASE: no such database (3D000), or its
 * encoding is not UTF-8; FAULT_XDATABASE: a pooler drops the settings of sessions.  Logged once. */
MUST_USE enum fault pg_open(const struct pg_options *options, struct pg **pg_r);
/* As pg_open got it, with its cell; a longer one is cut. */
const char *pg_database(const struct pg *pg);
/* Prepares the statements of this table, which outlives the connection, on their first use: within a
 * pipeline, or in a round trip of their own elsewhere.  A connection has one such table. */
void pg_prepare_on_use(struct pg *pg, const struct pg_statement *statements, size_t count);
/* Prepares all statements in one round trip. */
MUST_USE enum fault pg_prepare(struct pg *pg, const struct pg_statement *statements, size_t count);
/* Prepares a statement with all parameters typed as text, whatever their context. */
MUST_USE enum fault pg_prepare_texts(struct pg *pg, const struct pg_statement *statement);
/* Waits for answers end before their time when `gives_up` returns true, which is asked four times a second;
 * NULL: they do not. Returns what was so before.  The connection cannot be used again after such an end. */
struct pg_patience {
    bool (*gives_up)(void *context);
    void *context;
};
struct pg_patience pg_set_patience(struct pg *pg, struct pg_patience patience);

/* How long this process has waited for answers, of all connections, since the caller cleared it; the longest
 * wait is noted only while it is on. */
enum { PG_WAITS_NAME_BYTES = 48 };
struct pg_waits {
    bool is_on;
    int64_t us, longest_us;
    char longest[PG_WAITS_NAME_BYTES]; /* the statement of the longest wait; "pipeline": several */
};
struct pg_waits *pg_get_waits(void);
/* From its first statement in a request that is traced (base/logging/spans.h) a session has the context of
 * the request's span as its application_name, "stampd 00-…"; this takes the names back.  A session that
 * cannot be used now keeps its name until it is closed or traced again. */
void pg_untag_all(void);
void pg_close(struct pg *pg);           /* NULL is allowed */
bool pg_is_usable(const struct pg *pg); /* connected, idle, not in a transaction */
/* Checks the socket without waiting: false when the server has ended the session while it was idle. */
bool pg_is_alive(struct pg *pg);
int pg_backend_pid(const struct pg *pg);

/* --- one statement; several: pg_pipeline.h, pg_stream.h --- */
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

/* --- results --- */
int pg_rows(const struct pg_result *result);
bool pg_is_null(const struct pg_result *result, int row, int column);
int64_t pg_get_i64(const struct pg_result *result, int row, int column); /* int2, int4, int8; null is 0 */
bool pg_get_bool(const struct pg_result *result, int row, int column);
struct bytes pg_get_text(const struct pg_result *result, int row, int column); /* null: NO_BYTES */

/* 40001 40P01 55P03 → STALE, 57014 → XTIME, 53100 → XFULL, 3D000 → ODATABASE; 08… 57P…, 53300 (too many
 * connections) and 25006 (no primary any more) → XAWAY; else XDATABASE. */
enum fault pg_fault_of_sqlstate(const char *sqlstate);

/* --- notifications (the relay) --- */
int pg_socket(const struct pg *pg);
/* Takes the next received notification, without waiting; false: none.  Texts live in the arena. */
bool pg_next_notification(struct pg *pg, struct arena *arena, struct bytes *channel_r,
                          struct bytes *payload_r);

/* --- administration --- */
/* Position of the last error of pg_execute in the SQL text, in characters from 1; 0: unknown. */
int64_t pg_position(const struct pg *pg);
/* Appends the name as a quoted SQL identifier. */
void pg_add_identifier(struct builder *sql, struct bytes name);

/* Connection strings of libpq: words, or a URI. */

/* The value of a keyword in a connection string; NULL: not set, or not a connection string. */
const char *pg_conninfo_value(struct arena *arena, const char *conninfo, const char *keyword);
/* The connection string without some keywords (NULL ends them); NULL: not a connection string. */
const char *pg_conninfo_without(struct arena *arena, const char *conninfo, const char *const *keywords);

#endif
