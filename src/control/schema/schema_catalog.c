/* schema_catalog: reads PostgreSQL's own tables and those that record how far an apply has come. */
#include "control/schema/schema_catalog.h"

#include <string.h>

#include "base/clock.h"
#include "control/message.h"

static bool read_columns(struct control *control, struct pg *pg, struct catalog *catalog)
{
    struct pg_result *rows;
    if (!control_query(control, pg, "reading the side tables",
                       "select c.relname::text, a.attname::text, format_type(a.atttypid, a.atttypmod)"
                       " from pg_class c join pg_attribute a on a.attrelid = c.oid"
                       " where c.relnamespace = 'stampd'::regnamespace and c.relkind = 'r'"
                       " and c.relname ~ '^x_[A-Z][A-Za-z0-9]*_[A-Z]' and a.attnum > 0 and not a.attisdropped"
                       " order by c.relname collate \"C\", a.attnum",
                       NULL, &rows))
        return false;
    catalog->column_count = (size_t)pg_rows(rows);
    catalog->columns = ARENA_ARRAY(control->arena, struct catalog_column, catalog->column_count);
    for (int row = 0; row < pg_rows(rows); row++)
        catalog->columns[row] = (struct catalog_column){pg_get_text(rows, row, 0), pg_get_text(rows, row, 1),
                                                        pg_get_text(rows, row, 2)};
    return true;
}

static bool read_indexes(struct control *control, struct pg *pg, struct catalog *catalog)
{
    struct pg_result *rows;
    if (!control_query(
            control, pg, "reading the indexes",
            "select c.relname::text, i.indisvalid from pg_class c join pg_index i on i.indexrelid ="
            " c.oid where c.relnamespace = 'stampd'::regnamespace and c.relname ~ '^[nv]_[A-Z]'",
            NULL, &rows))
        return false;
    catalog->index_count = (size_t)pg_rows(rows);
    catalog->indexes = ARENA_ARRAY(control->arena, struct index, catalog->index_count);
    for (int row = 0; row < pg_rows(rows); row++)
        catalog->indexes[row] = (struct index){pg_get_text(rows, row, 0), pg_get_bool(rows, row, 1)};
    if (!control_query(control, pg, "reading how far tables are filled",
                       "select class, iclass from stampd.schema_fill", NULL, &rows))
        return false;
    catalog->fill_count = (size_t)pg_rows(rows);
    catalog->fills = ARENA_ARRAY(control->arena, struct side_name, catalog->fill_count);
    for (int row = 0; row < pg_rows(rows); row++)
        catalog->fills[row] = (struct side_name){pg_get_text(rows, row, 0), pg_get_text(rows, row, 1)};
    return true;
}

static bool read_texts(struct control *control, struct pg *pg, const char *doing, const char *sql,
                       struct bytes **texts_r, size_t *count_r)
{
    struct pg_result *rows;
    if (!control_query(control, pg, doing, sql, NULL, &rows))
        return false;
    *count_r = (size_t)pg_rows(rows);
    *texts_r = ARENA_ARRAY(control->arena, struct bytes, *count_r);
    for (int row = 0; row < pg_rows(rows); row++)
        (*texts_r)[row] = pg_get_text(rows, row, 0);
    return true;
}

static bool read_followed(struct control *control, struct pg *pg, struct catalog *catalog)
{
    return read_texts(control, pg, "reading the collections",
                      "select class || '.' || name || case when is_list then ' list ' else ' of ' end"
                      " || array_to_string(keys, ' ') from stampd.collection where is_ready"
                      " union all select class || '.' || name || case when is_global then ' global ' else"
                      " ' unique ' end || array_to_string(keys, ' ')"
                      " from stampd.unique_property where is_ready union all select class || '. ends ' ||"
                      " property from stampd.expiry_property where is_ready",
                      &catalog->followed, &catalog->followed_count);
}

static bool read_searches(struct control *control, struct pg *pg, struct catalog *catalog)
{
    return read_texts(control, pg, "reading the searches",
                      "select substr(p.proname, 3)::text from pg_proc p join pg_roles r on r.oid = p.proowner"
                      " where p.pronamespace = 'stampd'::regnamespace and p.proname ~ '^q_[A-Za-z0-9]+_run$'"
                      " and r.rolname = 'stampd_search'",
                      &catalog->searches, &catalog->search_count);
}

const struct catalog_column *schema_catalog_column(const struct catalog *catalog, struct bytes table,
                                                   struct bytes name)
{
    for (size_t i = 0; i < catalog->column_count; i++)
        if (bytes_equal(catalog->columns[i].table, table) && bytes_equal(catalog->columns[i].name, name))
            return &catalog->columns[i];
    return NULL;
}

