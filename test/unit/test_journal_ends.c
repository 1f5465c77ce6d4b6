/* test_journal_ends: DONE and FAIL that wait: which requests they are, and what a server that does this or
 * that makes of them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "journal/journal_ends.h"
#include "journal/journal_tasks.h"

#define PARAM "{\"id\":\"a\",\"starttime\":7,\"result\":{\"id\":1},\"take\":{\"qn\":16,\"wait\":20,\"n\":2}}"
#define END                                                                                                  \
    "{\"id\":\"a\",\"starttime\":7,\"result\":{\"id\":1},\"take\":{\"qn\":16,\"wait\":20,\"n\":2,\"apart\":" \
    "true}}"
#define FOLLOWING "{\"qn\":16,\"n\":2,\"after\":{\"id\":\"a\",\"starttime\":7},\"wait\":"
#define ENDED     "{\"out\":{\"result\":\"done\",\"v\":9,\"tasks\":[],\"wait\":12},\"more\":[1]}"
#define TAKEN     "{\"out\":{\"t\":8,\"tasks\":[{\"id\":\"b\"}],\"next\":5,\"pause\":0}}"
#define JOINED                                                                                               \
    "{\"out\":{\"result\":\"done\",\"v\":9,\"tasks\":[{\"id\":\"b\"}],\"next\":5,\"pause\":0},\"more\":[1]}"
#define NOTHING(pause)                                                                                       \
    "{\"out\":{\"result\":\"done\",\"v\":9,\"tasks\":[],\"pause\":" #pause "},\"more\":[1]}"

static void assert_text(const struct builder *text, const char *expected)
{
    assert_int_equal(text->size, strlen(expected));
    assert_memory_equal(text->data, expected, text->size);
}

static void expect_split(const char *param, const char *end, const char *following)
{
    struct builder first = {0}, second = {0};
    assert_true(journal_ends_split(bytes_of(param), &first, &second));
    journal_ends_add_wait(&second, 3);
    assert_text(&first, end);
    assert_text(&second, following);
    builder_free(&first);
    builder_free(&second);
}

static void what_waits_is_two_requests(void **state)
{
    static const char *const whole[] = {"{}",
                                        "{\"wait\":20,\"take\":{\"qn\":16}}",
                                        "{\"take\":{\"qn\":16,\"wait\":0}}",
                                        "{\"take\":{\"wait\":null}}",
                                        "{\"take\":[{\"wait\":20}]}",
                                        "{\"take\":{\"wait\":20,\"apart\":true}}",
                                        "{\"take\":{\"wait\":20,\"apart\":1}}"};
    struct builder first = {0}, second = {0};
    (void)state;
    expect_split(PARAM, END, FOLLOWING "3}");
    expect_split("{\"take\":{\"wait\":\"x\",\"apart\":false,\"qn\":1.0,\"after\":2}, \"retry\" : 4 }",
                 "{\"retry\":4,\"take\":{\"wait\":\"x\",\"qn\":1.0,\"after\":2,\"apart\":true}}",
                 "{\"qn\":1.0,\"after\":{\"retry\":4},\"wait\":3}");
    expect_split("{\"take\":{\"wait\":1}}", "{\"take\":{\"wait\":1,\"apart\":true}}",
                 "{\"after\":{},\"wait\":3}");
    for (size_t i = 0; i < COUNT_OF(whole); i++)
        assert_false(journal_ends_split(bytes_of(whole[i]), &first, &second));
    assert_int_equal(first.size + second.size, 0);
}

static void expect_join(const char *answer, const char *later, const char *expected)
{
    struct builder text = {0};
    journal_ends_join(&text, bytes_of(answer), later ? bytes_of(later) : NO_BYTES, 1000);
    assert_text(&text, expected);
    builder_free(&text);
}

static void two_answers_are_one(void **state)
{
    (void)state;
    assert_int_equal(journal_ends_wait_s(BYTES(ENDED)), 12);
    assert_int_equal(journal_ends_wait_s(BYTES(TAKEN)), 0);
    assert_int_equal(journal_ends_wait_s(BYTES("{\"out\":{\"wait\":\"x\"}}")), 0);
    assert_int_equal(journal_ends_wait_s(BYTES("{\"wait\":3}")), 0);
    assert_int_equal(journal_ends_wait_s(BYTES("[")), 0);
    expect_join(ENDED, TAKEN, JOINED);
    expect_join(ENDED, NULL, NOTHING(1000));
    expect_join(ENDED, "{\"out\":", NOTHING(1000));
    expect_join(ENDED, "{\"out\":{\"pause\":5}}", NOTHING(1000));
    expect_join("{\"out\":{}}", TAKEN, "{\"out\":{\"tasks\":[{\"id\":\"b\"}],\"next\":5,\"pause\":0}}");
}

/* --- with a server --- */

