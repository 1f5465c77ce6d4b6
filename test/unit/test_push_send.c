/* test_push_send: what becomes of a message, by what a push service on the loopback answers; and where no
 * message goes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <arpa/inet.h>
#include <cmocka.h>
#include <netinet/in.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include "child.h"
#include "edge/crypto/crypto.h"
#include "operation/push/push_send.h"

static struct arena *arena;
static char contact[] = "mailto:ops@example.net";
static const struct settings local = {
    .push_contact = contact, .debug_push_local = SETTING_ON, .push_ttl_s = 77};

/* --- a service that answers each connection by the next text, and hands on what it was asked --- */

struct service {
    int listener, port, asked[2];
    const char *const *answers;
    pid_t pid;
};

static void serve(void *argument)
{
    const struct service *service = argument;
    for (const char *const *answer = service->answers; *answer; answer++) {
        char request[8192];
        size_t size = 0;
        ssize_t got;
        const char *end = NULL, *length;
        int client = accept(service->listener, NULL, NULL);
        DEMAND(client >= 0);
        do {
            got = read(client, request + size, sizeof request - 1 - size);
            DEMAND(got > 0);
            request[size += (size_t)got] = '\0';
            end = memmem(request, size, "\r\n\r\n", 4);
            length = end ? strcasestr(request, "content-length: ") : NULL;
        } while (!end || !length || size < (size_t)(end + 4 - request) + strtoul(length + 16, NULL, 10));
        DEMAND(write(service->asked[1], request, size) == (ssize_t)size);
        DEMAND(write(client, *answer, strlen(*answer)) == (ssize_t)strlen(*answer));
        close(client);
    }
}

static void start(struct service *service, const char *const *answers)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t size = sizeof address;
    service->answers = answers;
    service->listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    assert_int_equal(bind(service->listener, (struct sockaddr *)&address, sizeof address), 0);
    assert_int_equal(listen(service->listener, 5), 0);
    assert_int_equal(getsockname(service->listener, (struct sockaddr *)&address, &size), 0);
    assert_int_equal(pipe(service->asked), 0);
    service->port = ntohs(address.sin_port);
    service->pid = child_start(serve, service);
    close(service->listener);
}

static void finish(struct service *service)
{
    child_expect(service->pid);
    close(service->asked[0]);
    close(service->asked[1]);
}

static struct webpush_target target_at(const char *endpoint)
{
    struct webpush_target target = {0};
    struct curve_key key;
    curve_make_key(&key);
    memcpy(target.point, key.point, sizeof target.point);
    target.endpoint = bytes_of(endpoint);
    target.origin =
        (struct bytes){endpoint, strcspn(endpoint + strlen("https://"), "/") + strlen("https://")};
    return target;
}

static struct push_outcome send_to(const struct settings *settings, const char *endpoint, const char *topic)
{
    struct webpush_target target = target_at(endpoint);
    struct curve_key key;
    struct push_outcome outcome;
    curve_make_key(&key);
    push_send(settings, arena, &target, &key, BYTES("{\"changed\":[]}"), topic, &outcome);
    return outcome;
}

static const char *endpoint_of(const struct service *service)
{
    return arena_printf(arena, "http://127.0.0.1:%d/a/secret", service->port);
}

/* --- tests --- */

#define CLOSE "Connection: close\r\n"
#define EMPTY CLOSE "Content-Length: 0\r\n\r\n"

/* What libcurl 8.14 hands on of Retry-After; that of Debian 12 has no limit. */
enum { CURL_MOST_S = 6 * 60 * 60 };

