/* explain_cases: reads the table whole, then decides case by case, by the functions that judge requests. */
#include "operation/administration/explain_cases.h"

#include "model/rules/rules_case.h"

enum { CASES_MOST = 500, DOCUMENTS_MOST = 500, TABLE_DEPTH = 128, TABLE_NODES = 200000 };

struct cases_table {
    const struct reader *reader;
    struct arena *arena;
    const struct json *root;
    const struct rules *rules;
    struct rules_documents documents;
};

/* --- reading --- */

/* "cases[3].may" as "/cases/3/may". */
static const char *pointer_of(struct arena *arena, const char *place)
{
    struct builder pointer = {0};
    if (*place)
        builder_add_text(&pointer, "/");
    for (const char *sign = place; *sign; sign++)
        if (*sign != ']')
            builder_printf(&pointer, "%c", *sign == '[' || *sign == '.' ? '/' : *sign);
    const char *text = arena_printf(arena, "%.*s", (int)pointer.size, pointer.size ? pointer.data : "");
    builder_free(&pointer);
    return text;
}

static enum fault refuse_at(const struct cases_table *table, const char *member, const char *pointer,
                            const char *expected)
{
    const struct reader *reader = table->reader;
    enum fault fault = reader_wrong(reader, reader->call->param, member, expected);
    reader->reply->at = arena_printf(table->arena, "/param%s", pointer);
    return fault;
}

static enum fault explain_cases_refuse(const struct cases_table *table)
{
    const struct rules_documents *documents = &table->documents;
    return refuse_at(table, documents->place, pointer_of(table->arena, documents->place), documents->problem);
}

/* The arguments are a tree to a certain depth alone. */
static enum fault read_root(struct cases_table *table)
{
    static const struct json_limits limits = {
        .depth = TABLE_DEPTH, .tree_depth = TABLE_DEPTH, .nodes = TABLE_NODES};
    struct json *root;
    struct json_problem problem;
    if (json_read(table->arena, table->reader->call->param->text, &limits, &root, &problem))
        return refuse_at(table, "cases", "", "Fewer values in a table are expected.");
    table->root = root;
    return reader_members(table->reader, table->reader->call->param, "cases documents rules");
}

/* A list in the table; absent: an empty one. */
static enum fault find_list(const struct cases_table *table, const char *name, int64_t most,
                            const struct json **first_r)
{
    const struct json *list = json_member(table->root, name);
    *first_r = list ? list->first : NULL;
    if (!list || (list->kind == JSON_ARRAY && list->count <= most))
        return FAULT_NONE;
    return refuse_at(table, name, arena_printf(table->arena, "/%s", name),
                     arena_printf(table->arena, "A list of at most %d elements is expected.", (int)most));
}

static enum fault find_rules(struct cases_table *table, const struct rules *own)
{
    const struct json *draft = json_member(table->root, "rules");
    struct rules *rules;
    struct rules_problem problem;
    table->rules = own;
    if (!draft)
        return own ? FAULT_NONE
                   : refuse_at(table, "rules", "/rules", "Rules are expected: the namespace has none.");
    if (rules_read(table->arena, draft->text, &rules, &problem))
        return refuse_at(table, "rules", arena_printf(table->arena, "/rules%s", problem.pointer),
                         problem.expected);
    table->rules = rules;
    return FAULT_NONE;
}

static enum fault explain_cases_read_documents(struct cases_table *table)
{
    const struct json *one;
    enum fault fault = find_list(table, "documents", DOCUMENTS_MOST, &one);
    for (; !fault && one; one = one->next) {
        const char *where = arena_printf(table->arena, "documents[%zu]", table->documents.count);
        const struct document *document = rules_documents_read(&table->documents, where, one);
        if (!document)
            return explain_cases_refuse(table);
        rules_documents_add(&table->documents, document);
    }
    return fault;
}

/* --- running --- */

static enum fault run_explain_cases(struct cases_table *table, struct builder *body)
{
    const struct json *one;
    struct rules_case read;
    size_t count = 0, failed = 0;
    enum fault fault = find_list(table, "cases", CASES_MOST, &one);
    builder_add_text(body, "{\"cases\":[");
    for (; !fault && one; one = one->next, count++) {
        const char *where = arena_printf(table->arena, "cases[%zu]", count);
        if (!rules_case_read(&table->documents, where, one, &read))
            return explain_cases_refuse(table);
        const struct rules_answer answer =
            rules_case_decide(table->arena, table->rules, &read, rules_documents_load, &table->documents);
        failed += answer.may != read.expected;
        builder_printf(body, "%s{\"may\":%s,\"rule\":", count ? "," : "", answer.may ? "true" : "false");
        json_add_string(body, bytes_of(answer.rule));
        builder_printf(body, ",\"good\":%s}", answer.may == read.expected ? "true" : "false");
        fault = answer.fault;
    }
    builder_printf(body, "],\"failed\":%zu}", failed);
    return fault;
}

enum fault explain_cases_run(struct attempt *attempt, const struct reader *reader, const struct rules *own)
{
    struct cases_table table = {
        .reader = reader, .arena = attempt->call->arena, .documents = {.arena = attempt->call->arena}};
    enum fault fault = read_root(&table);
    if (!fault)
        fault = find_rules(&table, own);
    if (!fault)
        fault = explain_cases_read_documents(&table);
    return fault ? fault : run_explain_cases(&table, attempt->reply->body);
}
