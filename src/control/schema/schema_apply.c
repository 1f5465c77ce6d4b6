/* schema_apply: runs the steps of a plan while the workers continue to serve. */
#include "control/schema/schema_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/schema/schema_sql.h"
#include "control/schema/schema_catalog.h"
#include "edge/json/json.h"
#include "store/documents/reservations.h"
#include "store/documents/rewriting.h"
#include "store/proof.h"
#include "store/refusal.h"
#include "store/statements.h"

/* --- refusals --- */

/* A unique property that existing documents violate.  It is reported with its value and the
 * documents, and withdrawn completely: the class is as before, and the rest of the plan continues.  One
 * transaction writes the schema without the property; a trigger does the rest. */

/* A value that two documents have, or want. */
struct schema_refusal {
    struct bytes property, class, id, value, other; /* other: the document, or NO_BYTES */
};

#define TEXT(text) (int)(text).size, (text).data

/* Parses the detail of ST005; false: it is not one. */
static bool schema_refusal_read(struct arena *arena, const char *detail, struct schema_refusal *refusal_r)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2};
    struct json *list;
    struct json_problem problem;
    *refusal_r = (struct schema_refusal){0};
    struct bytes *const parts[] = {&refusal_r->property, &refusal_r->class, &refusal_r->id, &refusal_r->value,
                                   &refusal_r->other};
    if (json_read(arena, bytes_of(arena_copy(arena, detail, strlen(detail))), &limits, &list, &problem) ||
        list->kind != JSON_ARRAY || list->count != COUNT_OF(parts))
        return false;
    size_t part = 0;
    for (const struct json *one = list->first; one; one = one->next)
        *parts[part++] = one->value;
    return true;
}

static const struct schema_unique *find_unique(const struct schema *schema,
                                               const struct schema_refusal *refusal)
{
    const struct schema_class *class = schema_find_class(schema, refusal->class);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (bytes_equal(class->uniques[i].name, refusal->property))
            return &class->uniques[i];
    return NULL;
}

/* The schema without the property. */
static const struct schema *leave_out(struct arena *arena, const struct schema *schema,
                                      const struct schema_refusal *refusal)
{
    struct schema *made = ARENA_NEW(arena, struct schema);
    struct schema_class *classes = ARENA_ARRAY(arena, struct schema_class, schema->class_count);
    *made = *schema;
    made->classes = classes;
    for (size_t c = 0; c < schema->class_count; c++) {
        classes[c] = schema->classes[c];
        if (!bytes_equal(classes[c].name, refusal->class))
            continue;
        struct schema_unique *uniques = ARENA_ARRAY(arena, struct schema_unique, classes[c].unique_count);
        classes[c].uniques = uniques;
        classes[c].unique_count = 0;
        for (size_t i = 0; i < schema->classes[c].unique_count; i++)
            if (!bytes_equal(schema->classes[c].uniques[i].name, refusal->property))
                uniques[classes[c].unique_count++] = schema->classes[c].uniques[i];
    }
    return made;
}

static bool write_schema(struct control *control, struct pg *pg, const struct schema *schema)
{
    struct builder text = {0};
    struct pg_result *row;
    schema_write(schema, &text);
    bool is_done = control_query(
        control, pg, "taking the property back",
        "update stampd.schema set number = number + 1, content = $1::text where one returning number",
        PG_PARAMS(control->arena, PG_TEXT(builder_bytes(&text))), &row);
    builder_free(&text);
    return is_done;
}

static bool purge_values(struct control *control, struct pg *pg)
{
    struct pg_result *row;
    do
        if (!control_query(control, pg, "forgetting its values", "select stampd.purge_values(10000)", NULL,
                           &row))
            return false;
    while (pg_get_i64(row, 0, 0) > 0);
    return true;
}

/* Both documents, by the ids that clients have. */
static bool report_documents(struct control *control, struct pg *pg, const struct schema_refusal *refusal)
{
    struct data_keys *keys;
    struct bytes id = refusal->id, other = refusal->other;
    if (!ns_keys_read(control, pg, &keys))
        return false;
    if (!data_keys_open_id(keys, control->arena, refusal->class, &id) ||
        !data_keys_open_id(keys, control->arena, refusal->class, &other))
        id = other = BYTES("(altered)");
    message_print("%.*s: the unique property %.*s cannot be applied: the documents %.*s and %.*s both have "
                  "the value %.*s",
                  TEXT(refusal->class), TEXT(refusal->property), TEXT(id), TEXT(other), TEXT(refusal->value));
    return true;
}

/* Reports why the property is not applied, and withdraws it.  `applied` is the schema applied before: its
 * properties that are unique in all namespaces stay (their values must be reserved again after a restore).
 * False: it could not be withdrawn, or stays. */
