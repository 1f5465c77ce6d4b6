/* request: parameters and bodies as calls, and what is refused at the door. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/address.h"
#include "base/clock.h"
#include "http/request.h"
#include "http/request_id.h"
#include "operation/reply.h"

/* A request as nginx would hand it on. */
struct letter {
    const char *method, *uri, *ns, *database, *endpoint, *accept, *build, *key, *type, *body;
    const char *match, *none_match, *client;
    int64_t body_size; /* said, when it differs from the text */
    enum fault body_fault;
    const char *trace, *tracestate;
    bool was_read;
    bool is_nameless; /* the client has given no X-Request-Id */
};

static struct bytes letter_parameter(const void *context, struct bytes name)
{
    const struct letter *letter = context;
    const struct {
        const char *name, *value;
    } all[] = {
        {"REQUEST_METHOD", letter->method ? letter->method : "GET"},
        {"REQUEST_URI", letter->uri},
        {"CONTENT_TYPE", letter->type},
        {"STAMPD_CLIENT", letter->client ? letter->client : "-"},
        {"STAMPD_NS", letter->ns ? letter->ns : ""},
        {"STAMPD_DATABASE", letter->database ? letter->database : ""},
        {"STAMPD_ENDPOINT", letter->endpoint ? letter->endpoint : "public"},
        {"STAMPD_REQUEST_ID", letter->is_nameless ? NULL : "feed"},
        {"STAMPD_TOKEN", "1-2-3-4.567"},
        {"HTTP_ACCEPT", letter->accept},
        {"HTTP_IDEMPOTENCY_KEY", letter->key},
        {"HTTP_IF_MATCH", letter->match},
        {"HTTP_IF_NONE_MATCH", letter->none_match},
        {"HTTP_TRACEPARENT", letter->trace},
        {"HTTP_TRACESTATE", letter->tracestate},
        {"HTTP_X_STAMPD_BUILD", letter->build},
    };
    for (size_t i = 0; i < COUNT_OF(all); i++)
        if (bytes_equal(bytes_of(all[i].name), name))
            return bytes_of(all[i].value);
    return NO_BYTES;
}

static enum fault letter_body(void *context, size_t limit, struct builder *body, int64_t *size_r)
{
    struct letter *letter = context;
    struct bytes text = letter->body ? bytes_of(letter->body) : BYTES("");
    letter->was_read = true;
    *size_r = letter->body_size ? letter->body_size : (int64_t)text.size;
    if (letter->body_fault)
        return letter->body_fault;
    if ((uint64_t)*size_r > limit)
        return FAULT_ALIMIT;
    builder_add_bytes(body, text);
    return FAULT_NONE;
}

static struct settings settings;
static struct arena *arena;
static struct builder body, output;
static struct reply reply;
static struct request request;

static int load_settings(void **state UNUSED)
{
    char path[] = "/tmp/test_request.XXXXXX", problem[256];
    int file = mkstemp(path);
    if (file < 0 || dprintf(file, "build = b7\nlimit_body_bytes = 2048\nlimit_operation_s = 7\n") < 0)
        return -1;
    bool is_loaded = settings_load(&settings, path, problem, sizeof problem);
    close(file);
    unlink(path);
    arena = arena_create("test");
    return is_loaded ? 0 : -1;
}

static int free_all(void **state UNUSED)
{
    settings_free(&settings);
    arena_destroy(arena);
    builder_free(&body);
    builder_free(&output);
    return 0;
}

static enum fault read_letter(struct letter *letter)
{
    struct request_source source = {
        .parameter = letter_parameter, .read_body = letter_body, .context = letter};
    arena_reset(arena);
    builder_clear(&body, 4096);
    reply = (struct reply){.body = &output};
    enum fault fault = request_read(&settings, arena, &source, &body, &request, &reply);
    assert_int_equal(reply.fault, fault);
    return fault;
}

static void assert_text(struct bytes text, const char *expected)
{
    if (!expected)
        assert_null(text.data);
    else
        assert_true(bytes_equal(text, bytes_of(expected)));
}

