/* schema_sql: texts only.  Names of classes and fields were checked when the schema was read: they hold
 * letters, digits and '_' and stand between quotes here. */
#include "control/schema/schema_sql.h"

#include <string.h>

#include "base/coding/hash.h"
#include "control/message.h"
#include "edge/pg/pg.h"
#include "edge/pg/pg_describe.h"

/* printf's arguments for "%.*s_%.*s". */
#define SIDE(name) (int)(name).class.size, (name).class.data, (int)(name).item.size, (name).item.data
#define TEXT(text) (int)(text).size, (text).data

static const struct {
    const char *sql, *read, *read_list;
} types[FIELD_TYPES] = {
    [FIELD_STRING] = {"text", "export_string", "export_strings"},
    [FIELD_LONG] = {"bigint", "export_long", "export_longs"},
    [FIELD_INT] = {"integer", "export_int", "export_ints"},
    [FIELD_DOUBLE] = {"double precision", "export_double", "export_doubles"},
    [FIELD_HASH] = {"text", "property_text", "property_texts"},
    [FIELD_FOLDED] = {"text", "export_folded", "export_foldeds"},
    [FIELD_TEXT] = {"tsvector", NULL, NULL},
};

static const char *schema_sql_element(const struct schema_field *field)
{
    return types[field->type].sql;
}

const char *schema_sql_type(const struct schema_field *field)
{
    static const char *const lists[FIELD_TYPES] = {"text[]", "bigint[]", "integer[]", "double precision[]",
                                                   "text[]", "text[]",   NULL};
    return field->is_list ? lists[field->type] : types[field->type].sql;
}

void schema_sql_literal(struct builder *sql, struct bytes text)
{
    builder_add_text(sql, "'");
    for (size_t i = 0; i < text.size; i++) {
        if (text.data[i] == '\'')
            builder_add_text(sql, "'");
        builder_add(sql, text.data + i, 1);
    }
    builder_add_text(sql, "'");
}

static void add_grant(struct builder *sql, const char *role)
{
    builder_add_text(sql, "\" to ");
    pg_add_identifier(sql, bytes_of(role));
    builder_add_text(sql, ";\n");
}

void schema_sql_table(struct builder *sql, struct side_name name, const char *role)
{
    builder_printf(
        sql,
        "create table if not exists stampd.\"x_%.*s_%.*s\" (id text collate \"C\" not null, key text "
        "collate \"C\" not null, constraint \"k_%.*s_%.*s\" primary key (id, key));\n",
        SIDE(name), SIDE(name));
    builder_printf(sql, "grant select, insert, update, delete on stampd.\"x_%.*s_%.*s", SIDE(name));
    add_grant(sql, role);
}

/* Appends that of the column, which every order and comparison of its values has, and each index. */
static void add_collation(struct builder *sql, const struct schema_field *field)
{
    if (field->collate.data)
        builder_printf(sql, " collate pg_catalog.\"%.*s-x-icu\"", TEXT(field->collate));
    else if (field_type_is_text(field->type))
        builder_add_text(sql, " collate \"C\"");
}

static const char *collation_of_list(const struct schema_field *field)
{
    return field_type_is_text(field->type) ? " collate \"C\"" : "";
}

void schema_sql_column(struct builder *sql, struct side_name name, const struct schema_field *field,
                       const char *role)
{
    builder_printf(sql, "alter table stampd.\"x_%.*s_%.*s\" add column if not exists \"%.*s\" %s", SIDE(name),
                   TEXT(field->name), schema_sql_type(field));
    add_collation(sql, field);
    builder_add_text(sql, ";\n");
    if (!field->is_list)
        return;
    builder_printf(
        sql,
        "create table if not exists stampd.\"x_%.*s_%.*s_%.*s\" (id text collate \"C\" not null, key "
        "text collate \"C\" not null, value %s%s not null, constraint \"k_%.*s_%.*s_%.*s\" primary key (id, "
        "key, value));\n",
        SIDE(name), TEXT(field->name), schema_sql_element(field), collation_of_list(field), SIDE(name),
        TEXT(field->name));
    builder_printf(sql, "grant select, insert, update, delete on stampd.\"x_%.*s_%.*s_%.*s", SIDE(name),
                   TEXT(field->name));
    add_grant(sql, role);
}

