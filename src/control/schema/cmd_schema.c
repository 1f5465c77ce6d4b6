/* cmd_schema: `stampctl schema check, set, show, plan, apply, watch`. */
#include "control/control.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_keys.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "control/rules/cmd_rules.h"
#include "control/schema/schema_contents.h"
#include "control/schema/schema_plan.h"
#include "control/schema/schema_watch.h"
#include "blob/thumbnailer.h"
#include "model/schema/schema.h"
#include "model/document/stamp.h"

/* --- declarations -------------------------------------------------------------------------------- */

static bool read_declaration(struct control *control, const char *where, struct bytes text,
                             struct schema **schema_r)
{
    struct schema_problem problem;
    if (schema_read(control->arena, text, schema_r, &problem) == FAULT_NONE)
        return true;
    return message_refuse("%s: %s%s%s", where, problem.path, *problem.path ? ": " : "", problem.expected);
}

static bool cmd_schema_read_file(struct control *control, const char *path, struct bytes *text_r,
                                 struct schema **schema_r)
{
    return control_read_file(control->arena, strcmp(path, "-") == 0 ? "/dev/stdin" : path, text_r) &&
           read_declaration(control, path, *text_r, schema_r);
}

static int check_contents(struct control *control, const char *code, bool is_json)
{
    struct ns_target target;
    struct schema_plan plan;
    int64_t checked, wrong;
    if (!control_load_settings(control) || !ns_registry_connect(control, code, &target) ||
        !ns_keys_refuse(control, target.pg, "schema check") ||
        !schema_plan_read_applied(control, target.pg, &plan) ||
        !schema_contents_check(control, target.pg, plan.applied, is_json, &checked, &wrong))
        return CONTROL_FAILED;
    if (!is_json)
        printf("%s: %lld of %lld contents do not conform\n", code, (long long)wrong, (long long)checked);
    return wrong ? CONTROL_FAILED : CONTROL_DONE;
}

/* Prints what the rules in the file name and the schema declares otherwise; false: there is some. */
static bool check_rules(struct control *control, const char *path, const struct schema *schema)
{
    struct bytes text;
    struct rules *rules;
    return !path || (control_read_file(control->arena, path, &text) &&
                     cmd_rules_read(control->arena, path, text, &rules) &&
                     cmd_rules_compare(control->arena, path, rules, schema) == 0);
}

static int schema_check(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND_OF(
        "schema check", "FILE | --content CODE", 1, 1,
        "Check a declaration of classes, or stored contents against the applied schema.",
        "Prints what is wrong with the declaration in FILE.  With --content, lists the contents of the "
        "namespace CODE "
        "that do\nnot conform to the JSON Schema of their class; the exit status is 1 when there are "
        "some.\nWith --rules, prints what the access rules in RULES name and the schema declares otherwise, "
        "likewise.\n");
    bool is_content = false, is_json = false;
    const char *rules = NULL;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("content", &is_content, "Check the contents of a namespace."),
        OPTION_FLAG("json", &is_json, "With --content, print JSON, one object a content."),
        OPTION_TEXT("rules", "RULES", &rules, "Compare with these access rules."),
    };
    struct bytes text;
    struct schema *schema;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_content)
        return check_contents(control, words[0], is_json);
    if (!cmd_schema_read_file(control, words[0], &text, &schema))
        return CONTROL_FAILED;
    printf("%s: %zu classes\n", words[0], schema->class_count);
    return check_rules(control, rules, schema) ? CONTROL_DONE : CONTROL_FAILED;
}

/* Are the thumbnails that it declares, if any, made by this build, as it is set up? */
static bool makes_thumbnails(const struct control *control, const char *code, const struct schema *schema)
{
    if (!schema->has_thumbnails || thumbnailer_is_there(control->settings.thumbnail_program))
        return true;
    return message_refuse("%s: thumbnails are declared: %s", code, fault_words(FAULT_OTHUMBNAILS));
}

enum { ANY_VERSION = -1 };