static char url[64], none[] = "";
static struct settings settings = {.queue_url = url,
                                   .queue_ca_file = none,
                                   .task_wait_s = 20,
                                   .limit_task_param_bytes = 65536,
                                   .limit_name_bytes = 255};
static struct events *events;
static struct journal_tasks *tasks;
static int listener;

/* At `url`. */
static bool open_listener(void)
{
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    socklen_t length = sizeof address;
    listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    bool is_open = bind(listener, (const struct sockaddr *)&address, length) == 0 &&
                   listen(listener, 64) == 0 &&
                   getsockname(listener, (struct sockaddr *)&address, &length) == 0;
    snprintf(url, sizeof url, "http://127.0.0.1:%d", ntohs(address.sin_port));
    return is_open;
}

static int open_tasks(void **state)
{
    (void)state;
    events = events_create();
    tasks = journal_tasks_create(events, &settings);
    return open_listener() ? 0 : -1;
}

static int close_tasks(void **state)
{
    (void)state;
    journal_tasks_destroy(tasks);
    events_destroy(events);
    close(listener);
    return 0;
}

/* What the server is sent, and does. */
struct exchange {
    const char *operation, *param;
    int status;              /* 0: breaks the connection */
    const char *head, *body; /* `head`: further lines */
};
enum { EXCHANGES_MOST = 3 };
struct script {
    struct exchange exchanges[EXCHANGES_MOST];
};

/* One request; false: the connection has ended. */
static bool receive_request(int fd, char *request, size_t most)
{
    size_t size = 0, body = 0;
    for (char *end = NULL; !end || size < (size_t)(end - request) + 4 + body;) {
        ssize_t more = recv(fd, request + size, most - 1 - size, 0);
        if (more <= 0)
            return false;
        size += (size_t)more;
        request[size] = '\0';
        end = strstr(request, "\r\n\r\n");
        const char *length = strstr(request, "Content-Length: ");
        DEMAND(!end || length);
        body = end ? (size_t)atoi(length + strlen("Content-Length: ")) : 0;
    }
    return true;
}

static void run_script(void *argument)
{
    const struct script *script = argument;
    int fd = -1;
    for (const struct exchange *now = script->exchanges;
         now < script->exchanges + EXCHANGES_MOST && now->operation; now++) {
        char request[4096], expected[1000], answer[1000];
        while (fd < 0 || !receive_request(fd, request, sizeof request)) {
            if (fd >= 0)
                close(fd);
            fd = accept(listener, NULL, NULL);
            DEMAND(fd >= 0);
        }
        snprintf(expected, sizeof expected, "POST /lab/op/%s HTTP/1.1\r\n", now->operation);
        DEMAND(strncmp(request, expected, strlen(expected)) == 0);
        snprintf(expected, sizeof expected, "\r\n\r\n{\"param\":%s}", now->param);
        DEMAND(strcmp(strstr(request, "\r\n\r\n"), expected) == 0);
        DEMAND(strstr(request, "\r\nAuthorization: Bearer key\r\n"));
        int size = snprintf(answer, sizeof answer, "HTTP/1.1 %d Fine\r\n%sContent-Length: %zu\r\n\r\n%s",
                            now->status ? now->status : 200, now->head ? now->head : "",
                            strlen(now->body) + !now->status, now->body);
        DEMAND(send(fd, answer, (size_t)size, MSG_NOSIGNAL) == size);
        if (!now->status) {
            close(fd);
            fd = -1;
        }
    }
}