static bool schema_refusal_take_back(struct control *control, struct pg *pg, const struct schema *applied,
                                     const struct schema_refusal *refusal)
{
    struct schema_plan present;
    if (refusal->other.data && !report_documents(control, pg, refusal))
        return false;
    if (!refusal->other.data)
        message_print(
            "%.*s: the unique property %.*s cannot be applied: a document of another namespace has %.*s",
            TEXT(refusal->class), TEXT(refusal->property), TEXT(refusal->value));
    if (!schema_plan_read_applied(control, pg, &present))
        return false;
    const struct schema_unique *unique = find_unique(present.applied, refusal);
    const struct schema_unique *before = find_unique(applied, refusal);
    if (!unique || (unique->is_global && before && before->is_global))
        return false;
    if (!write_schema(control, pg, leave_out(control->arena, present.applied, refusal)) ||
        !schema_wait_for_older(control, pg) || !purge_values(control, pg))
        return false;
    message_print(
        "%.*s: %.*s is not applied, everything else is; give one of the documents another value and run "
        "apply again",
        TEXT(refusal->class), TEXT(refusal->property));
    return true;
}

/* --- claims of unique values --- */

/* Reserves the values of existing documents when properties are declared unique in all
 * namespaces, as commits of workers reserve them (store/documents/reservations.h).  Sessions with the
 * databases that are queried, and transactions that reserve values. */

struct schema_claims;

struct session {
    struct bytes database;
    struct pg *pg;
    struct session *next;
};

struct schema_claims {
    struct control *control;
    struct pg *pg;
    struct session *others;
    struct reservation_sessions sessions;
    struct schema_refusal refusal;
};

enum { PROOF_MS = 10000 };

static enum fault schema_claims_prepare(struct pg *pg)
{
    const struct pg_statement needed[] = {
        statements[STATEMENT_GLOBAL_CHANGES],
        statements[STATEMENT_GLOBAL_RESERVE],
        statements[STATEMENT_GLOBAL_DROP],
        statements[STATEMENT_GLOBAL_STATE],
    };
    return pg_prepare(pg, needed, COUNT_OF(needed));
}

/* One for each database, kept until the end; never the one whose transaction is running. */
static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct schema_claims *reserving = whose;
    struct arena *arena = reserving->control->arena;
    for (struct session *one = reserving->others; one; one = one->next)
        if (bytes_equal(one->database, database)) {
            *pg_r = one->pg;
            return FAULT_NONE;
        }
    const char *name = arena_copy(arena, database.data, database.size);
    enum fault fault = FAULT_FIRST(control_connect(reserving->control, name, pg_r),
                                   schema_claims_prepare(*pg_r), proof_begin(*pg_r, arena, PROOF_MS, NULL));
    if (fault)
        return fault;
    struct session *session = ARENA_NEW(arena, struct session);
    *session = (struct session){bytes_of(name), *pg_r, reserving->others};
    reserving->others = session;
    return FAULT_NONE;
}

/* `pg` fills the namespace whose database it is connected to.  On failure reports why. */
static bool schema_claims_open(struct control *control, struct pg *pg, struct schema_claims **reserving_r)
{
    if (schema_claims_prepare(pg))
        return message_refuse("preparing claims: %s", pg_message(pg));
    struct schema_claims *reserving = ARENA_NEW(control->arena, struct schema_claims);
    *reserving = (struct schema_claims){.control = control, .pg = pg};
    reserving->sessions = (struct reservation_sessions){.use = use,
                                                        .whose = reserving,
                                                        .z = bytes_of(control->settings.z_database),
                                                        .database = bytes_of(pg_database(pg))};
    *reserving_r = reserving;
    return true;
}

/* After FAULT_AUNIQUE: what was refused. */
static const struct schema_refusal *schema_claims_refusal(const struct schema_claims *reserving)
{
    return &reserving->refusal;
}

static void note_refusal(struct schema_claims *reserving, const struct reservations *reservations,
                         const char *words)
{
    struct arena *arena = reserving->control->arena;
    struct bytes parts[3] = {{0}};
    reservations_refused_parts(reservations, parts);
    reserving->refusal = (struct schema_refusal){.property = arena_keep(arena, parts[0]),
                                                 .class = arena_keep(arena, parts[1]),
                                                 .value = arena_keep(arena, bytes_of(words))};
}

/* Runs the prepared statement in a transaction that reserves the values it takes.  FAULT_STALE: run it again
 * with the same parameters.  Other faults: `problem_r` is the message. */
