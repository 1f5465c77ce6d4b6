/* search: one relation drives the query, the others are joined for each of its rows.
 *
 * The driver is a column or list with an equality condition if there is one: its index (value, then id and
 * key) returns the page in order, so the cost of a page depends only on its size.  Otherwise all matches are
 * sorted by id and key. */
#include "model/search.h"

#include <string.h>

bool search_has_two(enum search_test test)
{
    return test >= SEARCH_GELE;
}

/* --- the range of a prefix ----------------------------------------------------------------------- */

enum { CODE_POINT_LAST = 0x10FFFF, SURROGATE_FIRST = 0xD800, SURROGATE_LAST = 0xDFFF };

/* The code point of the `size` bytes at `at`, a well-formed sequence. */
static uint32_t utf8_decode(const unsigned char *at, size_t size)
{
    static const unsigned char lead_bits[] = {0, 0x7F, 0x1F, 0x0F, 0x07};
    uint32_t code = at[0] & lead_bits[size];
    for (size_t i = 1; i < size; i++)
        code = code << 6 | (at[i] & 0x3F);
    return code;
}

static size_t utf8_encode(uint32_t code, char *at)
{
    size_t size = code < 0x80 ? 1 : code < 0x800 ? 2 : code < 0x10000 ? 3 : 4;
    static const unsigned char lead_marks[] = {0, 0x00, 0xC0, 0xE0, 0xF0};
    for (size_t i = size - 1; i > 0; i--, code >>= 6)
        at[i] = (char)(0x80 | (code & 0x3F));
    at[0] = (char)(lead_marks[size] | code);
    return size;
}

bool search_prefix_end(struct arena *arena, struct bytes prefix, struct bytes *end_r)
{
    assert(bytes_is_utf8(prefix));
    const unsigned char *text = (const unsigned char *)prefix.data;
    size_t end = prefix.size;
    while (end) {
        size_t start = end - 1;
        while (start && (text[start] & 0xC0) == 0x80)
            start--;
        uint32_t code = utf8_decode(text + start, end - start);
        if (code != CODE_POINT_LAST) {
            code = code + 1 == SURROGATE_FIRST ? SURROGATE_LAST + 1 : code + 1;
            char *copy = arena_alloc(arena, start + 4);
            memcpy(copy, prefix.data, start);
            *end_r = (struct bytes){copy, start + utf8_encode(code, copy + start)};
            return true;
        }
        end = start; /* no value follows U+10FFFF here: increment the character before it */
    }
    return false;
}

/* --- the statement ------------------------------------------------------------------------------- */

struct composing {
    const struct search *search;
    struct builder *sql;
    struct pg_params *params;
    const struct search_condition *driver; /* a list whose elements drive the query; NULL: the items' table */
};

#define SIDE(search)                                                                                         \
    (int)(search)->class->name.size, (search)->class->name.data, (int)(search)->item->name.size,             \
        (search)->item->name.data
#define TEXT(text) (int)(text).size, (text).data

static void add_number(struct composing *composing, const char *before, const char *type)
{
    builder_printf(composing->sql, "%s$%d::%s", before, composing->params->count, type);
}

/* Adds the operator and a parameter; the column is already written. */
static void add_value(struct composing *composing, const struct search_condition *condition,
                      const char *operator, struct search_value value)
{
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    switch (type) {
    case FIELD_STRING:
    case FIELD_HASH:
        pg_params_add_text(composing->params, value.text);
        add_number(composing, operator, "text");
        break;
    case FIELD_LONG:
        pg_params_add_i64(composing->params, value.integer);
        add_number(composing, operator, "bigint");
        break;
    case FIELD_INT:
        pg_params_add_i32(composing->params, (int32_t)value.integer);
        add_number(composing, operator, "integer");
        break;
    case FIELD_DOUBLE:
    default:
        pg_params_add_f64(composing->params, value.number);
        add_number(composing, operator, "double precision");
    }
}

/* Adds the condition on an SQL expression. */
static void add_test(struct composing *composing, const struct search_condition *condition,
                     const char *column)
{
    static const char *const lower[SEARCH_TESTS] = {
        [SEARCH_EQ] = " = ",    [SEARCH_GE] = " >= ",   [SEARCH_GT] = " > ",   [SEARCH_SW] = " >= ",
        [SEARCH_GELE] = " >= ", [SEARCH_GELT] = " >= ", [SEARCH_GTLE] = " > ", [SEARCH_GTLT] = " > "};
    static const char *const upper[SEARCH_TESTS] = {
        [SEARCH_LT] = " < ",   [SEARCH_LE] = " <= ",   [SEARCH_SW] = " < ",  [SEARCH_GELE] = " <= ",
        [SEARCH_GELT] = " < ", [SEARCH_GTLE] = " <= ", [SEARCH_GTLT] = " < "};
    enum search_test test = condition->test;
    struct search_value high = condition->values[search_has_two(test)];
    bool has_high = upper[test] != NULL;
    if (test == SEARCH_SW)
        has_high = search_prefix_end(composing->params->arena, high.text, &high.text);
    if (lower[test]) {
        builder_add_bytes(composing->sql, bytes_of(column));
        add_value(composing, condition, lower[test], condition->values[0]);
    }
    if (lower[test] && has_high)
        builder_add_text(composing->sql, " and ");
    if (has_high) {
        builder_add_bytes(composing->sql, bytes_of(column));
        add_value(composing, condition, upper[test], high);
    }
}

