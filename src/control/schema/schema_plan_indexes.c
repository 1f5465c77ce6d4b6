/* schema_plan_indexes: an index is created without stopping writers; one whose creation was interrupted is
 * not valid, and is dropped first. */
#include "control/schema/schema_plan_indexes.h"

#include <string.h>

#include "control/message.h"
#include "model/schema/schema.h"

static bool is_complete(const struct planning *planning, struct bytes index_name)
{
    const struct index *index = schema_catalog_index(&planning->catalog, index_name);
    return index && index->is_valid;
}

bool schema_plan_indexes_has(struct planning *planning, struct side_name name,
                             const struct schema_field *field)
{
    return is_complete(planning, schema_planning_table(planning->arena, "v", name, field->name));
}

static const struct schema_index *find_same(const struct schema_item *item, const struct schema_index *index)
{
    for (size_t i = 0; item && i < item->index_count; i++)
        if (schema_index_is_same(&item->indexes[i], index))
            return &item->indexes[i];
    return NULL;
}

void schema_plan_indexes_keep(struct planning *planning, const struct schema_item *wanted,
                              const struct schema_item *applied, struct schema_item *kept)
{
    struct schema_index *indexes = ARENA_ARRAY(planning->arena, struct schema_index, wanted->index_count);
    kept->index_count = 0;
    for (size_t i = 0; i < wanted->index_count; i++) {
        const struct schema_index *index = &wanted->indexes[i];
        bool is_kept = find_same(applied, index) != NULL;
        for (size_t f = 0; f < index->count; f++)
            is_kept = is_kept && schema_find_field(kept, index->fields[f].name);
        if (is_kept)
            indexes[kept->index_count++] = *index;
    }
    kept->indexes = indexes;
}

/* Is it there, and does it stay: no round drops a column of it? */
static bool stays(struct planning *planning, struct side_name name, const struct schema_index *index,
                  const struct schema_item *kept)
{
    return find_same(kept, index) &&
           is_complete(planning, schema_sql_index_name(planning->arena, name, index));
}

void schema_plan_indexes_building(struct planning *planning, struct side_name name,
                                  const struct schema_item *item, const struct schema_item *kept,
                                  struct builder *words)
{
    for (size_t i = 0; i < item->index_count; i++) {
        struct bytes word = schema_index_word(planning->arena, &item->indexes[i]);
        if (stays(planning, name, &item->indexes[i], kept) &&
            !schema_planning_has_word(planning->arena, planning->plan->building, name, word))
            continue;
        builder_printf(words, "%s%.*s.%.*s.%.*s", words->size ? " " : "", (int)name.class.size,
                       name.class.data, (int)name.item.size, name.item.data, (int)word.size, word.data);
    }
}

/* `is_kept`: what the catalogue has under this name is not dropped with its column before. */
static void add_index(struct planning *planning, struct bytes index_name, bool is_kept, struct builder *sql)
{
    const struct index *index = schema_catalog_index(&planning->catalog, index_name);
    if (index && !index->is_valid && is_kept) {
        struct builder *drop = schema_planning_text(planning);
        builder_printf(drop, "drop index concurrently if exists stampd.\"%s\";\n", index_name.data);
        schema_planning_add(planning, STEP_ALONE, "dropping an index that was not completed", drop);
    }
    schema_planning_add(planning, STEP_ALONE,
                        arena_printf(planning->arena, "creating index %s", index_name.data), sql);
}

/* Likeness is computed by an extension of PostgreSQL, which is made once. */
static void add_extension(struct planning *planning)
{
    struct builder *sql = schema_planning_text(planning);
    builder_add_text(sql, "create extension if not exists pg_trgm with schema public;\n");
    schema_planning_add(planning, STEP_ALONE, "creating the extension pg_trgm", sql);
    planning->catalog.has_trigrams = true;
}

static bool has_likeness(const struct schema *schema)
{
    for (size_t c = 0; c < schema->class_count; c++)
        for (size_t i = 0; i < schema->classes[c].item_count; i++)
            for (size_t n = 0; n < schema->classes[c].items[i].index_count; n++)
                if (schema->classes[c].items[i].indexes[n].is_likeness)
                    return true;
    return false;
}