const struct index *schema_catalog_index(const struct catalog *catalog, struct bytes name)
{
    for (size_t i = 0; i < catalog->index_count; i++)
        if (bytes_equal(catalog->indexes[i].name, name))
            return &catalog->indexes[i];
    return NULL;
}

bool schema_catalog_fills(const struct catalog *catalog, struct bytes class, struct bytes item)
{
    for (size_t i = 0; i < catalog->fill_count; i++)
        if (bytes_equal(catalog->fills[i].class, class) && bytes_equal(catalog->fills[i].item, item))
            return true;
    return false;
}

static bool read_collations(struct control *control, struct pg *pg, struct catalog *catalog)
{
    return read_texts(control, pg, "reading the collations",
                      "select left(collname::text, -6) from pg_collation where collprovider = 'i'"
                      " and collisdeterministic and collnamespace = 'pg_catalog'::regnamespace"
                      " and collname like '%-x-icu'",
                      &catalog->collations, &catalog->collation_count);
}

bool schema_catalog_read(struct control *control, struct pg *pg, struct catalog *catalog_r)
{
    *catalog_r = (struct catalog){0};
    return read_columns(control, pg, catalog_r) && read_indexes(control, pg, catalog_r) &&
           read_followed(control, pg, catalog_r) && read_searches(control, pg, catalog_r) &&
           read_collations(control, pg, catalog_r);
}

/* --- schema planning --- */

struct builder *schema_planning_text(struct planning *planning)
{
    struct builder *text = ARENA_NEW(planning->arena, struct builder);
    arena_defer(planning->arena, (void (*)(void *))builder_free, text);
    return text;
}

void schema_planning_add(struct planning *planning, enum step_kind kind, const char *what,
                         struct builder *sql)
{
    struct schema_plan *plan = planning->plan;
    ARENA_GROW(planning->arena, plan->steps, plan->count, planning->capacity);
    if (sql)
        builder_add(sql, "", 1);
    plan->steps[plan->count++] = (struct step){.kind = kind, .what = what, .sql = sql ? sql->data : NULL};
}

struct bytes schema_planning_table(struct arena *arena, const char *prefix, struct side_name name,
                                   struct bytes field)
{
    return bytes_of(arena_printf(arena, "%s_%.*s_%.*s%s%.*s", prefix, (int)name.class.size, name.class.data,
                                 (int)name.item.size, name.item.data, field.size ? "_" : "", (int)field.size,
                                 field.size ? field.data : ""));
}

bool schema_planning_has_word(struct arena *arena, struct bytes words, struct side_name name,
                              struct bytes field)
{
    const char *one = arena_printf(arena, " %.*s.%.*s.%.*s ", (int)name.class.size, name.class.data,
                                   (int)name.item.size, name.item.data, (int)field.size, field.data);
    const char *all = arena_printf(arena, " %.*s ", (int)words.size, words.size ? words.data : "");
    return strstr(all, one) != NULL;
}

/* The transactions are those that hold a virtual transaction id now. */

enum { WAIT_PAUSE_MS = 20, REPORT_EVERY_MS = 5000 };

/* Transactions of this database that run now and began before.  Transactions that begin later read the
 * schema's new number; those that began before may not. */
bool schema_wait_for_older(struct control *control, struct pg *pg)
{
    struct pg_result *older, *left;
    if (!control_query(control, pg, "looking for older transactions",
                       "select coalesce(string_agg(l.virtualxid, ' '), '') from pg_locks l"
                       " join pg_stat_activity a on a.pid = l.pid and a.datname = current_database()"
                       " where l.locktype = 'virtualxid' and l.pid <> pg_backend_pid()"
                       " and a.backend_type = 'client backend'",
                       NULL, &older))
        return false;
    struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(pg_get_text(older, 0, 0)));
    for (int64_t reported_ms = clock_monotonic_ms();; clock_sleep_ms(WAIT_PAUSE_MS)) {
        if (!control_query(
                control, pg, "waiting for older transactions",
                "select count(*), coalesce(string_agg(pid::text, ', '), '') from pg_locks"
                " where locktype = 'virtualxid' and virtualxid = any (string_to_array($1::text, ' '))",
                params, &left))
            return false;
        if (pg_get_i64(left, 0, 0) == 0)
            return true;
        if (clock_monotonic_ms() - reported_ms < REPORT_EVERY_MS)
            continue;
        reported_ms = clock_monotonic_ms();
        struct bytes pids = pg_get_text(left, 0, 1);
        message_print("waiting for %lld earlier transactions of the processes %.*s",
                      (long long)pg_get_i64(left, 0, 0), (int)pids.size, pids.data);
    }
}