/* The condition of a list's index is always true, and follows from each comparison of a value.  It keeps the
 * index from look-ups by id and key: a plan that is made while the table is empty would choose it, and read
 * all of it. */
void schema_sql_index(struct builder *sql, struct side_name name, const struct schema_field *field)
{
    if (field->text) { /* each commit pays for its own words */
        builder_printf(
            sql,
            "create index concurrently if not exists \"v_%.*s_%.*s_%.*s\" on stampd.\"x_%.*s_%.*s\" "
            "using gin (\"%.*s\") with (fastupdate = off);\n",
            SIDE(name), TEXT(field->name), SIDE(name), TEXT(field->name));
        return;
    }
    builder_printf(sql,
                   "create index concurrently if not exists \"v_%.*s_%.*s_%.*s\" on stampd.\"x_%.*s_%.*s",
                   SIDE(name), TEXT(field->name), SIDE(name));
    if (field->is_list)
        builder_printf(sql, "_%.*s\" (value, id, key) where value is not null;\n", TEXT(field->name));
    else
        builder_printf(sql, "\" (\"%.*s\", id, key);\n", TEXT(field->name));
}

/* The last field ascends, as id and key behind it do: the index is read backwards for the reverse. */
static bool descends(const struct schema_index *index, size_t field)
{
    return index->fields[field].is_descending != index->fields[index->count - 1].is_descending;
}

/* Names of fields are too long to stand in it. */
struct bytes schema_sql_index_name(struct arena *arena, struct side_name name,
                                   const struct schema_index *index)
{
    uint64_t hash = HASH_START;
    for (size_t i = 0; i < index->count; i++)
        hash = hash_more(hash_more(hash, index->is_likeness   ? BYTES(",~")
                                         : descends(index, i) ? BYTES(",-")
                                                              : BYTES(",")),
                         index->fields[i].name);
    return bytes_of(arena_printf(arena, "n_%.*s_%.*s_%016llx", SIDE(name), (unsigned long long)hash));
}

void schema_sql_several(struct builder *sql, struct side_name name, const struct schema_index *index,
                        struct bytes index_name)
{
    builder_printf(sql, "create index concurrently if not exists \"%.*s\" on stampd.\"x_%.*s_%.*s\" ",
                   TEXT(index_name), SIDE(name));
    if (index->is_likeness) { /* each commit pays for its own strings */
        builder_printf(sql, "using gin (\"%.*s\" public.gin_trgm_ops) with (fastupdate = off);\n",
                       TEXT(index->fields[0].name));
        return;
    }
    builder_add_text(sql, "(");
    for (size_t i = 0; i < index->count; i++)
        builder_printf(sql, "\"%.*s\"%s, ", TEXT(index->fields[i].name), descends(index, i) ? " desc" : "");
    builder_add_text(sql, "id, key);\n");
}

void schema_sql_view(struct builder *sql, struct side_name name, const struct schema_item *item,
                     bool has_ends)
{
    builder_printf(sql, "drop view if exists stampd.\"item_%.*s_%.*s\";\n", SIDE(name));
    builder_printf(
        sql,
        "create view stampd.\"item_%.*s_%.*s\" as select i.class, i.id, i.iclass, i.key, i.version, "
        "i.vop, i.content",
        SIDE(name));
    for (size_t i = 0; i < item->field_count; i++)
        builder_printf(sql, ", x.\"%.*s\"", TEXT(item->fields[i].name));
    builder_printf(
        sql,
        " from stampd.\"x_%.*s_%.*s\" x join stampd.item i on i.class = '%.*s' and i.id = x.id and "
        "i.iclass = '%.*s' and i.key = x.key",
        SIDE(name), TEXT(name.class), TEXT(name.item));
    if (has_ends)
        builder_printf(
            sql,
            " where not exists (select 1 from stampd.expiry e where e.class = '%.*s' and e.id = x.id "
            "and e.until <= floor(extract(epoch from now()) / 60)::bigint)",
            TEXT(name.class));
    builder_add_text(sql, ";\n");
}

/* --- functions ----------------------------------------------------------------------------------- */