bool schema_plan_indexes_may(struct planning *planning, struct pg *pg, const struct schema *wanted)
{
    struct pg_result *row;
    if (!has_likeness(wanted))
        return true;
    if (!control_query(planning->control, pg, "looking for the extension pg_trgm",
                       "select current_database()::text, coalesce((select n.nspname from pg_extension e join"
                       " pg_namespace n on n.oid = e.extnamespace where e.extname = 'pg_trgm'), '')::text,"
                       " exists (select from pg_available_extensions where name = 'pg_trgm'),"
                       " has_database_privilege(current_database(), 'create') and "
                       "has_schema_privilege('public', 'create')",
                       NULL, &row))
        return false;
    const char *database = pg_get_text(row, 0, 0).data, *schema = pg_get_text(row, 0, 1).data;
    planning->catalog.has_trigrams = strcmp(schema, "public") == 0;
    if (planning->catalog.has_trigrams)
        return true;
    if (*schema)
        return message_refuse("indexes for likeness: the extension pg_trgm is in the schema %s: run"
                              " psql -d %s -c 'alter extension pg_trgm set schema public'",
                              schema, database);
    if (!pg_get_bool(row, 0, 2))
        return message_refuse("indexes for likeness: PostgreSQL has no extension pg_trgm: install its package"
                              " of additional modules, such as postgresql-contrib");
    return pg_get_bool(row, 0, 3) ||
           message_refuse("indexes for likeness: this role may not create the extension pg_trgm: as a"
                          " superuser run psql -d %s -c 'create extension pg_trgm schema public'",
                          database);
}

/* Returns whether there are some. */
static bool add_missing(struct planning *planning, struct side_name name, const struct schema_item *item,
                        const struct schema_item *kept)
{
    bool is_changed = false;
    for (size_t f = 0; f < item->field_count; f++) {
        const struct schema_field *field = &item->fields[f];
        bool is_kept = schema_find_field(kept, field->name) != NULL;
        if (is_kept && schema_plan_indexes_has(planning, name, field))
            continue;
        struct builder *sql = schema_planning_text(planning);
        schema_sql_index(sql, name, field);
        add_index(planning, schema_planning_table(planning->arena, "v", name, field->name), is_kept, sql);
        is_changed = true;
    }
    for (size_t i = 0; i < item->index_count; i++) {
        const struct schema_index *index = &item->indexes[i];
        if (stays(planning, name, index, kept))
            continue;
        struct builder *sql = schema_planning_text(planning);
        struct bytes index_name = schema_sql_index_name(planning->arena, name, index);
        if (index->is_likeness && !planning->catalog.has_trigrams)
            add_extension(planning);
        schema_sql_several(sql, name, index, index_name);
        add_index(planning, index_name, true, sql);
        is_changed = true;
    }
    return is_changed;
}

void schema_plan_indexes_add(struct planning *planning, struct side_name name, const struct schema_item *item,
                             const struct schema_item *kept, void *unused UNUSED)
{
    if (!add_missing(planning, name, item, kept))
        return;
    struct builder *analyze = schema_planning_text(planning);
    builder_printf(analyze, "analyze stampd.\"x_%.*s_%.*s\";\n", (int)name.class.size, name.class.data,
                   (int)name.item.size, name.item.data);
    schema_planning_add(planning, STEP_ALONE, "collecting statistics", analyze);
    for (size_t f = 0; f < item->field_count; f++)
        if (item->fields[f].is_list) {
            struct builder *list = schema_planning_text(planning);
            builder_printf(list, "analyze stampd.\"%s\";\n",
                           schema_planning_table(planning->arena, "x", name, item->fields[f].name).data);
            schema_planning_add(planning, STEP_ALONE, "collecting statistics", list);
        }
}

static bool is_declared(struct planning *planning, const struct schema *wanted, struct bytes index_name)
{
    for (size_t c = 0; c < wanted->class_count; c++)
        for (size_t i = 0; i < wanted->classes[c].item_count; i++) {
            const struct schema_item *item = &wanted->classes[c].items[i];
            const struct side_name name = {wanted->classes[c].name, item->name};
            for (size_t n = 0; n < item->index_count; n++)
                if (bytes_equal(index_name, schema_sql_index_name(planning->arena, name, &item->indexes[n])))
                    return true;
        }
    return false;
}

void schema_plan_indexes_drop(struct planning *planning, const struct schema *wanted)
{
    const struct catalog *catalog = &planning->catalog;
    for (size_t i = 0; i < catalog->index_count; i++) {
        struct bytes index_name = catalog->indexes[i].name;
        if (*index_name.data != 'n' || is_declared(planning, wanted, index_name))
            continue;
        struct builder *sql = schema_planning_text(planning);
        builder_printf(sql, "drop index concurrently if exists stampd.\"%.*s\";\n", (int)index_name.size,
                       index_name.data);
        schema_planning_add(planning, STEP_ALONE, "dropping an index that is no longer declared", sql);
    }
}
