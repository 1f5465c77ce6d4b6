/* live_endpoint: handles a request from nginx: parses it, checks the limits, and answers or opens a
 * stream. */
#include "live/live_endpoint.h"

#include <stdlib.h>
#include <string.h>

#include "base/address.h"
#include "base/memory.h"
#include "base/secret.h"
#include "segment/counts/metrics.h"
#include "segment/counts/refusals.h"
#include "edge/crypto/crypto.h"
#include "live/access/live_caller.h"
#include "live/live_listener.h"
#include "live/live_namespace.h"
#include "live/live_opening.h"
#include "model/account/account.h"
#include "model/account/jwt.h"
#include "http/coding.h"
#include "http/path.h"
#include "operation/reply.h"

enum { PIECES_MOST = 4, REQUEST_ID_MOST = 64, STATUS_NO_CONTENT = 204 };
enum { NAMESPACE_PART = 2, CLIENT_PART = 8 }; /* of live_memory_mb: a half, an eighth */

struct live_endpoint {
    struct live_endpoint_parts parts;
    struct exchange_endpoint *sockets;
    bool is_leaving;
};

struct live_request {
    const struct live_endpoint_parts *parts;
    bool is_leaving;
    struct exchange *exchange;
    struct live_opening *opening;
    struct reply *reply; /* of the opening */
    struct call call;    /* to report faults */
    struct bytes ns, database;
    struct live_audience *audience; /* of the namespace; NULL: not yet found */
    bool is_administrator;
    struct live_caller *caller; /* NULL: no session or service key */
    struct live_credential credential;
};

/* Is it a GET with an Accept header, as a browser's EventSource sends, which gives up at any status but
 * 200? */
static bool comes_again(const struct exchange *exchange)
{
    struct bytes accept = exchange_header(exchange, "Accept");
    return bytes_equal(exchange_method(exchange), BYTES("GET")) && accept.size &&
           memmem(accept.data, accept.size, "text/event-stream", strlen("text/event-stream"));
}

static struct bytes live_endpoint_copy(struct arena *arena, struct bytes text)
{
    return text.data ? arena_keep(arena, text) : NO_BYTES;
}

/* Copies what it keeps into its arena, including texts of the request, which ends when the answer begins. */
static struct live_opening *begin_opening(const struct settings *settings, const struct exchange *exchange)
{
    struct arena *arena = arena_create("live opening");
    struct live_opening *opening = ARENA_NEW(arena, struct live_opening);
    struct bytes id = exchange_header(exchange, "X-Request-Id");
    opening->arena = arena;
    opening->origin = live_endpoint_copy(arena, exchange_header(exchange, "Origin"));
    opening->comes_again = comes_again(exchange);
    opening->form = (struct response_form){
        .is_live = true,
        .request_id = id.size && id.size <= REQUEST_ID_MOST ? arena_copy(arena, id.data, id.size) : NULL,
        .build = settings->build,
    };
    return opening;
}

/* --- the request --- */

static enum fault live_endpoint_refuse(struct live_request *request, struct reply *reply, enum fault fault,
                                       const char *argument, const char *detail)
{
    return reply_fault(&request->call, reply, fault, detail, argument, NULL);
}

static enum fault read_address(struct live_request *request, struct reply *reply)
{
    struct bytes pieces[PIECES_MOST];
    size_t count = 0;
    struct arena *arena = request->opening->arena;
    struct bytes uri = live_endpoint_copy(arena, exchange_uri(request->exchange));
    request->ns = live_endpoint_copy(arena, exchange_header(request->exchange, "X-Stampd-Ns"));
    request->database = live_endpoint_copy(arena, exchange_header(request->exchange, "X-Stampd-Database"));
    enum fault fault = path_split(arena, uri, pieces, PIECES_MOST, &count);
    if (fault)
        return live_endpoint_refuse(request, reply, fault, "path", NULL);
    if (count != 2 || !request->ns.size || !bytes_equal(pieces[0], request->ns) ||
        !bytes_equal(pieces[1], BYTES("live")))
        return live_endpoint_refuse(request, reply, FAULT_NPATH, NULL, NULL);
    if (!request->database.size)
        return live_endpoint_refuse(request, reply, FAULT_NNAMESPACE, request->ns.data, NULL);
    return FAULT_NONE;
}

static enum fault refuse_limit(struct live_request *request, struct reply *reply, const char *name,
                               int64_t limit, size_t came)
{
    struct arena *arena = request->opening->arena;
    return reply_fault(&request->call, reply, FAULT_ALIMIT, NULL, name,
                       arena_printf(arena, "%lld", (long long)limit), arena_printf(arena, "%zu", came), NULL);
}

