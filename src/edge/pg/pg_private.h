/* pg_private: internals of a connection, for src/edge/pg/pg*.c only; the only file that includes libpq.
 *
 * Connections are non-blocking: every wait is a poll with a limit, and a libpq function that could block
 * (PQgetResult) is called only when its answer is there.  A wait that ends without an answer breaks the
 * connection: cancelling would not show what the server has done.  No log line contains a parameter's value,
 * so only the primary message is logged, never the detail. */
#ifndef STAMPD_EDGE_PG_PG_PRIVATE_H
#define STAMPD_EDGE_PG_PG_PRIVATE_H

#include <libpq-fe.h>

#include "edge/pg/pg.h"

enum {
    /* The server's own limits end a statement first, with a clear SQLSTATE; this one is for a server that
     * does not respond. */
    PG_ANSWER_GRACE_MS = 2000,
};

/* --- the connection (pg.c) --- */
/* `connection` NULL: out of memory. */
struct pg *pg_create(PGconn *connection, int64_t statement_timeout_ms) __attribute__((returns_nonnull));
PGconn *pg_connection(const struct pg *pg);
enum { PG_DATABASE_SIZE = 64 }; /* with the NUL */
void pg_note_database(struct pg *pg, const char *database);
/* In place of an attempt to connect that has failed; `connection` NULL: out of memory. */
void pg_replace_connection(struct pg *pg, PGconn *connection);
bool pg_is_connected(const struct pg *pg);
int64_t pg_answer_deadline_ms(const struct pg *pg);
/* A pipeline is open, or rows are being read one by one: nothing else may be sent. */
bool pg_is_busy(const struct pg *pg);
void pg_set_busy(struct pg *pg, bool is_busy);

/* What one kind of use keeps with the connection: begins as zeros on its first use; `end` frees it when the
 * connection is closed. */
enum pg_use {
    PG_USE_PIPELINE,
    PG_USE_STREAM,
    PG_USE_ASYNC,
    PG_USE_COPY,
    PG_USE_TRANSLATION,
    PG_USE_TAG,
    PG_USES
};
void *pg_state(struct pg *pg, enum pg_use use, size_t size, void (*end)(void *))
    __attribute__((returns_nonnull));

/* --- errors (pg.c) --- */
void pg_clear_error(struct pg *pg);
void pg_break(struct pg *pg);
bool pg_is_broken(const struct pg *pg);
/* The server refused to connect. */
void pg_note_refusal(struct pg *pg, const char *sqlstate, const char *message);
/* Each stores and logs an error during `what`, and marks the connection broken when it cannot be used again:
 * an error in a result; a lost connection; no answer in time. */
enum fault pg_note_error(struct pg *pg, const PGresult *result, const char *what);
enum fault pg_note_loss(struct pg *pg, const char *what);
enum fault pg_note_silence(struct pg *pg, const char *what);

/* --- answers (pg.c) --- */
/* Sends pending output and reads until the next PQgetResult will not block. */
MUST_USE enum fault pg_await_result(struct pg *pg, int64_t deadline_ms, const char *what);
/* Reads the results of one command, to the end or to the one that begins a copy (`copy`: PGRES_COPY_IN or
 * PGRES_COPY_OUT; PGRES_COMMAND_OK: none is expected).  Keeps the last one without error, which the caller
 * clears; NULL: there is none. */
MUST_USE enum fault pg_collect(struct pg *pg, ExecStatusType copy, const char *what, PGresult **kept_r);
/* The same, and keeps nothing. */
MUST_USE enum fault pg_finish(struct pg *pg, ExecStatusType copy, const char *what);
/* Sends SQL text without parameters, and reads its results like pg_finish(). */
MUST_USE enum fault pg_execute_text(struct pg *pg, const char *sql, ExecStatusType copy, const char *what);
/* Keeps a result until the arena's reset. */
void pg_defer_clear(struct arena *arena, PGresult *result);

/* --- connecting (pg_connect.c) --- */
/* Begins to connect with all our options, to the host of this number (pg_hosts.h); NULL: out of memory. */
PGconn *pg_connect_begin(const struct pg_options *options, int number);
/* Is the finished connection attempt usable?  Logs why not. */
enum fault pg_connect_judge(struct pg *pg, const struct pg_options *options);

/* --- statements (pg_pipeline.c) --- */
/* One for each parameter: binary. */
extern const int pg_formats[PG_PARAMETERS_MAX];
/* Prepares a statement of the table on its first use; does nothing for others.  Not inside a pipeline. */
MUST_USE enum fault pg_pipeline_prepare_used(struct pg *pg, const struct pg_statement *statement);

/* --- translation (pg_translation.c) --- */
bool pg_is_translated(struct pg *pg);
/* The parameters as they are to be sent; then the rows, which may be NULL, as the caller gets them. */
const struct pg_params *pg_translate_params(struct pg *pg, const struct pg_statement *statement,
                                            const struct pg_params *params);
MUST_USE enum fault pg_translate_rows(struct pg *pg, const struct pg_statement *statement,
                                      const struct pg_params *params, struct pg_result *rows);

/* --- names of sessions (pg_tag.c) --- */
/* Names the session after the request that is traced; not inside a pipeline. */
void pg_tag(struct pg *pg);

/* --- single statements (pg_run.c) --- */
/* Sends a prepared statement, whose results are to be read. */
MUST_USE enum fault pg_run_send(struct pg *pg, const struct pg_statement *statement,
                                const struct pg_params *params);

#endif
