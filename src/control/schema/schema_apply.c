/* schema_apply: runs the steps of a plan while the workers continue to serve. */
#include "control/schema/schema_plan.h"

#include <stdio.h>
#include <string.h>

#include "base/clock.h"
#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/schema/schema_claims.h"
#include "control/schema/schema_wait.h"
#include "store/documents/rewriting.h"

enum {
    LOCK_TRIES = 300, /* with a pause of a second: five minutes */
    LOCK_PAUSE_MS = 1000,
    WAIT_PAUSE_MS = 20,
    REPORT_EVERY_MS = 5000,
};

/* The commit belongs to the statement: nothing after an error is run. */
static bool run_locked(struct control *control, struct pg *pg, const struct step *step)
{
    const char *sql =
        arena_printf(control->arena, "begin; set local lock_timeout = '200ms';\n%scommit;", step->sql);
    for (int try = 0; try < LOCK_TRIES; try++) {
        if (pg_execute(pg, sql) == FAULT_NONE)
            return true;
        const char *state = pg_sqlstate(pg);
        bool is_again = strcmp(state, "55P03") == 0 || strcmp(state, "40P01") == 0;
        const char *why = arena_copy(control->arena, pg_message(pg), strlen(pg_message(pg)));
        if (pg_execute(pg, "rollback") != FAULT_NONE || !is_again) {
            message_print("%s: %s", step->what, why);
            return false;
        }
        clock_sleep_ms(LOCK_PAUSE_MS);
    }
    message_print("%s: other sessions lock a table for too long", step->what);
    return false;
}

/* Those that are left to do. */
static bool count_documents(struct control *control, struct pg *pg, const struct step *step, int64_t *count_r)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, control->arena);
    pg_params_add_text(&params, step->side.class);
    pg_params_add_text(&params, step->side.item);
    if (!control_query(control, pg, "counting the documents",
                       "select count(*) from stampd.doc where class = $1::text and ctime <> 0 and id > "
                       "coalesce((select after"
                       " from stampd.schema_fill where class = $1::text and iclass = $2::text), '')",
                       &params, &row))
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
    if (fault) {
        message_print("%s: %s", step->what, pg_message(pg));
        return false;
    }
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
    struct pg_params params;
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
        pg_params_start(&params, arena);
        pg_params_add_text(&params, step->side.class);
        if (is_side)
            pg_params_add_text(&params, step->side.item);
        pg_params_add_i32(&params, (int32_t)batch);
        enum fault fault = reserving ? schema_claims_run(reserving, fill, &params, &row, &problem)
                                     : pg_run(pg, fill, &params, &row);
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
