/* request: route, method, conditions, body, arguments, in this order: cheap refusals first. */
#include "http/request.h"

#include "config.h"

#include "base/address.h"
#include "base/clock.h"
#include "base/secret.h"
#include "base/log.h"
#include "model/account/account.h"
#include "model/account/jwt.h"
#include "model/trace.h"
#include "http/arguments.h"
#include "http/path.h"
#include "http/coding.h"
#include "http/condition.h"
#include "http/request_attachment.h"
#include "http/request_id.h"
#include "http/request_upload.h"
#include "operation/reply.h"

enum { PIECES_MAX = 64, ATTACHMENT_BY_KEY = 4 /* pieces of its path */ };

static struct bytes fcgi_source_parameter(const void *context, struct bytes name)
{
    return fcgi_parameter(context, name);
}

static enum fault fcgi_source_body(void *context, size_t limit, struct builder *body, int64_t *size_r)
{
    return fcgi_read_body(context, limit, body, size_r);
}

struct request_source request_from_fcgi(struct fcgi_request *fcgi)
{
    return (struct request_source){
        .parameter = fcgi_source_parameter, .read_body = fcgi_source_body, .context = fcgi};
}

static struct bytes parameter(const struct request_source *source, struct bytes name)
{
    struct bytes value = source->parameter(source->context, name);
    return value.data ? value : BYTES("");
}

static struct bytes request_query(const struct request_source *source)
{
    return path_query(parameter(source, BYTES("REQUEST_URI")));
}

static bool contains(struct bytes text, const char *part)
{
    return text.size && memmem(text.data, text.size, part, strlen(part));
}

/* nginx sends a subrequest before it accepts a large body.  It handles 401, no key, and 403, another fault,
 * whose code is in the header X-Stampd-Judged. */
static bool is_question(const struct request_source *source)
{
    return bytes_equal(parameter(source, BYTES("STAMPD_ENDPOINT")), BYTES("body"));
}

/* --- the form of the answer --- */

/* Sets the form of the answer before any error can occur. */
static void read_form(const struct settings *settings, struct arena *arena,
                      const struct request_source *source, struct request *request)
{
    struct bytes method = parameter(source, BYTES("REQUEST_METHOD"));
    struct bytes given = parameter(source, BYTES("STAMPD_REQUEST_ID"));
    struct bytes token = parameter(source, BYTES("STAMPD_TOKEN"));
    request->form = (struct response_form){
        .is_head = bytes_equal(method, BYTES("HEAD")),
        .is_for_people = bytes_equal(method, BYTES("GET")) &&
                         contains(parameter(source, BYTES("HTTP_ACCEPT")), "text/html"),
        .request_id = given.size   ? arena_copy(arena, given.data, given.size)
                      : token.size ? request_id_make(arena, token)
                                   : NULL,
        .build = settings->build,
        .has_few_statuses = settings->fault_status == FAULT_STATUS_FEW,
    };
    request->origin = parameter(source, BYTES("HTTP_ORIGIN"));
}

/* --- the route --- */

static bool is_piece(struct bytes piece, const char *text)
{
    return bytes_are(piece, text);
}

/* Probes arrive through nginx's loopback listener, or another one that is not public. */
static bool find_probe(const struct request_source *source, const struct bytes *pieces, size_t count,
                       struct call *call)
{
    if (count != 1 || !bytes_equal(parameter(source, BYTES("STAMPD_ENDPOINT")), BYTES("probe")))
        return false;
    if (is_piece(pieces[0], "live"))
        call->route = CALL_LIVE;
    else if (is_piece(pieces[0], "ready"))
        call->route = CALL_READY;
    else if (is_piece(pieces[0], "metrics"))
        call->route = CALL_METRICS;
    else
        return false;
    return true;
}

