/* named_search: names were checked when the schema was read: they hold letters, digits and '_', and stand
 * between quotes here.  The text of the search alone is not ours: it stands between brackets that PostgreSQL
 * has read it without. */
#include "model/schema/named_search.h"

#include <string.h>

#define TEXT(text) (int)(text).size, (text).data

static const struct {
    const char *name, *sql;
    uint32_t oid; /* its number in the catalog */
    const char *list_sql;
    uint32_t list_oid;
    bool is_of_params, is_of_columns;
} types[NAMED_TYPES] = {
    [NAMED_STRING] = {"string", "text", 25, "text[]", 1009, true, true},
    [NAMED_LONG] = {"long", "bigint", 20, "bigint[]", 1016, true, true},
    [NAMED_INT] = {"int", "integer", 23, NULL, 0, true, true},
    [NAMED_DOUBLE] = {"double", "double precision", 701, NULL, 0, true, true},
    [NAMED_BOOLEAN] = {"boolean", "boolean", 16, NULL, 0, true, true},
    [NAMED_JSON] = {"json", "json", 114, NULL, 0, false, true},
    [NAMED_ACCOUNT] = {"account", "text", 25, NULL, 0, true, false},
};

const char *named_search_type_name(const struct named_search_value *value)
{
    if (value->is_list)
        return value->type == NAMED_STRING ? "string[]" : "long[]";
    return types[value->type].name;
}

bool named_search_type_of(struct bytes name, bool is_param, struct named_search_value *value)
{
    bool is_list = name.size > 2 && memcmp(name.data + name.size - 2, "[]", 2) == 0;
    struct bytes word = {name.data, name.size - (is_list ? 2 : 0)};
    for (int type = 0; type < NAMED_TYPES; type++) {
        bool fits = is_param ? types[type].is_of_params && (!is_list || types[type].list_sql)
                             : types[type].is_of_columns && !is_list;
        if (!fits || !bytes_equal(word, bytes_of(types[type].name)))
            continue;
        value->type = (enum named_search_type)type;
        value->is_list = is_list;
        return true;
    }
    return false;
}

const char *named_search_sql_type(const struct named_search_value *value)
{
    return value->is_list ? types[value->type].list_sql : types[value->type].sql;
}

uint32_t named_search_sql_oid(const struct named_search_value *value)
{
    return value->is_list ? types[value->type].list_oid : types[value->type].oid;
}

void named_search_add_types(const struct named_search *search, struct builder *sql)
{
    builder_add_text(sql, "(");
    for (size_t i = 0; i < search->param_count; i++)
        builder_printf(sql, "%s, ", named_search_sql_type(&search->params[i]));
    builder_add_text(sql, "bigint)");
}

/* q."id", q."n" */
static void add_columns(const struct named_search *search, const char *before, struct builder *sql)
{
    for (size_t i = 0; i < search->column_count; i++)
        builder_printf(sql, "%s%s\"%.*s\"", i ? ", " : "", before, TEXT(search->columns[i].name));
}

/* The head of one of the functions, up to its language. */
static void add_function(const struct named_search *search, const char *suffix, struct builder *sql)
{
    builder_printf(sql, "create function stampd.\"q_%.*s%s\"", TEXT(search->name), suffix);
    named_search_add_types(search, sql);
    for (size_t i = 0; i < search->column_count; i++)
        builder_printf(sql, "%s\"%.*s\" %s", i ? ", " : " returns table (", TEXT(search->columns[i].name),
                       named_search_sql_type(&search->columns[i]));
    builder_add_text(sql, ") language ");
}

/* Stable and without settings of its own, so that the planner puts it in place of its call. */
void named_search_add_query(const struct named_search *search, struct builder *sql)
{
    add_function(search, "", sql);
    builder_add_text(sql, "sql stable begin atomic select ");
    add_columns(search, "q.", sql);
    builder_add_text(sql, " from (\n");
    builder_add_bytes(sql, search->sql); /* whose last line may be a comment */
    builder_printf(sql, "\n) q limit $%zu; end", search->param_count + 1);
}

/* In PL/pgSQL, which keeps the plan in the session.  One that runs as another role: within it PostgreSQL
 * refuses to change the role. */
void named_search_add_run(const struct named_search *search, struct builder *sql)
{
    add_function(search, "_run", sql);
    builder_add_text(sql, "plpgsql stable security definer set search_path = pg_catalog, pg_temp set "
                          "work_mem = '16MB' set max_parallel_workers_per_gather = 0 set jit = off as $run$\n"
                          "#variable_conflict use_column\n"
                          "begin return query select ");
    add_columns(search, "q.", sql);
    builder_printf(sql, " from stampd.\"q_%.*s\"(", TEXT(search->name));
    for (size_t i = 0; i <= search->param_count; i++)
        builder_printf(sql, "%s$%zu", i ? ", " : "", i + 1);
    builder_add_text(sql, ") q; end $run$");
}

/* Numbers and texts of the request are sent as what they are; a truth value is sent as a word. */
static void add_argument(const struct named_search_value *param, size_t place, struct builder *sql)
{
    const char *cast = param->type == NAMED_BOOLEAN ? "::text" : "";
    builder_printf(sql, "$%zu%s::%s, ", place, cast, named_search_sql_type(param));
}

void named_search_add_call(const struct named_search *search, struct builder *sql)
{
    size_t count = search->param_count;
    builder_printf(sql,
                   "select case when sum(octet_length(o.line) + 1) over (rows unbounded preceding) <= "
                   "$%zu::bigint then o.line end from (select (select row_to_json(r) from (select ",
                   count + 3);
    add_columns(search, "q.", sql);
    builder_printf(sql, ") r)::text as line from stampd.\"q_%.*s_run\"(", TEXT(search->name));
    for (size_t i = 0; i < count; i++)
        add_argument(&search->params[i], i + 1, sql);
    /* an argument is computed before the function is called */
    builder_printf(sql, "case when stampd.search_ready('%.*s', $%zu::bigint) then $%zu::bigint end) q(",
                   TEXT(search->name), count + 1, count + 2);
    add_columns(search, "", sql);
    builder_add_text(sql, ")) o");
}