#define FORMS                                                                                                \
    "Class, Class/id, Class/collection@value, record:key, records:prefix, records:from/to or find:{…}"

static const char *expected(const struct live_opening *opening)
{
    if (!opening->question.wrong)
        return "Definitions are " FORMS ".";
    return arena_printf(opening->arena, FORMS " is expected as element %zu.", opening->question.wrong);
}

static enum fault refuse_question(struct live_request *request, struct reply *reply, enum fault fault,
                                  const char *wrong)
{
    const struct live_question *question = &request->opening->question;
    struct arena *arena = request->opening->arena;
    if (question->detail) {
        live_endpoint_refuse(request, reply, fault,
                             arena_copy(arena, question->unknown.data, question->unknown.size),
                             question->detail);
        if (question->nearest.data)
            reply_add_argument(&request->call, reply,
                               arena_copy(arena, question->nearest.data, question->nearest.size));
    } else {
        bool is_definition = strncmp(wrong, "def", 3) == 0;
        live_endpoint_refuse(request, reply, fault, wrong,
                             fault == FAULT_AARG && is_definition ? expected(request->opening) : NULL);
    }
    reply->at = question->at;
    return fault;
}

static enum fault refuse_number(struct live_request *request, struct reply *reply)
{
    const struct settings *settings = request->parts->settings;
    const struct live_question *question = &request->opening->question;
    if (question->wish_count > (size_t)settings->live_searches)
        return refuse_limit(request, reply, "live_searches", settings->live_searches, question->wish_count);
    if (question->record_count > (size_t)settings->live_records)
        return refuse_limit(request, reply, "live_records", settings->live_records, question->record_count);
    return refuse_limit(request, reply, "live_definitions", settings->live_definitions,
                        question->count + question->record_count);
}

/* The body lives as long as the opening. */
static enum fault read_question_body(struct live_request *request, struct reply *reply, struct bytes *body_r)
{
    const struct settings *settings = request->parts->settings;
    int64_t size = 0, most = settings_live_body(settings);
    struct builder body = {0};
    bool is_gzip;
    enum fault fault =
        coding_read(&request->call, exchange_header(request->exchange, "Content-Encoding"), &is_gzip, reply);
    if (fault)
        return fault;
    builder_add_bytes(&body, exchange_body(request->exchange));
    if (is_gzip && body.size)
        fault = coding_unpack(settings, &request->call, &body, most, &size, reply);
    *body_r = live_endpoint_copy(request->opening->arena, builder_bytes(&body));
    builder_free(&body);
    return size > most ? refuse_limit(request, reply, "live_definitions", most, (size_t)size) : fault;
}

static enum fault read_question(struct live_request *request, struct reply *reply)
{
    struct bytes body;
    enum fault fault = read_question_body(request, reply, &body);
    if (fault)
        return fault;
    struct live_opening *opening = request->opening;
    struct arena *arena = opening->arena;
    const struct settings *settings = request->parts->settings;
    struct bytes uri = live_endpoint_copy(arena, exchange_uri(request->exchange));
    const char *mark = memchr(uri.data, '?', uri.size);
    const struct live_source source = {
        .query = mark ? (struct bytes){mark + 1, uri.size - (size_t)(mark + 1 - uri.data)} : BYTES(""),
        .content_type = live_endpoint_copy(arena, exchange_header(request->exchange, "Content-Type")),
        .body = body,
        .definitions_most = (size_t)settings->live_definitions,
        .definition_bytes_most = (size_t)settings->limit_definition_bytes,
        .records_most = (size_t)settings->live_records,
        .searches_most = (size_t)settings->live_searches,
        .search_rows_most = settings->live_search_rows,
    };
    const char *wrong;
    fault = live_question_read(arena, &source, &opening->question, &wrong);
    if (fault == FAULT_ALIMIT && opening->question.too_long)
        return refuse_limit(request, reply, "limit_definition_bytes", settings->limit_definition_bytes,
                            opening->question.too_long);
    if (fault == FAULT_ALIMIT && opening->question.too_many_rows)
        return refuse_limit(request, reply, "live_search_rows", settings->live_search_rows,
                            (size_t)opening->question.too_many_rows);
    if (fault == FAULT_ALIMIT)
        return refuse_number(request, reply);
    if (fault)
        return refuse_question(request, reply, fault, wrong);
    if (opening->question.record_count && !request->parts->segment->records)
        return live_endpoint_refuse(request, reply, FAULT_ORECORDS, NULL, NULL);
    struct bytes last = exchange_header(request->exchange, "Last-Event-ID");
    if (last.size)
        opening->question.last = live_endpoint_copy(arena, last);
    return FAULT_NONE;
}

