/* schema: administrators read and declare the classes of namespaces (schema.md).
 *
 * In a namespace, param {} → what is applied there, and how far that is:
 * {"number","schema":{…},"building":[field…],"filling":[{"c","i","done"}…]}.
 *
 * In z, one member: {"get":code} → {"v","schema":{…}}, the declaration in its canonical form, or
 * {"v","malformed":sentence}; {"check":{…}} → {"classes":number}; {"set":{"ns","if":version,"schema":{…}}} →
 * {"v","warnings":[sentence…]}: null removes the declaration, and the warnings are about access rules that it
 * contradicts; {"plan"|"apply":{"ns","if":version}} → {"v"}, and {"run":code} →
 * {"v","run":{"do","of","state"}, "printed":{"text"}}.  A declaration takes effect when `stampctl schema
 * apply` applies it, or `stampctl schema watch`, which does what is asked for here: the server has no right
 * to create tables. */
#include "operation/builtin.h"

#include "blob/thumbnailer.h"
#include "model/schema/schema.h"
#include "operation/documents/change.h"
#include "operation/administration/of_z.h"
#include "operation/administration/rules_warnings.h"
#include "store/documents/store_schema.h"

static const char members[] = "get check set plan apply run";
static const char elsewhere[] = "Schemas are declared in the namespace z: call it there.";

static struct document_name schema_name_of(struct bytes code)
{
    return (struct document_name){.class = BYTES("Schema"), .id = code};
}

/* --- reading --- */

static enum fault show_applied(struct attempt *attempt)
{
    struct bytes text;
    enum fault fault = store_schema_progress(documents_store(attempt->worker_context->documents), attempt->ns,
                                             attempt->call->arena, &text);
    if (!fault)
        builder_add_bytes(attempt->reply->body, text);
    return fault;
}

/* FAULT_NNAMESPACE: there is no such namespace. */
static enum fault find_namespace(struct attempt *attempt, const struct reader *reader, struct bytes code,
                                 const struct document **document_r)
{
    const struct document_name name = {BYTES("Namespace"), code};
    enum fault fault = transaction_consult(attempt->transaction, name, document_r);
    return fault || document_exists(*document_r) ? fault : of_z_refuse_absence(reader, code);
}

static void write_declaration(struct attempt *attempt, struct bytes text)
{
    struct builder *body = attempt->reply->body;
    struct schema *schema;
    struct schema_problem problem;
    if (schema_read(attempt->call->arena, text, &schema, &problem)) {
        builder_add_text(body, ",\"malformed\":");
        json_add_string(
            body, bytes_of(arena_printf(attempt->call->arena, "%s: %s", problem.path, problem.expected)));
        return;
    }
    builder_add_text(body, ",\"schema\":");
    schema_write(schema, body);
}

static enum fault schema_get(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    const struct document *of_namespace, *document;
    struct bytes code;
    enum fault fault = FAULT_FIRST(
        of_z_read_code(reader, param, "get", &code), find_namespace(attempt, reader, code, &of_namespace),
        transaction_consult(attempt->transaction, schema_name_of(code), &document));
    if (fault)
        return fault;
    struct bytes text = of_z_content(document, BYTES("Conf"));
    builder_printf(attempt->reply->body, "{\"v\":%lld", (long long)change_version(document));
    if (text.data)
        write_declaration(attempt, text);
    builder_add_text(attempt->reply->body, "}");
    return FAULT_NONE;
}

/* --- declaring --- */

/* A path "classes.Note.items" as a pointer. */
static const char *pointer_of(struct arena *arena, const char *path)
{
    char *pointer = arena_printf(arena, "%s%s", *path ? "/" : "", path);
    for (char *dot = pointer; *dot; dot++)
        if (*dot == '.')
            *dot = '/';
    return pointer;
}

/* The declaration in the member of `object`; FAULT_AARG with the place in it. */
static enum fault read_declaration(const struct reader *reader, const struct json *object, const char *member,
                                   struct schema **schema_r)
{
    const struct json *value = json_member(object, member);
    struct arena *arena = reader->call->arena;
    struct schema_problem problem;
    if (!value || value->kind != JSON_OBJECT)
        return reader_wrong(reader, object, member, "A declaration of classes is expected: an object.");
    if (!schema_read(arena, value->text, schema_r, &problem))
        return FAULT_NONE;
    enum fault fault = reader_wrong(reader, object, member, problem.expected);
    if (reader->reply->at)
        reader->reply->at = arena_printf(arena, "%s%s", reader->reply->at, pointer_of(arena, problem.path));
    return fault;
}

static enum fault check(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    struct schema *schema;
    enum fault fault = read_declaration(reader, param, "check", &schema);
    if (!fault)
        builder_printf(attempt->reply->body, "{\"classes\":%zu}", schema->class_count);
    return fault;
}

static void schema_warn(struct attempt *attempt, const struct document *of_namespace,
                        const struct schema *schema)
{
    struct bytes text = of_z_content(of_namespace, BYTES("Rules"));
    struct rules *rules;
    struct rules_problem problem;
    if (text.data && !rules_read(attempt->call->arena, text, &rules, &problem)) {
        struct builder list = {0};
        rules_warnings_compare(attempt, rules, schema, &list);
        rules_warnings_write(attempt, &list);
    }
}

static enum fault schema_fetch(struct attempt *attempt, const struct reader *reader, const struct json *wish,
                               struct bytes code, struct draft **draft_r)
{
    int64_t expected;
    enum fault fault = FAULT_FIRST(reader_integer(reader, wish, "if", 0, STAMP_MAX, -1, &expected),
                                   transaction_fetch(attempt->transaction, schema_name_of(code), draft_r));
    if (!fault && expected >= 0 && expected != change_version(draft_base(*draft_r))) {
        fault = change_refuse_version(reader, draft_base(*draft_r));
        reader_place(reader, wish, "if");
    }
    return fault;
}

