/* pg_async: the same connections for an event loop, without waiting. */
#include "edge/pg.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/pg_private.h"

struct pg *pg_start(const struct pg_options *options)
{
    PGconn *connection = pg_begin_connecting(options, false);
    struct pg *pg = calloc(1, sizeof *pg);
    if (!connection || !pg)
        log_fatal("out of memory postgresql connection");
    pg->connection = connection;
    pg->async_deadline_ms = clock_monotonic_ms() + options->connect_timeout_s * INT64_C(1000);
    pg->answer_timeout_ms = options->statement_timeout_ms + PG_ANSWER_GRACE_MS;
    pg_listen_to_notices(pg);
    return pg;
}

static enum pg_progress give_up(struct pg *pg, enum fault fault, enum fault *fault_r)
{
    pg->is_broken = true;
    *fault_r = fault;
    return PG_FAILED;
}

enum pg_progress pg_go_on_connecting(struct pg *pg, const struct pg_options *options, enum fault *fault_r)
{
    PostgresPollingStatusType status = PQconnectPoll(pg->connection);
    if (status == PGRES_POLLING_OK || status == PGRES_POLLING_FAILED) {
        enum fault fault = pg_judge_connection(pg, options);
        return fault ? give_up(pg, fault, fault_r) : PG_DONE;
    }
    if (clock_monotonic_ms() >= pg->async_deadline_ms) {
        log_warning("postgresql cannot connect database=%s: no answer in time", options->database);
        return give_up(pg, FAULT_XAWAY, fault_r);
    }
    return status == PGRES_POLLING_WRITING ? PG_WAITS_TO_WRITE : PG_WAITS_TO_READ;
}

enum fault pg_send(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(!pg->pipeline_arena && !pg->async_statement && statement->parameters == params->count);
    pg->sqlstate[0] = '\0';
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    if (!PQsendQueryParams(pg->connection, statement->sql, params->count, NULL, params->values,
                           params->lengths, pg_formats, 1))
        return pg_note_loss(pg, statement->name);
    pg->async_statement = statement->name;
    pg->async_deadline_ms = clock_monotonic_ms() + pg->answer_timeout_ms;
    return FAULT_NONE;
}

/* Reads the received data; PG_DONE when the answer is complete. */
static enum pg_progress take(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                             enum fault *fault_r)
{
    while (!PQisBusy(pg->connection)) {
        PGresult *result = PQgetResult(pg->connection);
        if (!result)
            return PG_DONE;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
            *result_r = (struct pg_result *)result;
            pg_defer_clear(arena, result);
            continue;
        }
        *fault_r = pg_note_error(pg, result, pg->async_statement);
        PQclear(result);
        if (pg->is_broken)
            return PG_FAILED;
    }
    return PG_WAITS_TO_READ;
}

enum pg_progress pg_receive(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                            enum fault *fault_r)
{
    assert(pg->async_statement);
    int unsent = PQflush(pg->connection);
    if (unsent < 0 || !PQconsumeInput(pg->connection))
        return give_up(pg, pg_note_loss(pg, pg->async_statement), fault_r);
    enum pg_progress progress = take(pg, arena, result_r, fault_r);
    if (progress == PG_DONE) {
        pg->async_statement = NULL;
        return *fault_r ? PG_FAILED : PG_DONE;
    }
    if (progress == PG_FAILED)
        return progress;
    if (clock_monotonic_ms() >= pg->async_deadline_ms)
        return give_up(pg, pg_note_silence(pg, pg->async_statement), fault_r);
    return unsent ? PG_WAITS_TO_WRITE : PG_WAITS_TO_READ;
}

int64_t pg_deadline_ms(const struct pg *pg)
{
    return pg->async_deadline_ms;
}