static void routes_are_found(void **state UNUSED)
{
    static const struct {
        struct letter letter;
        enum fault fault;
        enum call_route route;
    } cases[] = {
        {{.uri = "/ping"}, FAULT_NONE, CALL_PING},
        {{.uri = "/ping?x=1", .method = "POST"}, FAULT_NONE, CALL_PING},
        {{.uri = "/ping", .method = "HEAD"}, FAULT_NONE, CALL_PING},
        {{.uri = "/n/ping", .ns = "n", .database = "d"}, FAULT_NONE, CALL_NAMESPACE_PING},
        {{.uri = "/n/op/get", .ns = "n", .database = "d"}, FAULT_NONE, CALL_OPERATION},
        {{.uri = "/n/op/get/a/b", .ns = "n", .database = "d"}, FAULT_NONE, CALL_OPERATION},
        {{.uri = "/%6E/op/get", .ns = "n", .database = "d"}, FAULT_NONE, CALL_OPERATION},
        {{.uri = "/n/doc/A/a", .ns = "n", .database = "d"}, FAULT_NONE, CALL_DOCUMENT},
        {{.uri = "/n/doc/A/a%2Fb?age=5", .ns = "n", .database = "d"}, FAULT_NONE, CALL_DOCUMENT},
        {{.uri = "/n/doc/A/a", .method = "DELETE", .ns = "n", .database = "d"}, FAULT_NONE, CALL_DOCUMENT},
        {{.uri = "/n/doc/A/a", .method = "OPTIONS", .ns = "n", .database = "d"}, FAULT_NONE, CALL_OPTIONS},
        {{.uri = "/n/op/get", .method = "OPTIONS", .ns = "n", .database = "d"}, FAULT_NONE, CALL_OPTIONS},
        {{.uri = "/ping", .method = "OPTIONS"}, FAULT_NONE, CALL_OPTIONS},
        {{.uri = "/live", .endpoint = "probe"}, FAULT_NONE, CALL_LIVE},
        {{.uri = "/ready", .endpoint = "probe"}, FAULT_NONE, CALL_READY},
        {{.uri = "/metrics?a=b", .endpoint = "probe"}, FAULT_NONE, CALL_METRICS},
        /* probes are for their own door */
        {{.uri = "/live"}, FAULT_NPATH, 0},
        {{.uri = "/metrics", .endpoint = ""}, FAULT_NPATH, 0},
        {{.uri = "/metrics/x", .endpoint = "probe"}, FAULT_NPATH, 0},
        /* no such address */
        {{.uri = "/"}, FAULT_NPATH, 0},
        {{.uri = ""}, FAULT_NPATH, 0},
        {{.uri = NULL}, FAULT_NPATH, 0},
        {{.uri = "/n", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/op", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/op/", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n//op/get", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/op/../get", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/other", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/ping/x", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/doc", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/doc/A", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/doc/A/", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/doc/A/a/b", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/doc/A/%2E%2e", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/other", .method = "OPTIONS", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/m/op/get", .ns = "n", .database = "d"}, FAULT_NPATH, 0},
        {{.uri = "/n/op/get"}, FAULT_NPATH, 0},
        {{.uri = "/n/op/g%0", .ns = "n", .database = "d"}, FAULT_AARG, 0},
        {{.uri = "/n/op/%FF", .ns = "n", .database = "d"}, FAULT_AUTF8, 0},
        /* nginx does not know it */
        {{.uri = "/n/op/get", .ns = "n"}, FAULT_NNAMESPACE, 0},
        {{.uri = "/n/ping", .ns = "n"}, FAULT_NNAMESPACE, 0},
        /* methods */
        {{.uri = "/ping", .method = "PUT"}, FAULT_AMETHOD, 0},
        {{.uri = "/n/op/put", .method = "PUT", .ns = "n", .database = "d"}, FAULT_AMETHOD, 0},
        {{.uri = "/n/doc/A/a", .method = "POST", .ns = "n", .database = "d"}, FAULT_AMETHOD, 0},
        {{.uri = "/n/doc/A/a", .method = "put", .ns = "n", .database = "d"}, FAULT_AMETHOD, 0},
        {{.uri = "/ping", .method = "get"}, FAULT_AMETHOD, 0},
        {{.uri = "/ping", .method = ""}, FAULT_AMETHOD, 0},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct letter letter = cases[i].letter;
        enum fault fault = read_letter(&letter);
        if (fault != cases[i].fault || (!fault && request.call.route != cases[i].route))
            fail_msg("%s %s: %s, route %d", letter.method ? letter.method : "GET",
                     letter.uri ? letter.uri : "(none)", fault_code(fault), request.call.route);
        assert_false(fault && letter.was_read);
    }
}

static void call_has_all_that_was_sent(void **state UNUSED)
{
    struct letter letter = {
        .method = "POST",
        .uri = "/n/op/do%20it/a%2Fb/%C3%A9?lang=fr",
        .ns = "n",
        .database = "base",
        .build = "b6",
        .key = "a key",
        .client = "192.0.2.7",
        .type = "application/json",
        .body = "{\"param\":{\"x\":1},\"syncs\":[],\"key\":\"k\",\"account\":\"a\"}",
    };
    int64_t before_ms = clock_monotonic_ms();
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    const struct call *call = &request.call;
    assert_text(call->ns, "n");
    assert_text(call->database, "base");
    assert_text(call->operation, "do it");
    assert_int_equal(call->path_count, 2);
    assert_text(call->path[0], "a/b");
    assert_text(call->path[1], "\xC3\xA9");
    assert_text(call->lang, "fr");
    assert_text(call->key, "k");
    assert_text(call->account, "a");
    assert_text(call->admin, NULL);
    assert_text(call->build, "b6");
    assert_int_equal(call->client, address_client(BYTES("192.0.2.7")));
    assert_text(call->idempotency_key, "a key");
    assert_non_null(json_member(call->param, "x"));
    assert_int_equal(call->syncs->kind, JSON_ARRAY);
    assert_string_equal(call->request_id, "feed");
    assert_true(call->deadline_ms >= before_ms + 7000 && call->deadline_ms <= clock_monotonic_ms() + 7000);
    assert_string_equal(request.form.request_id, "feed");
    assert_string_equal(request.form.build, "b7");
}

/* Only the form of the W3C: what tasks and lines of the log have of it is bounded, and cannot be forged. */
static void only_a_right_trace_is_taken(void **state UNUSED)
{
    static const char right[] = "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01";
    static const struct {
        size_t at;
        char with;
    } wrong[] = {{0, 'f'},  {1, '1'},  {2, ' '},  {3, 'A'},  {34, 'g'}, {35, '+'},
                 {36, 'B'}, {51, '/'}, {52, ' '}, {53, 'F'}, {54, ':'}, {54, '\0'}};
    struct letter letter = {.method = "POST",
                            .uri = "/n/op/get",
                            .ns = "n",
                            .database = "base",
                            .type = "application/json",
                            .body = "{}",
                            .trace = right};
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    assert_text(request.call.trace, right);
    letter.tracestate = "a=1";
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    assert_text(request.call.trace, "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01 a=1");
    char text[64];
    letter.trace = text;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        memcpy(text, right, sizeof right);
        text[wrong[i].at] = wrong[i].with;
        assert_int_equal(read_letter(&letter), FAULT_NONE);
        assert_text(request.call.trace, NULL);
    }
    static const char *const others[] = {
        "",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01-",
        "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01,00",
        "00-00000000000000000000000000000000-b7ad6b7169203331-01",
        "00-0af7651916cd43dd8448eb211c80319c-0000000000000000-01",
    };
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        letter.trace = others[i];
        assert_int_equal(read_letter(&letter), FAULT_NONE);
        assert_text(request.call.trace, NULL);
    }
}

