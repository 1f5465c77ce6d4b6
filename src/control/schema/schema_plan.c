/* schema_plan: first removes what is not wanted, then adds what is missing.
 *
 * Each of the two begins with one transaction that changes what the workers write together with the number of
 * the schema, which every commit compares.  Then it waits for all transactions that began before; from then
 * on every commit writes, or no longer writes, the columns in question.  Only then is anything dropped, or
 * filled from existing documents, and only what is filled and has its index may be searched. */
#include "control/schema/schema_plan.h"

#include <string.h>

#include "control/message.h"
#include "control/schema/schema_plan_indexes.h"
#include "model/document/mutation.h"
#include "model/schema/schema_paths.h"
#include "model/schema/schema_searches.h"

bool schema_plan_read_applied(struct control *control, struct pg *pg, struct schema_plan *plan_r)
{
    struct pg_result *row;
    struct schema *applied;
    struct schema_problem problem;
    *plan_r = (struct schema_plan){0};
    if (!control_query(control, pg, "reading the schema that is applied",
                       "select number, content, building from stampd.schema where one", NULL, &row))
        return false;
    if (pg_rows(row) != 1 || schema_read(control->arena, pg_get_text(row, 0, 1), &applied, &problem))
        return message_refuse("the table schema was written by a later release of stampctl");
    applied->number = pg_get_i64(row, 0, 0);
    plan_r->applied = applied;
    plan_r->building = pg_get_text(row, 0, 2);
    return true;
}

/* --- comparing ----------------------------------------------------------------------------------- */

/* Does the database have the field as it is wanted here? */
static bool has_field(struct planning *planning, struct side_name name, const struct schema_field *field)
{
    const struct catalog *catalog = &planning->catalog;
    const struct catalog_column *column = schema_catalog_column(
        catalog, schema_planning_table(planning->arena, "x", name, NO_BYTES), field->name);
    if (!column || !bytes_equal(column->type, bytes_of(schema_sql_type(field))))
        return false;
    return !field->is_list ||
           schema_catalog_column(catalog, schema_planning_table(planning->arena, "x", name, field->name),
                                 BYTES("value")) != NULL;
}

/* The fields to keep: applied, wanted with the same type, and present. */
static const struct schema *find_kept(struct planning *planning, const struct schema *wanted)
{
    struct arena *arena = planning->arena;
    struct schema *kept = ARENA_NEW(arena, struct schema);
    struct schema_class *classes = ARENA_ARRAY(arena, struct schema_class, wanted->class_count);
    *kept = *wanted;
    kept->classes = classes;
    for (size_t c = 0; c < wanted->class_count; c++) {
        const struct schema_class *applied =
            schema_find_class(planning->plan->applied, wanted->classes[c].name);
        struct schema_item *items = ARENA_ARRAY(arena, struct schema_item, wanted->classes[c].item_count);
        classes[c] = wanted->classes[c];
        classes[c].items = items;
        for (size_t i = 0; i < classes[c].item_count; i++) {
            const struct schema_item *from = &wanted->classes[c].items[i];
            const struct schema_item *before = schema_find_item(applied, from->name);
            struct schema_field *fields = ARENA_ARRAY(arena, struct schema_field, from->field_count);
            const struct side_name name = {classes[c].name, from->name};
            items[i] = *from;
            items[i].fields = fields;
            items[i].field_count = 0;
            items[i].indexes = NULL;
            for (size_t f = 0; f < from->field_count; f++) {
                const struct schema_field *field = schema_find_field(before, from->fields[f].name);
                if (field && field->type == from->fields[f].type &&
                    field->is_list == from->fields[f].is_list &&
                    schema_texts_are_same(field->text, from->fields[f].text) &&
                    schema_paths_are_same(field->path, from->fields[f].path) &&
                    bytes_equal(field->collate, from->fields[f].collate) && has_field(planning, name, field))
                    fields[items[i].field_count++] = *field;
            }
            schema_plan_indexes_keep(planning, from, before, &items[i]);
        }
    }
    return kept;
}