/* The path after the code of the namespace, which nginx took from the address. */
static bool find_in_namespace(const struct bytes *pieces, size_t count, struct call *call)
{
    if (count == 2 && is_piece(pieces[1], "ping")) {
        call->route = CALL_NAMESPACE_PING;
        return true;
    }
    if (count == 2 && is_piece(pieces[1], "openapi.json")) {
        call->route = CALL_OPERATION;
        call->operation = BYTES("openapi");
        return true;
    }
    if (count >= 3 && is_piece(pieces[1], "op")) {
        call->route = CALL_OPERATION;
        call->operation = pieces[2];
        call->path = pieces + 3;
        call->path_count = count - 3;
        return true;
    }
    if ((count == 2 || count == 3) && is_piece(pieces[1], "od")) {
        call->route = CALL_TASKS;
        call->task_id = count == 3 ? pieces[2] : NO_BYTES;
        return true;
    }
    if (count >= 3 && is_piece(pieces[1], "res")) {
        call->route = CALL_FILE;
        call->path = pieces + 2;
        call->path_count = count - 2;
        return true;
    }
    if (count == 4 && is_piece(pieces[1], "doc")) {
        call->route = CALL_DOCUMENT;
        call->path = pieces + 2;
        call->path_count = 2;
        return true;
    }
    return request_upload_find(pieces, count, call) || request_attachment_find(pieces, count, call);
}

static enum fault find_route(const struct request_source *source, struct call *call, struct reply *reply)
{
    struct bytes *pieces = ARENA_ROOM(call->arena, struct bytes, PIECES_MAX);
    size_t count = 0;
    enum fault fault =
        path_split(call->arena, parameter(source, BYTES("REQUEST_URI")), pieces, PIECES_MAX, &count);
    if (fault)
        return reply_fault(call, reply, fault, NULL, "path", NULL);
    if (find_probe(source, pieces, count, call))
        return FAULT_NONE;
    if (count == 1 && is_piece(pieces[0], "ping")) {
        call->route = CALL_PING;
        return FAULT_NONE;
    }
    call->ns = parameter(source, BYTES("STAMPD_NS"));
    call->database = parameter(source, BYTES("STAMPD_DATABASE"));
    if (!call->ns.size || !count || !bytes_equal(pieces[0], call->ns) ||
        !find_in_namespace(pieces, count, call))
        return reply_fault(call, reply, FAULT_NPATH, NULL, NULL);
    if (!call->database.size)
        return reply_fault(call, reply, FAULT_NNAMESPACE, NULL,
                           arena_copy(call->arena, call->ns.data, call->ns.size), NULL);
    return FAULT_NONE;
}

/* The client of the request. nginx passes "-" for clients exempt from the limits. */
static uint64_t read_client(const struct request_source *source)
{
    static bool is_missed;
    struct bytes client = parameter(source, BYTES("STAMPD_CLIENT"));
    if (!client.size && !is_missed) {
        log_warning("nginx passes no STAMPD_CLIENT: limits of clients are not enforced; write its "
                    "configuration again "
                    "with stampctl nginx");
        is_missed = true;
    }
    return address_client(client);
}

/* --- the method --- */

static const struct method_act {
    const char *method;
    enum resource_act act;
} acts[] =
    {
        {"GET", RESOURCE_READ},     {"HEAD", RESOURCE_READ},     {"PUT", RESOURCE_REPLACE},
        {"PATCH", RESOURCE_CHANGE}, {"DELETE", RESOURCE_REMOVE},
},
  acts_of_attachments[] = {
      {"GET", RESOURCE_READ_FILE},
      {"HEAD", RESOURCE_READ_FILE},
      {"PUT", RESOURCE_STORE_FILE},
      {"DELETE", RESOURCE_REMOVE_FILE},
};

static bool find_act(struct bytes method, const struct method_act *table, size_t count,
                     enum resource_act *act_r)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(method, bytes_of(table[i].method))) {
            *act_r = table[i].act;
            return true;
        }
    return false;
}

/* A digest is read only. */
static bool is_allowed_there(struct bytes method, const struct call *call, struct resource *resource)
{
    if (call->route == CALL_DOCUMENT)
        return find_act(method, acts, COUNT_OF(acts), &resource->act);
    if (call->route == CALL_UPLOAD)
        return request_upload_find_act(method, call, &resource->act);
    return find_act(method, acts_of_attachments, COUNT_OF(acts_of_attachments), &resource->act) &&
           (call->path_count == ATTACHMENT_BY_KEY || resource->act == RESOURCE_READ_FILE);
}

static enum call_method read_call_method(struct bytes method)
{
    return bytes_equal(method, BYTES("HEAD"))  ? CALL_HEAD
           : bytes_equal(method, BYTES("GET")) ? CALL_GET
                                               : CALL_POST;
}

