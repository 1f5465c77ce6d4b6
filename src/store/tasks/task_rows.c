/* task_rows: tables of columns that control the output of rows. */
#include "store/tasks/task_rows.h"

#include <inttypes.h>

#include "edge/json/json.h"

enum kind { NUMBER, TEXT, JSON };
struct column {
    const char *member; /* NULL: not shown */
    enum kind kind;
};

static const struct column task_columns[] = {
    [TASK_ID] = {"id", TEXT},
    [TASK_OPERATION] = {"op", TEXT},
    [TASK_STATE] = {"state", TEXT},
    [TASK_QUEUE] = {"qn", NUMBER},
    [TASK_PRIORITY_LEVEL] = {"priority", NUMBER},
    [TASK_START] = {"startat", NUMBER},
    [TASK_RETRY] = {"retry", NUMBER},
    [TASK_CLAIM] = {"starttime", NUMBER},
    [TASK_OWNER] = {"holder", TEXT},
    [TASK_BATCH] = {"batch", NUMBER},
    [TASK_INFO] = {"info", TEXT},
    [TASK_RESOURCE] = {"resource", TEXT},
    [TASK_DOMAIN] = {"domain", TEXT},
    [TASK_STEP] = {"step", NUMBER},
    [TASK_CODE] = {"exc", TEXT},
    [TASK_REPORT] = {"report", TEXT},
    [TASK_CREATED] = {"created", NUMBER},
    [TASK_ACCOUNT] = {"account", TEXT},
    [TASK_CREDENTIAL] = {"credential", TEXT},
    [TASK_NUMBER] = {NULL, NUMBER},
    [TASK_UNTIL] = {"until", NUMBER},
    [TASK_PROGRESS] = {"progress", TEXT},
    [TASK_KEY_TEXT] = {"key", TEXT},
    [TASK_TRACE] = {"trace", TEXT},
    [TASK_PARAM] = {"param", JSON},
    [TASK_CHECKPOINT] = {"checkpoint", JSON},
};

static const struct column attempt_columns[] = {
    [ATTEMPT_ID] = {"id", TEXT},
    [ATTEMPT_OPERATION] = {"op", TEXT},
    [ATTEMPT_QUEUE] = {"qn", NUMBER},
    [ATTEMPT_RETRY] = {"retry", NUMBER},
    [ATTEMPT_STEP] = {"step", NUMBER},
    [ATTEMPT_START] = {"startat", NUMBER},
    [ATTEMPT_CLAIM] = {"starttime", NUMBER},
    [ATTEMPT_STOP] = {"stoptime", NUMBER},
    [ATTEMPT_INFO] = {"info", TEXT},
    [ATTEMPT_CODE] = {"exc", TEXT},
    [ATTEMPT_REPORT] = {"report", TEXT},
    [ATTEMPT_NUMBER] = {NULL, NUMBER},
    [ATTEMPT_RESULT] = {"result", JSON},
    [ATTEMPT_PARAM] = {"param", JSON},
    [ATTEMPT_TRACE] = {"trace", TEXT},
    [ATTEMPT_HOLDER] = {"holder", TEXT},
};

static const struct column rule_columns[] = {
    [RULE_NAME] = {"name", TEXT},       [RULE_OPERATION] = {"op", TEXT},  [RULE_PERIOD] = {"period", TEXT},
    [RULE_MODULE] = {"module", TEXT},   [RULE_STATE] = {"state", TEXT},   [RULE_TASK] = {"id", TEXT},
    [RULE_START] = {"startat", NUMBER}, [RULE_RETRY] = {"retry", NUMBER}, [RULE_CODE] = {"exc", TEXT},
};
static const struct column backlog_columns[] = {
    [BACKLOG_QUEUE] = {"qn", NUMBER},      [BACKLOG_DUE] = {"due", NUMBER},
    [BACKLOG_LATER] = {"later", NUMBER},   [BACKLOG_RUNNING] = {"running", NUMBER},
    [BACKLOG_PARKED] = {"parked", NUMBER}, [BACKLOG_FAILING] = {"failing", NUMBER},
    [BACKLOG_OLDEST] = {"oldest", NUMBER},
};

