/* cmd_rules: `stampctl rules set, show, check, test`. */
#include "control/rules/cmd_rules.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "control/record.h"
#include "model/rules/rules_case.h"
#include "model/rules/rules_sight.h"
#include "model/rules/rules_schema.h"

bool cmd_rules_read(struct arena *arena, const char *where, struct bytes text, struct rules **rules_r)
{
    struct rules_problem problem;
    if (!rules_read(arena, text, rules_r, &problem))
        return true;
    return message_refuse("%s: %s%s%s", where, problem.path, *problem.path ? ": " : "", problem.expected);
}

bool cmd_rules_fetch(struct control *control, struct pg *z, const char *code, struct bytes *text_r)
{
    struct pg_result *result;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(code)));
    if (!control_query(
            control, z, "reading the rules",
            "select content from stampd.item where class = 'Namespace' and id = $1::text and iclass "
            "= 'Rules' and key = ''",
            params, &result))
        return false;
    *text_r = pg_rows(result) ? pg_get_text(result, 0, 0) : NO_BYTES;
    return true;
}

/* Is there such a namespace?  Reports it when not. */
static bool open_namespace(struct control *control, const char *code, struct pg **z_r)
{
    struct namespace_conf *confs;
    size_t count;
    return ns_registry_open(control, z_r) && ns_registry_read(control, *z_r, &confs, &count) &&
           ns_registry_require(confs, count, code) != NULL;
}

static bool cmd_rules_read_file(struct control *control, const char *path, struct bytes *text_r)
{
    return control_read_file(control->arena, strcmp(path, "-") == 0 ? "/dev/stdin" : path, text_r);
}

/* `text` NO_BYTES: removes them. */
static bool cmd_rules_store(struct control *control, struct pg *z, const char *code, struct bytes text)
{
    struct pg_result *result;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(code)), PG_TEXT(text));
    return control_query(control, z, arena_printf(control->arena, "the document Namespace/%s", code),
                         "select stampd.put_item('Namespace', $1::text, 'Rules', '', $2::text)", params,
                         &result);
}

static void print_warning(void *context, const char *sentence)
{
    const char *where = context;
    printf("%s: %s\n", where, sentence);
}

size_t cmd_rules_compare(struct arena *arena, const char *where, const struct rules *rules,
                         const struct schema *schema)
{
    return rules_schema_compare(arena, rules, schema, print_warning, (void *)where);
}

/* Prints what the rules name and the schema that the namespace declares in z, if any, declares otherwise. */
static bool cmd_rules_warn(struct control *control, struct pg *z, const char *code, const struct rules *rules)
{
    struct pg_result *result;
    struct schema *schema;
    struct schema_problem problem;
    const struct pg_params *params = PG_PARAMS(control->arena, PG_TEXT(bytes_of(code)));
    if (!control_query(
            control, z, "reading the declaration",
            "select content from stampd.item where class = 'Schema' and id = $1::text and iclass = "
            "'Conf' and key = ''",
            params, &result))
        return false;
    if (pg_rows(result) && !schema_read(control->arena, pg_get_text(result, 0, 0), &schema, &problem))
        cmd_rules_compare(control->arena, arena_printf(control->arena, "warning: %s", code), rules, schema);
    return true;
}

static int rules_set(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "rules set", "CODE [FILE]", "Set the access rules of a namespace.",
        "Every worker applies them at its next request, where the access of the namespace is rules\n"
        "(`stampctl ns access CODE rules`).  FILE is a JSON object; - is standard input.\n"
        "Prints a warning for each name in the rules that the schema of the namespace declares otherwise.\n");
    bool is_none = false;
    const struct option_line lines[] = {
        CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control),
        OPTION_FLAG("none", &is_none, "Remove the rules: nothing is allowed any more.")};
    struct bytes text = NO_BYTES;
    struct rules *rules = NULL;
    struct pg *z;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (is_none == (words[1] != NULL))
        return message_end(CONTROL_WRONG, "%s: expected a FILE or --none", command.name);
    if (!is_none && (!cmd_rules_read_file(control, words[1], &text) ||
                     !cmd_rules_read(control->arena, words[1], text, &rules)))
        return CONTROL_FAILED;
    bool is_done = open_namespace(control, words[0], &z) && cmd_rules_store(control, z, words[0], text) &&
                   (is_none || cmd_rules_warn(control, z, words[0], rules));
    return is_done ? CONTROL_DONE : CONTROL_FAILED;
}

