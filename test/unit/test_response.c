/* response, throttle: the forms of answers, told by tables; the delays of what dies young. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "base/arena.h"
#include "edge/json/json.h"
#include "http/response.h"
#include "serve/throttle.h"
#include "operation/reply.h"

static struct builder head, body;

static int free_builders(void **state UNUSED)
{
    builder_free(&head);
    builder_free(&body);
    return 0;
}

static void compose(const struct response_form *form, struct reply *reply)
{
    builder_clear(&head, 4096);
    reply->body = &body;
    response_compose(form, reply, &head);
    builder_add(&head, "", 1); /* so that strstr ends */
}

static bool has_line(const char *line)
{
    char text[256];
    snprintf(text, sizeof text, "%s\r\n", line);
    return strstr(head.data, text) != NULL;
}

static bool has_header(const char *name)
{
    char text[256];
    snprintf(text, sizeof text, "\r\n%s: ", name);
    return strstr(head.data, text) != NULL;
}

/* --- heads --- */

static void success_is_sent_as_it_is(void **state UNUSED)
{
    struct response_form form = {.request_id = "0123abc", .build = "1.2.3"};
    struct reply reply = {.mime = "text/csv"};
    builder_clear(&body, 0);
    builder_add_text(&body, "a;b\n");
    compose(&form, &reply);
    assert_string_equal(head.data, "Status: 200 OK\r\nContent-Type: text/csv\r\nContent-Length: 4\r\n"
                                   "Cache-Control: private, no-cache\r\nX-Content-Type-Options: nosniff\r\n"
                                   "X-Request-Id: 0123abc\r\nX-Stampd-Build: 1.2.3\r\n\r\n");
    assert_true(bytes_equal(response_body(&form, &reply), BYTES("a;b\n")));

    assert_false(has_header("Idempotency-Replayed"));
    reply.is_replayed = true;
    compose(&form, &reply);
    assert_true(has_line("Idempotency-Replayed: true"));

    assert_true(has_line("Cache-Control: private, no-cache"));
    reply.mime = MIME_EVENTS;
    compose(&form, &reply);
    assert_true(has_line("Cache-Control: private, no-cache, no-transform"));

    form.is_head = true;
    reply.mime = NULL;
    compose(&form, &reply);
    assert_true(has_line("Content-Length: 4"));
    assert_true(has_line("Content-Type: application/json"));
    assert_int_equal(response_body(&form, &reply).size, 0);
}

static void nobody_knows_how_long_a_stream_will_be(void **state UNUSED)
{
    struct response_form form = {.build = "1.2.3"};
    struct outlet outlet = {.is_open = true};
    struct reply reply = {.mime = MIME_LINES, .outlet = &outlet};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_true(has_line("Content-Type: application/x-ndjson"));
    assert_false(has_header("Content-Length"));
}

