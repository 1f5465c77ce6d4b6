/* store_cron: calls two functions of the database. */
#include "store/tasks/store_cron.h"

#include "model/task/cron.h"
#include "store/statements.h"
#include "store/store_run.h"

static void add_declarations(struct pg_params *params, const struct cron_declaration *declarations,
                             size_t count)
{
    struct arena *arena = params->arena;
    struct bytes *names = ARENA_ARRAY(arena, struct bytes, count),
                 *periods = ARENA_ARRAY(arena, struct bytes, count),
                 *modules = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++) {
        names[i] = declarations[i].name;
        periods[i] = declarations[i].period;
        modules[i] = declarations[i].module;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(names, count), PG_TEXTS(periods, count), PG_TEXTS(modules, count));
}

enum fault store_cron_scan(struct store *store, int ns, struct arena *arena,
                           const struct cron_declaration *declarations, size_t count,
                           struct cron_rule **rules_r, size_t *count_r)
{
    enum { NAME, OPERATION, PERIOD, AFTER };
    struct pg_result *rows;
    struct pg_params *params = PG_PARAMS(arena, PG_TEXT(bytes_of(cron_zone())));
    add_declarations(params, declarations, count);
    enum fault fault = store_run_statement(store, ns, STATEMENT_CRON_SCAN, params, &rows);
    if (fault)
        return fault;
    *count_r = (size_t)pg_rows(rows);
    *rules_r = ARENA_ARRAY(arena, struct cron_rule, *count_r);
    for (int row = 0; row < pg_rows(rows); row++)
        (*rules_r)[row] = (struct cron_rule){
            .name = pg_get_text(rows, row, NAME),
            .operation = pg_get_text(rows, row, OPERATION),
            .period = pg_get_text(rows, row, PERIOD),
            .after = pg_get_i64(rows, row, AFTER),
        };
    return FAULT_NONE;
}

enum fault store_cron_plan(struct store *store, int ns, struct arena *arena, const struct cron_rule *rule,
                           int64_t next, int queue, bool *is_made_r)
{
    struct pg_result *row;
    enum fault fault = store_run_statement(store, ns, STATEMENT_CRON_PLAN,
                                           PG_PARAMS(arena, PG_TEXT(rule->name), PG_TEXT(rule->period),
                                                     PG_TEXT(rule->operation), PG_I64(next), PG_I32(queue),
                                                     PG_TEXT(bytes_of(cron_zone()))),
                                           &row);
    *is_made_r = !fault && !pg_is_null(row, 0, 0);
    return fault;
}