struct outcome {
    char word[100];
    struct builder text;
    bool is_there;
};

static void note_outcome(void *context, const char *error, struct bytes text)
{
    struct outcome *outcome = context;
    assert_false(outcome->is_there);
    outcome->is_there = true;
    snprintf(outcome->word, sizeof outcome->word, "%s", error);
    builder_add_bytes(&outcome->text, text);
    events_stop(events);
}

static const struct journal_caller caller = {.ns = {"lab", 3}, .digest = "a"};

static struct journal_pending *send_one(const char *operation, const char *param, struct outcome *outcome)
{
    const char *error;
    return journal_tasks_send(tasks, &caller, "key", operation, bytes_of(param), note_outcome, outcome,
                              &error);
}

/* `word`, or the `text` of the answer. */
static void play(struct script *script, const char *word, const char *text)
{
    struct outcome outcome = {0};
    pid_t child = child_start(run_script, script);
    assert_non_null(send_one("done", PARAM, &outcome));
    events_run(events);
    assert_string_equal(outcome.word, word);
    assert_text(&outcome.text, text);
    child_expect(child);
    builder_free(&outcome.text);
}

#define SENT_END                                                                                             \
    {                                                                                                        \
        "done", END, 200, NULL, ENDED                                                                        \
    }

static void an_end_waits_once_it_has_happened(void **state)
{
    (void)state;
    struct script waits = {.exchanges = {SENT_END, {"take", FOLLOWING "12}", 200, NULL, TAKEN}}};
    struct script does_not = {.exchanges = {{"done", END, 200, NULL, TAKEN}}};
    struct script refused = {.exchanges = {{"done", END, 409, NULL, "{\"code\":\"ACLAIM\"}"}}};
    struct script lost = {.exchanges = {{"done", END, 0, NULL, ENDED}}};
    play(&waits, "", JOINED);
    play(&does_not, "", TAKEN);
    play(&refused, "ACLAIM", "");
    play(&lost, "SERVER", "");
}

/* What the wait may have claimed is looked for once, and the end has happened in any case. */
static void a_wait_that_fails_hides_no_end(void **state)
{
    (void)state;
    static const char fault[] = "{\"code\":\"XCRASH\"}";
    struct script found = {.exchanges = {SENT_END,
                                         {"take", FOLLOWING "12}", 500, NULL, fault},
                                         {"take", FOLLOWING "0}", 200, NULL, TAKEN}}};
    struct script broken = {.exchanges = {SENT_END,
                                          {"take", FOLLOWING "12}", 0, NULL, TAKEN},
                                          {"take", FOLLOWING "0}", 500, NULL, fault}}};
    struct script busy = {
        .exchanges = {SENT_END, {"take", FOLLOWING "12}", 503, "Retry-After: 3\r\n", fault}}};
    struct script closed = {
        .exchanges = {SENT_END, {"take", FOLLOWING "12}", 403, NULL, "{\"code\":\"SKEY\"}"}}};
    play(&found, "", JOINED);
    play(&broken, "", NOTHING(1000));
    play(&busy, "", NOTHING(3000));
    play(&closed, "", NOTHING(1000));
}

/* As many requests that wait as fit; the server never answers them. */
static int fill_waiting(const char *silent_url)
{
    int count = 0;
    char here[sizeof url];
    memcpy(here, url, sizeof here);
    snprintf(url, sizeof url, "%s", silent_url);
    while (send_one("take", "{}", NULL))
        count++;
    memcpy(url, here, sizeof url);
    return count;
}

static void an_end_that_finds_no_place_to_wait_does_not(void **state)
{
    (void)state;
    struct script script = {.exchanges = {SENT_END}};
    int other = listener;
    char silent_url[sizeof url];
    memcpy(silent_url, url, sizeof silent_url);
    assert_true(open_listener());
    assert_int_equal(fill_waiting(silent_url), JOURNAL_TASKS_NEXT_OF_KEY);
    play(&script, "", NOTHING(1000));
    close(other);
}