static void the_answer_decides_what_becomes_of_it(void **state UNUSED)
{
    static const char *const answers[] = {
        "HTTP/1.1 201 Created\r\n" EMPTY,
        "HTTP/1.1 200 OK\r\n" EMPTY,
        "HTTP/1.1 202 Accepted\r\n" EMPTY,
        "HTTP/1.1 404 Not Found\r\n" EMPTY,
        "HTTP/1.1 410 Gone\r\n" EMPTY,
        "HTTP/1.1 413 Too Large\r\n" EMPTY,
        "HTTP/1.1 429 Too Many\r\nRetry-After: 120\r\n" EMPTY,
        "HTTP/1.1 503 Busy\r\nRetry-After: 999999999\r\n" EMPTY,
        "HTTP/1.1 500 Broken\r\n" EMPTY,
        "HTTP/1.1 400 Bad\r\n" CLOSE "Content-Length: 6\r\n\r\na\nb\xC3\xA9\xFF",
        "HTTP/1.1 403 Forbidden\r\n" EMPTY,
        "HTTP/1.1 301 Elsewhere\r\nLocation: http://127.0.0.1:1/\r\n" EMPTY,
        "no HTTP at all\r\n\r\n",
        NULL,
    };
    static const struct {
        enum push_verdict verdict;
        int64_t retry_after_s;
        const char *words;
    } expected[] = {
        {PUSH_TAKEN, 0, NULL},
        {PUSH_TAKEN, 0, NULL},
        {PUSH_TAKEN, 0, NULL},
        {PUSH_GONE, 0, NULL},
        {PUSH_GONE, 0, NULL},
        {PUSH_TOO_LARGE, 0, NULL},
        {PUSH_LATER, 120, "The push service answers 429."},
        {PUSH_LATER, 86400, "The push service answers 503."},
        {PUSH_LATER, 0, "The push service answers 500."},
        {PUSH_REFUSED, 0, "The push service answers 400: a b\xC3\xA9"},
        {PUSH_REFUSED, 0, "The push service answers 403."},
        {PUSH_REFUSED, 0, "The push service answers 301."},
        {PUSH_LATER, 0, "No answer of the push service: the connection broke or spoke no HTTP."},
    };
    struct service service;
    start(&service, answers);
    const char *endpoint = endpoint_of(&service);
    for (size_t i = 0; i < COUNT_OF(expected); i++) {
        struct push_outcome outcome = send_to(&local, endpoint, NULL);
        assert_int_equal(outcome.verdict, expected[i].verdict);
        if (outcome.retry_after_s != CURL_MOST_S || expected[i].retry_after_s < CURL_MOST_S)
            assert_int_equal(outcome.retry_after_s, expected[i].retry_after_s);
        if (expected[i].words)
            assert_string_equal(outcome.words, expected[i].words);
        assert_null(strstr(outcome.words, "secret"));
    }
    finish(&service);
    struct push_outcome outcome = send_to(&local, endpoint, NULL); /* nobody listens any more */
    assert_int_equal(outcome.verdict, PUSH_LATER);
    assert_string_equal(outcome.words, "No answer of the push service: it does not let us connect.");
    outcome = send_to(&local, "https://no-such-host.invalid/a/secret", NULL);
    assert_int_equal(outcome.verdict, PUSH_LATER);
    assert_null(strstr(outcome.words, "invalid"));
    assert_null(strstr(outcome.words, "secret"));
}

static void the_request_is_one_of_web_push(void **state UNUSED)
{
    static const char *const answers[] = {"HTTP/1.1 201 Created\r\n" EMPTY, NULL};
    static const char *const headers[] = {
        "POST /a/secret HTTP/1.1\r\n", "\r\nContent-Type: application/octet-stream\r\n",
        "\r\nContent-Encoding: aes128gcm\r\n", "\r\nTTL: 77\r\n", "\r\nTopic: abc\r\n",
        "\r\nUrgency: normal\r\n",
        /* a head of 86 bytes, the padded text with the end of its record, the tag */
        "\r\nContent-Length: 615\r\n", "\r\nAuthorization: vapid t=ey"};
    char request[8192];
    struct service service;
    start(&service, answers);
    assert_int_equal(send_to(&local, endpoint_of(&service), "abc").verdict, PUSH_TAKEN);
    ssize_t got = read(service.asked[0], request, sizeof request - 1);
    finish(&service);
    assert_true(got > 0);
    request[got] = '\0';
    for (size_t i = 0; i < COUNT_OF(headers); i++)
        if (!strstr(request, headers[i]))
            fail_msg("%s is missing in %s", headers[i], request);
    assert_null(strstr(request, "changed"));
}

