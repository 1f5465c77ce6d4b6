/* explain: what may a caller do with a document, and by which rule (rules.md), for administrators.
 * param {"c","id","account","roles":[…]} → out {"exists","served","roles","rights":{right:{"may","rule"}…},
 * "items":[{"c","see","write"}…]}.
 *
 * `account` absent: nobody has signed in.  `roles` absent: those that the account has; of an account of a
 * provider they are in its token.  Filters of modules are not asked.
 *
 * With a member `cases` it runs a table of cases. */
#include "operation/builtin.h"

#include "model/account/account.h"
#include "model/rules/rules_case.h"
#include "operation/access/configurations.h"
#include "operation/access/stored_caller.h"
#include "operation/attempt.h"
#include "operation/judge/judge.h"
#include "operation/reader.h"

/* --- cases --- */

/* The part of `explain` that runs a table of cases, by the rules of the namespace or by a
 * draft of them.  Reads the table whole, then decides case by case, by the functions that judge requests. */

struct rules;

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

/* param {"cases":[…],"documents":[…],"rules":{…}}, as in the file of `stampctl rules test`; `own`: the rules
 * of the namespace, NULL: it has none → out {"cases":[{"may","rule","good"}…],"failed"}.  Documents that are
 * not in the table do not exist.  What a table costs is bounded by its number of cases and of documents. */
static enum fault explain_cases_run(struct attempt *attempt, const struct reader *reader,
                                    const struct rules *own)
{
    struct cases_table table = {
        .reader = reader, .arena = attempt->call->arena, .documents = {.arena = attempt->call->arena}};
    return FAULT_FIRST(read_root(&table), find_rules(&table, own), explain_cases_read_documents(&table),
                       run_explain_cases(&table, attempt->reply->body));
}

/* --- the operation --- */

struct explanation {
    struct attempt *attempt;
    struct stored_caller_rights rights;
    struct rules_caller caller;
    bool is_served; /* the account exists, and is neither disabled nor of a provider whose token is needed */
    const struct document *document;
    struct rules_question question;
};

static enum fault explain_load(void *context, struct bytes class, struct bytes id,
                               const struct document **document_r)
{
    const struct document_name name = {class, id};
    return judge_newest(context, &name, 1, SIZE_MAX, document_r);
}

/* --- the caller --- */

/* *are_given_r: the member is there. */
static enum fault explain_read_roles(const struct reader *reader, struct rules_caller *caller,
                                     bool *are_given_r)
{
    const struct json *list = json_member(reader->call->param, "roles");
    struct bytes roles[RULES_ROLES_MOST];
    size_t count = 0;
    *are_given_r = list && list->kind != JSON_NULL;
    if (!*are_given_r)
        return FAULT_NONE;
    if (!account_are_roles(list))
        return reader_wrong(reader, reader->call->param, "roles",
                            "An array of at most 32 roles is expected.");
    for (const struct json *one = list->first; one; one = one->next)
        roles[count++] = one->value;
    rules_caller_set_roles(reader->call->arena, caller, roles, count);
    return FAULT_NONE;
}

static enum fault find_caller(struct explanation *explanation, const struct reader *reader)
{
    struct attempt *attempt = explanation->attempt;
    struct rules_caller *caller = &explanation->caller;
    const struct ns_accounts *accounts = &explanation->rights.own->conf.accounts;
    const struct json *param = reader->call->param;
    const struct document *account;
    bool are_given;
    enum fault fault = reader_text(reader, param, "account", &caller->account);
    if (!fault && caller->account.data)
        fault = reader_check_length(reader, param, "account", caller->account);
    if (!fault)
        fault = explain_read_roles(reader, caller, &are_given);
    if (!fault && are_given && !caller->account.data)
        fault = reader_wrong(reader, param, "account", "The account that has the roles is expected.");
    explanation->is_served = true;
    if (fault || !caller->account.data || are_given)
        return fault;
    fault = explain_load(attempt, BYTES("Account"), caller->account, &account);
    explanation->is_served =
        !fault && stored_caller_is_served(attempt->call->arena, accounts, NO_BYTES, account, false, caller);
    return fault;
}

/* --- the answer --- */

static bool is_allowed(struct explanation *explanation, enum rules_deed deed, const struct draft *draft,
                       struct bytes item_class)
{
    struct rules_view view;
    const bool is_look = deed == RULES_DEED_READ || deed == RULES_DEED_LIST || deed == RULES_DEED_SEE;
    if (!explanation->is_served)
        return false;
    if (!explanation->rights.own->rules)
        return explanation->rights.level >= (is_look ? LEVEL_READ : LEVEL_WRITE);
    return rules_deed_may(&explanation->question, deed, draft, item_class, &view);
}

