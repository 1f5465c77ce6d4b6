/* search_rows: one relation drives the query, the others are joined for each of its rows.
 *
 * The driver is a column or list with an equality condition if there is one: its index (value, then id and
 * key) returns the page in order, so the cost of a page depends only on its size.  Otherwise all matches are
 * sorted by id and key.
 *
 * Where other conditions may reject rows, or all must be sorted, what a page costs depends on the contents.
 * Then the rows that the index finds are numbered as they are read, before anything else is asked of them,
 * and the statement fails at the one that is too many. */
#include "model/schema/search_rows.h"

#include "model/schema/search_test.h"

static bool is_list(const struct search_condition *condition)
{
    return search_is_of_item(condition) && condition->field->is_list;
}

static bool is_equality(const struct search_condition *condition)
{
    return search_is_of_item(condition) && condition->test == SEARCH_EQ && !condition->is_negated;
}

/* --- what drives --------------------------------------------------------------------------------- */

/* The first equality decides: that of a column drives, unless there is an order of fields, or that of a list.
 * Without any, a list drives only if there is no other condition, and no order. */
static const struct search_condition *choose_driver(const struct search *search,
                                                    const struct search_branch *branch)
{
    const struct search_condition *list = NULL;
    bool has_column = search->order_count > 0;
    for (size_t i = 0; i < branch->count; i++) {
        const struct search_condition *one = &branch->conditions[i];
        if (is_equality(one) && (is_list(one) || !search->order_count))
            return is_list(one) ? one : NULL;
        if (is_list(one) && search_is_driving(one) && !list)
            list = one;
        has_column |= !is_list(one) || !search_is_driving(one);
    }
    return has_column ? NULL : list;
}

void search_rows_choose(struct composing *composing, const struct search_branch *branch)
{
    composing->branch = branch;
    composing->driver = choose_driver(composing->search, branch);
    composing->name = composing->driver ? "e" : "x";
}

static bool leads(const struct search_condition *condition)
{
    return is_equality(condition) || search_is_match(condition);
}

/* The condition whose index finds the rows: the driver, the first equality of a column or match of words, or
 * the first other condition; NULL: they are read in the order of ids. */
static const struct search_condition *choose_lead(const struct composing *composing)
{
    const struct search_branch *branch = composing->branch;
    const struct search_condition *lead = composing->driver;
    for (size_t i = branch->count; i-- > 0 && !composing->driver;) {
        const struct search_condition *one = &branch->conditions[i];
        if (search_is_of_item(one) && !is_list(one) && search_is_driving(one) &&
            (leads(one) || !lead || !leads(lead)))
            lead = one;
    }
    return lead;
}

static bool is_absence(const struct search_condition *condition)
{
    return condition->test == SEARCH_EXISTS && !condition->is_negated && !condition->values[0].integer;
}

bool search_rows_must_sort(const struct composing *composing)
{
    const struct search_branch *branch = composing->branch;
    bool has_fields = false;
    for (size_t i = 0; i < branch->count; i++) {
        const struct search_condition *one = &branch->conditions[i];
        if (is_equality(one))
            return false;
        has_fields |= search_is_of_item(one) && (search_is_driving(one) || is_absence(one));
    }
    return has_fields;
}

bool search_rows_sort_all(const struct composing *composing)
{
    bool has_match = false;
    for (size_t i = 0; i < composing->branch->count; i++)
        has_match |= search_is_match(&composing->branch->conditions[i]);
    return composing->driver || has_match;
}

/* Does a row that the index finds cost nothing but itself?  Every one is on the page, or counts. */
static bool is_served(const struct composing *composing)
{
    const struct search *search = composing->search;
    const struct search_branch *branch = composing->branch;
    const struct search_condition *lead = choose_lead(composing);
    bool has_others = false;
    for (size_t i = 0; i < branch->count; i++)
        has_others |= &branch->conditions[i] != lead && (lead || branch->conditions[i].field);
    if (search->order_count)
        return !search_rows_sort_all(composing);
    if (composing->counts && !composing->needs_columns && !search->item->is_singleton)
        return false;
    return !has_others && (!lead || is_equality(lead) || (composing->counts && !composing->driver));
}

/* --- conditions ---------------------------------------------------------------------------------- */

/* Of numbered rows each is looked up: no join is to read all that satisfies one condition. */
static struct bytes end_of(const struct composing *composing)
{
    return bytes_of(composing->is_numbered ? " offset 0)" : ")");
}