/* `expected`: refuses another version of the declaration; 0: that there is one. */
static bool read_declared(struct control *control, const struct ns_target *target, int64_t expected,
                          struct bytes *text_r, struct schema **schema_r)
{
    struct pg_result *row;
    const char *code = target->conf->code;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(code)));
    if (!control_query(control, target->z, "reading the declaration",
                       "select i.content, d.version from stampd.item i join stampd.doc d on d.class = i.class"
                       " and d.id = i.id where i.class = 'Schema' and i.id = $1::text and i.iclass = 'Conf'"
                       " and i.key = '' and i.content is not null and d.ctime <> 0",
                       params, &row))
        return false;
    const int64_t version = pg_rows(row) ? pg_get_i64(row, 0, 1) : 0;
    if (expected != ANY_VERSION && expected != version)
        return message_refuse("%s: the declaration has another version than %lld", code, (long long)expected);
    *text_r = pg_rows(row) ? pg_get_text(row, 0, 0) : BYTES("{\"classes\":{}}");
    return read_declaration(control, arena_printf(control->arena, "the declaration of %s", code), *text_r,
                            schema_r);
}

/* Prints what the rules of the namespace, if any, name and the schema declares otherwise. */
static bool cmd_schema_warn(struct control *control, struct pg *z, const char *code,
                            const struct schema *schema)
{
    struct bytes text;
    struct rules *rules;
    struct rules_problem problem;
    if (!cmd_rules_fetch(control, z, code, &text))
        return false;
    if (text.data && !rules_read(control->arena, text, &rules, &problem))
        cmd_rules_compare(control->arena, arena_printf(control->arena, "warning: rules of %s", code), rules,
                          schema);
    return true;
}

static int schema_set(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "schema set", "CODE FILE",
        "Declare the classes of a namespace; `schema apply` then applies the declaration.",
        "FILE - is standard input.  The declaration is stored in the namespace z, as document "
        "Schema/CODE.\nPrints a warning for each name in the access rules of the namespace that is declared "
        "otherwise.\n");
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct bytes text;
    struct schema *schema;
    struct ns_target target;
    struct pg_result *row;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_schema_read_file(control, words[1], &text, &schema) ||
        !makes_thumbnails(control, words[0], schema) || !ns_registry_connect(control, words[0], &target))
        return CONTROL_FAILED;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(words[0])), PG_TEXT(text));
    if (!control_query(control, target.z, "storing the declaration",
                       "select stampd.put_item('Schema', $1::text, 'Conf', '', $2::text)", params, &row))
        return CONTROL_FAILED;
    printf("%s: classes declared: %zu; apply them with stampctl schema apply %s\n", words[0],
           schema->class_count, words[0]);
    return cmd_schema_warn(control, target.z, words[0], schema) ? CONTROL_DONE : CONTROL_FAILED;
}

/* --- show ---------------------------------------------------------------------------------------- */

static bool is_building(struct arena *arena, struct bytes words, const char *name)
{
    return strstr(arena_printf(arena, " %.*s ", (int)words.size, words.size ? words.data : ""),
                  arena_printf(arena, " %s ", name)) != NULL;
}

static void show_indexes(struct control *control, const struct schema_plan *plan,
                         const struct schema_class *class, const struct schema_item *item)
{
    for (size_t i = 0; i < item->index_count; i++) {
        struct bytes word = schema_index_word(control->arena, &item->indexes[i]);
        const char *name =
            arena_printf(control->arena, "%.*s.%.*s.%.*s", (int)class->name.size, class->name.data,
                         (int)item->name.size, item->name.data, (int)word.size, word.data);
        printf("%-60s  %-8s  %s\n", name, "index",
               is_building(control->arena, plan->building, name) ? "building" : "ready");
    }
}

static void show_fields(struct control *control, const struct schema_plan *plan)
{
    printf("%-60s  %-8s  %s\n", "FIELD", "TYPE", "STATE");
    for (size_t c = 0; c < plan->applied->class_count; c++) {
        const struct schema_class *class = &plan->applied->classes[c];
        for (size_t i = 0; i < class->item_count; i++)
            for (size_t f = 0; f < class->items[i].field_count; f++) {
                const struct schema_field *field = &class->items[i].fields[f];
                const char *name =
                    arena_printf(control->arena, "%.*s.%.*s.%.*s", (int)class->name.size, class->name.data,
                                 (int)class->items[i].name.size, class->items[i].name.data,
                                 (int)field->name.size, field->name.data);
                printf("%-60s  %-8s  %s\n", name, schema_type_name(field->type, field->is_list),
                       is_building(control->arena, plan->building, name) ? "building" : "ready");
            }
        for (size_t i = 0; i < class->item_count; i++)
            show_indexes(control, plan, class, &class->items[i]);
    }
}

