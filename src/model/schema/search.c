/* search: one relation drives the query, the others are joined for each of its rows.
 *
 * The driver is a column or list with an equality condition if there is one: its index (value, then id and
 * key) returns the page in order, so the cost of a page depends only on its size.  Otherwise all matches are
 * sorted by id and key.  In the order of fields an index over these returns the page (search_plan.h). */
#include "model/schema/search.h"

#include "model/schema/search_test.h"

/* --- the statement ------------------------------------------------------------------------------- */

struct composing {
    const struct search *search;
    struct builder *sql;
    struct pg_params *params;
    const struct search_condition *driver; /* a list whose elements drive the query; NULL: the items' table */
    int limit;                             /* of a page in the order of fields: the number of its parameter */
};

#define SIDE(search)                                                                                         \
    (int)(search)->class->name.size, (search)->class->name.data, (int)(search)->item->name.size,             \
        (search)->item->name.data
#define TEXT(text) (int)(text).size, (text).data

static bool is_list(const struct search_condition *condition)
{
    return condition->field && condition->field->is_list;
}

/* A list with an equality condition drives, unless a column has one and there is no order of fields; without
 * any equality, a list drives only if there is no other condition, and no order. */
static const struct search_condition *choose_driver(const struct search *search)
{
    const struct search_condition *equal_list = NULL, *list = NULL;
    bool has_column = search->order_count > 0;
    for (const struct search_condition *one = search->conditions + search->count;
         one-- > search->conditions;) {
        if (!is_list(one) && one->test == SEARCH_EQ && !search->order_count)
            return NULL;
        if (is_list(one) && one->test == SEARCH_EQ)
            equal_list = one;
        if (is_list(one) && search_is_driving(one->test))
            list = one;
        has_column |= !is_list(one) || !search_is_driving(one->test);
    }
    return equal_list ? equal_list : has_column ? NULL : list;
}

/* Adds the condition that a list has an element which satisfies it, or, of NE and NIN, that there is a list,
 * and it has none of these. */
static void add_element(struct composing *composing, const struct search_condition *condition)
{
    const struct search *search = composing->search;
    const char *base = composing->driver ? "e" : "x";
    bool is_denied = !search_is_driving(condition->test);
    if (is_denied)
        builder_printf(composing->sql, "x.\"%.*s\" is not null and not ", TEXT(condition->field->name));
    builder_printf(
        composing->sql,
        "exists (select from stampd.\"x_%.*s_%.*s_%.*s\" l where l.id = %s.id and l.key = %s.key and ",
        SIDE(search), TEXT(condition->field->name), base, base);
    if (is_denied)
        search_test_add_any(composing->sql, composing->params, condition, "l.value");
    else
        search_test_add(composing->sql, composing->params, condition, "l.value");
    builder_add_text(composing->sql, ")");
}

static void add_condition(struct composing *composing, const struct search_condition *condition)
{
    struct arena *arena = composing->params->arena;
    builder_add_text(composing->sql, " and ");
    if (!condition->field)
        search_test_add(composing->sql, composing->params, condition, composing->driver ? "e.id" : "x.id");
    else if (!condition->field->is_list || condition->test == SEARCH_EXISTS)
        search_test_add(composing->sql, composing->params, condition,
                        arena_printf(arena, "x.\"%.*s\"", TEXT(condition->field->name)));
    else if (condition == composing->driver)
        search_test_add(composing->sql, composing->params, condition, "e.value");
    else
        add_element(composing, condition);
}

static void add_from(struct composing *composing)
{
    const struct search *search = composing->search;
    bool needs_columns = search->order_count > 0;
    for (size_t i = 0; i < search->count; i++)
        needs_columns |= search->conditions[i].field && (!search->conditions[i].field->is_list ||
                                                         !search_is_driving(search->conditions[i].test));
    if (composing->driver) {
        builder_printf(composing->sql, " from stampd.\"x_%.*s_%.*s_%.*s\" e", SIDE(search),
                       TEXT(composing->driver->field->name));
        if (needs_columns)
            builder_printf(composing->sql, " join stampd.\"x_%.*s_%.*s\" x on x.id = e.id and x.key = e.key",
                           SIDE(search));
    } else {
        builder_printf(composing->sql, " from stampd.\"x_%.*s_%.*s\" x", SIDE(search));
    }
    /* Checked once, before the first row: a search under another schema fails instead of finding nothing. */
    pg_params_add_i64(composing->params, search->schema->number);
    builder_printf(
        composing->sql,
        " where (select case when s.number = $%d::bigint then true else stampd.fail('ST004', 'schema') = 0"
        " end from stampd.schema s where s.one)",
        composing->params->count);
}