static void add_decision(struct explanation *explanation, enum rules_deed deed, const struct draft *draft,
                         struct bytes item_class)
{
    struct builder *body = explanation->attempt->reply->body;
    const char *comma = body->data[body->size - 1] == '{' ? "" : ",";
    builder_printf(body, "%s\"%s\":{\"may\":%s,\"rule\":", comma, rules_deed_word(deed),
                   is_allowed(explanation, deed, draft, item_class) ? "true" : "false");
    json_add_string(body, bytes_of(explanation->question.rule));
    builder_add_text(body, "}");
}

/* Of a document that does not exist: may it be created, without items? */
static void add_rights(struct explanation *explanation, struct draft *draft)
{
    if (!document_exists(explanation->document)) {
        draft_create(draft);
        add_decision(explanation, RULES_DEED_CREATE, draft, NO_BYTES);
        return;
    }
    add_decision(explanation, RULES_DEED_READ, draft, NO_BYTES);
    add_decision(explanation, RULES_DEED_LIST, draft, NO_BYTES);
    add_decision(explanation, RULES_DEED_UPDATE, draft, NO_BYTES);
    draft_delete(draft);
    add_decision(explanation, RULES_DEED_DELETE, draft, NO_BYTES);
}

/* A draft of its own, in which nothing is changed unless the caller does. */
static struct draft *open_draft(const struct explanation *explanation)
{
    return draft_open(explanation->attempt->call->arena, (struct document *)explanation->document);
}

static void add_item_class(struct explanation *explanation, const struct draft *draft, struct bytes class)
{
    struct builder *body = explanation->attempt->reply->body;
    json_add_text(body, "{\"c\":", class);
    add_decision(explanation, RULES_DEED_SEE, draft, class);
    add_decision(explanation, RULES_DEED_WRITE, draft, class);
    builder_add_text(body, "}");
}

/* Each class of items of the document, which are sorted. */
static void explain_add_items(struct explanation *explanation)
{
    struct builder *body = explanation->attempt->reply->body;
    const struct draft *draft = open_draft(explanation);
    const struct item *last = NULL;
    for (size_t i = 0; i < explanation->document->item_count; i++) {
        const struct item *item = &explanation->document->items[i];
        if (!item->content.data || (last && bytes_equal(last->iclass, item->iclass)))
            continue;
        if (last)
            builder_add_text(body, ",");
        add_item_class(explanation, draft, item->iclass);
        last = item;
    }
}

static void add_roles(const struct explanation *explanation)
{
    struct builder *body = explanation->attempt->reply->body;
    for (size_t i = 0; i < explanation->caller.role_count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, explanation->caller.roles[i]);
    }
}

static enum fault explain_explain(struct explanation *explanation)
{
    struct attempt *attempt = explanation->attempt;
    struct builder *body = attempt->reply->body;
    explanation->question = (struct rules_question){.rules = explanation->rights.own->rules,
                                                    .caller = &explanation->caller,
                                                    .load = explain_load,
                                                    .context = attempt,
                                                    .arena = attempt->call->arena,
                                                    .rule = ""};
    builder_printf(body, "{\"exists\":%s,\"access\":\"%s\",\"served\":%s,\"roles\":[",
                   document_exists(explanation->document) ? "true" : "false",
                   namespace_access_word(explanation->rights.own->conf.mode),
                   explanation->is_served ? "true" : "false");
    add_roles(explanation);
    builder_add_text(body, "],\"rights\":{");
    add_rights(explanation, open_draft(explanation));
    builder_add_text(body, "},\"items\":[");
    explain_add_items(explanation);
    builder_add_text(body, "]}");
    return explanation->question.fault;
}

static enum fault explain_work(struct attempt *attempt)
{
    struct explanation explanation = {.attempt = attempt};
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    struct document_name name;
    enum fault fault = stored_caller_find_rights(attempt->worker_context, attempt->call, &explanation.rights);
    if (!fault && param && param->kind == JSON_OBJECT && json_member(param, "cases"))
        return explain_cases_run(attempt, &reader, explanation.rights.own->rules);
    if (!fault)
        fault = FAULT_FIRST(reader_members(&reader, param, "c id account roles"),
                            reader_name(&reader, param, &name), find_caller(&explanation, &reader),
                            explain_load(attempt, name.class, name.id, &explanation.document));
    return fault ? fault : explain_explain(&explanation);
}

const struct operation builtin_explain = {
    .name = "explain", .right = RIGHT_ADMIN, .only_reads = true, .is_safe = true, .work = explain_work};
