/* ns: administrators read and change the configurations of namespaces (model/namespace.h), in the namespace
 * z. param, one member: {"list":{"limit","cursor"}} → {"namespaces":[namespace…],"cursor":code};
 * {"get":code} → namespace: {"ns","v","database","access","state"…,"malformed":member}, with its access
 * rules (model/rules/rules.h); {"set":{"ns","if":version,"access","state","message",…,"rules":{…}}} →
 * {"v":version,"warnings":[sentence…]}: null removes a member; the warnings are about origins, which nginx
 * has too, and about rules that the schema of the namespace contradicts (model/rules/rules_schema.h). */
#include "operation/builtin.h"

#include "base/clock.h"
#include "base/names.h"
#include "model/namespace.h"
#include "model/document/stamp.h"
#include "operation/documents/build.h"
#include "operation/documents/change.h"
#include "operation/administration/of_z.h"
#include "operation/administration/rules_warnings.h"
#include "operation/tasks/task_wakeup.h"
#include "store/collections/store_list.h"

enum { LIMIT_STANDARD = 20, LIMIT_MOST = 32 };

static struct document_name ns_name_of(struct bytes code)
{
    return (struct document_name){.class = BYTES("Namespace"), .id = code};
}

/* --- reading --- */

static void ns_add_text(struct builder *body, const char *name, struct bytes text)
{
    builder_printf(body, ",\"%s\":", name);
    json_add_string(body, text);
}

/* Rules that stampctl or an operation of the server wrote are valid. */
static void write_rules(struct attempt *attempt, const struct document *document)
{
    struct bytes text = of_z_content(document, BYTES("Rules"));
    if (text.data)
        builder_printf(attempt->reply->body, ",\"rules\":%.*s", (int)text.size, text.data);
}

/* What is malformed is left out and named. */
static void write_namespace(struct attempt *attempt, const struct document *document, bool is_whole)
{
    struct builder *body = attempt->reply->body;
    const struct ns_conf conf = namespace_read(attempt->call->arena, of_z_content(document, BYTES("Conf")));
    const struct {
        const char *name;
        struct bytes text;
    } texts[] = {{"message", conf.message}, {"label", conf.label}, {"theme", conf.theme}};
    json_add_text(body, "{\"ns\":", document->header.id);
    builder_printf(body, ",\"v\":%lld", (long long)change_version(document));
    if (conf.database.size)
        ns_add_text(body, "database", conf.database);
    builder_printf(body, ",\"access\":\"%s\",\"state\":%d", namespace_access_word(conf.mode), conf.state);
    for (size_t i = 0; i < COUNT_OF(texts); i++)
        if (texts[i].text.size)
            ns_add_text(body, texts[i].name, texts[i].text);
    if (conf.origins)
        builder_printf(body, ",\"origins\":%.*s", (int)conf.origins->text.size, conf.origins->text.data);
    if (conf.reads)
        builder_printf(body, ",\"reads\":%.*s", (int)conf.reads->text.size, conf.reads->text.data);
    if (conf.readers)
        builder_printf(body, ",\"readers\":%.*s", (int)conf.readers->text.size, conf.readers->text.data);
    if (conf.options.size)
        builder_printf(body, ",\"options\":%.*s", (int)conf.options.size, conf.options.data);
    if (conf.is_spread)
        builder_add_text(body, ",\"spread\":true");
    if (conf.accounts_text.size)
        builder_printf(body, ",\"accounts\":%.*s", (int)conf.accounts_text.size, conf.accounts_text.data);
    if (conf.quotas)
        builder_printf(body, ",\"quotas\":%.*s", (int)conf.quotas->text.size, conf.quotas->text.data);
    if (conf.wrong)
        ns_add_text(body, "malformed", bytes_of(*conf.wrong ? conf.wrong : "all"));
    if (is_whole && conf.records_text.size)
        builder_printf(body, ",\"records\":%.*s", (int)conf.records_text.size, conf.records_text.data);
    if (is_whole && conf.workers_text.size)
        builder_printf(body, ",\"workers\":%.*s", (int)conf.workers_text.size, conf.workers_text.data);
    if (is_whole)
        write_rules(attempt, document);
    builder_add_text(body, "}");
}

static enum fault ns_get(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    struct bytes code;
    struct draft *draft;
    enum fault fault = FAULT_FIRST(of_z_read_code(reader, param, "get", &code),
                                   transaction_fetch(attempt->transaction, ns_name_of(code), &draft));
    if (fault)
        return fault;
    if (!draft_exists(draft))
        return of_z_refuse_absence(reader, code);
    write_namespace(attempt, draft_base(draft), true);
    return FAULT_NONE;
}