/* One line each: kind, object, state, progress. */
static const char show_sql[] =
    "with classes as (select c.key as class, c.value as content from stampd.schema s cross join "
    "json_each(s.content::json ->"
    " 'classes') c where s.one),"
    " total as (select c.class, (select count(*) from stampd.doc d where d.class = c.class and d.ctime <> 0) "
    "as documents"
    " from classes c where exists (select from stampd.schema_fill f where f.class = c.class))"
    " select o.class || '.' || o.name, o.kind, case when o.is_ready and o.place > 3 then 'applied' when "
    "o.is_ready then 'ready' else o.doing || coalesce(' "
    "' || f.done || ' of ' || t.documents"
    " || ' documents', '') end from ("
    " select class, name, 'collection of ' || array_to_string(keys, ', ') || case when is_list then ', list' "
    "else '' end"
    " || case when is_mutable then ', mutable' else '' end as kind, is_ready, 1 as place, '' as iclass, "
    "'filling' as doing from stampd.collection"
    " union all select class, name, 'unique ' || array_to_string(keys, ', ') || case when is_global then ', "
    "global' else '' end,"
    " is_ready, 2, '', 'filling' from stampd.unique_property"
    " union all select class, 'maxLife', property, is_ready, 3, '', 'filling' from stampd.expiry_property"
    " union all select class, 'release', coalesce(content ->> 'release', '1'), not exists (select from "
    "stampd.schema_fill f"
    " where f.class = c.class and f.iclass = '~'), 4, '~', 'rewriting' from classes c"
    " union all select class, 'zombieDays', content ->> 'zombieDays', true, 5, '', '' from classes c where "
    "content ->> 'zombieDays'"
    " is not null"
    " union all select f.class, f.iclass, 'side table', false, 0, f.iclass, 'filling' from "
    "stampd.schema_fill f where f.iclass not in ('', '~')"
    " ) o left join stampd.schema_fill f on f.class = o.class and f.iclass = o.iclass left join total t on "
    "t.class = o.class"
    " order by o.class, o.place, o.name";

static bool show_rest(struct control *control, struct pg *pg)
{
    struct pg_result *rows;
    if (!control_query(control, pg, "reading what is applied", show_sql, NULL, &rows))
        return false;
    if (pg_rows(rows))
        printf("\n%-36s  %-40s  %s\n", "DECLARED", "AS", "STATE");
    for (int row = 0; row < pg_rows(rows); row++) {
        struct bytes name = pg_get_text(rows, row, 0), kind = pg_get_text(rows, row, 1),
                     state = pg_get_text(rows, row, 2);
        printf("%-36.*s  %-40.*s  %.*s\n", (int)name.size, name.data, (int)kind.size, kind.data,
               (int)state.size, state.data);
    }
    return true;
}

static int schema_show(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("schema show", "CODE", "Show the schema that is applied in a namespace.", NULL);
    bool is_declared = false, is_json = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("declared", &is_declared, "Print the declaration, as JSON."),
        OPTION_FLAG("json", &is_json, "Print the applied schema, as JSON."),
    };
    struct bytes text;
    struct schema *schema;
    struct ns_target target;
    struct schema_plan plan;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!ns_registry_connect(control, words[0], &target) ||
        !schema_plan_read_applied(control, target.pg, &plan))
        return CONTROL_FAILED;
    struct builder json = {0};
    if (is_declared && !read_declared(control, &target, ANY_VERSION, &text, &schema))
        return CONTROL_FAILED;
    if (is_declared) {
        printf("%.*s\n", (int)text.size, text.data);
    } else if (is_json) {
        schema_write(plan.applied, &json);
        printf("%.*s\n", (int)json.size, json.data);
    } else {
        printf("%s: %zu classes, number %lld\n", words[0], plan.applied->class_count,
               (long long)plan.applied->number);
        show_fields(control, &plan);
        if (!show_rest(control, target.pg))
            return CONTROL_FAILED;
    }
    builder_free(&json);
    return CONTROL_DONE;
}