/* Adds the condition that a list has an element which satisfies it, or, of NE and NIN, that there is a list,
 * and it has none of these. */
static void add_element(struct composing *composing, const struct search_condition *condition)
{
    const char *base = composing->name;
    bool is_denied = condition->test == SEARCH_NE || condition->test == SEARCH_NIN;
    if (is_denied)
        builder_printf(composing->sql, "x.\"%.*s\" is not null and not ", TEXT(condition->field->name));
    builder_printf(
        composing->sql,
        "exists (select from stampd.\"x_%.*s_%.*s_%.*s\" l where l.id = %s.id and l.key = %s.key and ",
        SIDE(composing->search), TEXT(condition->field->name), base, base);
    if (is_denied)
        search_test_add_any(composing->sql, composing->params, condition, "l.value");
    else
        search_test_add(composing->sql, composing->params, condition, "l.value");
    builder_add_bytes(composing->sql, end_of(composing));
}

/* Adds the condition on a list of an item "o" of another class, as add_element. */
static void add_other_element(struct composing *composing, const struct search_condition *condition)
{
    bool is_denied = condition->test == SEARCH_NE || condition->test == SEARCH_NIN;
    if (is_denied)
        builder_printf(composing->sql, "o.\"%.*s\" is not null and not ", TEXT(condition->field->name));
    builder_printf(
        composing->sql,
        "exists (select from stampd.\"x_%.*s_%.*s_%.*s\" l where l.id = o.id and l.key = o.key and ",
        TEXT(composing->search->class->name), TEXT(condition->item->name), TEXT(condition->field->name));
    if (is_denied)
        search_test_add_any(composing->sql, composing->params, condition, "l.value");
    else
        search_test_add(composing->sql, composing->params, condition, "l.value");
    builder_add_text(composing->sql, ")");
}

/* Adds the condition that the document has an item of another class that satisfies it. */
static void add_other(struct composing *composing, const struct search_condition *condition)
{
    builder_printf(composing->sql, "exists (select from stampd.\"x_%.*s_%.*s\" o where o.id = %s.id and ",
                   TEXT(composing->search->class->name), TEXT(condition->item->name), composing->name);
    if (condition->field->is_list && condition->test != SEARCH_EXISTS)
        add_other_element(composing, condition);
    else
        search_test_add(composing->sql, composing->params, condition,
                        arena_printf(composing->params->arena, "o.\"%.*s\"", TEXT(condition->field->name)));
    builder_add_bytes(composing->sql, end_of(composing));
}

static void add_header(struct composing *composing, const struct search_condition *condition)
{
    builder_printf(composing->sql,
                   "exists (select from stampd.doc d where d.class = '%.*s' and d.id = %s.id and ",
                   TEXT(composing->search->class->name), composing->name);
    search_test_add(composing->sql, composing->params, condition,
                    arena_printf(composing->params->arena, "d.%s", condition->header));
    builder_add_bytes(composing->sql, end_of(composing));
}

static void add_test(struct composing *composing, const struct search_condition *condition)
{
    struct arena *arena = composing->params->arena;
    if (condition->header)
        add_header(composing, condition);
    else if (condition->item)
        add_other(composing, condition);
    else if (!condition->field)
        search_test_add(composing->sql, composing->params, condition,
                        arena_printf(arena, "%s.id", composing->name));
    else if (!condition->field->is_list || condition->test == SEARCH_EXISTS)
        search_test_add(composing->sql, composing->params, condition,
                        arena_printf(arena, "x.\"%.*s\"", TEXT(condition->field->name)));
    else if (condition == composing->driver)
        search_test_add(composing->sql, composing->params, condition, "e.value");
    else
        add_element(composing, condition);
}

static void add_condition(struct composing *composing, const struct search_condition *condition)
{
    builder_add_bytes(composing->sql, bytes_of(condition->is_negated ? " and (" : " and "));
    add_test(composing, condition);
    if (condition->is_negated)
        builder_add_text(composing->sql, ") is not true");
}

/* --- relations ----------------------------------------------------------------------------------- */

void search_rows_add_after(struct composing *composing, const char *name)
{
    const struct search *search = composing->search;
    if (!search->after_id.data)
        return;
    pg_params_add_text(composing->params, search->after_id);
    if (!search->wants_items || search->item->is_singleton) {
        builder_printf(composing->sql, " and %s.id > $%d::text", name, composing->params->count);
        return;
    }
    pg_params_add_text(composing->params, search->after_key);
    builder_printf(composing->sql, " and (%s.id, %s.key) > ($%d::text, $%d::text)", name, name,
                   composing->params->count - 1, composing->params->count);
}