static enum fault schema_claims_run(struct schema_claims *reserving, const struct pg_statement *statement,
                                    const struct pg_params *params, struct pg_result **row_r,
                                    const char **problem_r)
{
    struct arena *arena = params->arena;
    struct reservations *reservations = NULL;
    enum fault fault = FAULT_FIRST(pg_execute(reserving->pg, "begin; " RESERVATIONS_BEGIN),
                                   pg_run(reserving->pg, statement, params, row_r),
                                   reservations_collect(arena, reserving->pg, &reservations));
    if (!fault && reservations)
        fault = reservations_take(reservations, &reserving->sessions);
    if (!fault)
        fault = pg_execute(reserving->pg, "commit");
    if (!fault) {
        if (reservations)
            reservations_settle(reservations, &reserving->sessions, RESERVATIONS_COMMITTED);
        return FAULT_NONE;
    }
    struct arena *lasting = reserving->control->arena; /* the other one is that of this step */
    const char *refused = reservations ? reservations_refused(reservations) : NULL;
    *problem_r = refused ? arena_printf(lasting, "a document of another namespace has %s", refused)
                         : arena_copy(lasting, pg_message(reserving->pg), strlen(pg_message(reserving->pg)));
    if (refused)
        note_refusal(reserving, reservations, refused);
    else if (refusal_of(pg_sqlstate(reserving->pg)) == REFUSAL_UNIQUE &&
             schema_refusal_read(lasting, pg_detail(reserving->pg), &reserving->refusal))
        fault = FAULT_AUNIQUE;
    /* Reservations stay.  None can be released now: while documents are first scanned, any of them may have
     * the value.  A later transaction that wants the value finds that no document has it. */
    return pg_execute(reserving->pg, "rollback") ? FAULT_XAWAY : fault;
}

/* --- steps --- */

enum {
    LOCK_TRIES = 300, /* with a pause of a second: five minutes */
    LOCK_PAUSE_MS = 1000,
    WAIT_PAUSE_MS = 20,
    REPORT_EVERY_MS = 5000,
};

/* The commit belongs to the statement: nothing after an error is run.  A step with searches makes them first;
 * false, with `is_refused_r`: one of them was refused, which is reported. */
static bool run_locked_once(struct control *control, struct pg *pg, const struct step *step,
                            bool *is_refused_r)
{
    bool has_searches = step->searches && step->searches->search_count;
    const char *sql = arena_printf(control->arena, "begin; set local lock_timeout = '200ms';\n%s%s",
                                   step->sql, has_searches ? "" : "commit;");
    *is_refused_r = false;
    enum fault fault = pg_execute(pg, sql);
    if (fault || !has_searches)
        return !fault;
    *is_refused_r =
        !schema_searches_sql_make(control, pg, step->searches, control_worker_role(control, pg_database(pg)));
    return !*is_refused_r && pg_execute(pg, "commit") == FAULT_NONE;
}

