/* search: a page is the union of those of the branches.  In the order of fields an index over these returns
 * each (search_plan.h), else search_rows.h. */
#include "model/schema/search.h"

#include <string.h>

#include "edge/json/json.h"
#include "model/schema/search_rows.h"
#include "model/schema/search_test.h"

/* --- a page in the order of ids ------------------------------------------------------------------ */

static void add_columns(struct composing *composing, const char *name)
{
    builder_printf(composing->sql, "%s.id", name);
    if (composing->search->wants_items)
        builder_printf(composing->sql, ", %s.key", name);
}

static void add_limit(struct composing *composing)
{
    pg_params_add_i64(composing->params, (int64_t)composing->search->limit + 1);
    builder_printf(composing->sql, " limit $%d::bigint", composing->params->count);
}

/* Adds the selection of the ids, or ids and keys, of one page of a branch, in the order of these. */
static void add_page_of_branch(struct composing *composing)
{
    const struct search *search = composing->search;
    const char *name = composing->name;
    bool sorts = search_rows_must_sort(composing);
    bool may_repeat = (!search->wants_items && !search->item->is_singleton) ||
                      (composing->driver && composing->driver->test != SEARCH_EQ);
    builder_printf(composing->sql, "select %s", may_repeat ? "distinct " : "");
    if (sorts) {
        add_columns(composing, "h");
        builder_add_text(composing->sql, " from (select ");
    }
    add_columns(composing, name);
    search_rows_add(composing);
    if (!search_rows_begin_after(composing))
        search_rows_add_after(composing, name);
    if (sorts)
        builder_add_text(composing->sql, " offset 0) h");
    builder_add_text(composing->sql, " order by ");
    add_columns(composing, sorts ? "h" : name);
    add_limit(composing);
}