static void faults_have_their_status(void **state UNUSED)
{
    static const struct {
        enum fault fault;
        const char *argument;
        int status;
        const char *line;
    } cases[] = {
        {FAULT_NONE, NULL, 200, "Status: 200 OK"},
        {FAULT_NPATH, NULL, 404, "Status: 404 Not Found"},
        {FAULT_NNAMESPACE, "x", 404, "Status: 404 Not Found"},
        {FAULT_NOPERATION, "x", 404, "Status: 404 Not Found"},
        {FAULT_AMETHOD, "PUT", 405, "Status: 405 Method Not Allowed"},
        {FAULT_ATYPE, NULL, 415, "Status: 415 Unsupported Media Type"},
        {FAULT_ALIMIT, "limit_body_bytes", 413, "Status: 413 Content Too Large"},
        {FAULT_ALIMIT, "limit_depth", 400, "Status: 400 Bad Request"},
        {FAULT_ALIMIT, NULL, 400, "Status: 400 Bad Request"},
        {FAULT_AARG, "c", 400, "Status: 400 Bad Request"},
        {FAULT_BINTERNAL, NULL, 500, "Status: 500 Internal Server Error"},
        {FAULT_XAWAY, NULL, 503, "Status: 503 Service Unavailable"},
        {FAULT_DBUILD, NULL, 400, "Status: 400 Bad Request"},
        {FAULT_CONTENTION, NULL, 409, "Status: 409 Conflict"},
        {FAULT_OOFF, NULL, 503, "Status: 503 Service Unavailable"},
        {FAULT_SKEY, NULL, 403, "Status: 403 Forbidden"},
        {FAULT_STALE, NULL, 409, "Status: 409 Conflict"},
        {FAULT_SCLOSED, NULL, 401, "WWW-Authenticate: Bearer realm=\"stampd\""},
        {FAULT_AVERSION, NULL, 409, "Status: 409 Conflict"},
        {FAULT_XFULL, NULL, 507, "Status: 507 Insufficient Storage"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct response_form form = {0};
        struct reply reply = {.fault = cases[i].fault};
        if (cases[i].argument)
            reply.arguments[reply.argument_count++] = cases[i].argument;
        builder_clear(&body, 0);
        compose(&form, &reply);
        assert_int_equal(response_status(&form, &reply), cases[i].status);
        assert_true(has_line(cases[i].line));
        assert_int_equal(has_line("Allow: GET, HEAD, POST, OPTIONS"), cases[i].status == 405);
        assert_true(
            has_line(cases[i].fault ? "Cache-Control: no-store" : "Cache-Control: private, no-cache"));
    }
}

static void few_statuses_are_400_and_404(void **state UNUSED)
{
    static const struct {
        enum fault fault;
        const char *code;
        int status, of_http;
    } cases[] = {
        {FAULT_AVERSION, NULL, 400, 409},   {FAULT_XAWAY, NULL, 400, 503},
        {FAULT_SCLOSED, NULL, 400, 403},    {FAULT_NDOCUMENT, NULL, 404, 404},
        {FAULT_ATYPE, NULL, 415, 415},      {FAULT_AMETHOD, NULL, 405, 405},
        {FAULT_RAISED, "AQUOTA", 400, 400}, {FAULT_RAISED, "NQUOTA", 404, 404},
        {FAULT_RAISED, "BQUOTA", 400, 500}, {FAULT_RAISED, "CQUOTA", 400, 409},
        {FAULT_RAISED, "OQUOTA", 400, 503}, {FAULT_RAISED, "SQUOTA", 400, 403},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct response_form form = {.has_few_statuses = true, .has_credentials = true};
        struct reply reply = {.fault = cases[i].fault, .code = cases[i].code};
        assert_int_equal(response_status(&form, &reply), cases[i].status);
        form.has_few_statuses = false;
        assert_int_equal(response_status(&form, &reply), cases[i].of_http);
    }
}

static void status_of_a_probe_is_its_own(void **state UNUSED)
{
    struct response_form form = {0};
    struct reply reply = {.mime = "text/plain", .status = 503};
    builder_clear(&body, 0);
    builder_add_text(&body, "XAWAY\n");
    compose(&form, &reply);
    assert_true(has_line("Status: 503 Service Unavailable"));
    assert_true(has_line("Content-Length: 6"));
    assert_true(has_line("Retry-After: 5"));
}

static void resources_tell_more_by_their_status(void **state UNUSED)
{
    static const struct {
        enum fault fault;
        const char *line;
    } cases[] = {
        {FAULT_AARG, "Status: 400 Bad Request"},
        {FAULT_AMETHOD, "Allow: GET, HEAD, PUT, PATCH, DELETE, OPTIONS"},
        {FAULT_NDOCUMENT, "Status: 404 Not Found"},
        {FAULT_AVERSION, "Status: 412 Precondition Failed"},
        {FAULT_CONTENTION, "Status: 409 Conflict"},
        {FAULT_STALE, "Status: 409 Conflict"},
        {FAULT_BINTERNAL, "Status: 500 Internal Server Error"},
        {FAULT_XFULL, "Status: 507 Insufficient Storage"},
        {FAULT_XAWAY, "Retry-After: 5"},
        {FAULT_OOFF, "Status: 503 Service Unavailable"},
        {FAULT_SCLOSED, "Status: 401 Unauthorized"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct response_form form = {.is_resource = true, .location = "/l/doc/A/a"};
        struct reply reply = {.fault = cases[i].fault, .status = 201, .etag = 5};
        builder_clear(&body, 0);
        compose(&form, &reply);
        assert_true(has_line(cases[i].line));
        assert_false(has_header("ETag") || has_header("Location"));
    }
}

static void resources_bear_their_version(void **state UNUSED)
{
    struct response_form form = {.is_resource = true, .location = "/l/doc/A/a%20b"};
    struct reply reply = {.status = 201, .etag = 261121103000123};
    builder_clear(&body, 0);
    builder_add_text(&body, "{}");
    compose(&form, &reply);
    assert_true(has_line("Status: 201 Created"));
    assert_true(has_line("ETag: \"261121103000123\""));
    assert_true(has_line("Location: /l/doc/A/a%20b"));
    reply.status = 200;
    compose(&form, &reply);
    assert_false(has_header("Location"));
}

static void some_answers_have_no_content(void **state UNUSED)
{
    struct response_form form = {.is_resource = true};
    struct reply reply = {.status = 304, .etag = 7};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_true(has_line("Status: 304 Not Modified"));
    assert_true(has_line("ETag: \"7\""));
    assert_false(has_header("Content-Type") || has_header("Content-Length") || has_header("Allow"));
    reply = (struct reply){.status = 204};
    compose(&form, &reply);
    assert_true(has_line("Allow: GET, HEAD, PUT, PATCH, DELETE, OPTIONS"));
    assert_true(has_line("Accept-Patch: application/json"));
    assert_false(has_header("Content-Type") || has_header("Content-Length") || has_header("ETag"));
}

static void request_id_splits_no_header(void **state UNUSED)
{
    static const struct {
        const char *id;
        bool is_sent;
    } cases[] = {
        {"0a1b-2c.3d_4e+", true},
        {NULL, false},
        {"", false},
        {"a b", false},
        {"a\r\nSet-Cookie: x", false},
        {"\xC3\xA9", false},
        {"0123456789012345678901234567890123456789012345678901234567890123", true},
        {"01234567890123456789012345678901234567890123456789012345678901234", false},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct response_form form = {.request_id = cases[i].id, .build = cases[i].id};
        struct reply reply = {0};
        builder_clear(&body, 0);
        compose(&form, &reply);
        assert_int_equal(has_header("X-Request-Id"), cases[i].is_sent);
        assert_int_equal(has_header("X-Stampd-Build"), cases[i].is_sent);
    }
}

static void origins_are_told_when_they_are_allowed(void **state UNUSED)
{
    struct response_form form = {.has_origins = true};
    struct reply reply = {0};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_true(has_line("Vary: Origin"));
    assert_false(has_header("Access-Control-Allow-Origin") || has_header("Access-Control-Expose-Headers"));
    form.origin = "https://app.example";
    reply.fault = FAULT_AARG;
    compose(&form, &reply);
    assert_true(has_line("Access-Control-Allow-Origin: https://app.example"));
    assert_non_null(strstr(head.data, "Access-Control-Expose-Headers: Accept-Ranges, "));
    assert_false(has_header("Access-Control-Allow-Credentials") ||
                 has_header("Access-Control-Allow-Methods"));
    builder_clear(&body, 0);
    reply = (struct reply){.status = 204};
    compose(&form, &reply);
    assert_true(has_line("Access-Control-Allow-Methods: GET, HEAD, POST, OPTIONS"));
    assert_true(has_line("Access-Control-Max-Age: 600"));
    assert_non_null(strstr(head.data, "If-Match"));
    assert_non_null(strstr(head.data, "If-Range, Last-Event-ID, Range"));
}

static void timings_are_told_when_they_were_taken(void **state UNUSED)
{
    struct response_form form = {.origin = "*"};
    struct timing timing = {.us = {[PHASE_WORK] = 1500, [PHASE_SYNC] = 7}, .is_shown = true};
    struct reply reply = {.phase = PHASE_UNKNOWN};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_false(has_header("Server-Timing") || has_header("Timing-Allow-Origin"));
    reply.timing = &timing;
    compose(&form, &reply);
    assert_true(has_line("Server-Timing: before;dur=0.000, work;dur=1.500, validation;dur=0.000, "
                         "afterwork;dur=0.000, sync;dur=0.007, total;dur=1.507"));
    assert_true(has_line("Timing-Allow-Origin: *"));
}

/* --- faults as JSON --- */

static struct json *read_problem(struct arena *arena)
{
    struct json_limits limits = {.depth = 4, .tree_depth = 4};
    struct json_problem problem;
    struct json *root = NULL;
    assert_int_equal(json_read(arena, builder_bytes(&body), &limits, &root, &problem), FAULT_NONE);
    return root;
}

static void assert_member(const struct json *root, const char *name, const char *text)
{
    const struct json *member = json_member(root, name);
    if (!text) {
        assert_null(member);
        return;
    }
    assert_non_null(member);
    assert_true(bytes_equal(member->value, bytes_of(text)));
}

static void fault_is_told_to_programs(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct response_form form = {0};
    struct reply reply = {
        .fault = FAULT_AVERSION,
        .phase = PHASE_WORK,
        .argument_count = 3,
        .arguments = {"Note", "say \"hi\"\n", "\xFF"},
        .detail = "It was changed.",
        .at = "/param/docs/0/if",
    };
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_true(has_line("Content-Type: application/problem+json"));
    const struct json *root = read_problem(arena);
    assert_member(root, "type", "about:blank");
    assert_member(root, "title", "The document is not at the expected version.");
    assert_member(root, "status", "409");
    assert_member(root, "code", "AVERSION");
    assert_member(root, "major", "1");
    assert_member(root, "phase", "1");
    assert_member(root, "message", "The document is not at the expected version. It was changed.");
    assert_member(root, "detail", "It was changed.");
    assert_member(root, "at", "/param/docs/0/if");
    const struct json *arguments = json_member(root, "args");
    assert_non_null(arguments);
    assert_int_equal(arguments->kind, JSON_ARRAY);
    assert_int_equal(arguments->count, 3);
    assert_true(bytes_equal(arguments->first->value, BYTES("Note")));
    assert_true(bytes_equal(arguments->first->next->value, BYTES("say \"hi\"\n")));
    assert_true(bytes_equal(arguments->first->next->next->value, BYTES("?")));
    arena_destroy(arena);
}

/* 16 MiB that a client sent would be 16 MiB of an answer. */
static void long_texts_are_cut_between_characters(void **state UNUSED)
{
    enum { LONG = 100000, MOST = 4096 };
    struct arena *arena = arena_create("test");
    struct response_form form = {0};
    char *text = arena_alloc(arena, LONG + 1);
    for (size_t i = 0; i < LONG; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[LONG] = '\0';
    struct reply reply = {
        .fault = FAULT_AARG, .argument_count = 2, .arguments = {text, text + 2}, .at = text, .detail = "x"};
    text[0] = text[1] = 'a';
    builder_clear(&body, 0);
    compose(&form, &reply);
    const struct json *root = read_problem(arena), *arguments = json_member(root, "args");
    assert_int_equal(arguments->first->value.size, MOST);
    assert_int_equal(arguments->first->next->value.size, MOST);
    assert_int_equal(json_member(root, "at")->value.size, MOST);
    text[1] = '\xC3'; /* every second place is within a character now */
    text[2] = '\xA9';
    for (size_t i = 3; i + 1 < LONG; i += 2)
        memcpy(text + i, "\xC3\xA9", 2);
    text[LONG - 1] = '\0';
    reply.argument_count = 1;
    builder_clear(&body, 0);
    compose(&form, &reply);
    root = read_problem(arena);
    assert_int_equal(json_member(root, "args")->first->value.size, MOST - 1);
    arena_destroy(arena);
}

static void an_unknown_phase_is_left_out(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct response_form form = {0};
    struct reply reply = {.fault = FAULT_XCRASH, .phase = PHASE_UNKNOWN};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_member(read_problem(arena), "phase", NULL);
    arena_destroy(arena);
}

static void verification_that_failed_is_contention(void **state UNUSED)
{
    struct arena *arena = arena_create("test");
    struct response_form form = {.is_head = true};
    struct reply reply = {.fault = FAULT_STALE, .phase = PHASE_VALIDATION};
    builder_clear(&body, 0);
    compose(&form, &reply);
    const struct json *root = read_problem(arena);
    assert_member(root, "code", "CONTENTION");
    assert_member(root, "major", "5");
    assert_member(root, "phase", "2");
    assert_member(root, "at", NULL);
    assert_member(root, "detail", NULL);
    assert_int_equal(json_member(root, "args")->count, 0);
    char line[64];
    snprintf(line, sizeof line, "Content-Length: %zu", body.size);
    assert_true(has_line(line));
    assert_int_equal(response_body(&form, &reply).size, 0);
    arena_destroy(arena);
}

static void fault_is_told_to_people(void **state UNUSED)
{
    struct response_form form = {.is_for_people = true};
    struct reply reply = {.fault = FAULT_OOFF,
                          .argument_count = 1,
                          .arguments = {"until noon"},
                          .detail = "<b>Moving house.</b>"};
    builder_clear(&body, 0);
    compose(&form, &reply);
    assert_true(has_line("Content-Type: text/plain; charset=utf-8"));
    assert_true(has_line("X-Content-Type-Options: nosniff"));
    assert_true(bytes_equal(builder_bytes(&body), BYTES("OOFF: The namespace is closed for maintenance.\n"
                                                        "<b>Moving house.</b>\n- until noon\n")));
}

/* --- throttle --- */

static void who_dies_young_waits_longer_each_time(void **state UNUSED)
{
    static const int64_t delays[] = {100, 200, 400, 800, 1600, 3200, 6400, 12800, 25600, 30000, 30000};
    struct throttle throttle = {0};
    int64_t now_ms = 5000;
    assert_true(throttle_allows(&throttle, now_ms));
    for (size_t i = 0; i < COUNT_OF(delays); i++) {
        throttle_died(&throttle, now_ms - 999, now_ms, 1000);
        assert_false(throttle_allows(&throttle, now_ms + delays[i] - 1));
        assert_true(throttle_allows(&throttle, now_ms + delays[i]));
        now_ms += delays[i];
    }
    throttle_died(&throttle, now_ms - 1000, now_ms, 1000);
    assert_true(throttle_allows(&throttle, now_ms));
    throttle_died(&throttle, now_ms, now_ms, 1000);
    assert_false(throttle_allows(&throttle, now_ms + 99));
    assert_true(throttle_allows(&throttle, now_ms + 100));
    throttle_died(&throttle, now_ms, now_ms, 0); /* nobody is young */
    assert_true(throttle_allows(&throttle, now_ms));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(success_is_sent_as_it_is),
        cmocka_unit_test(nobody_knows_how_long_a_stream_will_be),
        cmocka_unit_test(faults_have_their_status),
        cmocka_unit_test(few_statuses_are_400_and_404),
        cmocka_unit_test(status_of_a_probe_is_its_own),
        cmocka_unit_test(resources_tell_more_by_their_status),
        cmocka_unit_test(resources_bear_their_version),
        cmocka_unit_test(some_answers_have_no_content),
        cmocka_unit_test(request_id_splits_no_header),
        cmocka_unit_test(origins_are_told_when_they_are_allowed),
        cmocka_unit_test(timings_are_told_when_they_were_taken),
        cmocka_unit_test(fault_is_told_to_programs),
        cmocka_unit_test(long_texts_are_cut_between_characters),
        cmocka_unit_test(an_unknown_phase_is_left_out),
        cmocka_unit_test(verification_that_failed_is_contention),
        cmocka_unit_test(fault_is_told_to_people),
        cmocka_unit_test(who_dies_young_waits_longer_each_time),
    };
    return cmocka_run_group_tests_name("response", tests, NULL, free_builders);
}
