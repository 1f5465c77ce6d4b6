/* search_totals: the items are found as those of a count; their columns are "g" and "w", with the number of
 * the group or wish. */
#include "model/schema/search_totals.h"

#include "model/schema/search_rows.h"

static void add_items(struct composing *composing, const struct search_totals *totals, bool may_repeat)
{
    struct builder *sql = composing->sql;
    builder_printf(sql, "select %sx.id, x.key", may_repeat ? "distinct " : "");
    for (size_t i = 0; i < totals->group_count; i++)
        builder_printf(sql, ", x.\"%.*s\" as g%zu", TEXT(totals->groups[i]->name), i);
    for (size_t i = 0; i < totals->count; i++)
        builder_printf(sql, ", x.\"%.*s\" as w%zu", TEXT(totals->wishes[i].field->name), i);
}

/* Adds the items that the branches find. */
static void add_found(struct composing *composing, const struct search_totals *totals)
{
    const struct search *search = composing->search;
    builder_add_text(composing->sql, "select u.* from (");
    for (size_t i = 0; i < search->branch_count; i++) {
        builder_add_bytes(composing->sql, bytes_of(i ? " union (" : "("));
        search_rows_choose(composing, &search->branches[i]);
        /* An item has several elements. */
        add_items(composing, totals, composing->driver && composing->driver->test != SEARCH_EQ);
        search_rows_add(composing);
        pg_params_add_i64(composing->params, (int64_t)search->limit + 1);
        builder_printf(composing->sql, " limit $%d::bigint)", composing->params->count);
    }
    pg_params_add_i64(composing->params, (int64_t)search->limit + 1);
    builder_printf(composing->sql, ") u limit $%d::bigint", composing->params->count);
}

/* Adds those of the items that are at the versions that were judged. */
static void add_approved(struct composing *composing, const struct search_totals *totals,
                         const struct search_approved *approved)
{
    const struct search *search = composing->search;
    struct pg_params *params = composing->params;
    add_items(composing, totals, false);
    PG_PARAMS_ADD(params, PG_TEXTS(approved->ids, approved->count), PG_TEXTS(approved->keys, approved->count),
                  PG_I64S(approved->versions, approved->count));
    builder_printf(
        composing->sql,
        " from unnest($%d::text[], $%d::text[], $%d::bigint[]) a (id, key, version) cross join lateral"
        " (select t.* from stampd.\"x_%.*s_%.*s\" t where t.id = a.id and t.key = a.key offset 0) x"
        " cross join lateral (select from stampd.item t where t.class = '%.*s' and t.id = a.id"
        " and t.iclass = '%.*s' and t.key = a.key and t.version = a.version and t.content is not null"
        " offset 0) i",
        params->count - 2, params->count - 1, params->count, SIDE(search), TEXT(search->class->name),
        TEXT(search->item->name));
    search_rows_add_schema(composing);
}

static void add_wish(struct builder *sql, const struct totals_wish *wish, size_t number)
{
    static const char *const functions[TOTALS_KINDS] = {
        [TOTALS_SUM] = "sum", [TOTALS_MIN] = "min", [TOTALS_MAX] = "max"};
    if (wish->kind == TOTALS_AVG)
        builder_printf(sql, ", sum(r.w%zu)::text || '/' || count(r.w%zu)", number, number);
    else
        builder_printf(sql, ", %s(r.w%zu)::text", functions[wish->kind], number);
}

void search_totals_compose(const struct search *search, const struct search_totals *totals,
                           const struct search_approved *approved, struct builder *sql,
                           struct pg_params *params)
{
    struct composing composing = {
        .search = search, .sql = sql, .params = params, .counts = true, .needs_columns = true};
    builder_add_text(sql, "with found as materialized (");
    if (approved)
        add_approved(&composing, totals, approved);
    else
        add_found(&composing, totals);
    builder_add_text(sql, ") select (select count(*) from found), count(*)");
    for (size_t i = 0; i < totals->group_count; i++)
        builder_printf(sql, ", r.g%zu::text", i);
    for (size_t i = 0; i < totals->count; i++)
        add_wish(sql, &totals->wishes[i], i);
    pg_params_add_i64(params, search->limit);
    builder_printf(sql, " from (select * from found limit $%d::bigint) r", params->count);
    for (size_t i = 0; i < totals->group_count; i++)
        builder_printf(sql, "%sr.g%zu", i ? ", " : " group by ", i);
    for (size_t i = 0; i < totals->group_count; i++)
        builder_printf(sql, "%sr.g%zu nulls first", i ? ", " : " order by ", i);
    builder_printf(sql, " limit %d", TOTALS_ROWS_MOST + 1);
}