/* The same of the search. */
static void add_page(struct composing *composing)
{
    const struct search *search = composing->search;
    if (search->branch_count == 1) {
        add_page_of_branch(composing);
        return;
    }
    builder_add_text(composing->sql, "select ");
    add_columns(composing, "u");
    builder_add_text(composing->sql, " from (");
    for (size_t i = 0; i < search->branch_count; i++) {
        builder_add_bytes(composing->sql, bytes_of(i ? " union (" : "("));
        search_rows_choose(composing, &search->branches[i]);
        add_page_of_branch(composing);
        builder_add_text(composing->sql, ")");
    }
    builder_add_text(composing->sql, ") u order by ");
    add_columns(composing, "u");
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

static void add_rank(struct composing *composing, const struct search_order *order)
{
    builder_printf(composing->sql, "%s(x.\"%.*s\", ", order->field->text ? "ts_rank_cd" : "public.similarity",
                   TEXT(order->field->name));
    if (order->field->text)
        search_test_add_words(composing->sql, composing->params, order->match);
    else
        search_test_add_likeness(composing->sql, composing->params, order->match);
    builder_add_text(composing->sql, ")");
}

/* Adds the column of a term: in the item's table or, of a page, under the name "o" and its number. */
static void add_term(struct composing *composing, const char *name, size_t term)
{
    const struct search *search = composing->search;
    if (term >= search->order_count)
        builder_printf(composing->sql, "%s.%s", *name == 'x' ? composing->name : name,
                       term == search->order_count ? "id" : "key");
    else if (*name == 'x' && search->orders[term].match)
        add_rank(composing, &search->orders[term]);
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
        builder_printf(composing->sql, ", %s.key", *name == 'x' ? composing->name : name);
}

/* Adds the place where the page begins: `terms` of them, from `first` on; the parameter of the first term has
 * the number `number`. */
static void add_place(struct composing *composing, int number, size_t first, size_t terms)
{
    static const char *const types[FIELD_TYPES] = {"text", "bigint", "integer", "double precision",
                                                   "text", "text",   "real"};
    const struct search *search = composing->search;
    for (size_t term = first; term < first + terms; term++) {
        enum field_type type = term < search->order_count ? search->orders[term].field->type : FIELD_STRING;
        if (term < search->order_count && search->orders[term].match)
            type = FIELD_TEXT; /* a rank */
        builder_printf(composing->sql, "%s$%d::text%s%s", term > first ? ", " : "", number + (int)term,
                       field_type_is_text(type) ? "" : "::", field_type_is_text(type) ? "" : types[type]);
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

/* Adds the columns of a page, with the fields of the order as texts, or under the names "o" and their
 * numbers. */
static void add_selected(struct composing *composing, bool are_texts)
{
    builder_add_text(composing->sql, "select ");
    add_ordered_columns(composing, "x");
    for (size_t i = 0; i < composing->search->order_count; i++) {
        builder_add_text(composing->sql, ", ");
        add_term(composing, "x", i);
        if (are_texts)
            builder_add_text(composing->sql, "::text");
        else
            builder_printf(composing->sql, " as o%zu", i);
    }
}

/* Adds which of the rows that `rows` describes are those of a page, and of a range of an index in which they
 * follow each other; `first`: as of add_behind. */
static void add_range(struct composing *composing, struct bytes rows, int number, size_t first)
{
    const struct search *search = composing->search;
    builder_add_bytes(composing->sql, rows);
    for (size_t i = 0; i < search->order_count; i++) {
        builder_add_text(composing->sql, " and ");
        add_term(composing, "x", i);
        builder_add_text(composing->sql, " is not null");
    }
    if (number)
        add_behind(composing, number, first);
    if (search_rows_sort_all(composing)) { /* all of them are found first, and sorted */
        builder_add_text(composing->sql, " offset 0");
        return;
    }
    add_order(composing, "x");
    builder_printf(composing->sql, " limit $%d::bigint", composing->limit);
}

/* The rows of a branch, in a builder of the caller. */
static struct builder add_rows(struct composing *composing)
{
    struct builder rows = {0}, *sql = composing->sql;
    composing->sql = &rows;
    search_rows_add(composing);
    composing->sql = sql;
    return rows;
}

/* Adds those of a page of one branch of the search.  The rows behind a place are, for each run of terms of
 * one direction, those equal in the terms before; the page is the first of all of them. */
static void add_ordered_branch(struct composing *composing, int number)
{
    struct builder rows = add_rows(composing), *sql = composing->sql;
    for (size_t first = 0; !first || (number && first < count_terms(composing->search));
         first += count_run(composing->search, first)) {
        builder_add_bytes(sql, bytes_of(first ? " union all (" : "("));
        add_selected(composing, false);
        add_range(composing, builder_bytes(&rows), number, first);
        builder_add_text(sql, ")");
    }
    builder_free(&rows);
}

/* The number of the parameter of the first term of the place; 0: the page is the first one. */
static int add_parameters_of_page(struct composing *composing)
{
    const struct search *search = composing->search;
    pg_params_add_i64(composing->params, (int64_t)search->limit + 1);
    composing->limit = composing->params->count;
    if (!search->after_id.data)
        return 0;
    for (size_t i = 0; i < search->order_count; i++)
        pg_params_add_text(composing->params, search->orders[i].after);
    pg_params_add_text(composing->params, search->after_id);
    if (!search->item->is_singleton)
        pg_params_add_text(composing->params, search->after_key);
    return composing->limit + 1;
}

/* Is the page one range of an index? */
static bool is_one_range(const struct composing *composing)
{
    const struct search *search = composing->search;
    bool has_one = !search->after_id.data || count_run(search, 0) == count_terms(search);
    return search->branch_count == 1 && has_one && !search_rows_sort_all(composing);
}

/* Adds the selection of such a page, without a subquery around it, which would take PostgreSQL longer to
 * begin with than some of the rows to read. */
static void add_one_range(struct composing *composing, bool are_texts)
{
    int number = add_parameters_of_page(composing);
    struct builder rows = add_rows(composing);
    add_selected(composing, are_texts);
    add_range(composing, builder_bytes(&rows), number, 0);
    builder_free(&rows);
}

/* Adds the selection of a page in the order of fields, in a subquery of the name `name`. */
static void add_ordered(struct composing *composing, const char *name)
{
    const struct search *search = composing->search;
    struct builder *sql = composing->sql;
    int number = add_parameters_of_page(composing);
    builder_add_text(sql, "(");
    for (size_t i = 0; i < search->branch_count; i++) {
        builder_add_bytes(sql, bytes_of(i ? " union (" : search->branch_count > 1 ? "(" : ""));
        search_rows_choose(composing, &search->branches[i]);
        add_ordered_branch(composing, number);
        builder_add_bytes(sql, bytes_of(search->branch_count > 1 ? ")" : ""));
    }
    builder_printf(sql, ") %s", name);
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
    if (is_one_range(composing)) {
        add_one_range(composing, true);
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
    if (search->order_count && is_one_range(composing)) {
        add_one_range(composing, false);
    } else if (search->order_count) {
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
    struct composing composing = {.search = search, .sql = sql, .params = params};
    search_rows_choose(&composing, &search->branches[0]);
    if (search->wants_items)
        compose_items(&composing);
    else
        compose_ids(&composing);
}

/* Adds the selection of the ids that a branch counts. */
static void add_counted(struct composing *composing)
{
    const struct search *search = composing->search;
    bool may_repeat =
        !search->item->is_singleton || (composing->driver && composing->driver->test != SEARCH_EQ);
    builder_printf(composing->sql, "(select %s%s.id", may_repeat ? "distinct " : "", composing->name);
    search_rows_add(composing);
    add_limit(composing);
    builder_add_text(composing->sql, ")");
}

void search_compose_count(const struct search *search, struct builder *sql, struct pg_params *params)
{
    struct composing composing = {.search = search, .sql = sql, .params = params, .counts = true};
    builder_add_text(sql, "select count(*) from (select u.id from (");
    for (size_t i = 0; i < search->branch_count; i++) {
        builder_add_bytes(sql, bytes_of(i ? " union " : ""));
        search_rows_choose(&composing, &search->branches[i]);
        add_counted(&composing);
    }
    builder_add_text(sql, ") u");
    add_limit(&composing);
    builder_add_text(sql, ") c");
}

/* A mark is the secret and a character that says what it is. */

enum { MARK_BEGIN = 'b', MARK_END = 'e', MARK_NEXT = 'n' };

void search_marks_compose(const struct search_condition *match, struct bytes texts, struct bytes secret,
                          struct builder *sql, struct pg_params *params)
{
    struct bytes language = match->field->text->language;
    const char *options = arena_printf(params->arena,
                                       "StartSel=%.*s%c,StopSel=%.*s%c,FragmentDelimiter=%.*s%c,MaxFragments="
                                       "%d,MaxWords=%d,MinWords=%d,ShortWord=0",
                                       (int)secret.size, secret.data, MARK_BEGIN, (int)secret.size,
                                       secret.data, MARK_END, (int)secret.size, secret.data, MARK_NEXT,
                                       SEARCH_MARKS_MOST, SEARCH_MARKS_WORDS, SEARCH_MARKS_LEAST);
    builder_printf(sql, "select ts_headline('pg_catalog.%.*s', t.value, ", (int)language.size, language.data);
    search_test_add_words(sql, params, match);
    pg_params_add_text(params, bytes_of(options));
    builder_printf(sql, ", $%d::text) from json_array_elements_text(", params->count);
    pg_params_add_text(params, texts);
    builder_printf(sql, "$%d::text::json) with ordinality t(value, place) order by t.place", params->count);
}

/* The next mark from `at` on, or the end of the row. */
static const char *find_mark(const char *at, const char *end, struct bytes secret)
{
    while ((size_t)(end - at) > secret.size) {
        if (memcmp(at, secret.data, secret.size) == 0)
            return at;
        const char *next = memchr(at + 1, *secret.data, (size_t)(end - at) - 1);
        at = next ? next : end;
    }
    return end;
}

bool search_marks_write(struct bytes row, struct bytes secret, struct builder *json)
{
    const char *at = row.data, *end = row.data + row.size;
    size_t start = json->size;
    bool is_marked = false;
    builder_add_text(json, "[[");
    while (at <= end) {
        const char *mark = find_mark(at, end, secret);
        char kind = mark < end ? mark[secret.size] : MARK_NEXT;
        json_add_string(json, (struct bytes){at, (size_t)(mark - at)});
        is_marked |= kind == MARK_BEGIN;
        builder_add_bytes(json, bytes_of(mark == end ? "]]" : kind == MARK_NEXT ? "],[" : ","));
        if (mark == end)
            break;
        at = mark + secret.size + 1;
    }
    if (!is_marked)
        json->size = start;
    return is_marked;
}

/* The items are found as those of a count; their columns are "g" and "w", with the number of
 * the group or wish. */

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