/* A digest of it: the numbers in the token are those of connections of all clients. */
static void a_request_without_a_name_is_named_by_its_token(void **state UNUSED)
{
    struct letter letter = {.uri = "/ping", .is_nameless = true};
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    assert_string_equal(request.call.request_id, request_id_make(request.call.arena, BYTES("1-2-3-4.567")));
    assert_string_equal(request.form.request_id, request.call.request_id);
}

static void resources_are_read(void **state UNUSED)
{
    struct letter letter = {
        .method = "PUT",
        .uri = "/n/doc/Note/a%2Fb%0A%C3%A9?lang=fr",
        .ns = "n",
        .database = "base",
        .match = "\"5\", W/\"6\"",
        .none_match = "*",
        .type = "application/json",
        .body = "{\"c\":\"X\",\"items\":[{\"c\":\"L\",\"j\":{\"a\":[1]}}],\"v\":7,\"admin\":\"k\"}",
    };
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    const struct resource *resource = request.call.resource;
    assert_non_null(resource);
    assert_int_equal(resource->act, RESOURCE_REPLACE);
    assert_text(resource->class, "Note");
    assert_text(resource->id, "a/b\n\xC3\xA9");
    assert_true(resource->match.is_given && !resource->match.is_any);
    assert_int_equal(resource->match.count, 1);
    assert_true(resource->none_match.is_any);
    assert_text(request.call.operation, "PUT");
    assert_text(request.call.lang, "fr");
    assert_text(request.call.admin, "k");
    assert_null(request.call.syncs);
    const struct json *content = json_member(request.call.param->first, "j");
    assert_true(content->is_shallow);
    assert_text(content->text, "{\"a\":[1]}");
    assert_string_equal(request.form.location, "/n/doc/Note/a%2Fb%0A%C3%A9");

    letter = (struct letter){.uri = "/n/doc/Note/a?age=60", .ns = "n", .database = "d"};
    assert_int_equal(read_letter(&letter), FAULT_NONE);
    assert_int_equal(request.call.resource->act, RESOURCE_READ);
    assert_int_equal(request.call.resource->age_s, 60);
    assert_false(request.call.resource->match.is_given);
    assert_null(request.call.param);
    assert_null(request.form.location);
}

