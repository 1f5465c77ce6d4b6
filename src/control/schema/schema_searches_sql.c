/* schema_searches_sql: the text of a search is the only text here that is not ours.  PostgreSQL reads it
 * alone first, as one statement; so it cannot end the brackets in which it stands afterwards.  Every
 * statement is sent by the extended protocol, in which a text cannot have two. */
#include "control/schema/schema_searches_sql.h"

#include <string.h>

#include "control/message.h"
#include "edge/pg/pg_describe.h"

#define TEXT(text) (int)(text).size, (text).data

static bool refuse(const struct named_search *search, const char *member, const char *why)
{
    return message_refuse("searches.%.*s.%s: %s", TEXT(search->name), member, why);
}

static const char *end_text(struct control *control, struct builder *text)
{
    const char *copy = arena_copy(control->arena, text->data, text->size);
    builder_free(text);
    return copy;
}

/* Compares a column of the text with the one that is declared in its place. */
static bool judge_column(struct control *control, struct pg *pg, const struct named_search *search,
                         const struct pg_column *found, size_t place)
{
    const struct named_search_value *wanted = &search->columns[place];
    struct arena *arena = control->arena;
    const char *member = arena_printf(arena, "result[%zu]", place);
    struct pg_result *row;
    if (!bytes_equal(found->name, wanted->name))
        return refuse(search, member,
                      arena_printf(arena, "the column \"%.*s\" is declared here, the SQL has \"%.*s\"",
                                   TEXT(wanted->name), TEXT(found->name)));
    if (found->type == named_search_sql_oid(wanted))
        return true;
    if (!control_query(control, pg, "reading the name of a type", "select format_type($1::bigint::oid, null)",
                       PG_PARAMS(arena, PG_I64(found->type)), &row))
        return false;
    return refuse(search, member,
                  arena_printf(arena, "%s is %s; the column \"%.*s\" of the SQL is %.*s: cast it",
                               named_search_type_name(wanted), named_search_sql_type(wanted),
                               TEXT(wanted->name), TEXT(pg_get_text(row, 0, 0))));
}

/* Why PostgreSQL does not take the text. */
static bool report_error(struct control *control, struct pg *pg, const struct named_search *search)
{
    const char *message = pg_message(pg);
    return refuse(search, "sql",
                  pg_position(pg) > 0 ? arena_printf(control->arena, "%s, at its character %lld", message,
                                                     (long long)pg_position(pg))
                                      : arena_copy(control->arena, message, strlen(message)));
}

static bool judge_text(struct control *control, struct pg *pg, const struct named_search *search)
{
    struct arena *arena = control->arena;
    struct pg_description description;
    uint32_t types[NAMED_SEARCH_PARAMS_MOST];
    for (size_t i = 0; i < search->param_count; i++)
        types[i] = named_search_sql_oid(&search->params[i]);
    const char *sql = arena_copy(arena, search->sql.data, search->sql.size);
    if (pg_describe(pg, arena, sql, types, (int)search->param_count, &description))
        return report_error(control, pg, search);
    if (!description.columns)
        return refuse(search, "sql", "one select is expected");
    if ((size_t)description.parameters > search->param_count)
        return refuse(search, "params",
                      arena_printf(arena, "the SQL has $%d, and %zu parameters are declared",
                                   description.parameters, search->param_count));
    if ((size_t)description.columns != search->column_count)
        return refuse(search, "result",
                      arena_printf(arena, "the SQL has %d columns, and %zu are declared", description.columns,
                                   search->column_count));
    for (size_t i = 0; i < search->column_count; i++)
        if (!judge_column(control, pg, search, &description.column[i], i))
            return false;
    return true;
}

static bool send_alone(struct control *control, struct pg *pg, const char *sql)
{
    return pg_prepare(pg, &(struct pg_statement){"", sql, 0}, 1) == FAULT_NONE &&
           pg_run(pg, &(struct pg_statement){"", sql, 0}, PG_NO_PARAMS(control->arena), NULL) == FAULT_NONE;
}

/* What the parsed body reads and calls. */
static bool judge_body(struct control *control, struct pg *pg, const struct named_search *search)
{
    struct pg_result *row;
    if (!control_query(control, pg, "checking a search", "select stampd.search_refusal($1::text)",
                       PG_PARAMS(control->arena, PG_TEXT(bytes_of(arena_printf(control->arena, "q_%.*s",
                                                                               TEXT(search->name))))),
                       &row))
        return false;
    if (pg_is_null(row, 0, 0))
        return true;
    struct bytes why = pg_get_text(row, 0, 0);
    return refuse(search, "sql", arena_copy(control->arena, why.data, why.size));
}

/* One of its two functions is run by `role` alone. */
static bool give(struct control *control, struct pg *pg, const struct named_search *search,
                 const char *suffix, const char *role)
{
    struct builder name = {0}, grant = {0};
    builder_printf(&name, "function stampd.\"q_%.*s%s\"", TEXT(search->name), suffix);
    named_search_add_types(search, &name);
    const char *function = end_text(control, &name);
    builder_printf(&grant, "grant execute on %s to ", function);
    pg_add_identifier(&grant, bytes_of(role));
    const char *owner =
        *suffix ? arena_printf(control->arena, "alter %s owner to stampd_search", function) : NULL;
    return send_alone(control, pg, arena_printf(control->arena, "revoke all on %s from public", function)) &&
           send_alone(control, pg, end_text(control, &grant)) && (!owner || send_alone(control, pg, owner));
}

static bool make(struct control *control, struct pg *pg, const struct named_search *search, const char *role)
{
    struct builder query = {0}, run = {0};
    if (!judge_text(control, pg, search))
        return false;
    named_search_add_query(search, &query);
    named_search_add_run(search, &run);
    const char *texts[] = {end_text(control, &query), end_text(control, &run)};
    if (!send_alone(control, pg, texts[0]))
        return report_error(control, pg, search);
    if (!judge_body(control, pg, search))
        return false;
    return (send_alone(control, pg, texts[1]) && give(control, pg, search, "", "stampd_search") &&
            give(control, pg, search, "_run", role)) ||
           report_error(control, pg, search);
}

bool schema_searches_sql_make(struct control *control, struct pg *pg, const struct schema *schema,
                              const char *role)
{
    if (!schema->search_count)
        return true;
    if (pg_execute(pg, "select stampd.search_rights(); set local search_path = pg_catalog, stampd, pg_temp;"
                       " grant create on schema stampd to stampd_search"))
        return message_refuse("making the role of searches: %s", pg_message(pg));
    for (size_t i = 0; i < schema->search_count; i++)
        if (!make(control, pg, &schema->searches[i], role))
            return false;
    return control_execute(pg, "making searches", "revoke create on schema stampd from stampd_search");
}