static bool is_allowed(struct bytes method, const struct call *call, struct resource *resource)
{
    if (resource)
        return is_allowed_there(method, call, resource);
    if (call->route == CALL_TASKS)
        return bytes_equal(method, BYTES("POST"));
    if (call->route == CALL_FILE)
        return bytes_equal(method, BYTES("GET")) || bytes_equal(method, BYTES("HEAD"));
    return bytes_equal(method, BYTES("POST")) || bytes_equal(method, BYTES("GET")) ||
           bytes_equal(method, BYTES("HEAD"));
}

static enum fault read_method(const struct settings *settings, const struct request_source *source,
                              struct request *request, struct resource *resource, struct reply *reply)
{
    struct call *call = &request->call;
    struct bytes method = parameter(source, BYTES("REQUEST_METHOD"));
    call->method = read_call_method(method);
    request->form.is_resource = resource != NULL;
    request->form.is_attachment = call->route == CALL_ATTACHMENT;
    request->form.is_digest = request->form.is_attachment && call->path_count != ATTACHMENT_BY_KEY;
    request->form.is_upload = call->route == CALL_UPLOAD;
    request->form.upload_most = settings->limit_blob_bytes;
    request->form.is_part = request->form.is_upload && call->path_count;
    request->form.is_manager = call->route == CALL_TASKS;
    request->form.is_file = call->route == CALL_FILE;
    if (request->form.is_file) { /* it is public */
        request->form.origin = "*";
        request->origin = BYTES("");
    }
    if (bytes_equal(method, BYTES("OPTIONS"))) {
        call->route = CALL_OPTIONS;
        return FAULT_NONE;
    }
    if (is_allowed(method, call, resource))
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_AMETHOD, NULL, arena_copy(call->arena, method.data, method.size),
                       NULL);
}

/* --- a document as a resource --- */

static enum fault read_condition(const struct request_source *source, struct call *call, struct reply *reply,
                                 struct bytes name, const char *field, enum comparison comparison,
                                 struct version_condition *condition_r)
{
    enum fault fault = condition_read(call->arena, parameter(source, name), comparison, condition_r);
    if (fault)
        return reply_fault(call, reply, fault, "A list of entity tags, or *, is expected.", field, NULL);
    return FAULT_NONE;
}

static enum fault read_resource(const struct request_source *source, struct request *request,
                                struct resource *resource, struct reply *reply)
{
    struct call *call = &request->call;
    resource->class = call->path[0];
    resource->id = call->path[1];
    call->resource = resource;
    call->operation = parameter(source, BYTES("REQUEST_METHOD"));
    if (resource->act == RESOURCE_REPLACE || resource->act == RESOURCE_STORE_FILE)
        request->form.location = path_join(call->arena, call->path - 2, call->path_count + 2);
    enum fault fault = read_condition(source, call, reply, BYTES("HTTP_IF_MATCH"), "If-Match",
                                      COMPARE_STRONGLY, &resource->match);
    return fault ? fault
                 : read_condition(source, call, reply, BYTES("HTTP_IF_NONE_MATCH"), "If-None-Match",
                                  COMPARE_WEAKLY, &resource->none_match);
}

/* The tolerance of a read, 0 or more. */
static enum fault read_age(struct bytes age, struct call *call, struct resource *resource,
                           struct reply *reply)
{
    if (!age.data ||
        (bytes_to_i64(age, &resource->age_s) && resource->age_s >= 0 && resource->age_s <= AGE_MOST))
        return FAULT_NONE;
    return reply_wrong_argument(
        call, reply, "age",
        arena_printf(call->arena, "An integer from 0 to %lld is expected.", (long long)AGE_MOST));
}

/* --- attachments --- */

static struct request_attachment_headers body_headers(const struct request_source *source)
{
    return (struct request_attachment_headers){
        .content_type = parameter(source, BYTES("CONTENT_TYPE")),
        .content_length =
            parameter(source, is_question(source) ? BYTES("STAMPD_BODY") : BYTES("CONTENT_LENGTH")),
        .is_asked = is_question(source),
        .content_digest = parameter(source, BYTES("HTTP_CONTENT_DIGEST")),
        .repr_digest = parameter(source, BYTES("HTTP_REPR_DIGEST")),
    };
}

