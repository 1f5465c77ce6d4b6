/* pg_rows: the rows of one statement, read one by one as they arrive. */
#include "edge/pg_private.h"

enum fault pg_begin_rows(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(!pg->pipeline_arena && !pg->rows_statement && statement->parameters == params->count);
    pg->sqlstate[0] = '\0';
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    enum fault fault = pg_prepare_used(pg, statement);
    if (fault)
        return fault;
    if (!PQsendQueryPrepared(pg->connection, statement->name, params->count, params->values, params->lengths,
                             pg_formats, 1) ||
        !PQsetSingleRowMode(pg->connection))
        return pg_note_loss(pg, statement->name);
    pg->rows_statement = statement->name;
    return FAULT_NONE;
}

/* After the last row, or an error of the server, reads its answer to the end. */
static enum fault end_rows(struct pg *pg, int64_t deadline_ms, enum fault fault)
{
    const char *what = pg->rows_statement;
    pg->rows_statement = NULL;
    for (;;) {
        enum fault lost = pg_await_result(pg, deadline_ms, what);
        if (lost)
            return fault ? fault : lost;
        PGresult *result = PQgetResult(pg->connection);
        if (!result)
            return fault;
        PQclear(result);
    }
}

enum fault pg_take_row(struct pg *pg, int64_t deadline_ms, const struct pg_result **row_r)
{
    assert(pg->rows_statement);
    PQclear(pg->row);
    pg->row = NULL;
    *row_r = NULL;
    enum fault fault = pg_await_result(pg, deadline_ms, pg->rows_statement);
    if (fault)
        return fault;
    PGresult *result = PQgetResult(pg->connection);
    switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        pg->row = result;
        *row_r = (const struct pg_result *)result;
        return FAULT_NONE;
    case PGRES_TUPLES_OK: /* no more rows */
        PQclear(result);
        return end_rows(pg, deadline_ms, FAULT_NONE);
    default:
        fault = result ? pg_note_error(pg, result, pg->rows_statement) : pg_note_loss(pg, pg->rows_statement);
        PQclear(result);
        return pg->is_broken ? fault : end_rows(pg, deadline_ms, fault);
    }
}