/* All of them look up each item separately, behind `offset 0`: whatever the statistics, the planner must not
 * begin with a table and compare it with the list of items.
 *
 * A field may have any name.  So parameters are $1 and $2 here, which no column can hide (their names in the
 * heads of the functions are part of existing databases), and every column is qualified by its table. */

/* Rows of items that no longer exist. */
static void add_removal(struct builder *sql, struct side_name name)
{
    builder_printf(
        sql,
        "  delete from stampd.\"x_%.*s_%.*s\" d where d.ctid = any (array(select l.ctid\n"
        "    from unnest($1, $2) u(id, key) cross join lateral (\n"
        "      select x.ctid from stampd.\"x_%.*s_%.*s\" x where x.id = u.id and x.key = u.key offset 0) l\n"
        "    where not exists (select from stampd.item i where i.class = '%.*s' and i.id = u.id\n"
        "      and i.iclass = '%.*s' and i.key = u.key and i.content is not null and not i.raw offset "
        "0)));\n",
        SIDE(name), SIDE(name), TEXT(name.class), TEXT(name.item));
}

static void add_names(struct builder *sql, const struct schema_item *item, const char *before)
{
    for (size_t i = 0; i < item->field_count; i++)
        builder_printf(sql, "%s%s\"%.*s\"", i ? ", " : "", before, TEXT(item->fields[i].name));
}

/* The names of a path as they stand in a function's body, between dollars: whatever they hold, only letters,
 * digits and blanks stand for themselves. */
static void add_path(struct builder *sql, const struct schema_path *path)
{
    for (size_t i = 0; i < path->count; i++) {
        builder_add_bytes(sql, bytes_of(i ? ", E'" : "array[E'"));
        for (size_t c = 0; c < path->members[i].size; c++) {
            unsigned char byte = (unsigned char)path->members[i].data[c];
            bool is_plain = (byte >= 'a' && byte <= 'z') || (byte >= 'A' && byte <= 'Z') ||
                            (byte >= '0' && byte <= '9') || byte == '_' || byte == ' ';
            builder_printf(sql, is_plain ? "%c" : "\\x%02x", byte);
        }
        builder_add_text(sql, "'");
    }
    builder_add_text(sql, "]");
}

static bool has_paths(const struct schema_text *words)
{
    bool has_some = false;
    for (size_t i = 0; i < words->count; i++)
        has_some |= words->paths[i] != NULL;
    return has_some;
}

/* The object whose members have the texts: the content, or, if some are within others, one made of these. */
static void add_texts(struct builder *sql, const struct schema_text *words)
{
    if (!has_paths(words)) {
        builder_add_text(sql, "stampd.export_object(i.content)");
        return;
    }
    for (size_t i = 0; i < words->count; i++) {
        const struct schema_path alone = {.members = {words->members[i]}, .count = 1};
        const struct schema_path *path = words->paths[i] ? words->paths[i] : &alone;
        builder_printf(sql, "%s'%zu', coalesce(stampd.export_each(i.content, '', ",
                       i ? ", " : "json_build_object(", i);
        add_path(sql, path);
        builder_add_text(sql, "), stampd.export_at(i.content, '', ");
        add_path(sql, path);
        builder_add_text(sql, "))");
    }
    builder_add_text(sql, ")");
}

static void add_words(struct builder *sql, const struct schema_text *words)
{
    builder_add_text(sql, ", stampd.export_text(");
    add_texts(sql, words);
    for (size_t i = 0; i < words->count; i++) {
        builder_add_bytes(sql, bytes_of(i ? ", " : ", array["));
        if (has_paths(words))
            builder_printf(sql, "'%zu'", i);
        else
            builder_printf(sql, "'%.*s'", TEXT(words->members[i]));
    }
    builder_printf(sql, "], 'pg_catalog.%.*s')", TEXT(words->language));
}

static void add_value(struct builder *sql, const struct schema_field *field)
{
    if (!field->path) {
        builder_printf(sql, "v.\"%.*s\"", TEXT(field->name));
        return;
    }
    builder_printf(sql, "stampd.%s(i.content, '%.*s', ", field->is_list ? "export_each" : "export_at",
                   TEXT(field->name));
    add_path(sql, field->path);
    builder_add_text(sql, ")");
}