/* Adds the condition for rows after the previous page. */
static void add_after(struct composing *composing, const char *name)
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

/* Adds the condition that the document has not expired. */
static void add_living(struct composing *composing, const char *name)
{
    const struct search *search = composing->search;
    if (!search->class->max_life.item)
        return;
    pg_params_add_i64(composing->params, search->minute);
    builder_printf(composing->sql,
                   " and not exists (select from stampd.expiry z where z.class = '%.*s' and z.id = %s.id and"
                   " z.until <= $%d::bigint)",
                   TEXT(search->class->name), name, composing->params->count);
}

static bool is_absence(const struct search_condition *condition)
{
    return condition->test == SEARCH_EXISTS && !condition->values[0].integer;
}

/* Is there no equality whose index returns the page in order?  Then all matches are found through an index
 * first: the planner, which does not know the values, would otherwise scan all documents in order. */
static bool must_sort(const struct search *search)
{
    bool has_fields = false;
    for (size_t i = 0; i < search->count; i++) {
        if (search->conditions[i].field && search->conditions[i].test == SEARCH_EQ)
            return false;
        has_fields |= search->conditions[i].field &&
                      (search_is_driving(search->conditions[i].test) || is_absence(&search->conditions[i]));
    }
    return has_fields;
}

static void add_columns(struct composing *composing, const char *name)
{
    builder_printf(composing->sql, "%s.id", name);
    if (composing->search->wants_items)
        builder_printf(composing->sql, ", %s.key", name);
}

/* Adds what rows the search is for: the relations and conditions, without those of the page. */
static void add_rows(struct composing *composing)
{
    const struct search *search = composing->search;
    add_from(composing);
    for (size_t i = 0; i < search->count; i++)
        add_condition(composing, &search->conditions[i]);
    add_living(composing, composing->driver ? "e" : "x");
}

static void add_limit(struct composing *composing)
{
    pg_params_add_i64(composing->params, (int64_t)composing->search->limit + 1);
    builder_printf(composing->sql, " limit $%d::bigint", composing->params->count);
}

/* Adds the selection of the ids, or ids and keys, of one page, in the order of these. */
static void add_page(struct composing *composing)
{
    const struct search *search = composing->search;
    const char *name = composing->driver ? "e" : "x";
    bool sorts = must_sort(search);
    bool may_repeat = (!search->wants_items && !search->item->is_singleton) ||
                      (composing->driver && composing->driver->test != SEARCH_EQ);
    builder_printf(composing->sql, "select %s", may_repeat ? "distinct " : "");
    if (sorts) {
        add_columns(composing, "h");
        builder_add_text(composing->sql, " from (select ");
    }
    add_columns(composing, name);
    add_rows(composing);
    add_after(composing, name);
    if (sorts)
        builder_add_text(composing->sql, " offset 0) h");
    builder_add_text(composing->sql, " order by ");
    add_columns(composing, sorts ? "h" : name);
    add_limit(composing);
}

/* --- a page in the order of fields --------------------------------------------------------------- */

/* What decides the order: the fields, then the id and, of an item with a key, that. */
static size_t count_terms(const struct search *search)
{
    return search->order_count + (search->item->is_singleton ? 1 : 2);
}

static bool descends(const struct search *search, size_t term)
{
    return search->orders[term < search->order_count ? term : search->order_count - 1].is_descending;
}

/* The number of the terms from `first` on that have one direction. */
static size_t count_run(const struct search *search, size_t first)
{
    size_t end = first + 1;
    while (end < count_terms(search) && descends(search, end) == descends(search, first))
        end++;
    return end - first;
}