static enum fault read_attachment(const struct request_source *source, struct call *call, struct reply *reply)
{
    const struct request_attachment_headers headers = body_headers(source);
    struct attachment_request *attachment = ARENA_NEW(call->arena, struct attachment_request);
    call->attachment = attachment;
    enum fault fault = request_attachment_read(call, &headers, attachment, reply);
    attachment->inlet = source->inlet;
    attachment->range = parameter(source, BYTES("HTTP_RANGE"));
    attachment->if_range = parameter(source, BYTES("HTTP_IF_RANGE"));
    attachment->is_head = bytes_equal(parameter(source, BYTES("REQUEST_METHOD")), BYTES("HEAD"));
    return fault;
}

static enum fault read_upload(const struct request_source *source, struct call *call,
                              struct resource *resource, struct reply *reply)
{
    const struct request_upload_headers headers = {
        .version = parameter(source, BYTES("HTTP_TUS_RESUMABLE")),
        .length = parameter(source, BYTES("HTTP_UPLOAD_LENGTH")),
        .offset = parameter(source, BYTES("HTTP_UPLOAD_OFFSET")),
        .metadata = parameter(source, BYTES("HTTP_UPLOAD_METADATA")),
        .body = body_headers(source),
    };
    struct attachment_request *attachment = ARENA_NEW(call->arena, struct attachment_request);
    call->attachment = attachment;
    call->resource = resource;
    call->operation = parameter(source, BYTES("REQUEST_METHOD"));
    if (is_question(source)) {
        request_upload_ask(call, &headers, resource, attachment);
        return FAULT_NONE;
    }
    enum fault fault = request_upload_read(call, &headers, resource, attachment, reply);
    attachment->inlet = source->inlet;
    return fault;
}

/* --- files of the namespace --- */

/* Is the path written without escapes, or with those of path_join only? */
static bool is_canonical(struct arena *arena, struct bytes request_uri, const struct call *call)
{
    struct bytes rest = request_uri, path = bytes_cut(&rest, '?');
    const struct bytes *pieces = call->path - 2; /* with the code and `res` */
    return !memchr(path.data, '%', path.size) ||
           bytes_equal(path, bytes_of(path_join(arena, pieces, call->path_count + 2)));
}

/* Other arguments are ignored, as servers of files do. */
static struct file_request *read_file_request(const struct request_source *source, const struct call *call)
{
    struct file_request *file = ARENA_NEW(call->arena, struct file_request);
    struct bytes build = request_query(source), name = build.size ? bytes_cut(&build, '=') : BYTES("");
    bool is_build = bytes_equal(name, BYTES("b")) && build.size && *build.data != '+' && *build.data != '-';
    if (!is_build || !bytes_to_i64(build, &file->build))
        file->build = 0;
    file->none_match = parameter(source, BYTES("HTTP_IF_NONE_MATCH"));
    file->client_none_match = parameter(source, BYTES("STAMPD_NONE_MATCH"));
    file->is_canonical = is_canonical(call->arena, parameter(source, BYTES("REQUEST_URI")), call);
    return file;
}

/* --- queue managers --- */

/* Their arguments are never in the URL, since logs record URLs. */
static enum fault begin_manager(const struct settings *settings, const struct request_source *source,
                                struct call *call, struct reply *reply)
{
    call->deadline_ms = clock_monotonic_ms() + settings->limit_task_s * 1000;
    if (!request_query(source).size)
        return FAULT_NONE;
    return reply_fault(call, reply, FAULT_AARG, "All arguments belong in the body.", "query", NULL);
}

/* --- body and arguments --- */

/* A body above call->body_most; no key can stand in it. */
static enum fault refuse_body(const struct settings *settings, struct call *call, int64_t size,
                              struct reply *reply)
{
    static const char needed[] = "A larger body needs a key in the header Authorization.";
    bool is_file = call->attachment != NULL;
    bool is_whole = call->body_most == (is_file ? settings->limit_blob_bytes : settings->limit_body_bytes);
    const char *limit = is_file ? "limit_blob_bytes" : "limit_body_bytes";
    if (call->barred)
        return reply_fault(call, reply, call->barred, needed,
                           arena_copy(call->arena, call->operation.data, call->operation.size), NULL);
    return reply_fault(call, reply, FAULT_ALIMIT, is_whole ? NULL : needed,
                       is_whole ? limit : "limit_anonymous_body_bytes",
                       arena_printf(call->arena, "%lld", (long long)call->body_most),
                       arena_printf(call->arena, "%lld", (long long)size), NULL);
}

