/* pg_stream: the rows of one statement, read one by one as they arrive. */
#include "edge/pg/pg_stream.h"

#include <stdlib.h>

#include "edge/pg/pg_private.h"

struct stream {
    const char *statement; /* NULL: none */
    PGresult *row;         /* the last one; NULL: none */
    const struct pg_statement *translated;
    struct pg_params params;
};

static void end_stream(void *pointer)
{
    struct stream *stream = pointer;
    PQclear(stream->row);
    free(stream);
}

static struct stream *stream_of(struct pg *pg)
{
    return pg_state(pg, PG_USE_STREAM, sizeof(struct stream), end_stream);
}

enum fault pg_stream_begin(struct pg *pg, const struct pg_statement *statement,
                           const struct pg_params *params)
{
    enum fault fault = pg_run_send(pg, statement, params);
    if (fault)
        return fault;
    if (!PQsetSingleRowMode(pg_connection(pg)))
        return pg_note_loss(pg, statement->name);
    stream_of(pg)->statement = statement->name;
    stream_of(pg)->translated = statement;
    stream_of(pg)->params = *params;
    pg_set_busy(pg, true);
    return FAULT_NONE;
}

/* After the last row, or an error of the server, reads its answer to the end. */
static enum fault end_rows(struct pg *pg, int64_t deadline_ms, enum fault fault)
{
    struct stream *stream = stream_of(pg);
    const char *what = stream->statement;
    stream->statement = NULL;
    pg_set_busy(pg, false);
    for (;;) {
        enum fault lost = pg_await_result(pg, deadline_ms, what);
        if (lost)
            return fault ? fault : lost;
        PGresult *result = PQgetResult(pg_connection(pg));
        if (!result)
            return fault;
        PQclear(result);
    }
}

enum fault pg_stream_next(struct pg *pg, int64_t deadline_ms, const struct pg_result **row_r)
{
    struct stream *stream = stream_of(pg);
    assert(stream->statement);
    PQclear(stream->row);
    stream->row = NULL;
    *row_r = NULL;
    enum fault fault = pg_await_result(pg, deadline_ms, stream->statement);
    if (fault)
        return fault;
    PGresult *result = PQgetResult(pg_connection(pg));
    switch (PQresultStatus(result)) {
    case PGRES_SINGLE_TUPLE:
        stream->row = result;
        *row_r = (const struct pg_result *)result;
        return pg_translate_rows(pg, stream->translated, &stream->params, (struct pg_result *)result);
    case PGRES_TUPLES_OK: /* no more rows */
        PQclear(result);
        return end_rows(pg, deadline_ms, FAULT_NONE);
    default:
        fault = result ? pg_note_error(pg, result, stream->statement) : pg_note_loss(pg, stream->statement);
        PQclear(result);
        return pg_is_broken(pg) ? fault : end_rows(pg, deadline_ms, fault);
    }
}