static bool run_locked(struct control *control, struct pg *pg, const struct step *step)
{
    for (int try = 0; try < LOCK_TRIES; try++) {
        bool is_refused;
        if (run_locked_once(control, pg, step, &is_refused))
            return true;
        if (is_refused) {
            (void)!pg_execute(pg, "rollback");
            return false;
        }
        const char *state = pg_sqlstate(pg);
        bool is_again = strcmp(state, "55P03") == 0 || strcmp(state, "40P01") == 0;
        const char *why = arena_copy(control->arena, pg_message(pg), strlen(pg_message(pg)));
        if (pg_execute(pg, "rollback") != FAULT_NONE || !is_again)
            return message_refuse("%s: %s", step->what, why);
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    return message_refuse("%s: other sessions lock a table for too long", step->what);
}

/* Those that are left to do. */
static bool count_documents(struct control *control, struct pg *pg, const struct step *step, int64_t *count_r)
{
    struct pg_result *row;
    const struct pg_params *params =
        PG_PARAMS(control->arena, PG_TEXT(step->side.class), PG_TEXT(step->side.item));
    if (!control_query(control, pg, "counting the documents",
                       "select count(*) from stampd.doc where class = $1::text and ctime <> 0 and id > "
                       "coalesce((select after"
                       " from stampd.schema_fill where class = $1::text and iclass = $2::text), '')",
                       params, &row))
        return false;
    *count_r = pg_get_i64(row, 0, 0);
    return true;
}

/* If this process is killed the server continues: its keeper does the same. */
static bool run_rewriting(struct control *control, struct pg *pg, const struct schema_plan *plan,
                          const struct step *step, int64_t batch)
{
    const struct schema_class *class = schema_find_class(plan->wanted, step->side.class);
    int64_t whole, total = 0, count = 1, reported_ms = clock_monotonic_ms();
    if (!count_documents(control, pg, step, &whole))
        return false;
    struct arena *arena = arena_create("rewriting");
    enum fault fault = rewriting_prepare(pg, true);
    while (!fault && count) {
        fault = rewriting_run(pg, arena, class, (int32_t)batch, &count);
        if (fault == FAULT_STALE) { /* the lock was not available in time: retry */
            fault = FAULT_NONE;
            count = 1;
            clock_sleep_ms(WAIT_PAUSE_MS);
            continue;
        }
        total += count;
        if (clock_monotonic_ms() - reported_ms >= REPORT_EVERY_MS) {
            reported_ms = clock_monotonic_ms();
            fprintf(stderr, "  %lld of about %lld documents\n", (long long)total, (long long)whole);
        }
        arena_reset(arena);
    }
    arena_destroy(arena);
    if (fault)
        return message_refuse("%s: %s", step->what, pg_message(pg));
    printf("  %lld documents\n", (long long)total);
    return control_execute(pg, step->what, "deallocate all");
}

/* In an encrypted namespace the database reads what is shown of items: those that were written before show
 * what they were asked for then. */
static bool show_members(struct control *control, struct pg *pg, const struct schema_plan *plan,
                         const struct step *step)
{
    struct data_keys *keys;
    return ns_keys_read(control, pg, &keys) &&
           (!keys->count || ns_keys_reseal(control, pg, keys, plan->wanted, step->side.class));
}

static bool run_fill(struct control *control, struct pg *pg, struct schema_plan *plan,
                     const struct step *step, int64_t batch)
{
    static const struct pg_statement fills[] = {
        {"fill", "select stampd.fill_side($1::text, $2::text, $3::int)", 3},
        {"fill", "select stampd.fill_members($1::text, $2::int)", 2},
    };
    bool is_side = step->side.item.size > 0;
    const struct pg_statement *fill = &fills[is_side ? 0 : 1];
    struct pg_result *row;
    int64_t total = 0, reported_ms = clock_monotonic_ms(), whole;
    if (!show_members(control, pg, plan, step) || !count_documents(control, pg, step, &whole))
        return false;
    struct arena *arena = arena_create("fill");
    struct schema_claims *reserving = NULL;
    const char *problem = NULL;
    bool is_filling = pg_prepare(pg, fill, 1) == FAULT_NONE, is_done = false;
    if (is_filling && !is_side && !schema_claims_open(control, pg, &reserving))
        return false;
    while (is_filling && !is_done) {
        struct pg_params *params = PG_PARAMS(arena, PG_TEXT(step->side.class));
        if (is_side)
            pg_params_add_text(params, step->side.item);
        pg_params_add_i32(params, (int32_t)batch);
        enum fault fault = reserving ? schema_claims_run(reserving, fill, params, &row, &problem)
                                     : pg_run(pg, fill, params, &row);
        if (fault == FAULT_STALE) { /* the lock was not available in time: retry */
            clock_sleep_ms(WAIT_PAUSE_MS);
            continue;
        }
        if (reserving && fault == FAULT_AUNIQUE) {
            const struct schema_refusal *refusal = schema_claims_refusal(reserving);
            plan->was_refused = true;
            if (!schema_refusal_take_back(control, pg, plan->applied, refusal)) {
                arena_destroy(arena);
                return false;
            }
            continue;
        }
        is_filling = !fault;
        is_done = is_filling && pg_get_i64(row, 0, 0) == 0;
        total += is_filling ? pg_get_i64(row, 0, 0) : 0;
        if (clock_monotonic_ms() - reported_ms >= REPORT_EVERY_MS) {
            reported_ms = clock_monotonic_ms();
            fprintf(stderr, "  %lld of about %lld documents\n", (long long)total, (long long)whole);
        }
        arena_reset(arena);
    }
    if (!is_filling)
        message_print("%s: %s", step->what, problem ? problem : pg_message(pg));
    else
        printf("  %lld documents\n", (long long)total);
    arena_destroy(arena);
    return is_filling && control_execute(pg, step->what, "deallocate all");
}

bool schema_plan_run(struct control *control, struct pg *pg, struct schema_plan *plan, int64_t batch)
{
    /* create index concurrently waits for writers, which is no reason to give up */
    if (!control_execute(pg, "setting the session up", "set lock_timeout = 0"))
        return false;
    for (const struct step *step = plan->steps; step < plan->steps + plan->count; step++) {
        printf("%s\n", step->what);
        fflush(stdout);
        bool is_done = step->kind == STEP_LOCKED  ? run_locked(control, pg, step)
                       : step->kind == STEP_ALONE ? control_execute(pg, step->what, step->sql)
                       : step->kind == STEP_WAIT  ? schema_wait_for_older(control, pg)
                       : bytes_equal(step->side.item, BYTES("~"))
                           ? run_rewriting(control, pg, plan, step, batch)
                           : run_fill(control, pg, plan, step, batch);
        if (!is_done)
            return false;
    }
    return !plan->was_refused;
}
