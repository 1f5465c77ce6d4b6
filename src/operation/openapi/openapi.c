/* openapi: describes the namespace to the caller, as a document of OpenAPI 3.1 (protocol.md).
 * GET /{ns}/openapi.json, and param {} → the document.
 *
 * What never changes, the operations of the server and the forms of documents, is openapi.json, which the
 * build turns into openapi_text.h.  Here the paths that the caller may not use are left out, and operations
 * of modules, classes of the schema and what the rules allow are added: nothing that the caller may not know.
 */
#include "operation/builtin.h"

#include "base/builder.h"
#include "base/log.h"
#include "base/names.h"
#include "edge/json/json.h"
#include "model/rules/rules_schema.h"
#include "operation/access/access.h"
#include "operation/accounts/accounts.h"
#include "operation/classes.h"
#include "operation/reader.h"
#include "operation/registry.h"

/* --- contents --- */

/* The JSON Schema of an item's content (validation.md) as a part of a larger document.
 *
 * References of a schema begin at its own root.  In the larger document they have to begin at its root, so
 * they are rewritten; anchors, which tools look for in the whole document, become pointers.  Copies the tree,
 * member by member, except for what are values and not schemas. */

static const struct json_limits content_limits = {.depth = 256, .tree_depth = 256};

struct content_copy {
    const struct json *root;
    const char *place;
    struct builder *body;
};

/* Is its value no schema? */
static bool is_value(struct bytes name)
{
    return names_have("const enum default examples", name);
}

/* Is its value an object with a schema for each name? */
static bool has_names(struct bytes name)
{
    return names_have("properties patternProperties dependentSchemas $defs", name);
}

/* The schema with the anchor; NULL: none. */
static const struct json *find_anchor(const struct json *schema, struct bytes anchor, bool is_names)
{
    const struct json *own = is_names ? NULL : json_member(schema, "$anchor"), *found = NULL;
    if (own && own->kind == JSON_STRING && bytes_equal(own->value, anchor))
        return schema;
    for (const struct json *one = schema->first; one && !found; one = one->next)
        if (is_names || !is_value(one->name))
            found = find_anchor(one, anchor, !is_names && has_names(one->name));
    return found;
}

static void add_reference(const struct content_copy *copy, struct bytes reference)
{
    const struct bytes fragment = {reference.data + 1, reference.size - 1};
    const struct json *anchored =
        fragment.size && *fragment.data != '/' ? find_anchor(copy->root, fragment, false) : NULL;
    struct builder target = {0};
    builder_add_bytes(&target, bytes_of(copy->place));
    if (anchored)
        (void)json_add_pointer(&target, copy->root, anchored);
    else
        builder_add_bytes(&target, fragment);
    json_add_string(copy->body, builder_bytes(&target));
    builder_free(&target);
}

static void add_schema(const struct content_copy *copy, const struct json *schema, bool is_names);

static void openapi_content_add_member(const struct content_copy *copy, const struct json *member,
                                       bool is_names)
{
    json_add_string(copy->body, member->name);
    builder_add_text(copy->body, ":");
    if (!is_names && bytes_equal(member->name, BYTES("$ref")) && member->value.size)
        add_reference(copy, member->value);
    else if (!is_names && is_value(member->name))
        builder_add_bytes(copy->body, member->text);
    else
        add_schema(copy, member, !is_names && has_names(member->name));
}

/* `is_names`: an object whose members are schemas, with any names. */
static void add_schema(const struct content_copy *copy, const struct json *schema, bool is_names)
{
    const bool is_array = schema->kind == JSON_ARRAY;
    if (!is_array && schema->kind != JSON_OBJECT) {
        builder_add_bytes(copy->body, schema->text);
        return;
    }
    builder_add_bytes(copy->body, is_array ? BYTES("[") : BYTES("{"));
    for (const struct json *one = schema->first; one; one = one->next) {
        if (one != schema->first)
            builder_add_text(copy->body, ",");
        if (is_array)
            add_schema(copy, one, false);
        else
            openapi_content_add_member(copy, one, is_names);
    }
    builder_add_bytes(copy->body, is_array ? BYTES("]") : BYTES("}"));
}