static int rules_show(struct control *control, int argc, char **argv)
{
    static const struct command command =
        COMMAND("rules show", "CODE", "Print the access rules of a namespace, as they were set.", NULL);
    const struct option_line lines[] = {CONTROL_CONFIG_LINE(control), CONTROL_ADMIN_LINE(control)};
    struct bytes text;
    struct pg *z;
    char **words = control_begin(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!open_namespace(control, words[0], &z) || !cmd_rules_fetch(control, z, words[0], &text))
        return CONTROL_FAILED;
    if (!text.data)
        return message_end(CONTROL_FAILED, "%s: the namespace has no rules", words[0]);
    while (text.size && strchr(" \r\n", text.data[text.size - 1]))
        text.size--;
    printf("%.*s\n", (int)text.size, text.data);
    return CONTROL_DONE;
}

/* Prints what the rules name and the schema in the file declares otherwise; false: there is some, or it is no
 * schema. */
static bool check_schema(struct control *control, const char *where, const struct rules *rules,
                         const char *path)
{
    struct bytes text;
    struct schema *schema;
    struct schema_problem problem;
    if (!path)
        return true;
    if (!cmd_rules_read_file(control, path, &text))
        return false;
    if (schema_read(control->arena, text, &schema, &problem))
        return message_refuse("%s: %s%s%s", path, problem.path, *problem.path ? ": " : "", problem.expected);
    return cmd_rules_compare(control->arena, where, rules, schema) == 0;
}

/* Prints the classes whose documents end with accounts: what is deleted does not come back. */
static void print_endings(const char *where, const struct rules *rules)
{
    struct bytes class = BYTES("");
    while ((class = rules_left_next_class(rules, class)).data)
        if (rules_left_ends_class(rules, class))
            printf("%s: %.*s: documents are deleted with the account of their owner\n", where,
                   (int)class.size, class.data);
}

static int rules_check(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "rules check", "FILE", "Check a file of access rules.",
        "Prints the first error with its place.  Needs no server; - is standard input.\n"
        "Of rules without an error, prints the classes whose documents are deleted with the account of "
        "their\n"
        "owner.\n"
        "With --schema, also prints what the rules name and the schema in SCHEMA declares otherwise: "
        "classes\n"
        "that it does not have, owners in a list, members in a singleton; the exit status is 1 then.\n");
    const char *schema = NULL;
    const struct option_line lines[] = {
        OPTION_TEXT("schema", "SCHEMA", &schema, "Compare with this declaration.")};
    struct bytes text;
    struct rules *rules;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    if (!cmd_rules_read_file(control, words[0], &text) ||
        !cmd_rules_read(control->arena, words[0], text, &rules))
        return CONTROL_FAILED;
    printf("%s: %zu classes\n", words[0], rules_count_classes(rules));
    print_endings(words[0], rules);
    return check_schema(control, words[0], rules, schema) ? CONTROL_DONE : CONTROL_FAILED;
}

int control_rules(struct control *control, int argc, char **argv)
{
    static const struct choice choices[] = {
        {"set", "Set the rules of a namespace.", rules_set},
        {"show", "Print the rules of a namespace.", rules_show},
        {"check", "Check a file of rules.", rules_check},
        {"test", "Run a table of cases.", cmd_rules_test},
        {"explain", "Explain what is decided of one request.", cmd_rules_explain},
    };
    return options_choose("rules",
                          "Access rules: which caller may read, list, create, change and delete which "
                          "documents of a namespace.\n",
                          choices, COUNT_OF(choices), control, argc, argv);
}

/* --- test --- */

enum { CASES_MOST = 10000, DOCUMENTS_MOST = 10000, TEXT_DEPTH = 128, TEXT_NODES = 2000000 };

struct rules_table {
    struct arena *arena;
    const char *file;
    const struct json *root;
    struct rules *rules;
    struct rules_documents documents;
    bool prints_all, is_json;
    size_t count, failed;
};

/* --- reading --- */

/* Why something was refused. */
static bool cmd_rules_test_report(const struct rules_table *table)
{
    const struct rules_documents *documents = &table->documents;
    return message_refuse("%s: %s%s%s", table->file, documents->place, *documents->place ? ": " : "",
                          documents->problem);
}

static bool read_root(struct rules_table *table, struct bytes text)
{
    static const struct json_limits limits = {
        .depth = TEXT_DEPTH, .tree_depth = TEXT_DEPTH, .nodes = TEXT_NODES};
    struct json *root;
    struct json_problem problem;
    if (json_read(table->arena, text, &limits, &root, &problem))
        return message_refuse("%s: A JSON object is expected: %s, at byte %zu.", table->file, problem.what,
                              problem.offset);
    table->root = root;
    return rules_documents_check_members(&table->documents, "", root, "rules documents cases") ||
           cmd_rules_test_report(table);
}

/* A list in the file; absent: an empty one. */
static bool find_list(const struct rules_table *table, const char *name, size_t most,
                      const struct json **first_r)
{
    const struct json *list = json_member(table->root, name);
    *first_r = list ? list->first : NULL;
    if (!list || (list->kind == JSON_ARRAY && !list->is_shallow && list->count <= most))
        return true;
    return message_refuse("%s: %s: A list of at most %zu elements is expected.", table->file, name, most);
}