static enum fault request_read_body(const struct settings *settings, const struct request_source *source,
                                    struct call *call, struct builder *body, struct reply *reply)
{
    int64_t size = call->attachment ? call->attachment->size : 0;
    bool is_upload = call->attachment && (call->resource->act == RESOURCE_STORE_FILE ||
                                          call->resource->act == RESOURCE_CREATE_UPLOAD ||
                                          call->resource->act == RESOURCE_APPEND_UPLOAD);
    bool is_gzip;
    enum fault fault = coding_read(call, parameter(source, BYTES("HTTP_CONTENT_ENCODING")), &is_gzip, reply);
    if (fault)
        return fault;
    if (is_upload && (size > call->body_most || call->barred))
        return refuse_body(settings, call, size, reply);
    if (call->attachment)
        return FAULT_NONE; /* the operation reads it */
    fault = source->read_body(source->context, (size_t)call->body_most, body, &size);
    if (fault && fault != FAULT_ALIMIT)
        return reply_fault(call, reply, fault, NULL, NULL);
    if (!fault && is_gzip && body->size)
        fault = coding_unpack(settings, call, body, call->body_most, &size, reply);
    call->body_size = body->size;
    return fault && size > call->body_most ? refuse_body(settings, call, size, reply) : fault;
}

static enum fault refuse_limit(struct call *call, struct reply *reply, const char *detail, const char *limit,
                               int64_t most)
{
    return reply_fault(call, reply, FAULT_ALIMIT, detail, limit,
                       arena_printf(call->arena, "%lld", (long long)most),
                       arena_printf(call->arena, "%lld", (long long)most + 1), NULL);
}

/* Turns a fault of arguments.h into a reply. */
static enum fault refuse_arguments(const struct settings *settings, struct call *call,
                                   const struct arguments *arguments, const struct json_problem *problem,
                                   enum fault fault, struct reply *reply)
{
    const char *wrong = arguments->wrong ? arguments->wrong : "body", *second = arguments->nearest;
    if (problem->offset) /* 0: not an error in a JSON text */
        second = arena_printf(call->arena, "%zu", problem->offset);
    bool is_argument = strcmp(wrong, "body") != 0 && strcmp(wrong, "query") != 0;
    if (fault == FAULT_ALIMIT && strcmp(wrong, "limit_parts") == 0)
        return refuse_limit(call, reply, problem->what, wrong, settings->limit_parts);
    if (fault == FAULT_ALIMIT && problem->is_depth)
        (void)refuse_limit(call, reply, problem->what, "limit_depth", settings->limit_depth);
    else
        (void)reply_fault(call, reply, fault, problem->what, wrong, second, NULL);
    if (is_argument || arguments->is_unknown) {
        struct builder at = {0};
        json_add_pointer_name(&at, bytes_of(wrong));
        reply->at = builder_take(&at, call->arena).data;
    }
    return fault;
}

static enum fault read_arguments(const struct settings *settings, const struct request_source *source,
                                 struct call *call, struct resource *resource, struct bytes body,
                                 struct reply *reply)
{
    struct argument_source from = {
        .is_resource = call->resource != NULL,
        .is_manager = call->route == CALL_TASKS,
        .query = request_query(source),
        .content_type = call->attachment ? BYTES("") : parameter(source, BYTES("CONTENT_TYPE")),
        .body = body,
    };
    struct argument_limits limits = {
        .depth = (int)settings->limit_depth, .nodes = ARGUMENT_NODES, .parts = (size_t)settings->limit_parts};
    struct arguments arguments;
    struct json_problem problem = {0};
    enum fault fault = arguments_read(call->arena, &from, &limits, &arguments, &problem);
    if (fault)
        return refuse_arguments(settings, call, &arguments, &problem, fault, reply);
    call->param = call->resource ? arguments.items : arguments.param;
    call->syncs = arguments.syncs;
    call->client_copies = arguments.client_copies;
    call->account = arguments.account;
    call->key = arguments.key;
    if (arguments.admin.data)
        call->admin = arguments.admin;
    call->lang = arguments.lang;
    call->dhop = arguments.dhop;
    call->session = arguments.session;
    call->files = arguments.files;
    call->file_count = arguments.file_count;
    return call->resource ? read_age(arguments.age, call, resource, reply) : FAULT_NONE;
}

/* --- before the body --- */

