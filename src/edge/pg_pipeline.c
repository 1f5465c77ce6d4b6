/* pg_pipeline: several statements in one round trip and one implicit transaction. */
#include "edge/pg_private.h"

#include <stdlib.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"

/* Reads the answers to `count` statements and the sync.  Successful results go to results[] (NULL: they are
 * discarded), the first error to refusal_r with the index of its statement.  FAULT_NONE: the sync arrived. */
static enum fault read_answers(struct pg *pg, int count, int64_t deadline_ms, PGresult **results,
                               PGresult **refusal_r, int *failed_r)
{
    *refusal_r = NULL;
    int most = count + 1; /* the commit itself may also fail, with an error before the sync */
    for (int place = 0; place <= most;) {
        enum fault lost = pg_await_result(pg, deadline_ms, "pipeline");
        if (lost)
            return lost;
        PGresult *result = PQgetResult(pg->connection);
        if (!result) { /* the end of one statement's answer */
            place++;
            continue;
        }
        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            PQclear(result);
            return FAULT_NONE;
        case PGRES_TUPLES_OK:
        case PGRES_COMMAND_OK:
            if (results && place < count && !results[place])
                results[place] = result;
            else
                PQclear(result);
            continue;
        case PGRES_PIPELINE_ABORTED:
            PQclear(result);
            continue;
        default:
            if (*refusal_r || !PQresultErrorField(result, PG_DIAG_SQLSTATE)) {
                (void)pg_note_error(pg, result, "pipeline");
                PQclear(result);
                pg->is_broken = true;
                return FAULT_XAWAY;
            }
            *refusal_r = result;
            *failed_r = place;
        }
    }
    return pg_note_loss(pg, "pipeline"); /* more answers than statements */
}

static enum fault prepare(struct pg *pg, const struct pg_statement *statements, size_t count, int types,
                          const Oid *type_list)
{
    assert(!pg->pipeline_arena);
    pg->sqlstate[0] = '\0';
    if (!pg_is_connected(pg) || !PQenterPipelineMode(pg->connection))
        return FAULT_XAWAY;
    for (size_t i = 0; i < count; i++)
        if (!PQsendPrepare(pg->connection, statements[i].name, statements[i].sql, types, type_list))
            return pg_note_loss(pg, statements[i].name);
    if (!PQpipelineSync(pg->connection))
        return pg_note_loss(pg, "prepare");
    PGresult *refusal;
    int failed = 0;
    enum fault fault =
        read_answers(pg, (int)count, clock_monotonic_ms() + pg->answer_timeout_ms, NULL, &refusal, &failed);
    if (!fault && !PQexitPipelineMode(pg->connection))
        fault = pg_note_loss(pg, "prepare");
    if (refusal) {
        enum fault error =
            pg_note_error(pg, refusal, (size_t)failed < count ? statements[failed].name : "prepare");
        fault = fault ? fault : error;
        PQclear(refusal);
    }
    return fault;
}

enum fault pg_prepare(struct pg *pg, const struct pg_statement *statements, size_t count)
{
    return prepare(pg, statements, count, 0, NULL);
}

enum fault pg_prepare_texts(struct pg *pg, const struct pg_statement *statement)
{
    enum { OID_TEXT = 25 };
    Oid types[PG_PARAMETERS_MAX];
    assert(statement->parameters <= PG_PARAMETERS_MAX);
    for (int i = 0; i < statement->parameters; i++)
        types[i] = OID_TEXT;
    return prepare(pg, statement, 1, statement->parameters, types);
}

/* --- statements prepared on use --- */

enum { NOT_OF_TABLE = -1 };

void pg_prepare_on_use(struct pg *pg, const struct pg_statement *table, size_t count)
{
    assert(!pg->table);
    pg->is_prepared = calloc(count, sizeof *pg->is_prepared);
    pg->parses = calloc(count, sizeof *pg->parses);
    if (!pg->is_prepared || !pg->parses)
        log_fatal("out of memory statements");
    pg->table = table;
    pg->table_count = count;
}

/* Its index in the table if it must be prepared before it is sent. */
static ptrdiff_t unprepared(const struct pg *pg, const struct pg_statement *statement)
{
    if (!pg->table || statement < pg->table || statement >= pg->table + pg->table_count)
        return NOT_OF_TABLE;
    ptrdiff_t index = statement - pg->table;
    return pg->is_prepared[index] ? NOT_OF_TABLE : index;
}

enum fault pg_prepare_used(struct pg *pg, const struct pg_statement *statement)
{
    ptrdiff_t index = unprepared(pg, statement);
    if (index == NOT_OF_TABLE)
        return FAULT_NONE;
    enum fault fault = pg_prepare(pg, statement, 1);
    pg->is_prepared[index] = !fault;
    return fault;
}

/* Prepares it before its first use in a pipeline.  It counts as prepared from here; forget_unparsed corrects
 * that when the pipeline fails earlier. */