static enum fault check_one_key(struct live_request *request, struct reply *reply, struct bytes key,
                                const char *where)
{
    const char *right = request->parts->settings->admin_key_sha256;
    char digest[CRYPTO_SHA256_HEX + 1];
    crypto_sha256_hex(key, digest);
    request->is_administrator = *right && crypto_equal(bytes_of(digest), bytes_of(right));
    return request->is_administrator ? FAULT_NONE
                                     : live_endpoint_refuse(request, reply, FAULT_SKEY, where, NULL);
}

static bool live_endpoint_is_token(struct bytes bearer)
{
    return account_is_token(bearer) || jwt_is_one(bearer);
}

/* A session, a service key or a token of a provider, which is checked once its document has been loaded. With
 * the administrator's key, a cookie is ignored. */
static void find_caller(struct live_request *request, struct bytes bearer)
{
    struct bytes cookie = account_find_cookie(exchange_header(request->exchange, "Cookie"), request->ns);
    const struct settings *settings = request->parts->settings;
    if (bearer.data && live_endpoint_is_token(bearer))
        request->caller = live_caller_create(settings, bearer, false);
    else if (cookie.data && !request->is_administrator)
        request->caller = live_caller_create(settings, cookie, true);
    if (cookie.data && request->caller)
        request->credential.cookie = cookie;
}

/* Workers that evaluate its searches know the listener by the same. */
static void keep_credential(struct live_request *request)
{
    struct arena *arena = request->opening->arena;
    struct live_credential *credential = &request->credential;
    struct bytes admin = request->opening->question.admin, cookie = credential->cookie;
    credential->authorization = exchange_header(request->exchange, "Authorization");
    credential->client = exchange_header(request->exchange, "X-Stampd-Client");
    if (cookie.size)
        credential->cookie = bytes_of(arena_printf(arena, ACCOUNT_COOKIE "%.*s=%.*s", (int)request->ns.size,
                                                   request->ns.data, (int)cookie.size, cookie.data));
    if (admin.size)
        credential->authorization = bytes_of(arena_printf(arena, "Bearer %.*s", (int)admin.size, admin.data));
}

static enum fault check_key(struct live_request *request, struct reply *reply)
{
    struct bytes admin = request->opening->question.admin;
    struct bytes bearer = secret_bearer(exchange_header(request->exchange, "Authorization"));
    bool is_key = bearer.data && !live_endpoint_is_token(bearer);
    enum fault fault = is_key ? check_one_key(request, reply, bearer, "Authorization") : FAULT_NONE;
    if (!fault && admin.size)
        fault = check_one_key(request, reply, admin, "admin");
    if (!fault)
        find_caller(request, bearer);
    if (!fault && request->opening->question.wish_count)
        keep_credential(request);
    return fault;
}

static enum fault refuse_share(struct live_request *request, struct reply *reply, enum fault fault,
                               const char *limit, int64_t most)
{
    struct arena *arena = request->opening->arena;
    pulse_count(&feed_subscriber_slot(request->parts->subscriber)->refused, 1);
    return reply_fault(&request->call, reply, fault, NULL, limit,
                       arena_printf(arena, "%lld", (long long)most), NULL);
}

/* Neither one client nor one namespace may exhaust what all share. */
static enum fault check_shares(struct live_request *request, struct reply *reply, size_t memory)
{
    const struct settings *settings = request->parts->settings;
    size_t more = arena_used(request->opening->arena);
    const struct live_share *share = live_audiences_share(request->parts->audiences, request->call.client);
    if (live_audience_count(request->audience) >= (size_t)settings->limit_namespace_live)
        return refuse_share(request, reply, FAULT_XBUSY, "limit_namespace_live",
                            settings->limit_namespace_live);
    if (share && share->count >= (size_t)settings->limit_client_live)
        return refuse_share(request, reply, FAULT_XBUSY, "limit_client_live", settings->limit_client_live);
    if (live_audience_memory(request->audience) + more > memory / NAMESPACE_PART ||
        (share && share->memory + more > memory / CLIENT_PART))
        return refuse_share(request, reply, FAULT_XBUSY, "live_memory_mb", settings->live_memory_mb);
    return FAULT_NONE;
}

static enum fault check_room(struct live_request *request, struct reply *reply)
{
    const struct live_endpoint_parts *parts = request->parts;
    size_t memory = (size_t)parts->settings->live_memory_mb << 20;
    if (!parts->settings->live)
        return live_endpoint_refuse(request, reply, FAULT_OOFF, NULL, NULL);
    if (request->is_leaving)
        return live_endpoint_refuse(request, reply, FAULT_XAWAY, NULL, NULL);
    if (live_audiences_count(parts->audiences) >= parts->connections_most)
        return refuse_share(request, reply, FAULT_XCROWDED, "live_connections",
                            (int64_t)parts->connections_most);
    if (live_audiences_memory(parts->audiences) + arena_used(request->opening->arena) >= memory)
        return refuse_share(request, reply, FAULT_XCROWDED, "live_memory_mb",
                            parts->settings->live_memory_mb);
    return request->is_administrator ? FAULT_NONE : check_shares(request, reply, memory);
}