/* Adds the column of a term: in the item's table or, of a page, under the name "o" and its number. */
static void add_term(struct composing *composing, const char *name, size_t term)
{
    const struct search *search = composing->search;
    if (term >= search->order_count)
        builder_printf(composing->sql, "%s.%s", *name == 'x' && composing->driver ? "e" : name,
                       term == search->order_count ? "id" : "key");
    else if (*name == 'x')
        builder_printf(composing->sql, "x.\"%.*s\"", TEXT(search->orders[term].field->name));
    else
        builder_printf(composing->sql, "%s.o%zu", name, term);
}

static void add_order(struct composing *composing, const char *name)
{
    for (size_t term = 0; term < count_terms(composing->search); term++) {
        builder_add_bytes(composing->sql, bytes_of(term ? ", " : " order by "));
        add_term(composing, name, term);
        builder_add_bytes(composing->sql, bytes_of(descends(composing->search, term) ? " desc" : ""));
    }
}

/* The order of a page, of fields or of ids. */
static void add_order_of(struct composing *composing, const char *name)
{
    if (composing->search->order_count)
        add_order(composing, name);
    else
        builder_printf(composing->sql, " order by %s.id, %s.key", name, name);
}

static void add_ordered_columns(struct composing *composing, const char *name)
{
    add_term(composing, name, composing->search->order_count);
    if (composing->search->wants_items)
        builder_printf(composing->sql, ", %s.key", *name == 'x' && composing->driver ? "e" : name);
}

/* Adds the place where the page begins: `terms` of them, from `first` on; the parameter of the first term has
 * the number `number`. */
static void add_place(struct composing *composing, int number, size_t first, size_t terms)
{
    static const char *const types[FIELD_TYPES] = {"text", "bigint", "integer", "double precision", "text"};
    const struct search *search = composing->search;
    for (size_t term = first; term < first + terms; term++) {
        enum field_type type = term < search->order_count ? search->orders[term].field->type : FIELD_STRING;
        builder_printf(composing->sql, "%s$%d::text%s%s", term > first ? ", " : "", number + (int)term,
                       type == FIELD_STRING ? "" : "::", type == FIELD_STRING ? "" : types[type]);
    }
}

static void add_terms(struct composing *composing, size_t first, size_t terms)
{
    for (size_t term = first; term < first + terms; term++) {
        builder_add_bytes(composing->sql, bytes_of(term > first ? ", " : ""));
        add_term(composing, "x", term);
    }
}

/* Adds the condition for the rows that are equal to the place in the terms before `first`, and behind it in
 * the next ones of one direction: a range of an index. */
static void add_behind(struct composing *composing, int number, size_t first)
{
    size_t terms = count_run(composing->search, first);
    for (size_t term = 0; term < first; term++) {
        builder_add_text(composing->sql, " and ");
        add_terms(composing, term, 1);
        builder_add_text(composing->sql, " = ");
        add_place(composing, number, term, 1);
    }
    builder_add_text(composing->sql, " and (");
    add_terms(composing, first, terms);
    builder_add_bytes(composing->sql, bytes_of(descends(composing->search, first) ? ") < (" : ") > ("));
    add_place(composing, number, first, terms);
    builder_add_text(composing->sql, ")");
}

/* Adds a selection of the rows of a page, all of which `rows` describes; `first`: as of add_behind. */
static void add_branch(struct composing *composing, struct bytes rows, int number, size_t first)
{
    const struct search *search = composing->search;
    builder_add_text(composing->sql, "(select ");
    add_ordered_columns(composing, "x");
    for (size_t i = 0; i < search->order_count; i++) {
        builder_add_text(composing->sql, ", ");
        add_term(composing, "x", i);
        builder_printf(composing->sql, " as o%zu", i);
    }
    builder_add_bytes(composing->sql, rows);
    for (size_t i = 0; i < search->order_count; i++) {
        builder_add_text(composing->sql, " and ");
        add_term(composing, "x", i);
        builder_add_text(composing->sql, " is not null");
    }
    if (number)
        add_behind(composing, number, first);
    if (composing->driver) { /* all of them are found first, and sorted */
        builder_add_text(composing->sql, " offset 0)");
        return;
    }
    add_order(composing, "x");
    builder_printf(composing->sql, " limit $%d::bigint)", composing->limit);
}