/* --- plan, apply --------------------------------------------------------------------------------- */

/* Whether the item has fields that are read from its contents, not from what is shown of them. */
static bool exports_contents(const struct schema_item *item)
{
    bool exports = item->field_count && !item->is_singleton;
    for (size_t f = 0; f < item->field_count; f++)
        exports |= item->fields[f].text || (!item->is_clear && item->fields[f].type != FIELD_HASH);
    return exports;
}

/* Whether the database reads contents for it, which it cannot where they are encrypted.  Of collections,
 * unique properties, the expiry, fields in clear and hashed ones it reads what is shown
 * (model/schema/shown.h). */
static bool needs_contents(const struct schema *schema)
{
    for (size_t c = 0; c < schema->class_count; c++) {
        const struct schema_class *class = &schema->classes[c];
        if (class->mutation_count)
            return true;
        for (size_t u = 0; u < class->unique_count; u++)
            if (class->uniques[u].is_global)
                return true;
        for (size_t i = 0; i < class->item_count; i++)
            if (class->items[i].copies || exports_contents(&class->items[i]))
                return true;
    }
    return false;
}

/* Whether the ids of each class are encrypted where the namespace was made so, and nowhere else. */
static bool agrees_on_ids(struct control *control, struct pg *pg, const char *code,
                          const struct schema *schema)
{
    struct data_keys *keys;
    struct pg_result *row;
    if (!control_query(control, pg, "reading the classes whose ids are encrypted",
                       "select coalesce(string_agg(class, ' ' order by class), '') from stampd.encrypted_id",
                       NULL, &row))
        return false;
    struct bytes listed = pg_get_text(row, 0, 0);
    keys =
        &(struct data_keys){.count = 1, .id_classes = arena_copy(control->arena, listed.data, listed.size)};
    for (size_t i = 0; i < schema->class_count; i++) {
        const struct schema_class *class = &schema->classes[i];
        bool is_encrypted = data_keys_encrypts_ids(keys, class->name);
        if (class->encrypts_ids == is_encrypted)
            continue;
        return message_refuse(is_encrypted
                                  ? "%.*s: its ids are encrypted in %s: expected \"encryptedIds\": true"
                                  : "%.*s: \"encryptedIds\" is expected in a namespace that was made with "
                                    "--encrypted-ids of the class; %s was not",
                              (int)class->name.size, class->name.data, code);
    }
    return true;
}

/* SQL reads no contents that are encrypted, nor the configurations and keys of z. */
static bool may_have_searches(struct control *control, struct pg *pg, const char *code,
                              const struct schema *schema)
{
    if (!schema->search_count)
        return true;
    if (strcmp(code, "z") != 0)
        return ns_keys_refuse(control, pg, "a schema with searches");
    return message_refuse("searches: z has none: it holds the configurations of the others");
}

/* The option of plan and apply. */
#define VERSION_LINE(version)                                                                                \
    {                                                                                                        \
        .name = "if", .argument = "VERSION", .help = "Refuse another version of the declaration.",           \
        .number = (version), .least = 0, .most = STAMP_MAX                                                   \
    }

static bool open_plan(struct control *control, const char *code, int64_t version, bool is_alone,
                      struct ns_target *target, struct schema_plan *plan)
{
    struct bytes text;
    struct schema *schema;
    const struct schema *joined;
    /* Of the session: one apply at a time.  A backend whose apply was interrupted ends its step first. */
    return ns_registry_connect(control, code, target) &&
           (!is_alone || control_execute(target->pg, "waiting for another stampctl",
                                         "set lock_timeout = 0;"
                                         " select pg_advisory_lock(hashtextextended('stampd schema', 0));"
                                         " reset lock_timeout")) &&
           read_declared(control, target, version, &text, &schema) &&
           schema_plan_join_modules(control, code, schema, &joined) &&
           makes_thumbnails(control, code, joined) &&
           (!needs_contents(joined) ||
            ns_keys_refuse(
                control, target->pg,
                "a schema with exported fields that are neither in clear nor hashes of a singleton, with "
                "properties that are unique in all namespaces, "
                "copies or mutations")) &&
           agrees_on_ids(control, target->pg, code, joined) &&
           may_have_searches(control, target->pg, code, joined) &&
           schema_plan_make(control, target->pg, joined, plan);
}