static const struct schema_item *find_side(const struct schema *schema, struct side_name name)
{
    const struct schema_item *item = schema_find_item(schema_find_class(schema, name.class), name.item);
    return item && item->field_count ? item : NULL;
}

/* Splits a table's name into the parts between its underscores. */
static void split_table(struct bytes table, struct side_name *name_r, struct bytes *field_r)
{
    struct bytes parts[3] = {NO_BYTES, NO_BYTES, NO_BYTES};
    struct bytes rest = {table.data + 2, table.size - 2};
    for (size_t i = 0; i < COUNT_OF(parts) && rest.data; i++) {
        const char *end = i < 2 ? memchr(rest.data, '_', rest.size) : NULL;
        parts[i] = (struct bytes){rest.data, end ? (size_t)(end - rest.data) : rest.size};
        rest = end ? (struct bytes){end + 1, rest.size - parts[i].size - 1} : NO_BYTES;
    }
    *name_r = (struct side_name){parts[0], parts[1]};
    *field_r = parts[2];
}

/* Does `schema` account for this column? */
static bool is_expected(const struct schema *schema, const struct catalog_column *column)
{
    struct side_name name;
    struct bytes field_name;
    split_table(column->table, &name, &field_name);
    const struct schema_item *item = find_side(schema, name);
    if (!item)
        return false;
    if (field_name.size) {
        const struct schema_field *field = schema_find_field(item, field_name);
        return field && field->is_list;
    }
    return bytes_equal(column->name, BYTES("id")) || bytes_equal(column->name, BYTES("key")) ||
           schema_find_field(item, column->name);
}

/* --- steps --------------------------------------------------------------------------------------- */

/* Calls for each side table of the schema. */
static void
each_side(struct planning *planning, const struct schema *schema, const struct schema *kept, void *text,
          void (*function)(struct planning *planning, struct side_name name, const struct schema_item *item,
                           const struct schema_item *kept, void *text))
{
    for (size_t c = 0; c < schema->class_count; c++)
        for (size_t i = 0; i < schema->classes[c].item_count; i++) {
            const struct schema_item *item = &schema->classes[c].items[i];
            const struct side_name name = {schema->classes[c].name, item->name};
            if (item->field_count)
                function(planning, name, item, find_side(kept, name), text);
        }
}

static bool has_ends(const struct schema *schema, struct bytes class)
{
    const struct schema_class *found = schema_find_class(schema, class);
    return found && found->max_life.item;
}

/* Table, columns, functions and view of one side; skips what exists already. */
static void add_side_sql(struct planning *planning, struct side_name name, const struct schema_item *item,
                         const struct schema_item *kept, void *text)
{
    struct builder *sql = text;
    const struct schema_item *applied = find_side(planning->plan->applied, name);
    bool is_new = false;
    if (!kept)
        schema_sql_table(sql, name, planning->role);
    for (size_t f = 0; f < item->field_count; f++) {
        if (schema_find_field(kept, item->fields[f].name))
            continue;
        schema_sql_column(sql, name, &item->fields[f], planning->role);
        is_new = true;
    }
    schema_sql_functions(sql, name, item, planning->role);
    bool ends = has_ends(planning->plan->wanted, name.class);
    if (is_new || !applied || applied->field_count != item->field_count ||
        ends != has_ends(planning->plan->applied, name.class))
        schema_sql_view(sql, name, item, ends);
    if (!is_new)
        return;
    builder_printf(
        sql,
        "insert into stampd.schema_fill (class, iclass, after, done) values ('%.*s', '%.*s', '', 0)"
        " on conflict (class, iclass) do update set after = '', done = 0;\n",
        (int)name.class.size, name.class.data, (int)name.item.size, name.item.data);
}