/* Adds the selection of a page in the order of fields, in a subquery of the name `name`.  The rows behind a
 * place are, for each run of terms of one direction, those equal in the terms before; the page is the first
 * of all of them. */
static void add_ordered(struct composing *composing, const char *name)
{
    const struct search *search = composing->search;
    struct builder rows = {0}, *sql = composing->sql;
    int number = 0;
    composing->sql = &rows;
    add_rows(composing);
    composing->sql = sql;
    pg_params_add_i64(composing->params, (int64_t)search->limit + 1);
    composing->limit = composing->params->count;
    if (search->after_id.data) {
        number = composing->params->count + 1;
        for (size_t i = 0; i < search->order_count; i++)
            pg_params_add_text(composing->params, search->orders[i].after);
        pg_params_add_text(composing->params, search->after_id);
        if (!search->item->is_singleton)
            pg_params_add_text(composing->params, search->after_key);
    }
    builder_add_text(sql, "(");
    for (size_t first = 0; !first || (number && first < count_terms(search));
         first += count_run(search, first)) {
        builder_add_bytes(sql, bytes_of(first ? " union all " : ""));
        add_branch(composing, builder_bytes(&rows), number, first);
    }
    builder_printf(sql, ") %s", name);
    builder_free(&rows);
}

/* Adds the fields of the order, as texts. */
static void add_values(struct composing *composing, const char *name)
{
    for (size_t i = 0; i < composing->search->order_count; i++)
        builder_printf(composing->sql, ", %s.o%zu::text", name, i);
}

/* --- the whole ----------------------------------------------------------------------------------- */

static void compose_ids(struct composing *composing)
{
    if (!composing->search->order_count) {
        add_page(composing);
        return;
    }
    builder_add_text(composing->sql, "select h.id");
    add_values(composing, "h");
    builder_add_text(composing->sql, " from ");
    add_ordered(composing, "h");
    add_order(composing, "h");
    builder_printf(composing->sql, " limit $%d::bigint", composing->limit);
}

static void compose_items(struct composing *composing)
{
    const struct search *search = composing->search;
    struct builder *sql = composing->sql;
    builder_add_text(sql, "with page as materialized (");
    if (search->order_count) {
        builder_add_text(sql, "select h.* from ");
        add_ordered(composing, "h");
        add_order(composing, "h");
        builder_printf(sql, " limit $%d::bigint", composing->limit);
    } else {
        add_page(composing);
    }
    builder_add_text(sql, ") select w.id, w.key, w.version, w.content, w.raw, (select count(*) from page)");
    add_values(composing, "w");
    builder_add_text(sql,
                     " from (select p.*, i.version, i.content, i.raw, sum(octet_length(i.content)) over (");
    add_order_of(composing, "p");
    builder_printf(
        sql,
        ") - octet_length(i.content) as before from page p cross join lateral"
        " (select t.version, t.content, t.raw from stampd.item t where t.class = '%.*s' and t.id = p.id"
        " and t.iclass = '%.*s' and t.key = p.key and t.content is not null offset 0) i) w",
        TEXT(search->class->name), TEXT(search->item->name));
    pg_params_add_i64(composing->params, search->bytes_most);
    builder_printf(sql, " where w.before < $%d::bigint", composing->params->count);
    add_order_of(composing, "w");
}

void search_compose(const struct search *search, struct builder *sql, struct pg_params *params)
{
    struct composing composing = {
        .search = search, .sql = sql, .params = params, .driver = choose_driver(search)};
    if (search->wants_items)
        compose_items(&composing);
    else
        compose_ids(&composing);
}

void search_compose_count(const struct search *search, struct builder *sql, struct pg_params *params)
{
    struct composing composing = {
        .search = search, .sql = sql, .params = params, .driver = choose_driver(search)};
    bool may_repeat =
        !search->item->is_singleton || (composing.driver && composing.driver->test != SEARCH_EQ);
    builder_printf(sql, "select count(*) from (select %s%s.id", may_repeat ? "distinct " : "",
                   composing.driver ? "e" : "x");
    add_rows(&composing);
    add_limit(&composing);
    builder_add_text(sql, ") c");
}