static const struct column pause_columns[] = {
    [PAUSE_QUEUE] = {"qn", NUMBER},
    [PAUSE_OPERATION] = {"op", TEXT},
    [PAUSE_SINCE] = {"since", NUMBER},
    [PAUSE_REASON] = {"reason", TEXT},
};

void task_rows_add_pause(struct pg_params *params, const struct task_pause *pause)
{
    PG_PARAMS_ADD(params, PG_I32(pause->queue), PG_TEXT(pause->operation), PG_I32(pause->is_paused),
                  PG_TEXT(pause->reason));
}

void task_rows_add_limit(struct pg_params *params, const struct task_limit *limit)
{
    PG_PARAMS_ADD(params, PG_I32(limit->queue), PG_TEXT(limit->operation), PG_I32(limit->is_by_key),
                  PG_I32((int32_t)limit->most), PG_I32((int32_t)limit->count), PG_I64(limit->period_ms),
                  PG_I32((int32_t)limit->burst));
}

void task_rows_write_limit(struct builder *out, struct arena *arena UNUSED, const struct pg_result *rows,
                           int row)
{
    if (pg_is_null(rows, row, TASK_LIMIT_OF_OPERATION)) {
        builder_printf(out, "{\"qn\":%" PRId64, pg_get_i64(rows, row, TASK_LIMIT_OF_QUEUE));
    } else {
        json_add_text(out, "{\"op\":", pg_get_text(rows, row, TASK_LIMIT_OF_OPERATION));
    }
    if (pg_get_bool(rows, row, TASK_LIMIT_OF_BY_KEY))
        builder_add_text(out, ",\"key\":true");
    if (!pg_is_null(rows, row, TASK_LIMIT_OF_MOST))
        builder_printf(out, ",\"running\":%" PRId64, pg_get_i64(rows, row, TASK_LIMIT_OF_MOST));
    if (!pg_is_null(rows, row, TASK_LIMIT_OF_COUNT)) {
        int64_t period_ms = pg_get_i64(rows, row, TASK_LIMIT_OF_PERIOD);
        const char *period = period_ms == 86400000  ? "d"
                             : period_ms == 3600000 ? "h"
                             : period_ms == 60000   ? "min"
                                                    : "s";
        builder_printf(out, ",\"rate\":\"%" PRId64 "/%s, burst %" PRId64 "\"",
                       pg_get_i64(rows, row, TASK_LIMIT_OF_COUNT), period,
                       pg_get_i64(rows, row, TASK_LIMIT_OF_BURST));
    }
    builder_add_text(out, "}");
}

void task_rows_add_filter(struct pg_params *params, const struct task_filter *filter)
{
    PG_PARAMS_ADD(params, PG_TEXT(filter->operation), PG_TEXT(filter->info), PG_I32((int32_t)filter->retry),
                  PG_I64(filter->since), PG_I64(filter->until), PG_I32((int32_t)filter->limit),
                  PG_I64(filter->after_start), PG_I64(filter->after_number), PG_TEXT(filter->states),
                  PG_TEXT(filter->code), PG_TEXT(filter->domain), PG_I64(filter->begun_since),
                  PG_I64(filter->begun_until));
}

bool task_rows_is_state(struct bytes word)
{
    static const char *const states[] = {"waiting", "running", "parked", "held"};
    for (size_t i = 0; i < COUNT_OF(states); i++)
        if (bytes_equal(word, bytes_of(states[i])))
            return true;
    return false;
}

bool task_rows_is_filtered(const struct task_filter *filter)
{
    return filter->operation.size || filter->info.size || filter->states.size || filter->code.size ||
           filter->domain.size || filter->retry || filter->since || filter->until != STAMP_MAX;
}

void task_rows_add_deed(struct pg_params *params, const char *deed, bool is_dry,
                        const struct task_filter *filter)
{
    PG_PARAMS_ADD(params, PG_TEXT(bytes_of(deed)), PG_I32(is_dry), PG_TEXT(filter->operation),
                  PG_TEXT(filter->info), PG_I32((int32_t)filter->retry), PG_I64(filter->since),
                  PG_I64(filter->until), PG_TEXT(filter->states), PG_TEXT(filter->code),
                  PG_TEXT(filter->domain), PG_I32((int32_t)filter->limit));
}