/* Appends the members of the schema, a JSON text that was accepted with the declaration, each with a comma
 * before it; `place`: the URI of the object that they are appended to, "#/…".  Nothing is appended for
 * `true`. */
static void openapi_content_add(struct bytes schema, const char *place, struct builder *body)
{
    struct content_copy copy = {.place = place, .body = body};
    struct arena *arena = arena_create("content"); /* the tree of one schema at a time */
    struct json *root;
    struct json_problem problem;
    const bool is_read = json_read(arena, schema, &content_limits, &root, &problem) == FAULT_NONE;
    copy.root = root;
    if (is_read && bytes_equal(root->text, BYTES("false")))
        builder_add_text(body, ",\"not\":{}");
    for (const struct json *one = is_read ? root->first : NULL; one; one = one->next) {
        if (names_have("$id $schema", one->name)) /* only the root of a document may have them */
            continue;
        builder_add_text(body, ",");
        openapi_content_add_member(&copy, one, false);
    }
    arena_destroy(arena);
}

/* --- the description --- */

static const char text[] = {
#include "operation/openapi/openapi_text.h"
};

/* Operations, their members, and the components have nodes. */
static const struct json_limits limits = {.depth = 64, .tree_depth = 3};

/* Of openapi.json; read once for the lifetime of the process. */
static const struct json *get_root(void)
{
    static struct arena *arena;
    static struct json *root;
    struct json_problem problem;
    if (!arena) {
        arena = arena_create("openapi");
        if (json_read(arena, (struct bytes){text, sizeof text}, &limits, &root, &problem))
            log_fatal("openapi.json: %s", problem.what);
    }
    return root;
}

/* --- operations --- */

static bool is_of_z(const struct operation *operation)
{
    return operation == &builtin_ns || operation == &builtin_files || operation == &builtin_warnings;
}

/* Only where accounts are on. */
static bool is_of_accounts(const struct operation *operation)
{
    return operation == &accounts_accounts || operation == &accounts_confirm ||
           operation == &accounts_issuers || operation == &accounts_login || operation == &accounts_passkey ||
           operation == &accounts_register || operation == &accounts_reset ||
           operation == &accounts_maillogin || operation == &accounts_membership ||
           operation == &accounts_whois;
}

static bool may_call(const struct call *call, const struct operation *operation)
{
    const struct ns_accounts *accounts = &call->accounts;
    if (is_of_z(operation) && !bytes_equal(call->ns, BYTES("z")))
        return false;
    if (is_of_accounts(operation) && !accounts->is_on)
        return false;
    if ((operation == &accounts_passkey && !accounts->passkeys) ||
        (operation == &accounts_maillogin && !accounts->has_mail_login))
        return false;
    if (operation == &accounts_whois && !access_is_administrator(call) &&
        (accounts->whois == WHOIS_NOBODY || !call->caller.account.data))
        return false;
    if (operation == &accounts_membership && !call->rules && !access_is_administrator(call))
        return false;
    return access_may_run(call, operation);
}

static void add_text_of(const struct json *object, const char *name, struct builder *body)
{
    const struct json *value = json_member(object, name);
    builder_add_bytes(body, value ? value->text : BYTES("{}"));
}

/* `described`: an object with the members summary, param and out; NULL: of a module. */
static void add_operation(const char *name, const struct json *described, struct builder *body)
{
    builder_printf(body, "\"/op/%s\":{\"post\":{\"operationId\":\"%s\",\"summary\":", name, name);
    if (described)
        add_text_of(described, "summary", body);
    else
        builder_add_text(body, "\"An operation of a module.\"");
    builder_add_text(body,
                     ",\"requestBody\":{\"required\":true,\"content\":{\"application/json\":{\"schema\":{"
                     "\"allOf\":[{\"$ref\":\"#/components/schemas/stampd.Request\"}],"
                     "\"properties\":{\"param\":");
    add_text_of(described, "param", body);
    builder_add_text(body, "},\"unevaluatedProperties\":false}}}},\"responses\":{\"200\":{\"description\":"
                           "\"The operation was run.\",\"content\":{\"application/json\":{\"schema\":{"
                           "\"allOf\":[{\"$ref\":\"#/components/schemas/stampd.Answer\"}],"
                           "\"properties\":{\"out\":");
    add_text_of(described, "out", body);
    builder_add_text(body, "},\"unevaluatedProperties\":false}}}},"
                           "\"default\":{\"$ref\":\"#/components/responses/stampd.Fault\"}}}}");
}