static void parse_in_pipeline(struct pg *pg, const struct pg_statement *statement)
{
    ptrdiff_t index = unprepared(pg, statement);
    if (index == NOT_OF_TABLE || pg->is_pipeline_lost)
        return;
    if (!PQsendPrepare(pg->connection, statement->name, statement->sql, 0, NULL)) {
        pg->is_pipeline_lost = true;
        return;
    }
    pg->parses[pg->parse_count] =
        (struct pg_parse){.place = pg->pipeline_count + pg->parse_count, .index = (size_t)index};
    pg->parse_count++;
    pg->is_prepared[index] = true;
}

/* After an error at answer `failed`: the server has skipped all later statements. */
static void forget_unparsed(struct pg *pg, int failed)
{
    for (int i = 0; i < pg->parse_count; i++)
        if (pg->parses[i].place >= failed)
            pg->is_prepared[pg->parses[i].index] = false;
}

/* The statement of the pipeline that answer `place` belongs to: preparing a statement counts as its use. */
static int statement_of_answer(const struct pg *pg, int place)
{
    int statement = place;
    for (int i = 0; i < pg->parse_count && pg->parses[i].place < place; i++)
        statement--;
    return statement;
}

/* Removes the answers to preparing from the results. */
static void drop_parses(struct pg *pg, PGresult **results, int answers)
{
    int next = 0, parse = 0;
    for (int place = 0; place < answers; place++) {
        if (parse < pg->parse_count && pg->parses[parse].place == place) {
            PQclear(results[place]);
            parse++;
        } else {
            results[next++] = results[place];
        }
    }
}

/* --- the pipeline --- */

enum fault pg_pipeline_begin(struct pg *pg, struct arena *arena)
{
    assert(!pg->pipeline_arena);
    pg->sqlstate[0] = '\0';
    if (!pg_is_connected(pg) || !PQenterPipelineMode(pg->connection))
        return FAULT_XAWAY;
    pg->pipeline_arena = arena;
    pg->pipeline_count = pg->parse_count = 0;
    pg->is_pipeline_lost = false;
    return FAULT_NONE;
}

void pg_pipeline_add(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    assert(pg->pipeline_arena && statement->parameters == params->count && pg_params_fit(params));
    parse_in_pipeline(pg, statement);
    if (pg->pipeline_count < PIPELINE_NAMES)
        pg->pipeline_names[pg->pipeline_count] = statement->name;
    pg->pipeline_count++;
    if (!pg->is_pipeline_lost && !PQsendQueryPrepared(pg->connection, statement->name, params->count,
                                                      params->values, params->lengths, pg_formats, 1))
        pg->is_pipeline_lost = true;
}

int pg_pipeline_count(const struct pg *pg)
{
    assert(pg->pipeline_arena);
    return pg->pipeline_count;
}

static const char *copy_field(struct arena *arena, const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

void pg_pipeline_run(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r)
{
    struct arena *arena = pg->pipeline_arena;
    int count = pg->pipeline_count, answers = count + pg->parse_count;
    assert(arena);
    pg->pipeline_arena = NULL;
    *verdict_r = (struct pg_verdict){.outcome = PG_UNKNOWN, .fault = FAULT_XAWAY};
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    if (pg->is_pipeline_lost || !PQpipelineSync(pg->connection)) {
        (void)pg_note_loss(pg, "pipeline");
        return;
    }
    crash_at(CRASH_PIPELINE_SENT);
    PGresult **results = ARENA_ARRAY(arena, PGresult *, (size_t)answers + 1);
    PGresult *refusal;
    enum fault lost = read_answers(pg, answers, deadline_ms, results, &refusal, &verdict_r->failed);
    if (refusal) {
        forget_unparsed(pg, verdict_r->failed);
        verdict_r->failed = statement_of_answer(pg, verdict_r->failed);
    }
    drop_parses(pg, results, answers);
    for (int i = 0; i < count; i++)
        if (results[i])
            pg_defer_clear(arena, results[i]);
    if (refusal) {
        int failed = verdict_r->failed;
        bool is_named = failed < count && failed < PIPELINE_NAMES;
        verdict_r->fault = pg_note_error(pg, refusal, is_named ? pg->pipeline_names[failed] : "pipeline");
        memcpy(verdict_r->sqlstate, pg->sqlstate, sizeof verdict_r->sqlstate);
        verdict_r->detail = copy_field(arena, refusal, PG_DIAG_MESSAGE_DETAIL);
        verdict_r->constraint = copy_field(arena, refusal, PG_DIAG_CONSTRAINT_NAME);
        PQclear(refusal);
    }
    if (lost) { /* whatever the server returned before: without the sync the outcome is unknown */
        verdict_r->fault = lost;
        return;
    }
    if (!PQexitPipelineMode(pg->connection))
        (void)pg_note_loss(pg, "pipeline");
    if (!refusal)
        verdict_r->fault = FAULT_NONE;
    verdict_r->outcome = refusal ? PG_REFUSED : PG_COMMITTED;
    verdict_r->results = refusal ? NULL : (struct pg_result **)results;
}