bool search_rows_begin_after(const struct composing *composing)
{
    const struct search_condition *lead = choose_lead(composing);
    return composing->search->looked_most && !is_served(composing) && !composing->counts &&
           !composing->search->order_count && (!lead || is_equality(lead));
}

/* Adds the driver's relation: the rows that the index of the lead finds, numbered. */
static void add_numbered(struct composing *composing, const struct search_condition *lead)
{
    struct builder *sql = composing->sql;
    const struct search_condition *driver = composing->driver;
    builder_add_text(
        sql, "(select d.* from (select d.*, row_number() over () as looked from (select d.* from stampd.");
    if (driver)
        builder_printf(sql, "\"x_%.*s_%.*s_%.*s\"", SIDE(composing->search), TEXT(driver->field->name));
    else
        builder_printf(sql, "\"x_%.*s_%.*s\"", SIDE(composing->search));
    builder_add_text(sql, " d where true");
    if (lead) {
        builder_add_text(sql, " and ");
        search_test_add(sql, composing->params, lead,
                        driver
                            ? "d.value"
                            : arena_printf(composing->params->arena, "d.\"%.*s\"", TEXT(lead->field->name)));
    }
    const char *order = search_rows_begin_after(composing) ? " order by d.id, d.key" : "";
    if (*order)
        search_rows_add_after(composing, "d");
    pg_params_add_i64(composing->params, composing->search->looked_most);
    /* The planner expects that a limit which it does not know is small: it reads an index in order then, and
     * does not sort all that the index finds. */
    int most = composing->params->count;
    builder_printf(sql,
                   "%s limit $%d::bigint + 1) d%s) d where case when d.looked > $%d::bigint then"
                   " stampd.fail('ST035', 'looked') = 0 else true end%s offset 0) %s",
                   order, most, order, most, order, composing->name);
}

static void add_relations(struct composing *composing, const struct search_condition *lead)
{
    const struct search *search = composing->search;
    const struct search_branch *branch = composing->branch;
    const struct search_condition *driver = composing->driver;
    struct builder *sql = composing->sql;
    bool needs_columns = search->order_count > 0 || composing->needs_columns;
    for (size_t i = 0; i < branch->count; i++)
        needs_columns |= search_is_of_item(&branch->conditions[i]) &&
                         (!is_list(&branch->conditions[i]) || !search_is_driving(&branch->conditions[i]));
    builder_add_text(sql, " from ");
    if (composing->is_numbered)
        add_numbered(composing, lead);
    else if (driver)
        builder_printf(sql, "stampd.\"x_%.*s_%.*s_%.*s\" e", SIDE(search), TEXT(driver->field->name));
    else
        builder_printf(sql, "stampd.\"x_%.*s_%.*s\" x", SIDE(search));
    if (driver && needs_columns)
        builder_printf(sql, " join stampd.\"x_%.*s_%.*s\" x on x.id = e.id and x.key = e.key", SIDE(search));
}

/* Adds the condition that the document has not expired. */
static void add_living(struct composing *composing)
{
    const struct search *search = composing->search;
    if (!search->class->max_life.item)
        return;
    pg_params_add_i64(composing->params, search->minute);
    builder_printf(composing->sql,
                   " and not exists (select from stampd.expiry z where z.class = '%.*s' and z.id = %s.id and"
                   " z.until <= $%d::bigint)",
                   TEXT(search->class->name), composing->name, composing->params->count);
}

void search_rows_add_schema(struct composing *composing)
{
    pg_params_add_i64(composing->params, composing->search->schema->number);
    builder_printf(
        composing->sql,
        " where (select case when s.number = $%d::bigint then true else stampd.fail('ST004', 'schema') = 0"
        " end from stampd.schema s where s.one)",
        composing->params->count);
}

void search_rows_add(struct composing *composing)
{
    const struct search *search = composing->search;
    const struct search_condition *lead = NULL;
    composing->is_numbered = search->looked_most && !is_served(composing);
    if (composing->is_numbered)
        lead = choose_lead(composing);
    add_relations(composing, lead);
    search_rows_add_schema(composing);
    for (size_t i = 0; i < composing->branch->count; i++)
        if (&composing->branch->conditions[i] != lead)
            add_condition(composing, &composing->branch->conditions[i]);
    add_living(composing);
}