/* Of the methods of documents: with the right of `get`, or of `put`. */
static void add_document(const struct call *call, const struct json *document, struct builder *body)
{
    const bool may_get = may_call(call, &builtin_get), may_put = may_call(call, &builtin_put);
    const char *comma = "";
    if (!may_get && !may_put)
        return;
    builder_printf(body, "%s\"/doc/{class}/{id}\":{", body->data[body->size - 1] == '{' ? "" : ",");
    for (const struct json *part = document->first; part; part = part->next) {
        const bool is_get = bytes_equal(part->name, BYTES("get"));
        if (!bytes_equal(part->name, BYTES("parameters")) && !(is_get ? may_get : may_put))
            continue;
        builder_add_bytes(body, bytes_of(comma));
        json_add_string(body, part->name);
        builder_add_text(body, ":");
        builder_add_bytes(body, part->text);
        comma = ",";
    }
    builder_add_text(body, "}");
}

static void add_paths(const struct call *call, const struct json *root, struct builder *body)
{
    const char *comma = "";
    const struct operation *added;
    for (const struct json *one = json_member(root, "operations")->first; one; one = one->next) {
        const struct operation *operation = registry_find(one->name);
        if (!operation || !may_call(call, operation))
            continue;
        builder_add_bytes(body, bytes_of(comma));
        add_operation(operation->name, one, body);
        comma = ",";
    }
    for (size_t place = 0; (added = registry_get_added(place)); place++) {
        if (!may_call(call, added))
            continue;
        builder_add_bytes(body, bytes_of(comma));
        add_operation(added->name, NULL, body);
        comma = ",";
    }
    add_document(call, json_member(root, "document"), body);
}

/* --- classes --- */

static const char *const extents[] = {
    [RULES_NEVER] = "never", [RULES_SOME] = "some", [RULES_ALWAYS] = "always"};

static enum rules_extent find_extent(const struct call *call, struct bytes class, enum rules_right right)
{
    if (access_is_administrator(call))
        return RULES_ALWAYS;
    if (call->rules)
        return rules_outline_class(call->rules, &call->caller, class, right);
    return call->level >= (right == RULES_READ || right == RULES_LIST ? LEVEL_READ : LEVEL_WRITE)
               ? RULES_ALWAYS
               : RULES_NEVER;
}

static bool is_visible(const struct call *call, struct bytes class)
{
    bool is_any = false;
    if (call->rules && !access_is_administrator(call))
        return rules_outline_shows(call->rules, &call->caller, class);
    for (int right = RULES_READ; right <= RULES_DELETE; right++)
        is_any |= find_extent(call, class, (enum rules_right)right) != RULES_NEVER;
    return is_any;
}

static void add_access(const struct call *call, struct bytes class, struct builder *body)
{
    builder_add_text(body, "\"x-stampd-access\":{");
    for (int right = RULES_READ; right <= RULES_DELETE; right++)
        builder_printf(body, "%s\"%s\":\"%s\"", right == RULES_READ ? "" : ",",
                       rules_right_word((enum rules_right)right),
                       extents[find_extent(call, class, (enum rules_right)right)]);
    builder_add_text(body, "}");
}

static enum rules_extent item_extent(const struct call *call, struct bytes class, struct bytes item,
                                     bool is_written)
{
    if (!call->rules || access_is_administrator(call))
        return RULES_ALWAYS;
    return is_written ? rules_outline_write(call->rules, &call->caller, class, item)
                      : rules_outline_see(call->rules, &call->caller, class, item);
}