static void resources_are_refused(void **state UNUSED)
{
    static const struct {
        struct letter letter;
        const char *argument;
    } cases[] = {
        {{.uri = "/n/doc/A/a?age=-1"}, "age"},
        {{.uri = "/n/doc/A/a?age="}, "age"},
        {{.uri = "/n/doc/A/a?age=3155760001"}, "age"},
        {{.uri = "/n/doc/A/a", .match = "7"}, "If-Match"},
        {{.uri = "/n/doc/A/a", .none_match = "\"7\",*"}, "If-None-Match"},
        {{.uri = "/n/doc/A/a?items=%7B%7D"}, "items"},
        {{.uri = "/n/doc/A/a", .type = "application/json", .body = "{\"items\":7}"}, "items"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct letter letter = cases[i].letter;
        letter.ns = letter.database = "n";
        assert_int_equal(read_letter(&letter), FAULT_AARG);
        assert_string_equal(reply.arguments[0], cases[i].argument);
    }
}

static void bodies_are_refused(void **state UNUSED)
{
    struct letter letter = {.method = "POST",
                            .uri = "/n/op/get",
                            .ns = "n",
                            .database = "d",
                            .type = "application/json",
                            .body = "{}",
                            .body_size = 2049};
    assert_int_equal(read_letter(&letter), FAULT_ALIMIT);
    assert_int_equal(reply.argument_count, 3);
    assert_string_equal(reply.arguments[0], "limit_body_bytes");
    assert_string_equal(reply.arguments[1], "2048");
    assert_string_equal(reply.arguments[2], "2049");
    assert_int_equal(response_status(&request.form, &reply), 413);

    letter.body_size = 0;
    letter.body_fault = FAULT_ABODY;
    assert_int_equal(read_letter(&letter), FAULT_ABODY);

    letter.body_fault = FAULT_NONE;
    letter.body = "{\"param\":}";
    assert_int_equal(read_letter(&letter), FAULT_AJSON);
    assert_string_equal(reply.arguments[0], "body");

    letter.type = "image/png";
    assert_int_equal(read_letter(&letter), FAULT_ATYPE);
    assert_int_equal(response_status(&request.form, &reply), 415);

    letter.type = NULL;
    letter.body = NULL;
    letter.uri = "/n/op/get?param=[]";
    assert_int_equal(read_letter(&letter), FAULT_AARG);
    assert_string_equal(reply.arguments[0], "param");
}

static void form_of_the_answer_is_known_first(void **state UNUSED)
{
    static const struct {
        struct letter letter;
        bool is_for_people, is_head;
    } cases[] = {
        {{.uri = "/x", .accept = "text/html,application/xhtml+xml"}, true, false},
        {{.uri = "/x", .accept = "application/json"}, false, false},
        {{.uri = "/x"}, false, false},
        {{.uri = "/x", .accept = "text/html", .method = "POST"}, false, false},
        {{.uri = "/x", .accept = "text/html", .method = "HEAD"}, false, true},
        {{.uri = "/x", .accept = "text/html", .method = "BREW"}, false, false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct letter letter = cases[i].letter;
        assert_int_not_equal(read_letter(&letter), FAULT_NONE);
        assert_int_equal(request.form.is_for_people, cases[i].is_for_people);
        assert_int_equal(request.form.is_head, cases[i].is_head);
        assert_string_equal(request.form.request_id, "feed");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_request_without_a_name_is_named_by_its_token),
        cmocka_unit_test(routes_are_found),
        cmocka_unit_test(call_has_all_that_was_sent),
        cmocka_unit_test(only_a_right_trace_is_taken),
        cmocka_unit_test(resources_are_read),
        cmocka_unit_test(resources_are_refused),
        cmocka_unit_test(bodies_are_refused),
        cmocka_unit_test(form_of_the_answer_is_known_first),
    };
    return cmocka_run_group_tests_name("request", tests, load_settings, free_all);
}
