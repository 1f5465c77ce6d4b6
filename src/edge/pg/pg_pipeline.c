/* pg_pipeline: sends pipelines, reads their answers, and prepares statements on the way. */
#include "edge/pg/pg_pipeline.h"

#include <stdio.h>
#include <stdlib.h>

#include "base/clock.h"
#include "base/crash.h"
#include "base/log.h"
#include "base/logging/spans.h"
#include "edge/pg/pg_private.h"

enum { PIPELINE_NAMES = 8 };

/* A statement that was prepared inside a pipeline. */
struct parse {
    int place;    /* index among the answers */
    size_t index; /* in the table of statements prepared on use */
};

/* A statement whose rows are to be translated. */
struct translated {
    int place; /* index in the pipeline */
    const struct pg_statement *statement;
    struct pg_params params;
};

struct pipeline {
    struct arena *arena; /* NULL: none is open */
    int count;
    bool is_lost;
    const char *names[PIPELINE_NAMES]; /* of its first statements, for the log */
    const struct pg_statement *table;  /* prepared on use; NULL: none */
    size_t table_count;
    bool *is_prepared;    /* of each of the table */
    struct parse *parses; /* of the pipeline; room for the whole table */
    int parse_count;
    struct translated *translated; /* in the arena */
    size_t translated_count, translated_room;
};

static void end_pipelines(void *pointer)
{
    struct pipeline *pipeline = pointer;
    free(pipeline->is_prepared);
    free(pipeline->parses);
    free(pipeline);
}

static struct pipeline *pipeline_of(struct pg *pg)
{
    return pg_state(pg, PG_USE_PIPELINE, sizeof(struct pipeline), end_pipelines);
}

#define ONES 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1, 1
const int pg_formats[PG_PARAMETERS_MAX] = {ONES, ONES, ONES, ONES, ONES, ONES, ONES, ONES};

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
        PGresult *result = PQgetResult(pg_connection(pg));
        if (!result) { /* the end of one statement's answer */
            place++;
            continue;
        }
        switch (PQresultStatus(result)) {
        case PGRES_PIPELINE_SYNC:
            PQclear(result);
            return pg_is_broken(pg) ? FAULT_XAWAY : FAULT_NONE; /* committed, and perhaps not replicated */
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
                pg_break(pg);
                return FAULT_XAWAY;
            }
            *refusal_r = result;
            *failed_r = place;
        }
    }
    return pg_note_loss(pg, "pipeline"); /* more answers than statements */
}

static enum fault pg_pipeline_prepare(struct pg *pg, const struct pg_statement *statements, size_t count,
                                      int types, const Oid *type_list)
{
    assert(!pg_is_busy(pg));
    pg_clear_error(pg);
    if (!pg_is_connected(pg) || !PQenterPipelineMode(pg_connection(pg)))
        return FAULT_XAWAY;
    for (size_t i = 0; i < count; i++)
        if (!PQsendPrepare(pg_connection(pg), statements[i].name, statements[i].sql, types, type_list))
            return pg_note_loss(pg, statements[i].name);
    if (!PQpipelineSync(pg_connection(pg)))
        return pg_note_loss(pg, "prepare");
    PGresult *refusal;
    int failed = 0;
    enum fault fault = read_answers(pg, (int)count, pg_answer_deadline_ms(pg), NULL, &refusal, &failed);
    if (!fault && !PQexitPipelineMode(pg_connection(pg)))
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
    return pg_pipeline_prepare(pg, statements, count, 0, NULL);
}

enum fault pg_prepare_texts(struct pg *pg, const struct pg_statement *statement)
{
    enum { OID_TEXT = 25 };
    Oid types[PG_PARAMETERS_MAX];
    assert(statement->parameters <= PG_PARAMETERS_MAX);
    for (int i = 0; i < statement->parameters; i++)
        types[i] = OID_TEXT;
    return pg_pipeline_prepare(pg, statement, 1, statement->parameters, types);
}

/* --- statements prepared on use --- */

enum { NOT_OF_TABLE = -1 };

void pg_prepare_on_use(struct pg *pg, const struct pg_statement *table, size_t count)
{
    struct pipeline *pipeline = pipeline_of(pg);
    assert(!pipeline->table);
    pipeline->is_prepared = calloc(count, sizeof *pipeline->is_prepared);
    pipeline->parses = calloc(count, sizeof *pipeline->parses);
    if (!pipeline->is_prepared || !pipeline->parses)
        log_fatal("out of memory statements");
    pipeline->table = table;
    pipeline->table_count = count;
}