/* Adds the members that are columns of the record of a content; false: there are none. */
static bool add_record(struct builder *sql, const struct schema_item *item)
{
    bool has_some = false;
    for (size_t f = 0; f < item->field_count; f++) {
        const struct schema_field *field = &item->fields[f];
        if (field->path || field->text)
            continue;
        builder_printf(
            sql, "%s\"%.*s\" json",
            has_some ? ", " : "\n    cross join lateral json_to_record(stampd.export_object(i.content)) v(",
            TEXT(field->name));
        has_some = true;
    }
    return has_some;
}

static void add_upsert(struct builder *sql, struct side_name name, const struct schema_item *item)
{
    builder_printf(sql, "  insert into stampd.\"x_%.*s_%.*s\" as x (id, key, ", SIDE(name));
    add_names(sql, item, "");
    builder_add_text(sql, ")\n    select i.id, i.key");
    for (size_t f = 0; f < item->field_count; f++) {
        const struct schema_field *field = &item->fields[f];
        if (field->text) {
            add_words(sql, field->text);
            continue;
        }
        builder_printf(sql, ", stampd.%s(",
                       field->is_list ? types[field->type].read_list : types[field->type].read);
        add_value(sql, field);
        builder_add_text(sql, ")");
    }
    builder_printf(
        sql,
        "\n    from unnest($1, $2) u(id, key) cross join lateral (\n"
        "      select t.id, t.key, t.content from stampd.item t where t.class = '%.*s' and t.id = u.id\n"
        "        and t.iclass = '%.*s' and t.key = u.key and t.content is not null and not t.raw offset 0) i",
        TEXT(name.class), TEXT(name.item));
    builder_add_bytes(sql, bytes_of(add_record(sql, item) ? ")" : ""));
    builder_add_text(sql, "\n    on conflict (id, key) do update set ");
    for (size_t f = 0; f < item->field_count; f++)
        builder_printf(sql, "%s\"%.*s\" = excluded.\"%.*s\"", f ? ", " : "", TEXT(item->fields[f].name),
                       TEXT(item->fields[f].name));
    builder_add_text(sql, "\n      where (");
    add_names(sql, item, "x.");
    builder_add_text(sql, ") is distinct from (");
    add_names(sql, item, "excluded.");
    builder_add_text(sql, ");\n");
}

static void add_elements(struct builder *sql, struct side_name name, const struct schema_field *field)
{
    builder_printf(
        sql,
        "  delete from stampd.\"x_%.*s_%.*s_%.*s\" d where d.ctid = any (array(select l.ctid\n"
        "    from unnest($1, $2) u(id, key) cross join lateral (select e.ctid, e.value\n"
        "      from stampd.\"x_%.*s_%.*s_%.*s\" e where e.id = u.id and e.key = u.key offset 0) l\n"
        "    where not exists (select from stampd.\"x_%.*s_%.*s\" x where x.id = u.id and x.key = u.key\n"
        "      and l.value = any (x.\"%.*s\") offset 0)));\n",
        SIDE(name), TEXT(field->name), SIDE(name), TEXT(field->name), SIDE(name), TEXT(field->name));
    builder_printf(sql,
                   "  insert into stampd.\"x_%.*s_%.*s_%.*s\" (id, key, value)\n"
                   "    select u.id, u.key, w.value from unnest($1, $2) u(id, key) cross join lateral (\n"
                   "      select x.\"%.*s\" as list from stampd.\"x_%.*s_%.*s\" x\n"
                   "        where x.id = u.id and x.key = u.key offset 0) l\n"
                   "    cross join lateral unnest(l.list) w(value)\n"
                   "    on conflict (id, key, value) do nothing;\n",
                   SIDE(name), TEXT(field->name), TEXT(field->name), SIDE(name));
}

static void add_wipe(struct builder *sql, struct side_name name, const struct schema_item *item)
{
    builder_printf(sql,
                   "create or replace function stampd.\"x_%.*s_%.*s_wipe\"(ids text[]) returns void language "
                   "plpgsql as $$\n"
                   "#variable_conflict use_variable\n"
                   "begin\n"
                   "  delete from stampd.\"x_%.*s_%.*s\" x where x.id = any ($1);\n",
                   SIDE(name), SIDE(name));
    for (size_t f = 0; f < item->field_count; f++)
        if (item->fields[f].is_list)
            builder_printf(sql, "  delete from stampd.\"x_%.*s_%.*s_%.*s\" e where e.id = any ($1);\n",
                           SIDE(name), TEXT(item->fields[f].name));
    builder_add_text(sql, "end $$;\n");
}

