/* pg_run: runs single statements and waits for their answers. */
#include "edge/pg/pg.h"

#include "base/logging/spans.h"
#include "edge/pg/pg_private.h"

static enum fault collect(struct pg *pg, ExecStatusType copy, const char *what, PGresult **kept_r)
{
    int64_t deadline_ms = pg_answer_deadline_ms(pg);
    enum fault fault = FAULT_NONE;
    bool is_begun;
    *kept_r = NULL;
    for (;;) {
        enum fault lost = pg_await_result(pg, deadline_ms, what);
        if (lost)
            return fault ? fault : lost;
        PGresult *result = PQgetResult(pg_connection(pg));
        if (!result && !fault && pg_is_broken(pg)) /* committed, and perhaps not replicated */
            return FAULT_XAWAY;
        if (!result)
            return fault || copy == PGRES_COMMAND_OK ? fault : pg_note_loss(pg, what);
        switch (PQresultStatus(result)) {
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
        case PGRES_EMPTY_QUERY:
            PQclear(*kept_r);
            *kept_r = result;
            continue;
        case PGRES_COPY_IN:
        case PGRES_COPY_OUT:
        case PGRES_COPY_BOTH: /* a copy that is not expected would never be ended */
            is_begun = PQresultStatus(result) == copy;
            PQclear(result);
            return is_begun ? fault : pg_note_silence(pg, what);
        default: {
            enum fault error = pg_note_error(pg, result, what);
            fault = fault ? fault : error;
            PQclear(result);
        }
        }
    }
}

enum fault pg_collect(struct pg *pg, ExecStatusType copy, const char *what, PGresult **kept_r)
{
    int64_t begin_us = spans_begin();
    enum fault fault = collect(pg, copy, what, kept_r);
    spans_note(what, begin_us, fault != FAULT_NONE);
    return fault;
}

enum fault pg_run_send(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(!pg_is_busy(pg) && statement->parameters == params->count);
    if (spans_get()->is_on)
        pg_tag(pg);
    pg_clear_error(pg);
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    enum fault fault = pg_pipeline_prepare_used(pg, statement);
    if (fault)
        return fault;
    const struct pg_params *sent = pg_translate_params(pg, statement, params);
    if (!PQsendQueryPrepared(pg_connection(pg), statement->name, sent->count, sent->values, sent->lengths,
                             pg_formats, 1))
        return pg_note_loss(pg, statement->name);
    return FAULT_NONE;
}

enum fault pg_run(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params,
                  struct pg_result **result_r)
{
    if (result_r)
        *result_r = NULL;
    enum fault fault = pg_run_send(pg, statement, params);
    if (fault)
        return fault;
    PGresult *result;
    fault = pg_collect(pg, PGRES_COMMAND_OK, statement->name, &result);
    if (!fault && !result)
        fault = pg_note_loss(pg, statement->name);
    if (fault || !result_r) {
        PQclear(result);
        return fault;
    }
    pg_defer_clear(params->arena, result);
    *result_r = (struct pg_result *)result;
    return pg_translate_rows(pg, statement, params, *result_r);
}

enum fault pg_finish(struct pg *pg, ExecStatusType copy, const char *what)
{
    PGresult *result;
    enum fault fault = pg_collect(pg, copy, what, &result);
    PQclear(result);
    return fault;
}

enum fault pg_execute_text(struct pg *pg, const char *sql, ExecStatusType copy, const char *what)
{
    assert(!pg_is_busy(pg));
    pg_clear_error(pg);
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!PQsendQuery(pg_connection(pg), sql))
        return pg_note_loss(pg, what);
    return pg_finish(pg, copy, what);
}

enum fault pg_execute(struct pg *pg, const char *sql)
{
    return pg_execute_text(pg, sql, PGRES_COMMAND_OK, "execute");
}