/* Reads the credentials, and the origin of the page. */
static void read_asker(const struct request_source *source, struct call *call)
{
    call->bearer = secret_bearer(parameter(source, BYTES("HTTP_AUTHORIZATION")));
    call->cookies = parameter(source, BYTES("HTTP_COOKIE"));
    if (call->route != CALL_TASKS && (account_is_token(call->bearer) || jwt_is_one(call->bearer))) {
        call->token = call->bearer;
        call->bearer = NO_BYTES;
    }
    call->browser = (struct browser){.origin = parameter(source, BYTES("HTTP_ORIGIN")),
                                     .site = parameter(source, BYTES("HTTP_SEC_FETCH_SITE")),
                                     .host = parameter(source, BYTES("STAMPD_HOST"))};
    if (call->route != CALL_TASKS)
        call->admin = call->bearer;
}

static enum fault answer_question(const struct settings *settings, const struct request_source *source,
                                  struct request *request, struct reply *reply, enum fault fault)
{
    struct call *call = &request->call;
    int64_t size;
    /* A body of unknown length may be as large as allowed; nginx enforces the limit. */
    if (!bytes_to_i64(parameter(source, BYTES("STAMPD_BODY")), &size))
        size = call->attachment ? settings->limit_blob_bytes : settings->limit_body_bytes;
    if (!fault && size > call->body_most)
        fault = refuse_body(settings, call, size, reply);
    call->route = CALL_MAY;
    if (!fault)
        return FAULT_NONE;
    reply->fault_status = fault == FAULT_SCLOSED ? 401 : 403;
    request->form.judged = request_upload_judged(call, reply, fault);
    return fault;
}

static enum fault admit(const struct request_source *source, struct call *call, struct reply *reply)
{
    return source->admit ? source->admit(source->admit_context, call, reply) : FAULT_NONE;
}

enum fault request_read(const struct settings *settings, struct arena *arena,
                        const struct request_source *source, struct builder *body, struct request *request_r,
                        struct reply *reply)
{
    struct call *call = &request_r->call;
    struct bytes build = parameter(source, BYTES("HTTP_X_STAMPD_BUILD"));
    struct bytes key = parameter(source, BYTES("HTTP_IDEMPOTENCY_KEY"));
    assert(!body->size);
    read_form(settings, arena, source, request_r);
    *call = (struct call){
        .arena = arena,
        .request_id = request_r->form.request_id,
        .build = build.size ? build : NO_BYTES,
        .idempotency_key = key.size ? key : NO_BYTES,
        .trace = trace_read(arena, parameter(source, BYTES("HTTP_TRACEPARENT")),
                            parameter(source, BYTES("HTTP_TRACESTATE"))),
        .deadline_ms = clock_monotonic_ms() + settings->limit_operation_s * 1000,
        .body_most = settings->limit_body_bytes,
    };
    enum fault fault = find_route(source, call, reply);
    bool is_of_document =
        call->route == CALL_DOCUMENT || call->route == CALL_ATTACHMENT || call->route == CALL_UPLOAD;
    struct resource *resource = !fault && is_of_document ? ARENA_NEW(arena, struct resource) : NULL;
    if (!fault && call->ns.size)
        call->client = read_client(source);
    read_asker(source, call);
    if (!fault)
        fault = read_method(settings, source, request_r, resource, reply);
    if (!fault && call->route == CALL_FILE)
        call->file = read_file_request(source, call);
    if (!fault && call->route != CALL_OPERATION && (!resource || call->route == CALL_OPTIONS) &&
        call->route != CALL_TASKS)
        return FAULT_NONE; /* the rest is ignored; a body is discarded */
    if (!fault && call->route == CALL_TASKS)
        fault = begin_manager(settings, source, call, reply);
    if (!fault && call->route == CALL_UPLOAD)
        fault = read_upload(source, call, resource, reply);
    else if (!fault && resource)
        fault = read_resource(source, request_r, resource, reply);
    if (!fault && call->route == CALL_ATTACHMENT)
        fault = read_attachment(source, call, reply);
    if (!fault)
        fault = admit(source, call, reply);
    if (is_question(source))
        return answer_question(settings, source, request_r, reply, fault);
    if (!fault)
        fault = request_read_body(settings, source, call, body, reply);
    return fault ? fault : read_arguments(settings, source, call, resource, builder_bytes(body), reply);
}
