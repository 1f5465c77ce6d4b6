/* pg_private: internals of a connection, for src/edge/pg*.c only; the only file that includes libpq.
 *
 * Connections are non-blocking: every wait is a poll with a limit, and a libpq function that could block
 * (PQgetResult) is called only when its answer is there.  A wait that ends without an answer breaks the
 * connection: cancelling would not show what the server has done.  No log line contains a parameter's value,
 * so only the primary message is logged, never the detail. */
#ifndef STAMPD_EDGE_PG_PRIVATE_H
#define STAMPD_EDGE_PG_PRIVATE_H

#include <libpq-fe.h>

#include "edge/pg.h"

enum {
    PIPELINE_NAMES = 8,
    /* The server's own limits end a statement first, with a clear SQLSTATE; this one is for a server that
     * does not respond. */
    PG_ANSWER_GRACE_MS = 2000,
};

/* A statement that was prepared inside a pipeline. */
struct pg_parse {
    int place;    /* index among the answers */
    size_t index; /* in the table of statements prepared on use */
};

struct pg {
    PGconn *connection;
    int64_t answer_timeout_ms;
    bool is_broken;
    struct arena *pipeline_arena; /* of the open pipeline; NULL: none */
    int pipeline_count;
    bool is_pipeline_lost;
    const char *pipeline_names[PIPELINE_NAMES]; /* of its first statements, for the log */
    const struct pg_statement *table;           /* prepared on use; NULL: none */
    size_t table_count;
    bool *is_prepared;       /* of each of the table */
    struct pg_parse *parses; /* of the pipeline; room for the whole table */
    int parse_count;
    char sqlstate[6];
    char message[400];
    char detail[8192];           /* of the last error raised by one of our functions (ST…) */
    int64_t position;            /* of the last error in its SQL text; 0: unknown */
    const char *async_statement; /* sent by pg_send, not yet answered; NULL: none */
    int64_t async_deadline_ms;   /* of the answer, or of connecting */
    const char *rows_statement;  /* the statement whose rows are read one by one; NULL: none */
    PGresult *row;               /* the last one of them; NULL: none */
};

/* One for each parameter: binary. */
extern const int pg_formats[PG_PARAMETERS_MAX];

bool pg_is_connected(const struct pg *pg);
/* Connects with all our options and waits, or only begins; NULL: out of memory. */
PGconn *pg_begin_connecting(const struct pg_options *options, bool waits);
void pg_listen_to_notices(struct pg *pg);
/* Is the finished connection attempt usable?  Logs why not. */
enum fault pg_judge_connection(struct pg *pg, const struct pg_options *options);
void pg_keep_message(struct pg *pg, const char *text);
/* Each stores and logs an error during `what`, and marks the connection broken when it cannot be used again:
 * an error in a result; a lost connection; no answer in time. */
enum fault pg_note_error(struct pg *pg, const PGresult *result, const char *what);
enum fault pg_note_loss(struct pg *pg, const char *what);
enum fault pg_note_silence(struct pg *pg, const char *what);

/* Prepares a statement of the table on its first use; does nothing for others.  Not inside a pipeline. */
MUST_USE enum fault pg_prepare_used(struct pg *pg, const struct pg_statement *statement);

/* Sends pending output and reads until the next PQgetResult will not block. */
MUST_USE enum fault pg_await_result(struct pg *pg, int64_t deadline_ms, const char *what);
/* Keeps a result until the arena's reset. */
void pg_defer_clear(struct arena *arena, PGresult *result);

#endif