static enum fault read_method(struct live_request *request, struct reply *reply)
{
    struct bytes method = exchange_method(request->exchange);
    if (bytes_equal(method, BYTES("GET")) || bytes_equal(method, BYTES("POST")))
        return FAULT_NONE;
    return live_endpoint_refuse(request, reply, FAULT_AMETHOD,
                                live_endpoint_copy(request->opening->arena, method).data, NULL);
}

static enum fault read_request(struct live_request *request, struct reply *reply)
{
    return FAULT_FIRST(read_method(request, reply), read_question(request, reply), check_key(request, reply),
                       check_room(request, reply));
}

/* --- answers --- */

static void answer_at_once(struct live_request *request)
{
    struct builder body = {0};
    request->reply->body = &body;
    live_listener_answer_at_once(request->exchange, request->opening, request->reply);
    builder_free(&body);
    arena_destroy(request->opening->arena);
}

static void live_endpoint_begin(struct live_request *request, struct live_namespace *ns)
{
    struct live_listener *listener =
        live_listener_create(request->audience, request->exchange, request->opening,
                             &(struct live_visitor){
                                 .client = request->is_administrator ? 0 : request->call.client,
                                 .is_administrator = request->is_administrator,
                                 .caller = request->caller,
                                 .credential = request->credential,
                             });
    request->caller = NULL;
    live_namespace_admit(ns, listener);
}

/* A page of another origin can read the answer only if it names the origin, which the rules list. */
static void live_endpoint_answer(struct live_request *request, struct live_namespace *ns)
{
    struct reply unused = {0};
    request->opening->is_settled = true;
    request->opening->question.count = request->opening->question.record_count = 0;
    request->opening->question.wish_count = 0;
    if (ns && request->opening->origin.size && !check_room(request, &unused))
        live_endpoint_begin(request, ns);
    else
        answer_at_once(request);
}

static void serve(void *context, struct exchange *exchange)
{
    const struct live_endpoint *endpoint = context;
    const struct live_endpoint_parts *parts = &endpoint->parts;
    struct live_request request = {.parts = parts,
                                   .is_leaving = endpoint->is_leaving,
                                   .exchange = exchange,
                                   .opening = begin_opening(parts->settings, exchange)};
    bool is_preflight = bytes_equal(exchange_method(exchange), BYTES("OPTIONS"));
    request.call.arena = request.opening->arena;
    request.call.client = address_client(exchange_header(exchange, "X-Stampd-Client"));
    request.reply = &request.opening->reply;
    enum fault fault = read_address(&request, request.reply);
    struct live_namespace *ns =
        fault ? NULL : live_namespace_get(parts->namespaces, request.ns, request.database);
    request.audience = ns ? live_namespace_audience(ns) : NULL;
    if (!fault && !ns)
        fault = live_endpoint_refuse(&request, request.reply, FAULT_NNAMESPACE, request.ns.data, NULL);
    if (is_preflight && !fault)
        request.reply->status = STATUS_NO_CONTENT;
    else if (!fault)
        fault = read_request(&request, request.reply);
    refusals_count(parts->segment, fault, request.reply->argument_count ? request.reply->arguments[0] : NULL);
    /* Commits before the arrival of the request are handled before its answer. */
    live_namespaces_receive(parts->namespaces);
    if (fault || is_preflight)
        live_endpoint_answer(&request, ns);
    else
        live_endpoint_begin(&request, ns);
    live_caller_destroy(request.caller);
}

/* --- the sockets --- */

struct live_endpoint *live_endpoint_open(const struct live_endpoint_parts *parts, int listener)
{
    struct live_endpoint *endpoint = memory_zeroed(1, sizeof *endpoint, "live");
    endpoint->parts = *parts;
    endpoint->sockets =
        exchange_endpoint_open(parts->events, &(struct endpoint_options){
                                                  .listener = listener,
                                                  .body_most = (size_t)settings_live_body(parts->settings),
                                                  .stall_ms = parts->settings->live_stall_s * 1000,
                                                  .request = serve,
                                                  .context = endpoint,
                                              });
    return endpoint;
}

void live_endpoint_stop(struct live_endpoint *endpoint)
{
    endpoint->is_leaving = true;
    exchange_endpoint_stop(endpoint->sockets);
}

void live_endpoint_close(struct live_endpoint *endpoint)
{
    exchange_endpoint_close(endpoint->sockets);
    free(endpoint);
}
