/* pg_async: single statements whose answers arrive in steps. */
#include "edge/pg/pg_async.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/log.h"
#include "edge/pg/pg_hosts.h"
#include "edge/pg/pg_private.h"

struct async {
    const char *statement; /* sent, not yet answered; NULL: none */
    int64_t deadline_ms;   /* of the answer, or of connecting to this host */
    int host;              /* number of the one that is tried */
    const struct pg_statement *translated;
    struct pg_params params;
};

static struct async *async_of(struct pg *pg)
{
    return pg_state(pg, PG_USE_ASYNC, sizeof(struct async), free);
}

static void set_connect_deadline(struct pg *pg, const struct pg_options *options)
{
    async_of(pg)->deadline_ms = clock_monotonic_ms() + options->connect_timeout_s * INT64_C(1000);
}

struct pg *pg_async_start(const struct pg_options *options)
{
    struct pg *pg = pg_create(pg_connect_begin(options, 0), options->statement_timeout_ms);
    set_connect_deadline(pg, options);
    return pg;
}

static enum pg_progress pg_async_give_up(struct pg *pg, enum fault fault, enum fault *fault_r)
{
    pg_break(pg);
    *fault_r = fault;
    return PG_FAILED;
}

/* False: this was the last one. */
static bool try_next_host(struct pg *pg, const struct pg_options *options)
{
    struct async *async = async_of(pg);
    if (!options->conninfo || async->host + 1 >= pg_hosts_count(options->conninfo))
        return false;
    pg_replace_connection(pg, pg_connect_begin(options, ++async->host));
    set_connect_deadline(pg, options);
    return true;
}

enum pg_progress pg_async_connect(struct pg *pg, const struct pg_options *options, enum fault *fault_r)
{
    bool is_late = clock_monotonic_ms() >= async_of(pg)->deadline_ms;
    PostgresPollingStatusType status = is_late ? PGRES_POLLING_FAILED : PQconnectPoll(pg_connection(pg));
    if (status == PGRES_POLLING_FAILED && try_next_host(pg, options))
        return PG_WAITS_TO_WRITE;
    if (is_late) {
        log_warning("postgresql cannot connect database=%s: no answer in time", options->database);
        return pg_async_give_up(pg, FAULT_XAWAY, fault_r);
    }
    if (status == PGRES_POLLING_OK || status == PGRES_POLLING_FAILED) {
        enum fault fault = pg_connect_judge(pg, options);
        return fault ? pg_async_give_up(pg, fault, fault_r) : PG_DONE;
    }
    return status == PGRES_POLLING_WRITING ? PG_WAITS_TO_WRITE : PG_WAITS_TO_READ;
}

enum fault pg_async_send(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(!pg_is_busy(pg) && !async_of(pg)->statement && statement->parameters == params->count);
    pg_clear_error(pg);
    if (!pg_is_connected(pg))
        return FAULT_XAWAY;
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    const struct pg_params *sent = pg_translate_params(pg, statement, params);
    if (!PQsendQueryParams(pg_connection(pg), statement->sql, sent->count, NULL, sent->values, sent->lengths,
                           pg_formats, 1))
        return pg_note_loss(pg, statement->name);
    *async_of(pg) = (struct async){.statement = statement->name,
                                   .deadline_ms = pg_answer_deadline_ms(pg),
                                   .translated = statement,
                                   .params = *params};
    return FAULT_NONE;
}

/* Reads the received data; PG_DONE when the answer is complete. */
static enum pg_progress pg_async_take(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                                      enum fault *fault_r)
{
    while (!PQisBusy(pg_connection(pg))) {
        PGresult *result = PQgetResult(pg_connection(pg));
        if (!result)
            return PG_DONE;
        ExecStatusType status = PQresultStatus(result);
        if (status == PGRES_TUPLES_OK || status == PGRES_COMMAND_OK) {
            *result_r = (struct pg_result *)result;
            pg_defer_clear(arena, result);
            continue;
        }
        *fault_r = pg_note_error(pg, result, async_of(pg)->statement);
        PQclear(result);
        if (pg_is_broken(pg))
            return PG_FAILED;
    }
    return PG_WAITS_TO_READ;
}

enum pg_progress pg_async_receive(struct pg *pg, struct arena *arena, struct pg_result **result_r,
                                  enum fault *fault_r)
{
    struct async *async = async_of(pg);
    assert(async->statement);
    int unsent = PQflush(pg_connection(pg));
    if (unsent < 0 || !PQconsumeInput(pg_connection(pg)))
        return pg_async_give_up(pg, pg_note_loss(pg, async->statement), fault_r);
    enum pg_progress progress = pg_async_take(pg, arena, result_r, fault_r);
    if (progress == PG_DONE) {
        async->statement = NULL;
        if (!*fault_r)
            *fault_r = pg_translate_rows(pg, async->translated, &async->params, *result_r);
        return *fault_r ? PG_FAILED : PG_DONE;
    }
    if (progress == PG_FAILED)
        return progress;
    if (clock_monotonic_ms() >= async->deadline_ms)
        return pg_async_give_up(pg, pg_note_silence(pg, async->statement), fault_r);
    return unsent ? PG_WAITS_TO_WRITE : PG_WAITS_TO_READ;
}

int64_t pg_async_deadline_ms(struct pg *pg)
{
    return async_of(pg)->deadline_ms;
}