/* Adds a word for each field that is not ready after this round. */
static void add_building(struct planning *planning, struct side_name name, const struct schema_item *item,
                         const struct schema_item *kept, void *text)
{
    struct builder *words = text;
    for (size_t f = 0; f < item->field_count; f++) {
        const struct schema_field *field = &item->fields[f];
        if (schema_find_field(kept, field->name) && schema_plan_indexes_has(planning, name, field) &&
            !schema_planning_has_word(planning->arena, planning->plan->building, name, field->name))
            continue;
        builder_printf(words, "%s%.*s.%.*s.%.*s", words->size ? " " : "", (int)name.class.size,
                       name.class.data, (int)name.item.size, name.item.data, (int)field->name.size,
                       field->name.data);
    }
    schema_plan_indexes_building(planning, name, item, kept, words);
}

/* Functions and views of sides that no longer exist. */
static void add_removals(struct planning *planning, const struct schema *schema, struct builder *sql)
{
    struct side_name last = {NO_BYTES, NO_BYTES};
    for (size_t i = 0; i < planning->catalog.column_count; i++) {
        struct side_name name;
        struct bytes field;
        split_table(planning->catalog.columns[i].table, &name, &field);
        bool is_known = bytes_equal(name.class, last.class) && bytes_equal(name.item, last.item);
        last = name;
        if (is_known || field.size || find_side(schema, name))
            continue;
        schema_sql_drop_functions(sql, name);
        builder_printf(sql, "delete from stampd.schema_fill where class = '%.*s' and iclass = '%.*s';\n",
                       (int)name.class.size, name.class.data, (int)name.item.size, name.item.data);
    }
}

/* Is the class to be rewritten in its newest release? */
static bool is_mutated(struct planning *planning, const struct schema_class *class, bool *is_begun_r)
{
    const struct schema_class *applied = schema_find_class(planning->plan->applied, class->name);
    *is_begun_r = schema_catalog_fills(&planning->catalog, class->name, BYTES("~"));
    bool is_new = !applied || applied->release < class->release;
    *is_begun_r = *is_begun_r && !is_new;
    return mutation_applies(class) && (is_new || *is_begun_r);
}

/* Words for the classes that are read through their mutations from this round on, and the start of their
 * rewriting. */
static void add_mutated(struct planning *planning, const struct schema *schema, struct builder *sql,
                        struct builder *words)
{
    bool is_begun, is_any = false;
    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        if (!is_mutated(planning, class, &is_begun))
            continue;
        builder_printf(words, "%s~%.*s", words->size ? " " : "", (int)class->name.size, class->name.data);
        is_any = true;
        if (!is_begun)
            builder_printf(
                sql,
                "insert into stampd.schema_fill (class, iclass, after, done) values ('%.*s', '~', '',"
                " 0) on conflict (class, iclass) do update set after = '', done = 0;\n",
                (int)class->name.size, class->name.data);
    }
    if (is_any) /* caches have copies of older releases */
        builder_add_text(sql, "select pg_notify('stampd', 'all');\n");
}

/* Rewrites the documents of these classes; with `is_counted_only` only returns how many classes. */
static size_t add_mutations(struct planning *planning, const struct schema *wanted, bool is_counted_only)
{
    size_t count = 0;
    for (size_t c = 0; c < wanted->class_count; c++) {
        const struct schema_class *class = &wanted->classes[c];
        bool is_begun;
        if (!is_mutated(planning, class, &is_begun))
            continue;
        count++;
        if (is_counted_only)
            continue;
        schema_planning_add(planning, STEP_FILL,
                            arena_printf(planning->arena, "rewriting the documents of %.*s in release %lld",
                                         (int)class->name.size, class->name.data, (long long)class->release),
                            NULL);
        planning->plan->steps[planning->plan->count - 1].side = (struct side_name){class->name, BYTES("~")};
    }
    return count;
}