void task_rows_add_redrive(struct pg_params *params, bool is_dry, const struct task_filter *filter)
{
    PG_PARAMS_ADD(params, PG_I32(is_dry), PG_TEXT(filter->id), PG_TEXT(filter->operation),
                  PG_TEXT(filter->info), PG_TEXT(filter->code), PG_I64(filter->since), PG_I64(filter->until),
                  PG_I32((int32_t)filter->limit), PG_I64(filter->after_number));
}

void task_rows_add_attempt_filter(struct pg_params *params, const struct task_filter *filter)
{
    PG_PARAMS_ADD(params, PG_TEXT(filter->id), PG_TEXT(filter->operation), PG_TEXT(filter->info),
                  PG_I32(filter->only_failures), PG_I64(filter->since), PG_I64(filter->until),
                  PG_I32((int32_t)filter->limit),
                  PG_I64(filter->after_number ? filter->after_number : INT64_MAX),
                  PG_I64(filter->begun_since), PG_I64(filter->begun_until), PG_TEXT(filter->code),
                  PG_TEXT(filter->holder));
}

static bool task_rows_is_json(struct arena *arena, struct bytes text)
{
    static const struct json_limits limits = {.depth = 1000, .tree_depth = 1, .nodes = 1000000};
    struct json *value;
    struct json_problem problem;
    return json_read(arena, text, &limits, &value, &problem) == FAULT_NONE;
}

static void write_row(struct builder *out, struct arena *arena, const struct pg_result *rows, int row,
                      const struct column *columns, size_t count)
{
    const char *separator = "{";
    for (size_t i = 0; i < count; i++) {
        const struct column *column = &columns[i];
        int place = (int)i;
        if (!column->member || pg_is_null(rows, row, place))
            continue;
        struct bytes text = column->kind == NUMBER ? NO_BYTES : pg_get_text(rows, row, place);
        if (column->kind != NUMBER && !text.size)
            continue;
        builder_printf(out, "%s\"%s\":", separator, column->member);
        separator = ",";
        if (column->kind == NUMBER)
            builder_printf(out, "%" PRId64, pg_get_i64(rows, row, place));
        else if (column->kind == JSON && task_rows_is_json(arena, text))
            builder_add_bytes(out, text);
        else
            json_add_string(out, text);
    }
    builder_add_text(out, "}");
}

void task_rows_write_task(struct builder *out, struct arena *arena, const struct pg_result *rows, int row)
{
    write_row(out, arena, rows, row, task_columns, COUNT_OF(task_columns));
}

/* Text from a client, for a terminal: control characters become blanks, so it cannot control the terminal
 * and stays on one line. */
static void add_shown(struct builder *out, struct bytes text)
{
    char *at = builder_reserve(out, text.size);
    for (size_t i = 0; i < text.size; i++)
        at[i] = (unsigned char)text.data[i] < ' ' || text.data[i] == '\x7f' ? ' ' : text.data[i];
    out->size += text.size;
}

void task_rows_write_task_lines(struct builder *out, const struct pg_result *rows, int row)
{
    for (int i = 0; i < TASK_PARAM; i++) {
        const struct column *column = &task_columns[i];
        if (!column->member || pg_is_null(rows, row, i))
            continue;
        builder_printf(out, "%s: ", column->member);
        if (column->kind == NUMBER)
            builder_printf(out, "%" PRId64, pg_get_i64(rows, row, i));
        else
            add_shown(out, pg_get_text(rows, row, i));
        builder_add_text(out, "\n");
    }
}

void task_rows_write_attempt(struct builder *out, struct arena *arena, const struct pg_result *rows, int row)
{
    write_row(out, arena, rows, row, attempt_columns, COUNT_OF(attempt_columns));
}

void task_rows_write_backlog(struct builder *out, struct arena *arena, const struct pg_result *rows, int row)
{
    write_row(out, arena, rows, row, backlog_columns, COUNT_OF(backlog_columns));
}

void task_rows_write_pause(struct builder *out, struct arena *arena, const struct pg_result *rows, int row)
{
    write_row(out, arena, rows, row, pause_columns, COUNT_OF(pause_columns));
}

void task_rows_write_rule(struct builder *out, struct arena *arena, const struct pg_result *rows, int row)
{
    write_row(out, arena, rows, row, rule_columns, COUNT_OF(rule_columns));
}