static enum fault ns_read_page(const struct reader *reader, const struct json *wish, struct list_query *query)
{
    int64_t limit = LIMIT_STANDARD;
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, "list", "An object is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(reader, wish, "limit cursor"),
                    reader_integer(reader, wish, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit));
    if (!fault && json_member(wish, "cursor"))
        fault = of_z_read_code(reader, wish, "cursor", &query->cursor);
    query->class = BYTES("Namespace");
    query->limit = (int32_t)limit;
    query->minute = clock_present_minute();
    return fault;
}

/* A page is at most the documents that an operation may have: they are of one instant. */
static enum fault ns_list(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    struct list_query query = {0};
    struct header *headers;
    struct bytes more;
    size_t count;
    enum fault fault = ns_read_page(reader, json_member(param, "list"), &query);
    if (!fault && query.limit > reader->settings->limit_documents)
        query.limit = (int32_t)reader->settings->limit_documents;
    if (!fault)
        fault = store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                           attempt->call->arena, &query, &headers, &count, &more);
    if (fault)
        return fault;
    struct document_name *names = ARENA_ARRAY(attempt->call->arena, struct document_name, count);
    struct draft **drafts = ARENA_ARRAY(attempt->call->arena, struct draft *, count);
    for (size_t i = 0; i < count; i++)
        names[i] = ns_name_of(headers[i].id);
    fault = transaction_fetch_many(attempt->transaction, names, count, drafts);
    builder_add_text(attempt->reply->body, "{\"namespaces\":[");
    const char *comma = "";
    for (size_t i = 0; i < count && !fault; i++)
        if (draft_exists(drafts[i])) {
            builder_printf(attempt->reply->body, "%s", comma);
            write_namespace(attempt, draft_base(drafts[i]), false);
            comma = ",";
        }
    builder_add_text(attempt->reply->body, "]");
    if (more.data)
        ns_add_text(attempt->reply->body, "cursor", more);
    builder_add_text(attempt->reply->body, "}");
    return fault;
}

/* --- changing --- */

/* z may have no configuration: its first one names its database, as stampctl does. */
static enum fault find_present(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                               struct bytes code, struct draft *draft, struct bytes *text_r)
{
    struct arena *arena = attempt->call->arena;
    *text_r = draft_exists(draft) ? of_z_content(draft_base(draft), BYTES("Conf")) : NO_BYTES;
    if (!text_r->data && bytes_equal(code, BYTES("z"))) {
        *text_r = namespace_set_member(arena, NO_BYTES, "database", reader->settings->z_database);
        return FAULT_NONE;
    }
    if (!text_r->data)
        return of_z_refuse_absence(reader, code);
    const struct ns_conf conf = namespace_read(arena, *text_r);
    if (conf.wrong && !*conf.wrong)
        return reader_wrong(reader, wish, "ns",
                            "Its configuration is no object: `stampctl ns create` writes it again.");
    return FAULT_NONE;
}

static enum fault change_members(const struct reader *reader, const struct json *wish, struct bytes *text)
{
    struct arena *arena = reader->call->arena;
    for (const struct json *member = wish->first; member; member = member->next) {
        if (names_have("ns if rules", member->name))
            continue;
        const char *name = arena_copy(arena, member->name.data, member->name.size);
        const char *expected =
            member->kind == JSON_NULL ? NULL : namespace_refuse_member(arena, member->name, member);
        if (expected)
            return reader_wrong(reader, wish, name, expected);
        *text = namespace_set_json(arena, *text, name, member->kind == JSON_NULL ? NO_BYTES : member->text);
    }
    return FAULT_NONE;
}

/* The pointer to the error goes into the rules. */
static enum fault refuse_rules(const struct reader *reader, const struct json *wish,
                               const struct rules_problem *problem)
{
    enum fault fault = reader_wrong(reader, wish, "rules", problem->expected);
    if (reader->reply->at)
        reader->reply->at = arena_printf(reader->call->arena, "%s%s", reader->reply->at, problem->pointer);
    return fault;
}

/* `rules_r`: the new ones; NULL: none. */
static enum fault change_rules(const struct reader *reader, const struct json *wish, struct draft *draft,
                               const struct rules **rules_r)
{
    const struct json *member = json_member(wish, "rules");
    struct rules *rules = NULL;
    struct rules_problem problem;
    if (!member)
        return FAULT_NONE;
    if (member->kind == JSON_NULL)
        draft_remove_item(draft, BYTES("Rules"), BYTES(""));
    else if (rules_read(reader->call->arena, member->text, &rules, &problem))
        return refuse_rules(reader, wish, &problem);
    else
        draft_set_item(draft, BYTES("Rules"), BYTES(""), false, member->text);
    *rules_r = rules;
    return FAULT_NONE;
}

