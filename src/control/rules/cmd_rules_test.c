/* cmd_rules_test: `stampctl rules test`: runs a table of cases, without a server. */
#include "control/rules/cmd_rules.h"

#include <stdio.h>
#include <string.h>

#include "control/message.h"
#include "control/record.h"
#include "model/rules/rules_case.h"

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
    message_print("%s: %s%s%s", table->file, documents->place, *documents->place ? ": " : "",
                  documents->problem);
    return false;
}

static bool read_root(struct rules_table *table, struct bytes text)
{
    static const struct json_limits limits = {
        .depth = TEXT_DEPTH, .tree_depth = TEXT_DEPTH, .nodes = TEXT_NODES};
    struct json *root;
    struct json_problem problem;
    if (json_read(table->arena, text, &limits, &root, &problem)) {
        message_print("%s: A JSON object is expected: %s, at byte %zu.", table->file, problem.what,
                      problem.offset);
        return false;
    }
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
    message_print("%s: %s: A list of at most %zu elements is expected.", table->file, name, most);
    return false;
}

static bool cmd_rules_test_read_rules(struct rules_table *table, struct control *control, const char *path)
{
    struct bytes text;
    const struct json *member = json_member(table->root, "rules");
    if (!path && !member) {
        message_print("%s: The member rules is expected, or --rules.", table->file);
        return false;
    }
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
    static const struct command command = {
        "rules test",
        "FILE",
        1,
        1,
        "Run a table of cases: who may do what.",
        "FILE is a JSON object with rules, documents and cases, each case with caller, may, document, "
        "after,\n"
        "item and expected.  Prints each case that is not as expected, and the rule that decided; the exit\n"
        "status is 1 when there is one.  Needs no server.\n"};
    struct rules_table table = {.arena = control->arena, .documents = {.arena = control->arena}};
    const char *rules = NULL;
    const struct option_line lines[] = {
        OPTION_FLAG("all", &table.prints_all, "Print the other cases, too."),
        RECORD_JSON_LINE(&table.is_json),
        OPTION_TEXT("rules", "RULES", &rules, "Test the rules in this file, in place of those in FILE.")};
    char **words;
    int count;
    struct bytes text;
    enum options_result result = options_read(&command, lines, COUNT_OF(lines), argc, argv, &words, &count);
    if (result != OPTIONS_READ)
        return options_status(result);
    table.file = words[0];
    bool is_good = control_read_file(control->arena, words[0], &text) && read_root(&table, text) &&
                   cmd_rules_test_read_rules(&table, control, rules) &&
                   cmd_rules_test_read_documents(&table) && run_cases(&table);
    return is_good ? CONTROL_DONE : CONTROL_FAILED;
}