/* The transaction that begins a round.  Returns whether fields are not ready after it. */
static bool add_turn(struct planning *planning, const struct schema *schema, const struct schema *kept,
                     const char *what)
{
    struct builder *sql = schema_planning_text(planning), *content = schema_planning_text(planning),
                   *building = schema_planning_text(planning);
    if (planning->plan->applied->search_count || schema->search_count) /* they depend on the views */
        builder_add_text(sql, "select stampd.search_drop();\n");
    each_side(planning, schema, kept, sql, add_side_sql);
    each_side(planning, schema, kept, building, add_building);
    add_mutated(planning, schema, sql, building);
    add_removals(planning, schema, sql);
    schema_write(schema, content);
    builder_add_text(sql, "update stampd.schema set number = number + 1, content = ");
    schema_sql_literal(sql, builder_bytes(content));
    builder_add_text(sql, ", building = ");
    schema_sql_literal(sql, builder_bytes(building));
    builder_add_text(sql, " where one;\n");
    schema_planning_add(planning, STEP_LOCKED, what, sql);
    planning->plan->steps[planning->plan->count - 1].searches = schema;
    return building->size > 0;
}

/* Columns and tables that `kept` does not account for; returns how many steps. */
static size_t add_drops(struct planning *planning, const struct schema *kept, bool is_counted_only)
{
    const struct catalog *catalog = &planning->catalog;
    size_t count = 0;
    struct bytes dropped = NO_BYTES;
    for (size_t i = 0; i < catalog->column_count; i++) {
        const struct catalog_column *column = &catalog->columns[i];
        struct side_name name;
        struct bytes field;
        if (is_expected(kept, column) || bytes_equal(column->table, dropped))
            continue;
        count++;
        split_table(column->table, &name, &field);
        bool is_table = field.size || !find_side(kept, name);
        if (is_table)
            dropped = column->table;
        if (is_counted_only)
            continue;
        struct builder *sql = schema_planning_text(planning);
        if (is_table)
            builder_printf(sql, "drop table stampd.\"%.*s\";\n", (int)column->table.size, column->table.data);
        else
            builder_printf(sql, "alter table stampd.\"%.*s\" drop column \"%.*s\";\n",
                           (int)column->table.size, column->table.data, (int)column->name.size,
                           column->name.data);
        schema_planning_add(planning, STEP_LOCKED, "dropping what is no longer declared", sql);
    }
    return count;
}

static void add_fill(struct planning *planning, struct side_name name, const struct schema_item *item,
                     const struct schema_item *kept, void *text UNUSED)
{
    bool is_filled = kept && kept->field_count == item->field_count;
    if (is_filled && !schema_catalog_fills(&planning->catalog, name.class, name.item))
        return;
    schema_planning_add(planning, STEP_FILL,
                        arena_printf(planning->arena, "filling x_%.*s_%.*s from the documents",
                                     (int)name.class.size, name.class.data, (int)name.item.size,
                                     name.item.data),
                        NULL);
    planning->plan->steps[planning->plan->count - 1].side = name;
}

/* Is a declaration of this class, under this name and of this kind, with these keys, ready? */
static bool is_followed(struct planning *planning, const struct schema_class *class, struct bytes name,
                        const char *kind, const struct schema_property *keys, size_t count)
{
    struct builder *text = schema_planning_text(planning);
    builder_printf(text, "%.*s.%.*s %s", (int)class->name.size, class->name.data, (int)name.size, name.data,
                   kind);
    for (size_t i = 0; i < count; i++)
        builder_printf(text, " %.*s%s%.*s", (int)keys[i].item->name.size, keys[i].item->name.data,
                       keys[i].member.size ? "." : "", (int)keys[i].member.size, keys[i].member.data);
    for (size_t i = 0; i < planning->catalog.followed_count; i++)
        if (bytes_equal(planning->catalog.followed[i], builder_bytes(text)))
            return true;
    return false;
}

static bool is_class_followed(struct planning *planning, const struct schema_class *class)
{
    for (size_t i = 0; i < class->collection_count; i++) {
        const struct schema_collection *one = &class->collections[i];
        if (!is_followed(planning, class, one->name, one->is_list ? "list" : "of", one->keys, one->key_count))
            return false;
    }
    for (size_t i = 0; i < class->unique_count; i++) {
        const struct schema_unique *one = &class->uniques[i];
        if (!is_followed(planning, class, one->name, one->is_global ? "global" : "unique", one->keys,
                         one->key_count))
            return false;
    }
    return !class->max_life.item || is_followed(planning, class, BYTES(""), "ends", &class->max_life, 1);
}