/* Compares the rules with the schema that is declared for the namespace, if there is one. */
static enum fault warn_of_rules(struct attempt *attempt, struct bytes code, const struct rules *rules,
                                struct builder *list)
{
    struct arena *arena = attempt->call->arena;
    const struct document_name name = {BYTES("Schema"), code};
    const struct document *document;
    struct schema *schema;
    struct schema_problem problem;
    enum fault fault = transaction_consult(attempt->transaction, name, &document);
    if (fault)
        return fault;
    struct bytes text = of_z_content(document, BYTES("Conf"));
    if (text.data && !schema_read(arena, text, &schema, &problem))
        rules_warnings_compare(attempt, rules, schema, list);
    return FAULT_NONE;
}

static bool is_same_list(const struct json *one, const struct json *other)
{
    return bytes_equal(one ? one->text : NO_BYTES, other ? other->text : NO_BYTES);
}

/* nginx has the origins, and from which of them cookies come, in a file that only stampctl may write. */
static void warn_of_origins(struct arena *arena, struct bytes before, struct bytes after,
                            struct builder *list)
{
    const struct ns_conf old = namespace_read(arena, before), new = namespace_read(arena, after);
    if (is_same_list(old.origins, new.origins) && (!new.origins || old.accounts.is_on == new.accounts.is_on))
        return;
    rules_warnings_add(list, "Run `stampctl ns map` on the host of nginx: until then nginx knows the former "
                             "origins, and the pages of new ones cannot read what it refuses by itself.");
}

static enum fault ns_warn(struct attempt *attempt, struct bytes code, struct bytes before, struct bytes after,
                          const struct rules *rules)
{
    struct builder list = {0};
    warn_of_origins(attempt->call->arena, before, after, &list);
    enum fault fault = rules ? warn_of_rules(attempt, code, rules, &list) : FAULT_NONE;
    rules_warnings_write(attempt, &list);
    return fault;
}

static enum fault ns_set(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    const struct json *wish = json_member(param, "set");
    struct bytes code, text;
    const struct rules *rules = NULL;
    struct draft *draft;
    int64_t expected;
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, "set", "An object is expected.");
    enum fault fault = FAULT_FIRST(reader_members(reader, wish, "ns if rules " NAMESPACE_MEMBERS),
                                   of_z_read_code(reader, wish, "ns", &code),
                                   reader_integer(reader, wish, "if", 0, STAMP_MAX, -1, &expected),
                                   transaction_fetch(attempt->transaction, ns_name_of(code), &draft));
    if (!fault && expected >= 0 && expected != change_version(draft_base(draft))) {
        fault = change_refuse_version(reader, draft_base(draft));
        reader_place(reader, wish, "if");
    }
    if (!fault)
        fault = find_present(attempt, reader, wish, code, draft, &text);
    struct bytes before = fault ? NO_BYTES : text;
    if (!fault)
        fault = change_members(reader, wish, &text);
    const char *refusal = fault ? NULL : namespace_refuse_change(attempt->call->arena, before, text);
    if (refusal)
        fault = reader_wrong(reader, wish, "accounts", refusal);
    if (!fault)
        fault = change_rules(reader, wish, draft, &rules);
    if (fault)
        return fault;
    draft_create(draft);
    draft_set_item(draft, BYTES("Conf"), BYTES(""), false, text);
    build_note(attempt, draft);
    change_leave_version(attempt, change_version(draft_base(draft)));
    return ns_warn(attempt, code, before, text, rules);
}

/* --- the operation --- */

static const struct json *find_set(const struct call *call)
{
    return json_member(call->param, "set");
}

static bool ns_is_look(const struct call *call)
{
    return !find_set(call);
}

static enum fault ns_work(struct attempt *attempt)
{
    static const struct {
        const char *member;
        enum fault (*act)(struct attempt *attempt, const struct reader *reader, const struct json *param);
    } acts[] = {{"list", ns_list}, {"get", ns_get}, {"set", ns_set}};
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    enum fault fault =
        of_z_check(&reader, "list get set", "Namespaces are configured in the namespace z: call it there.",
                   "One of list, get, set is expected.");
    if (fault)
        return fault;
    for (size_t i = 0; i < COUNT_OF(acts); i++)
        if (json_member(param, acts[i].member))
            return acts[i].act(attempt, &reader, param);
    return FAULT_BINTERNAL;
}

/* Tasks that have waited need not wait for the next scan. */
static enum fault ns_afterwork(struct attempt *attempt)
{
    const struct json *wish = find_set(attempt->call), *code = json_member(wish, "ns");
    if (!wish)
        return FAULT_NONE;
    if (json_member(wish, "state"))
        task_wakeup_ns(attempt->worker_context->settings, code->value, stamp_now());
    return change_complete_version(attempt);
}

const struct operation builtin_ns = {
    .name = "ns", .right = RIGHT_ADMIN, .work = ns_work, .afterwork = ns_afterwork, .is_look = ns_is_look};