/* Its index in the table if it must be prepared before it is sent. */
static ptrdiff_t unprepared(const struct pipeline *pipeline, const struct pg_statement *statement)
{
    if (!pipeline->table || statement < pipeline->table ||
        statement >= pipeline->table + pipeline->table_count)
        return NOT_OF_TABLE;
    ptrdiff_t index = statement - pipeline->table;
    return pipeline->is_prepared[index] ? NOT_OF_TABLE : index;
}

enum fault pg_pipeline_prepare_used(struct pg *pg, const struct pg_statement *statement)
{
    struct pipeline *pipeline = pipeline_of(pg);
    ptrdiff_t index = unprepared(pipeline, statement);
    if (index == NOT_OF_TABLE)
        return FAULT_NONE;
    enum fault fault = pg_prepare(pg, statement, 1);
    pipeline->is_prepared[index] = !fault;
    return fault;
}

/* Prepares it before its first use in a pipeline.  It counts as prepared from here; forget_unparsed corrects
 * that when the pipeline fails earlier. */
static void parse_in_pipeline(struct pg *pg, struct pipeline *pipeline, const struct pg_statement *statement)
{
    ptrdiff_t index = unprepared(pipeline, statement);
    if (index == NOT_OF_TABLE || pipeline->is_lost)
        return;
    if (!PQsendPrepare(pg_connection(pg), statement->name, statement->sql, 0, NULL)) {
        pipeline->is_lost = true;
        return;
    }
    pipeline->parses[pipeline->parse_count] =
        (struct parse){.place = pipeline->count + pipeline->parse_count, .index = (size_t)index};
    pipeline->parse_count++;
    pipeline->is_prepared[index] = true;
}

/* After an error at answer `failed`: the server has skipped all later statements. */
static void forget_unparsed(struct pipeline *pipeline, int failed)
{
    for (int i = 0; i < pipeline->parse_count; i++)
        if (pipeline->parses[i].place >= failed)
            pipeline->is_prepared[pipeline->parses[i].index] = false;
}

/* The statement of the pipeline that answer `place` belongs to: preparing a statement counts as its use. */
static int statement_of_answer(const struct pipeline *pipeline, int place)
{
    int statement = place;
    for (int i = 0; i < pipeline->parse_count && pipeline->parses[i].place < place; i++)
        statement--;
    return statement;
}

/* Removes the answers to preparing from the results. */
static void drop_parses(const struct pipeline *pipeline, PGresult **results, int answers)
{
    int next = 0, parse = 0;
    for (int place = 0; place < answers; place++) {
        if (parse < pipeline->parse_count && pipeline->parses[parse].place == place) {
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
    struct pipeline *pipeline = pipeline_of(pg);
    assert(!pipeline->arena);
    if (spans_get()->is_on)
        pg_tag(pg);
    pg_clear_error(pg);
    if (!pg_is_connected(pg) || !PQenterPipelineMode(pg_connection(pg)))
        return FAULT_XAWAY;
    pipeline->arena = arena;
    pipeline->count = pipeline->parse_count = 0;
    pipeline->translated = NULL;
    pipeline->translated_count = pipeline->translated_room = 0;
    pipeline->is_lost = false;
    pg_set_busy(pg, true);
    return FAULT_NONE;
}

/* Returns the parameters as they are to be sent. */
static const struct pg_params *translate(struct pg *pg, struct pipeline *pipeline,
                                         const struct pg_statement *statement, const struct pg_params *params)
{
    if (!pg_is_translated(pg))
        return params;
    ARENA_GROW(pipeline->arena, pipeline->translated, pipeline->translated_count, pipeline->translated_room);
    pipeline->translated[pipeline->translated_count++] =
        (struct translated){pipeline->count, statement, *params};
    return pg_translate_params(pg, statement, params);
}

static enum fault translate_rows(struct pg *pg, const struct pipeline *pipeline,
                                 struct pg_result *const *results)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; i < pipeline->translated_count && !fault; i++) {
        const struct translated *one = &pipeline->translated[i];
        fault = pg_translate_rows(pg, one->statement, &one->params, results[one->place]);
    }
    return fault;
}