/* Fills the new collections and unique properties of each class; with `is_counted_only` only returns how
 * many. */
static size_t add_follows(struct planning *planning, const struct schema *wanted, bool is_counted_only)
{
    size_t count = 0;
    for (size_t c = 0; c < wanted->class_count; c++) {
        const struct schema_class *class = &wanted->classes[c];
        if (is_class_followed(planning, class))
            continue;
        count++;
        if (is_counted_only)
            continue;
        schema_planning_add(planning, STEP_FILL,
                            arena_printf(planning->arena, "filling collections and ends of %.*s",
                                         (int)class->name.size, class->name.data),
                            NULL);
        planning->plan->steps[planning->plan->count - 1].side = (struct side_name){class->name, NO_BYTES};
    }
    return count;
}

/* Those of its items, and their indexes over several. */
static size_t count_fields(const struct schema *schema)
{
    size_t count = 0;
    for (size_t c = 0; c < schema->class_count; c++)
        for (size_t i = 0; i < schema->classes[c].item_count; i++)
            count += schema->classes[c].items[i].field_count + schema->classes[c].items[i].index_count;
    return count;
}

/* Does the new schema remove the expiry from documents of a class? */
static bool takes_ends(const struct planning *planning, const struct schema *wanted)
{
    const struct schema *applied = planning->plan->applied;
    for (size_t c = 0; c < applied->class_count; c++) {
        if (applied->classes[c].max_life.item && !has_ends(wanted, applied->classes[c].name))
            return true;
    }
    return false;
}

static void add_forgetting(struct planning *planning)
{
    struct builder *forgetting = schema_planning_text(planning);
    builder_add_text(forgetting, "select stampd.drop_expiry();\n");
    schema_planning_add(planning, STEP_WAIT, "waiting for older transactions", NULL);
    schema_planning_add(planning, STEP_LOCKED, "dropping expiries that are no longer declared", forgetting);
}

static bool schema_plan_is_same(struct planning *planning, const struct schema *one,
                                const struct schema *other)
{
    struct builder *a = schema_planning_text(planning), *b = schema_planning_text(planning);
    schema_write(one, a);
    schema_write(other, b);
    return bytes_equal(builder_bytes(a), builder_bytes(b));
}

/* Are all functions of its searches there? */
static bool has_searches(const struct planning *planning, const struct schema *wanted)
{
    const struct catalog *catalog = &planning->catalog;
    size_t found = 0;
    for (size_t s = 0; s < wanted->search_count; s++)
        for (size_t i = 0; i < catalog->search_count; i++) {
            struct bytes name = {catalog->searches[i].data, catalog->searches[i].size - strlen("_run")};
            found += bytes_equal(name, wanted->searches[s].name);
        }
    return found == wanted->search_count;
}