static enum fault set_schema(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    const struct json *wish = json_member(param, "set");
    const struct document *of_namespace;
    struct schema *schema = NULL;
    struct draft *draft;
    struct bytes code;
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, "set", "An object is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(reader, wish, "ns if schema"), of_z_read_code(reader, wish, "ns", &code));
    const struct json *declared = json_member(wish, "schema");
    const bool is_removal = declared && declared->kind == JSON_NULL;
    if (!fault && !is_removal)
        fault = read_declaration(reader, wish, "schema", &schema);
    if (schema && schema->has_thumbnails &&
        !thumbnailer_is_there(attempt->worker_context->settings->thumbnail_program))
        fault = reply_fault(attempt->call, attempt->reply, FAULT_OTHUMBNAILS, NULL, NULL);
    if (!fault)
        fault = FAULT_FIRST(find_namespace(attempt, reader, code, &of_namespace),
                            schema_fetch(attempt, reader, wish, code, &draft));
    if (fault)
        return fault;
    if (is_removal) {
        draft_delete(draft);
    } else {
        draft_create(draft);
        draft_set_item(draft, BYTES("Conf"), BYTES(""), false, declared->text);
    }
    change_leave_version(attempt, change_version(draft_base(draft)));
    if (schema)
        schema_warn(attempt, of_namespace, schema);
    return FAULT_NONE;
}

/* --- asking for a plan, or for an apply --- */

static struct document_name run_of(struct bytes code)
{
    return (struct document_name){.class = BYTES("SchemaRun"), .id = code};
}

/* Replaces what was asked for before: `schema watch` obeys the last request. */
static enum fault schema_ask(struct attempt *attempt, const struct reader *reader, const struct json *param,
                             const char *deed)
{
    const struct json *wish = json_member(param, deed);
    const struct document *of_namespace;
    struct draft *draft;
    struct bytes code;
    if (wish->kind != JSON_OBJECT || wish->is_shallow)
        return reader_wrong_value(reader, wish, deed, "An object is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(reader, wish, "ns if"), of_z_read_code(reader, wish, "ns", &code),
                    find_namespace(attempt, reader, code, &of_namespace),
                    schema_fetch(attempt, reader, wish, code, &draft));
    const int64_t version = fault ? 0 : change_version(draft_base(draft));
    if (!fault)
        fault = transaction_fetch(attempt->transaction, run_of(code), &draft);
    if (fault)
        return fault;
    draft_create(draft);
    draft_remove_item(draft, BYTES("Lines"), BYTES(""));
    draft_set_item(
        draft, BYTES("Conf"), BYTES(""), false,
        bytes_of(arena_printf(reader->call->arena, "{\"do\":\"%s\",\"of\":%lld,\"state\":\"asked\"}", deed,
                              (long long)version)));
    change_leave_version(attempt, change_version(draft_base(draft)));
    return FAULT_NONE;
}

static enum fault plan_schema(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    return schema_ask(attempt, reader, param, "plan");
}

static enum fault apply(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    return schema_ask(attempt, reader, param, "apply");
}

static enum fault show_run(struct attempt *attempt, const struct reader *reader, const struct json *param)
{
    const struct document *of_namespace, *document;
    struct builder *body = attempt->reply->body;
    struct bytes code;
    enum fault fault = FAULT_FIRST(of_z_read_code(reader, param, "run", &code),
                                   find_namespace(attempt, reader, code, &of_namespace),
                                   transaction_consult(attempt->transaction, run_of(code), &document));
    if (fault)
        return fault;
    struct bytes conf = of_z_content(document, BYTES("Conf")), lines = of_z_content(document, BYTES("Lines"));
    builder_printf(body, "{\"v\":%lld", (long long)change_version(document));
    if (conf.data) {
        builder_add_text(body, ",\"run\":");
        builder_add_bytes(body, conf);
    }
    if (lines.data) {
        builder_add_text(body, ",\"printed\":");
        builder_add_bytes(body, lines);
    }
    builder_add_text(body, "}");
    return FAULT_NONE;
}

/* --- the operation --- */

static bool schema_is_change(const struct call *call)
{
    static const char *const changes[] = {"set", "plan", "apply"};
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        if (json_member(call->param, changes[i]))
            return true;
    return false;
}

static bool schema_is_look(const struct call *call)
{
    return !schema_is_change(call);
}

static enum fault schema_work(struct attempt *attempt)
{
    static const struct {
        const char *member;
        enum fault (*act)(struct attempt *attempt, const struct reader *reader, const struct json *param);
    } acts[] = {{"get", schema_get},   {"check", check}, {"set", set_schema},
                {"plan", plan_schema}, {"apply", apply}, {"run", show_run}};
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *param = attempt->call->param;
    enum fault fault = reader_members(&reader, param, members);
    if (!fault && (!param || !param->first))
        return show_applied(attempt);
    if (!fault)
        fault =
            of_z_check(&reader, members, elsewhere, "One of get, check, set, plan, apply, run is expected.");
    if (fault)
        return fault;
    for (size_t i = 0; i < COUNT_OF(acts); i++)
        if (json_member(param, acts[i].member))
            return acts[i].act(attempt, &reader, param);
    return FAULT_BINTERNAL;
}

static enum fault schema_afterwork(struct attempt *attempt)
{
    return schema_is_change(attempt->call) ? change_complete_version(attempt) : FAULT_NONE;
}

const struct operation builtin_schema = {.name = "schema",
                                         .right = RIGHT_ADMIN,
                                         .work = schema_work,
                                         .afterwork = schema_afterwork,
                                         .is_look = schema_is_look};