void schema_sql_functions(struct builder *sql, struct side_name name, const struct schema_item *item,
                          const char *role)
{
    builder_printf(
        sql,
        "create or replace function stampd.\"x_%.*s_%.*s_write\"(ids text[], keys text[]) returns void "
        "language plpgsql as $$\n"
        "#variable_conflict use_column\n"
        "begin\n",
        SIDE(name));
    add_removal(sql, name);
    add_upsert(sql, name, item);
    for (size_t f = 0; f < item->field_count; f++)
        if (item->fields[f].is_list)
            add_elements(sql, name, &item->fields[f]);
    builder_add_text(sql, "end $$;\n");
    add_wipe(sql, name, item);
    builder_printf(sql,
                   "revoke execute on function stampd.\"x_%.*s_%.*s_write\"(text[], text[]), "
                   "stampd.\"x_%.*s_%.*s_wipe\"(text[]) from public;\n",
                   SIDE(name), SIDE(name));
    builder_printf(sql,
                   "grant execute on function stampd.\"x_%.*s_%.*s_write\"(text[], text[]), "
                   "stampd.\"x_%.*s_%.*s_wipe\"(text[]) to ",
                   SIDE(name), SIDE(name));
    pg_add_identifier(sql, bytes_of(role));
    builder_add_text(sql, ";\n");
}

void schema_sql_drop_functions(struct builder *sql, struct side_name name)
{
    builder_printf(sql,
                   "drop function if exists stampd.\"x_%.*s_%.*s_write\"(text[], text[]), "
                   "stampd.\"x_%.*s_%.*s_wipe\"(text[]);\n",
                   SIDE(name), SIDE(name));
    builder_printf(sql, "drop view if exists stampd.\"item_%.*s_%.*s\";\n", SIDE(name));
}

/* The text of a search is the only text here that is not ours.  PostgreSQL reads it
 * alone first, as one statement; so it cannot end the brackets in which it stands afterwards.  Every
 * statement is sent by the extended protocol, in which a text cannot have two. */

#define SCHEMA_SEARCHES_SQL_TEXT(text) (int)(text).size, (text).data

static bool refuse(const struct named_search *search, const char *member, const char *why)
{
    return message_refuse("searches.%.*s.%s: %s", SCHEMA_SEARCHES_SQL_TEXT(search->name), member, why);
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
                                   SCHEMA_SEARCHES_SQL_TEXT(wanted->name),
                                   SCHEMA_SEARCHES_SQL_TEXT(found->name)));
    if (found->type == named_search_sql_oid(wanted))
        return true;
    if (!control_query(control, pg, "reading the name of a type", "select format_type($1::bigint::oid, null)",
                       PG_PARAMS(arena, PG_I64(found->type)), &row))
        return false;
    return refuse(search, member,
                  arena_printf(arena, "%s is %s; the column \"%.*s\" of the SQL is %.*s: cast it",
                               named_search_type_name(wanted), named_search_sql_type(wanted),
                               SCHEMA_SEARCHES_SQL_TEXT(wanted->name),
                               SCHEMA_SEARCHES_SQL_TEXT(pg_get_text(row, 0, 0))));
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
    uint32_t oids[NAMED_SEARCH_PARAMS_MOST];
    for (size_t i = 0; i < search->param_count; i++)
        oids[i] = named_search_sql_oid(&search->params[i]);
    const char *sql = arena_copy(arena, search->sql.data, search->sql.size);
    if (pg_describe(pg, arena, sql, oids, (int)search->param_count, &description))
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
                       PG_PARAMS(control->arena,
                                 PG_TEXT(bytes_of(arena_printf(control->arena, "q_%.*s",
                                                               SCHEMA_SEARCHES_SQL_TEXT(search->name))))),
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
    builder_printf(&name, "function stampd.\"q_%.*s%s\"", SCHEMA_SEARCHES_SQL_TEXT(search->name), suffix);
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