/* The SQL of a step; "" when it only waits. */
static const char *sql_of(struct arena *arena, const struct step *step)
{
    struct bytes class = step->side.class, item = step->side.item;
    switch (step->kind) {
    case STEP_WAIT:
        break;
    case STEP_ALONE:
        return step->sql;
    case STEP_LOCKED:
        return arena_printf(arena, "begin;\n%scommit;\n", step->sql);
    case STEP_FILL:
        if (bytes_equal(item, BYTES("~")))
            return arena_printf(arena, "select stampd.mutate_documents('%.*s'); -- until it returns 0\n",
                                (int)class.size, class.data);
        if (!item.size)
            return arena_printf(arena, "select stampd.fill_members('%.*s'); -- until it returns 0\n",
                                (int)class.size, class.data);
        return arena_printf(arena, "select stampd.fill_side('%.*s', '%.*s'); -- until it returns 0\n",
                            (int)class.size, class.data, (int)item.size, item.data);
    }
    return "";
}

static void write_step(struct arena *arena, const struct step *step)
{
    struct record record = {0};
    record_add_word(&record, "step", step->what);
    record_add_word(&record, "sql", sql_of(arena, step));
    record_print(&record);
}

static int schema_plan(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "schema plan", "CODE", "Print the steps that `schema apply` would take, with their SQL.", NULL);
    bool is_json = false;
    int64_t version = ANY_VERSION;
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
                                        RECORD_JSON_LINE(&is_json), VERSION_LINE(&version)};
    struct ns_target target;
    struct schema_plan plan;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_plan(control, words[0], version, false, &target, &plan))
        return CONTROL_FAILED;
    if (!plan.count && !is_json)
        printf("-- %s: the declaration is applied\n", words[0]);
    for (const struct step *step = plan.steps; step < plan.steps + plan.count; step++) {
        if (is_json)
            write_step(control->arena, step);
        else
            printf("-- %s\n%s", step->what, sql_of(control->arena, step));
    }
    return CONTROL_DONE;
}

static int schema_apply(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("schema apply", "CODE", "Apply the declaration while the server is running.",
                "Creates tables and indexes without blocking requests.  After an "
                "interruption, run it again: it continues\n"
                "where it stopped.\n");
    int64_t batch = 200, version = ANY_VERSION;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
        OPTION_NUMBER("batch", "DOCUMENTS", &batch, 1, 10000,
                      "Fill tables in transactions of this many documents (default: 200)."),
        VERSION_LINE(&version)};
    struct ns_target target;
    struct schema_plan plan;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_plan(control, words[0], version, true, &target, &plan) ||
        !schema_plan_run(control, target.pg, &plan, batch))
        return CONTROL_FAILED;
    printf("%s: the declaration is applied\n", words[0]);
    return CONTROL_DONE;
}

static int schema_watch(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "schema watch", "",
        "Plan and apply what administrators ask for over HTTP, with the operation schema.",
        "Runs until it is stopped.  The server itself has no right to create tables: without this command\n"
        "nothing is applied over HTTP.\n");
    bool is_once = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control),
        CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("once", &is_once, "End when nothing is asked for."),
    };
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    return schema_watch_run(control, is_once) ? CONTROL_DONE : CONTROL_FAILED;
}

int control_schema(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"check", "Check a declaration, or stored contents.", schema_check},
        {"set", "Declare the classes of a namespace.", schema_set},
        {"show", "Show the applied schema.", schema_show},
        {"plan", "Print what apply would do.", schema_plan},
        {"apply", "Apply the declaration.", schema_apply},
        {"watch", "Apply declarations on request.", schema_watch},
    };
    return options_choose("schema",
                          "Manage the schema of a namespace: declare classes, and apply the declaration.\n",
                          choices, COUNT_OF(choices), control, argc, argv);
}
