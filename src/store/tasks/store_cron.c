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
    pg_params_add_text_array(params, names, count);
    pg_params_add_text_array(params, periods, count);
    pg_params_add_text_array(params, modules, count);
}

enum fault store_cron_scan(struct store *store, int ns, struct arena *arena,
                           const struct cron_declaration *declarations, size_t count,
                           struct cron_rule **rules_r, size_t *count_r)
{
    enum { NAME, OPERATION, PERIOD, AFTER };
    struct pg_params params;
    struct pg_result *rows;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, bytes_of(cron_zone()));
    add_declarations(&params, declarations, count);
    enum fault fault = store_run_statement(store, ns, STATEMENT_CRON_SCAN, &params, &rows);
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
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    pg_params_add_text(&params, rule->name);
    pg_params_add_text(&params, rule->period);
    pg_params_add_text(&params, rule->operation);
    pg_params_add_i64(&params, next);
    pg_params_add_i32(&params, queue);
    pg_params_add_text(&params, bytes_of(cron_zone()));
    enum fault fault = store_run_statement(store, ns, STATEMENT_CRON_PLAN, &params, &row);
    *is_made_r = !fault && !pg_is_null(row, 0, 0);
    return fault;
}