/* Labels are compared whole, and a port is none of a vendor's service. */
static void only_services_of_the_list_are_sent_to(void **state UNUSED)
{
    static char list[] = "fcm.googleapis.com  *.push.apple.com", all[] = "*", none[] = "";
    static const struct settings listed = {.push_services = list, .debug_push_local = SETTING_OFF},
                                 any = {.push_services = all, .debug_push_local = SETTING_OFF},
                                 nobody = {.push_services = none, .debug_push_local = SETTING_OFF},
                                 tried = {.push_services = none, .debug_push_local = SETTING_ON};
    static const char *const good[] = {"https://fcm.googleapis.com", "https://web.push.apple.com",
                                       "https://a.b.push.apple.com"};
    static const char *const wrong[] = {"https://push.apple.com",          "https://xpush.apple.com",
                                        "https://evilfcm.googleapis.com",  "https://a.fcm.googleapis.com",
                                        "https://fcm.googleapis.com.evil", "https://fcm.googleapis.com:8443",
                                        "https://web.push.apple.com.evil", "https://victim.example",
                                        "https://web.push.apple.com:22"};
    for (size_t i = 0; i < COUNT_OF(good); i++)
        assert_null(push_send_refuse_service(&listed, bytes_of(good[i])));
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_non_null(push_send_refuse_service(&listed, bytes_of(wrong[i])));
        assert_null(push_send_refuse_service(&any, bytes_of(wrong[i])));
        assert_non_null(push_send_refuse_service(&nobody, bytes_of(wrong[i])));
    }
    assert_null(push_send_refuse_service(&tried, BYTES("http://127.0.0.1:9")));
    assert_non_null(push_send_refuse_service(&nobody, BYTES("http://127.0.0.1:9")));
}

/* One that does not answer is asked twice, then no more for a while; others are asked meanwhile. */
static void a_service_that_does_not_answer_is_left_alone(void **state UNUSED)
{
    static const char *const answers[] = {"HTTP/1.1 201 Created\r\n" EMPTY, NULL};
    struct service service;
    const char *endpoint = "http://127.0.0.1:1/a/secret"; /* nobody listens there */
    start(&service, answers);
    for (int i = 0; i < 2; i++)
        assert_string_equal(send_to(&local, endpoint, NULL).words,
                            "No answer of the push service: it does not let us connect.");
    struct push_outcome outcome = send_to(&local, endpoint, NULL);
    assert_int_equal(outcome.verdict, PUSH_LATER);
    assert_string_equal(outcome.words, "The push service has not answered lately.");
    assert_in_range(outcome.retry_after_s, 1, 6);
    assert_int_equal(send_to(&local, endpoint_of(&service), NULL).verdict, PUSH_TAKEN);
    finish(&service);
}

/* However many do not answer: who answers is sent to. */
static void services_rest_for_themselves(void **state UNUSED)
{
    enum { DEAD = 200 };
    static const char *const answers[] = {"HTTP/1.1 201 Created\r\n" EMPTY, NULL};
    struct service service;
    start(&service, answers);
    for (int i = 0; i < 2 * DEAD; i++) /* nobody listens there */
        (void)send_to(&local, arena_printf(arena, "http://127.0.1.%d:1/a", i % DEAD + 1), NULL);
    assert_int_equal(send_to(&local, endpoint_of(&service), NULL).verdict, PUSH_TAKEN);
    finish(&service);
}

static void send_into_ourselves(void *argument)
{
    static const struct settings strict = {.push_contact = contact, .debug_push_local = SETTING_OFF};
    static const char *const closed[] = {"https://127.0.0.1:1/x", "https://localhost:1/x",
                                         "https://[::1]:1/x"};
    (void)argument;
    for (size_t i = 0; i < COUNT_OF(closed); i++)
        DEMAND(send_to(&strict, closed[i], NULL).verdict == PUSH_REFUSED);
}

static void the_loopback_is_for_tests_only(void **state UNUSED)
{
    child_expect(child_start(send_into_ourselves, NULL)); /* with a client of its own */
}

/* open_within_reach refuses to connect. */
static void nothing_goes_where_only_we_can_reach(void **state UNUSED)
{
    static const char *const closed[] = {"https://10.0.0.1/x", "https://169.254.169.254/latest",
                                         "https://[fe80::1]/x", "http://8.8.8.8/x"};
    for (size_t i = 0; i < COUNT_OF(closed); i++) {
        struct push_outcome outcome = send_to(&local, closed[i], NULL);
        assert_int_equal(outcome.verdict, PUSH_REFUSED);
        assert_string_equal(outcome.words, "The address of the push service is not a public one.");
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_loopback_is_for_tests_only),
        cmocka_unit_test(the_answer_decides_what_becomes_of_it),
        cmocka_unit_test(the_request_is_one_of_web_push),
        cmocka_unit_test(only_services_of_the_list_are_sent_to),
        cmocka_unit_test(a_service_that_does_not_answer_is_left_alone),
        cmocka_unit_test(services_rest_for_themselves),
        cmocka_unit_test(nothing_goes_where_only_we_can_reach),
    };
    arena = arena_create("test");
    int failed = cmocka_run_group_tests(tests, NULL, NULL);
    arena_destroy(arena);
    return failed;
}