static bool is_list(const struct search_condition *condition)
{
    return condition->field && condition->field->is_list;
}

/* A list with an equality condition drives, unless a column has one; without any equality, a list drives only
 * if there is no other condition. */
static const struct search_condition *choose_driver(const struct search *search)
{
    const struct search_condition *equal_list = NULL, *list = NULL;
    bool has_column = false;
    for (const struct search_condition *one = search->conditions + search->count;
         one-- > search->conditions;) {
        if (!is_list(one) && one->test == SEARCH_EQ)
            return NULL;
        if (is_list(one) && one->test == SEARCH_EQ)
            equal_list = one;
        if (is_list(one))
            list = one;
        has_column |= !is_list(one);
    }
    return equal_list ? equal_list : has_column ? NULL : list;
}

static void add_condition(struct composing *composing, const struct search_condition *condition)
{
    const struct search *search = composing->search;
    struct arena *arena = composing->params->arena;
    builder_add_text(composing->sql, " and ");
    if (!condition->field) {
        add_test(composing, condition, composing->driver ? "e.id" : "x.id");
    } else if (!condition->field->is_list) {
        add_test(composing, condition, arena_printf(arena, "x.\"%.*s\"", TEXT(condition->field->name)));
    } else if (condition == composing->driver) {
        add_test(composing, condition, "e.value");
    } else {
        builder_printf(
            composing->sql,
            "exists (select from stampd.\"x_%.*s_%.*s_%.*s\" l where l.id = %s.id and l.key = %s.key and ",
            SIDE(search), TEXT(condition->field->name), composing->driver ? "e" : "x",
            composing->driver ? "e" : "x");
        add_test(composing, condition, "l.value");
        builder_add_text(composing->sql, ")");
    }
}

static void add_from(struct composing *composing)
{
    const struct search *search = composing->search;
    bool needs_columns = false;
    for (size_t i = 0; i < search->count; i++)
        needs_columns |= search->conditions[i].field && !search->conditions[i].field->is_list;
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

/* Is there no equality whose index returns the page in order?  Then all matches are found through an index
 * first: the planner, which does not know the values, would otherwise scan all documents in order. */
static bool must_sort(const struct search *search)
{
    bool has_fields = false;
    for (size_t i = 0; i < search->count; i++) {
        if (search->conditions[i].field && search->conditions[i].test == SEARCH_EQ)
            return false;
        has_fields |= search->conditions[i].field != NULL;
    }
    return has_fields;
}

static void add_columns(struct composing *composing, const char *name)
{
    builder_printf(composing->sql, "%s.id", name);
    if (composing->search->wants_items)
        builder_printf(composing->sql, ", %s.key", name);
}

/* Adds the selection of the ids, or ids and keys, of one page. */
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
    add_from(composing);
    for (size_t i = 0; i < search->count; i++)
        add_condition(composing, &search->conditions[i]);
    add_after(composing, name);
    add_living(composing, name);
    if (sorts)
        builder_add_text(composing->sql, " offset 0) h");
    builder_add_text(composing->sql, " order by ");
    add_columns(composing, sorts ? "h" : name);
    pg_params_add_i64(composing->params, (int64_t)search->limit + 1);
    builder_printf(composing->sql, " limit $%d::bigint", composing->params->count);
}

void search_compose(const struct search *search, struct builder *sql, struct pg_params *params)
{
    struct composing composing = {search, sql, params, choose_driver(search)};
    if (!search->wants_items) {
        add_page(&composing);
        return;
    }
    builder_add_text(sql, "with page as materialized (");
    add_page(&composing);
    builder_printf(
        sql,
        ") select id, key, version, content, raw, (select count(*) from page) from (select p.id, p.key,"
        " i.version, i.content, i.raw, sum(octet_length(i.content)) over (order by p.id, p.key) -"
        " octet_length(i.content) as before from page p cross join lateral"
        " (select t.version, t.content, t.raw from stampd.item t where t.class = '%.*s' and t.id = p.id"
        " and t.iclass = '%.*s' and t.key = p.key and t.content is not null offset 0) i) w",
        TEXT(search->class->name), TEXT(search->item->name));
    pg_params_add_i64(params, search->bytes_most);
    builder_printf(sql, " where before < $%d::bigint order by id, key", params->count);
}
