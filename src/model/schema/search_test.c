/* search_test: operators, and parameters of the type of the field. */
#include "model/schema/search_test.h"

#include "model/schema/search_prefix.h"

/* No folded text has U+10FFFF, and what stands for a long one has it once: behind all that start alike. */
#define FOLDED_END "U&'\\+10FFFF\\+10FFFF'"

static void search_test_add_number(struct builder *sql, struct pg_params *params, const char *before,
                                   const char *type)
{
    builder_printf(sql, "%s$%d::%s", before, params->count, type);
}

/* Adds the operator and a parameter; the column is already written. */
static void search_test_add_value(struct builder *sql, struct pg_params *params,
                                  const struct search_condition *condition, const char *operator,
                                  struct search_value value)
{
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    switch (type) {
    case FIELD_FOLDED:
        pg_params_add_text(params, value.text);
        builder_printf(sql, "%s(select stampd.field_folded($%d::text))", operator, params->count);
        break;
    case FIELD_STRING:
    case FIELD_HASH:
        pg_params_add_text(params, value.text);
        search_test_add_number(sql, params, operator, "text");
        break;
    case FIELD_LONG:
        pg_params_add_i64(params, value.integer);
        search_test_add_number(sql, params, operator, "bigint");
        break;
    case FIELD_INT:
        pg_params_add_i32(params, (int32_t)value.integer);
        search_test_add_number(sql, params, operator, "integer");
        break;
    case FIELD_DOUBLE:
    default:
        pg_params_add_f64(params, value.number);
        search_test_add_number(sql, params, operator, "double precision");
    }
}

/* Adds the values of a list, as an array. */
static void add_list(struct builder *sql, struct pg_params *params, const struct search_condition *condition)
{
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    struct arena *arena = params->arena;
    size_t count = condition->list_count;
    if (type == FIELD_LONG || type == FIELD_INT) {
        int64_t *integers = ARENA_ARRAY(arena, int64_t, count);
        for (size_t i = 0; i < count; i++)
            integers[i] = condition->list[i].integer;
        pg_params_add_i64_array(params, integers, count);
        search_test_add_number(sql, params, "", type == FIELD_INT ? "bigint[]::integer[]" : "bigint[]");
        return;
    }
    struct bytes *texts = ARENA_ARRAY(arena, struct bytes, count);
    for (size_t i = 0; i < count; i++)
        texts[i] = type == FIELD_DOUBLE ? bytes_of(arena_printf(arena, "%.17g", condition->list[i].number))
                                        : condition->list[i].text;
    pg_params_add_text_array(params, texts, count);
    if (type == FIELD_FOLDED)
        builder_printf(sql, "array(select stampd.field_folded(v) from unnest($%d::text[]) v)", params->count);
    else
        search_test_add_number(sql, params, "",
                               type == FIELD_DOUBLE ? "text[]::double precision[]" : "text[]");
}

/* Adds the condition that an SQL expression has one of the values, or none of them. */
static void add_membership(struct builder *sql, struct pg_params *params,
                           const struct search_condition *condition, const char *column, bool is_one)
{
    builder_printf(sql, "%s %s (", column, is_one ? "= any" : "<> all");
    add_list(sql, params, condition);
    builder_add_text(sql, ")");
}

/* Adds the text of the parameter; null of one without a letter or digit, for which the index would be read
 * whole. */
static void add_text_of_likeness(struct builder *sql, const struct search_condition *condition, int parameter)
{
    bool is_folded = condition->field->type == FIELD_FOLDED;
    builder_printf(sql,
                   "(select case when public.show_trgm(o.v) <> '{}' then o.v end from (select %s$%d::text%s"
                   " as v offset 0) o)",
                   is_folded ? "stampd.field_folded(" : "", parameter, is_folded ? ")" : "");
}

/* The operator, which the index has, finds what is alike by SEARCH_LIKE_LEAST. */
static void add_like(struct builder *sql, struct pg_params *params, const struct search_condition *condition,
                     const char *column)
{
    builder_printf(sql, "%s operator(public.%%) ", column);
    search_test_add_likeness(sql, params, condition);
    builder_printf(sql, " and public.similarity(%s, ", column);
    add_text_of_likeness(sql, condition, params->count);
    pg_params_add_f64(params, condition->values[1].number);
    search_test_add_number(sql, params, ") >= ", "double precision::real");
}

/* Adds the condition on an SQL expression. */
void search_test_add(struct builder *sql, struct pg_params *params, const struct search_condition *condition,
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
    if (search_has_list(test)) {
        add_membership(sql, params, condition, column, test == SEARCH_IN);
        return;
    }
    if (test == SEARCH_MATCH) {
        builder_printf(sql, "%s @@ ", column);
        search_test_add_words(sql, params, condition);
        return;
    }
    if (test == SEARCH_LIKE) {
        add_like(sql, params, condition, column);
        return;
    }
    if (test == SEARCH_EXISTS) {
        builder_printf(sql, "%s is %snull", column, condition->values[0].integer ? "not " : "");
        return;
    }
    bool is_folded = condition->field && condition->field->type == FIELD_FOLDED;
    if (test == SEARCH_SW && !is_folded)
        has_high = search_prefix_end(params->arena, high.text, &high.text);
    if (lower[test]) {
        builder_add_bytes(sql, bytes_of(column));
        search_test_add_value(sql, params, condition, lower[test], condition->values[0]);
    }
    if (lower[test] && has_high)
        builder_add_text(sql, " and ");
    if (has_high) {
        builder_add_bytes(sql, bytes_of(column));
        search_test_add_value(sql, params, condition, upper[test], high);
        if (test == SEARCH_SW && is_folded)
            builder_add_text(sql, " || " FOLDED_END);
    }
}

void search_test_add_words(struct builder *sql, struct pg_params *params,
                           const struct search_condition *condition)
{
    struct bytes language = condition->field->text->language;
    pg_params_add_text(params, condition->values[0].text);
    builder_printf(sql, "(select stampd.text_query('pg_catalog.%.*s', $%d::text))", (int)language.size,
                   language.data, params->count);
}

void search_test_add_likeness(struct builder *sql, struct pg_params *params,
                              const struct search_condition *condition)
{
    pg_params_add_text(params, condition->values[0].text);
    add_text_of_likeness(sql, condition, params->count);
}

void search_test_add_any(struct builder *sql, struct pg_params *params,
                         const struct search_condition *condition, const char *column)
{
    add_membership(sql, params, condition, column, true);
}

bool search_test_has_least(const struct search_condition *condition)
{
    enum search_test test = condition->test;
    return test == SEARCH_EQ || test == SEARCH_GE || test == SEARCH_GT || search_has_two(test);
}

bool search_test_holds(const struct search_condition *condition, int64_t value)
{
    enum search_test test = condition->test;
    int64_t low = condition->values[0].integer, high = condition->values[search_has_two(test)].integer;
    bool is_listed = false;
    for (size_t i = 0; i < condition->list_count; i++)
        is_listed |= condition->list[i].integer == value;
    if (search_has_list(test))
        return is_listed == (test == SEARCH_IN);
    if (test == SEARCH_EQ)
        return value == low;
    bool is_over =
        test == SEARCH_GT || test == SEARCH_GTLE || test == SEARCH_GTLT ? value > low : value >= low;
    bool is_under =
        test == SEARCH_LT || test == SEARCH_GELT || test == SEARCH_GTLT ? value < high : value <= high;
    return (is_over || !search_test_has_least(condition)) &&
           (is_under || test == SEARCH_GE || test == SEARCH_GT);
}