/* Contents of an item, under the name Class.Item. */
static void openapi_add_item(const struct call *call, const struct schema_class *class,
                             const struct schema_item *item, struct builder *body)
{
    const enum rules_extent see = item_extent(call, class->name, item->name, false),
                            write = item_extent(call, class->name, item->name, true);
    if (see == RULES_NEVER && write == RULES_NEVER)
        return;
    builder_add_text(body, ",\"");
    builder_add_bytes(body, class->name);
    builder_add_text(body, ".");
    builder_add_bytes(body, item->name);
    builder_printf(body,
                   "\":{\"x-stampd-singleton\":%s,\"x-stampd-access\":{\"see\":\"%s\",\"write\":\"%s\"}",
                   item->is_singleton ? "true" : "false", extents[see], extents[write]);
    if (item->is_raw)
        builder_add_text(body, ",\"type\":\"string\"");
    if (item->content_text.size)
        openapi_content_add(item->content_text,
                            arena_printf(call->arena, "#/components/schemas/%.*s.%.*s", (int)class->name.size,
                                         class->name.data, (int)item->name.size, item->name.data),
                            body);
    builder_add_text(body, "}");
}

static void add_class(const struct call *call, const struct schema_class *class, struct builder *body)
{
    if (!is_visible(call, class->name))
        return;
    builder_add_text(body, ",\"");
    builder_add_bytes(body, class->name);
    builder_add_text(body, "\":{\"allOf\":[{\"$ref\":\"#/components/schemas/"
                           "stampd.Document\"}],\"properties\":{\"c\":{\"const\":\"");
    builder_add_bytes(body, class->name);
    builder_add_text(body, "\"}},");
    add_access(call, class->name, body);
    builder_add_text(body, "}");
    for (size_t i = 0; i < class->item_count; i++)
        openapi_add_item(call, class, &class->items[i], body);
}

/* Ends when the body has more than `most` bytes.  The names of the server's own schemas begin with "stampd.",
 * as that of no class can. */
static void add_components(const struct call *call, const struct json *components,
                           const struct schema *schema, size_t most, struct builder *body)
{
    for (const char *const *name = (const char *const[]){"responses", "securitySchemes", NULL}; *name;
         name++) {
        builder_printf(body, "\"%s\":", *name);
        add_text_of(components, *name, body);
        builder_add_text(body, ",");
    }
    const struct bytes own = json_member(components, "schemas")->text;
    builder_add_text(body, "\"schemas\":");
    builder_add(body, own.data, own.size - 1);
    for (size_t i = 0; i < schema->class_count && body->size <= most; i++)
        add_class(call, &schema->classes[i], body);
    builder_add_text(body, "}");
}

static enum fault openapi_work(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const int64_t most = reader.settings->limit_answer_bytes;
    struct builder *body = attempt->reply->body;
    const struct schema *schema;
    enum fault fault = FAULT_FIRST(reader_members(&reader, call->param, ""), classes_schema(attempt, &schema),
                                   classes_confirm(attempt, FAULT_NONE));
    if (fault)
        return fault;
    const struct json *root = get_root();
    json_add_text(body, "{\"openapi\":\"3.1.0\",\"info\":{\"title\":", call->ns);
    builder_printf(body, ",\"version\":\"%lld\"},\"servers\":[{\"url\":\"/",
                   (long long)call->namespace_build);
    builder_add_bytes(body, call->ns);
    builder_add_text(body, "\"}],\"security\":[{},{\"stampd.Bearer\":[]}],\"paths\":{");
    add_paths(call, root, body);
    builder_add_text(body, "},\"components\":{");
    add_components(call, json_member(root, "components"), schema, (size_t)most, body);
    builder_add_text(body, "}}");
    return body->size <= (size_t)most
               ? FAULT_NONE
               : reader_over(&reader, NULL, "limit_answer_bytes", most, (int64_t)body->size);
}

const struct operation builtin_openapi = {.name = "openapi",
                                          .right = RIGHT_PUBLIC,
                                          .only_reads = true,
                                          .is_safe = true,
                                          .is_bare = true,
                                          .obeys_rules = true,
                                          .work = openapi_work};