/* --- a client that has gone --- */

/* A request on a connection of its own. */
static int accept_request(const char *operation)
{
    char request[4096], expected[100];
    int fd = accept(listener, NULL, NULL);
    DEMAND(fd >= 0 && receive_request(fd, request, sizeof request));
    snprintf(expected, sizeof expected, "POST /lab/op/%s HTTP/1.1\r\n", operation);
    DEMAND(strncmp(request, expected, strlen(expected)) == 0);
    return fd;
}

static void answer_and_close(int fd, const char *text)
{
    char answer[1000];
    int size = snprintf(answer, sizeof answer,
                        "HTTP/1.1 200 Fine\r\nConnection: close\r\nContent-Length: %zu\r\n\r\n%s",
                        strlen(text), text);
    DEMAND(send(fd, answer, (size_t)size, MSG_NOSIGNAL) == size);
    close(fd);
}

struct departure {
    struct gate gate; /* the request is with the server */
    struct journal_pending *pending;
    struct watch *watch;
};

/* Ends when the wait is given up. */
static void have_the_wait(void *argument)
{
    struct departure *departure = argument;
    char byte;
    answer_and_close(accept_request("done"), ENDED);
    int fd = accept_request("take");
    gate_pass(&departure->gate);
    DEMAND(recv(fd, &byte, 1, 0) == 0);
}

static void leave(void *context)
{
    struct departure *departure = context;
    char silent_url[sizeof url];
    gate_await(&departure->gate);
    memcpy(silent_url, url, sizeof silent_url);
    assert_int_equal(fill_waiting(silent_url), JOURNAL_TASKS_NEXT_OF_KEY - 1);
    journal_tasks_forget(departure->pending);
    assert_int_equal(fill_waiting(silent_url), 1);
    events_stop(events);
}

/* Runs the loop until the client has left. */
static pid_t depart(struct departure *departure, void (*server)(void *argument),
                    void (*at_gate)(void *context))
{
    struct outcome outcome = {.is_there = true}; /* there must be none */
    gate_open(&departure->gate);
    pid_t child = child_start(server, departure);
    departure->watch = events_watch_create(events, at_gate, departure);
    events_watch_set(departure->watch, departure->gate.ends[0], false);
    departure->pending = send_one("done", PARAM, &outcome);
    assert_non_null(departure->pending);
    events_run(events);
    events_watch_destroy(departure->watch);
    return child;
}

static void a_wait_is_given_up_with_its_client(void **state)
{
    struct departure departure;
    (void)state;
    pid_t child = depart(&departure, have_the_wait, leave);
    child_expect(child);
    gate_close(&departure.gate);
}

/* The end is answered when its client has gone; behind it there is one request of another client, no wait. */
static void have_the_end(void *argument)
{
    struct departure *departure = argument;
    int end = accept_request("done");
    gate_pass(&departure->gate);
    int other = accept_request("keep");
    answer_and_close(end, ENDED);
    answer_and_close(other, "{}");
    answer_and_close(accept_request("keep"), "{}");
}

static void leave_early(void *context)
{
    struct departure *departure = context;
    gate_await(&departure->gate);
    journal_tasks_forget(departure->pending);
    events_stop(events);
}

static void an_end_reaches_the_server_and_waits_for_nobody(void **state)
{
    struct departure departure;
    (void)state;
    pid_t child = depart(&departure, have_the_end, leave_early);
    for (int i = 0; i < 2; i++) {
        struct outcome outcome = {0};
        assert_non_null(send_one("keep", "{}", &outcome));
        events_run(events);
        assert_text(&outcome.text, "{}");
        builder_free(&outcome.text);
    }
    child_expect(child);
    gate_close(&departure.gate);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_waits_is_two_requests),
        cmocka_unit_test(two_answers_are_one),
        cmocka_unit_test_setup_teardown(an_end_waits_once_it_has_happened, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(a_wait_that_fails_hides_no_end, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(an_end_that_finds_no_place_to_wait_does_not, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(a_wait_is_given_up_with_its_client, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(an_end_reaches_the_server_and_waits_for_nobody, open_tasks,
                                        close_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