static bool cmd_rules_test_read_rules(struct rules_table *table, struct control *control, const char *path)
{
    struct bytes text;
    const struct json *member = json_member(table->root, "rules");
    if (!path && !member)
        return message_refuse("%s: The member rules is expected, or --rules.", table->file);
    if (!path)
        return cmd_rules_read(table->arena, arena_printf(table->arena, "%s: rules", table->file),
                              member->text, &table->rules);
    return control_read_file(control->arena, path, &text) &&
           cmd_rules_read(table->arena, path, text, &table->rules);
}

static bool cmd_rules_test_read_documents(struct rules_table *table)
{
    const struct json *one;
    if (!find_list(table, "documents", DOCUMENTS_MOST, &one))
        return false;
    for (; one; one = one->next) {
        const char *where = arena_printf(table->arena, "documents[%zu]", table->documents.count);
        const struct document *document = rules_documents_read(&table->documents, where, one);
        if (!document)
            return cmd_rules_test_report(table);
        rules_documents_add(&table->documents, document);
    }
    return true;
}

/* --- running --- */

static const char *word_of(bool is_allowed)
{
    return is_allowed ? "allowed" : "refused";
}

static const char *rule_of(const struct rules_answer *answer)
{
    return *answer->rule ? answer->rule : "no rule of the class";
}

static void print_case(const struct rules_table *table, const struct rules_case *one,
                       const struct rules_answer *answer)
{
    const struct header *header = &one->before->header;
    struct record record = {0};
    if (table->is_json) {
        record_add_i64(&record, "case", (int64_t)table->count);
        record_add_text(&record, "name", one->name);
        record_add_word(&record, "may", rules_deed_word(one->deed));
        record_add_bool(&record, "expected", one->expected);
        record_add_bool(&record, "allowed", answer->may);
        record_add_word(&record, "rule", answer->rule);
        record_print(&record);
        return;
    }
    printf("%s: %s%s%.*s%s: %.*s may %s %.*s/%.*s%s%.*s: %s by %s, expected %s\n", table->file, one->where,
           one->name.data ? " (" : "", (int)one->name.size, one->name.data ? one->name.data : "",
           one->name.data ? ")" : "", one->caller.account.data ? (int)one->caller.account.size : 6,
           one->caller.account.data ? one->caller.account.data : "nobody", rules_deed_word(one->deed),
           (int)header->class.size, header->class.data, (int)header->id.size, header->id.data,
           one->item.data ? " " : "", (int)one->item.size, one->item.data ? one->item.data : "",
           word_of(answer->may), rule_of(answer), word_of(one->expected));
}

static bool run_cases(struct rules_table *table)
{
    const struct json *one;
    struct rules_case read;
    if (!find_list(table, "cases", CASES_MOST, &one))
        return false;
    for (; one; one = one->next, table->count++) {
        const char *where = arena_printf(table->arena, "cases[%zu]", table->count);
        if (!rules_case_read(&table->documents, where, one, &read))
            return cmd_rules_test_report(table);
        const struct rules_answer answer =
            rules_case_decide(table->arena, table->rules, &read, rules_documents_load, &table->documents);
        bool is_failed = answer.may != read.expected;
        table->failed += is_failed;
        if (is_failed || table->prints_all)
            print_case(table, &read, &answer);
    }
    if (!table->is_json)
        printf("%s: %zu cases, %zu failed\n", table->file, table->count, table->failed);
    return !table->failed;
}

int cmd_rules_test(struct control *control, int argc, char **argv)
{
    static const struct command command = COMMAND(
        "rules test", "FILE", "Run a table of cases: who may do what.",
        "FILE is a JSON object with rules, documents and cases, each case with caller, may, document, "
        "after,\n"
        "item and expected.  Prints each case that is not as expected, and the rule that decided; the exit\n"
        "status is 1 when there is one.  Needs no server.\n");
    struct rules_table table = {.arena = control->arena, .documents = {.arena = control->arena}};
    const char *rules = NULL;
    const struct option_line lines[] = {
        OPTION_FLAG("all", &table.prints_all, "Print the other cases, too."),
        RECORD_JSON_LINE(&table.is_json),
        OPTION_TEXT("rules", "RULES", &rules, "Test the rules in this file, in place of those in FILE.")};
    struct bytes text;
    char **words = options_read(control, &command, lines, COUNT_OF(lines), argc, argv);
    if (!words)
        return control->status;
    table.file = words[0];
    bool is_good = control_read_file(control->arena, words[0], &text) && read_root(&table, text) &&
                   cmd_rules_test_read_rules(&table, control, rules) &&
                   cmd_rules_test_read_documents(&table) && run_cases(&table);
    return is_good ? CONTROL_DONE : CONTROL_FAILED;
}