static void make_steps(struct planning *planning, const struct schema *wanted)
{
    const struct schema *kept = find_kept(planning, wanted);
    bool has_extras = add_drops(planning, kept, true) > 0;
    bool grows = count_fields(wanted) > count_fields(kept);
    bool is_building = false;
    struct builder *words = schema_planning_text(planning);
    each_side(planning, wanted, kept, words, add_building);
    is_building = words->size > 0;
    size_t mutated = add_mutations(planning, wanted, true);
    if (has_extras) {
        struct schema *without = ARENA_NEW(planning->arena, struct schema);
        *without = *kept;
        without->search_count = 0; /* they may read what is still to be added */
        add_turn(planning, without, kept, "applying the schema without what is no longer declared");
        schema_planning_add(planning, STEP_WAIT, "waiting for older transactions", NULL);
        add_drops(planning, kept, false);
    }
    if (grows || (has_extras && wanted->search_count) ||
        (!has_extras && (!schema_plan_is_same(planning, planning->plan->applied, wanted) ||
                         !has_searches(planning, wanted))))
        add_turn(planning, wanted, kept, "applying the schema: commits write its fields from here on");
    if (takes_ends(planning, wanted))
        add_forgetting(planning);
    schema_plan_indexes_drop(planning, wanted);
    if (!is_building && !mutated && add_follows(planning, wanted, true) == 0)
        return;
    schema_planning_add(planning, STEP_WAIT, "waiting for older transactions", NULL);
    add_mutations(planning, wanted, false);
    if (is_building) {
        each_side(planning, wanted, kept, NULL, add_fill);
        each_side(planning, wanted, kept, NULL, schema_plan_indexes_add);
    }
    add_follows(planning, wanted, false);
    struct builder *ready = schema_planning_text(planning);
    builder_add_text(ready, "delete from stampd.schema_fill;\n"
                            "update stampd.collection set is_ready = true where not is_ready;\n"
                            "update stampd.unique_property set is_ready = true where not is_ready;\n"
                            "update stampd.expiry_property set is_ready = true where not is_ready;\n"
                            "update stampd.schema set number = number + 1, building = '' where one;\n");
    schema_planning_add(planning, STEP_LOCKED, "declaring the new fields and collections ready", ready);
}

/* Mutations only lead forwards: contents of the higher release would be read as older ones. */
static bool check_releases(const struct schema *applied, const struct schema *wanted)
{
    for (size_t c = 0; c < wanted->class_count; c++) {
        const struct schema_class *class = &wanted->classes[c],
                                  *before = schema_find_class(applied, class->name);
        if (!before || before->release <= class->release)
            continue;
        return message_refuse(
            "classes.%.*s.release: release %lld is applied, %lld is declared: a release does not go back; "
            "declare a higher one "
            "whose rules make of the contents what is wanted",
            (int)class->name.size, class->name.data, (long long)before->release, (long long)class->release);
    }
    return true;
}

static bool has_collation(const struct catalog *catalog, struct bytes collate)
{
    for (size_t i = 0; i < catalog->collation_count; i++)
        if (bytes_equal(catalog->collations[i], collate))
            return true;
    return false;
}

static bool check_collations(const struct catalog *catalog, const struct schema_class *class)
{
    for (size_t i = 0; i < class->item_count; i++) {
        const struct schema_item *item = &class->items[i];
        for (size_t f = 0; f < item->field_count; f++) {
            struct bytes collate = item->fields[f].collate, name = item->fields[f].name;
            if (collate.data && !has_collation(catalog, collate))
                return message_refuse(
                    "classes.%.*s.items.%.*s.fields.%.*s.collate: PostgreSQL has no collation "
                    "\"%.*s-x-icu\" (see pg_collation)",
                    (int)class->name.size, class->name.data, (int)item->name.size, item->name.data,
                    (int)name.size, name.data, (int)collate.size, collate.data);
        }
    }
    return true;
}

static bool check_all_collations(const struct catalog *catalog, const struct schema *wanted)
{
    for (size_t c = 0; c < wanted->class_count; c++)
        if (!check_collations(catalog, &wanted->classes[c]))
            return false;
    return true;
}

bool schema_plan_make(struct control *control, struct pg *pg, const struct schema *wanted,
                      struct schema_plan *plan_r)
{
    struct planning planning = {.control = control,
                                .arena = control->arena,
                                .role = control_worker_role(control, pg_database(pg)),
                                .plan = plan_r};
    if (!schema_plan_read_applied(control, pg, plan_r) ||
        !schema_catalog_read(control, pg, &planning.catalog) || !check_releases(plan_r->applied, wanted) ||
        !check_all_collations(&planning.catalog, wanted) || !schema_plan_indexes_may(&planning, pg, wanted))
        return false;
    plan_r->wanted = wanted;
    make_steps(&planning, wanted);
    return true;
}