void pg_pipeline_add(struct pg *pg, const struct pg_statement *statement, const struct pg_params *params)
{
    struct pipeline *pipeline = pipeline_of(pg);
    assert(pipeline->arena && statement->parameters == params->count && pg_params_fit(params));
    parse_in_pipeline(pg, pipeline, statement);
    if (pipeline->count < PIPELINE_NAMES)
        pipeline->names[pipeline->count] = statement->name;
    const struct pg_params *sent = translate(pg, pipeline, statement, params);
    pipeline->count++;
    if (!pipeline->is_lost && !PQsendQueryPrepared(pg_connection(pg), statement->name, sent->count,
                                                   sent->values, sent->lengths, pg_formats, 1))
        pipeline->is_lost = true;
}

int pg_pipeline_count(struct pg *pg)
{
    assert(pipeline_of(pg)->arena);
    return pipeline_of(pg)->count;
}

static const char *copy_field(struct arena *arena, const PGresult *result, int field)
{
    const char *text = PQresultErrorField(result, field);
    return text ? arena_copy(arena, text, strlen(text)) : NULL;
}

void pg_pipeline_run_patiently(struct pg *pg, int64_t timeout_ms, bool (*gives_up)(void *context),
                               void *context, struct pg_verdict *verdict_r)
{
    struct pg_patience former = pg_set_patience(pg, (struct pg_patience){gives_up, context});
    pg_pipeline_run(pg, timeout_ms, verdict_r);
    (void)pg_set_patience(pg, former);
}

static void run_pipeline(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r)
{
    struct pipeline *pipeline = pipeline_of(pg);
    struct arena *arena = pipeline->arena;
    int count = pipeline->count, answers = count + pipeline->parse_count;
    assert(arena);
    pipeline->arena = NULL;
    pg_set_busy(pg, false);
    *verdict_r = (struct pg_verdict){.outcome = PG_UNKNOWN, .fault = FAULT_XAWAY};
    int64_t deadline_ms = clock_monotonic_ms() + timeout_ms;
    if (pipeline->is_lost || !PQpipelineSync(pg_connection(pg))) {
        (void)pg_note_loss(pg, "pipeline");
        return;
    }
    crash_at(CRASH_PIPELINE_SENT);
    PGresult **results = ARENA_ARRAY(arena, PGresult *, (size_t)answers + 1);
    PGresult *refusal;
    enum fault lost = read_answers(pg, answers, deadline_ms, results, &refusal, &verdict_r->failed);
    if (refusal) {
        forget_unparsed(pipeline, verdict_r->failed);
        verdict_r->failed = statement_of_answer(pipeline, verdict_r->failed);
    }
    drop_parses(pipeline, results, answers);
    for (int i = 0; i < count; i++)
        if (results[i])
            pg_defer_clear(arena, results[i]);
    if (refusal) {
        int failed = verdict_r->failed;
        bool is_named = failed < count && failed < PIPELINE_NAMES;
        verdict_r->fault = pg_note_error(pg, refusal, is_named ? pipeline->names[failed] : "pipeline");
        snprintf(verdict_r->sqlstate, sizeof verdict_r->sqlstate, "%s", pg_sqlstate(pg));
        verdict_r->detail = copy_field(arena, refusal, PG_DIAG_MESSAGE_DETAIL);
        verdict_r->constraint = copy_field(arena, refusal, PG_DIAG_CONSTRAINT_NAME);
        PQclear(refusal);
    }
    if (lost) { /* whatever the server returned before: without the sync the outcome is unknown */
        verdict_r->fault = lost;
        return;
    }
    if (!PQexitPipelineMode(pg_connection(pg)))
        (void)pg_note_loss(pg, "pipeline");
    verdict_r->outcome = refusal ? PG_REFUSED : PG_COMMITTED;
    verdict_r->results = refusal ? NULL : (struct pg_result **)results;
    if (!refusal)
        verdict_r->fault = translate_rows(pg, pipeline, verdict_r->results);
}

/* The span is named after the first statement, "get +2" of three. */
void pg_pipeline_run(struct pg *pg, int64_t timeout_ms, struct pg_verdict *verdict_r)
{
    const struct pipeline *pipeline = pipeline_of(pg);
    char name[SPAN_NAME_BYTES + 1] = "pipeline";
    int64_t begin_us = spans_begin();
    if (begin_us && pipeline->count > 1)
        snprintf(name, sizeof name, "%.*s +%d", SPAN_NAME_BYTES / 2, pipeline->names[0], pipeline->count - 1);
    else if (begin_us && pipeline->count)
        snprintf(name, sizeof name, "%.*s", SPAN_NAME_BYTES, pipeline->names[0]);
    run_pipeline(pg, timeout_ms, verdict_r);
    spans_note(name, begin_us, verdict_r->outcome != PG_COMMITTED);
}
