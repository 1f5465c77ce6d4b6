/* test_journal_tasks: how many requests for tasks may be under way, and what their answers become. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <arpa/inet.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include <cmocka.h>

#include "child.h"
#include "journal/journal_tasks.h"

static char url[] = "http://127.0.0.1:9", none[] = "";
static struct settings settings = {.queue_url = url,
                                   .queue_ca_file = none,
                                   .task_wait_s = 20,
                                   .limit_task_param_bytes = 65536,
                                   .limit_name_bytes = 255};
static struct events *events;
static struct journal_tasks *tasks;

static int open_tasks(void **state)
{
    (void)state;
    events = events_create();
    tasks = journal_tasks_create(events, &settings);
    return 0;
}

static int close_tasks(void **state)
{
    (void)state;
    journal_tasks_destroy(tasks);
    events_destroy(events);
    return 0;
}

static void on_done(void *context, const char *error, struct bytes text)
{
    (void)context, (void)error, (void)text;
    fail_msg("nothing has run the requests");
}

/* The word of a refusal; "": it is under way. */
static const char *send_param(int key, const char *operation, const char *param)
{
    struct journal_caller caller = {.ns = {"lab", 3}, .digest = {(char)('a' + key)}};
    const char *error;
    return journal_tasks_send(tasks, &caller, "key", operation, bytes_of(param), on_done, NULL, &error)
               ? ""
               : error;
}

static void send_many(int key, const char *operation, int count)
{
    for (int i = 0; i < count; i++)
        assert_string_equal(send_param(key, operation, "{}"), "");
}

static void waiting_leaves_places_to_the_rest(void **state)
{
    (void)state;
    for (int key = 0; key < 4; key++) {
        send_many(key, "take", JOURNAL_TASKS_NEXT_OF_KEY);
        assert_string_equal(send_param(key, "take", "{}"), "XBUSY 1000");
    }
    assert_string_equal(send_param(4, "take", "{}"), "XBUSY 1000"); /* of all there are enough */
    send_many(0, "done", JOURNAL_TASKS_OF_KEY - JOURNAL_TASKS_NEXT_OF_KEY);
    assert_string_equal(send_param(0, "keep", "{}"), "XBUSY 1000");
    send_many(4, "fail", JOURNAL_TASKS_MOST - 4 * JOURNAL_TASKS_NEXT_OF_KEY - 4);
    assert_string_equal(send_param(1, "done", "{}"), "XBUSY 1000");
}

/* A task that would not fit would be claimed, and lost with the answer. */
static void all_that_may_be_taken_fits(void **state)
{
    (void)state;
    struct settings large = settings;
    assert_true(journal_tasks_room(&large).answer >= (size_t)100 * 65536);
    assert_string_equal(send_param(0, "take", "{\"qn\":16,\"n\":100}"), "");
    settings.limit_task_param_bytes = 4 << 20;
    assert_string_equal(send_param(0, "take", "{\"qn\":16,\"n\":15}"), "");
    assert_string_equal(send_param(0, "take", "{\"qn\":16,\"n\":16}"), "OUT_OF_RANGE");
    assert_string_equal(send_param(0, "take", "{\"qn\":16,\"n\":\"x\"}"), "");
    assert_string_equal(send_param(0, "fail", "{\"n\":16}"), "");
    assert_string_equal(send_param(1, "done", "{\"take\":{\"qn\":16,\"n\":15}}"), "");
    assert_string_equal(send_param(1, "done", "{\"take\":{\"qn\":16,\"n\":16}}"), "OUT_OF_RANGE");
    assert_string_equal(send_param(1, "done", "{\"n\":16,\"take\":16}"), "");
    assert_string_equal(send_param(1, "done", "{\"take\":null}"), "");
    assert_string_equal(send_param(2, "fail", "{\"take\":{\"qn\":16,\"n\":15}}"), "");
    assert_string_equal(send_param(2, "fail", "{\"take\":{\"qn\":16,\"n\":16}}"), "OUT_OF_RANGE");
    settings = large;
    assert_string_equal(send_param(0, "take", "[100]"), "VALUE");
}

/* --- answers --- */

struct server {
    int listener;
    const char *head; /* further lines of the answer */
    char word[100];
};

static void answer_busy(void *argument)
{
    static const char body[] = "{\"code\":\"XBUSY\"}";
    const struct server *server = argument;
    char request[4096], answer[300];
    int fd = accept(server->listener, NULL, NULL);
    DEMAND(fd >= 0);
    for (size_t size = 0; !size || request[size - 1] != '}';) {
        ssize_t more = recv(fd, request + size, sizeof request - size, 0);
        DEMAND(more > 0);
        size += (size_t)more;
    }
    int size = snprintf(answer, sizeof answer, "HTTP/1.1 429 Busy\r\n%sContent-Length: %zu\r\n\r\n%s",
                        server->head, sizeof body - 1, body);
    DEMAND(send(fd, answer, (size_t)size, 0) == size);
}

static void note_word(void *context, const char *error, struct bytes text)
{
    struct server *server = context;
    assert_int_equal(text.size, 0);
    snprintf(server->word, sizeof server->word, "%s", error);
    events_stop(events);
}

static void a_busy_server_says_when_to_come_again(void **state)
{
    (void)state;
    static const char *const cases[][2] = {{"Retry-After: 3\r\n", "XBUSY 3000"}, {"", "XBUSY 1000"}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct sockaddr_in address = {.sin_family = AF_INET, .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
        socklen_t length = sizeof address;
        struct server server = {.listener = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0),
                                .head = cases[i][0]};
        char here[64];
        const char *error;
        struct journal_caller caller = {.ns = {"lab", 3}};
        assert_int_equal(bind(server.listener, (const struct sockaddr *)&address, length), 0);
        assert_int_equal(listen(server.listener, 1), 0);
        assert_int_equal(getsockname(server.listener, (struct sockaddr *)&address, &length), 0);
        snprintf(here, sizeof here, "http://127.0.0.1:%d", ntohs(address.sin_port));
        pid_t child = child_start(answer_busy, &server);
        settings.queue_url = here;
        assert_non_null(
            journal_tasks_send(tasks, &caller, "key", "keep", BYTES("{}"), note_word, &server, &error));
        settings.queue_url = url;
        events_run(events);
        assert_string_equal(server.word, cases[i][1]);
        child_expect(child);
        close(server.listener);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(waiting_leaves_places_to_the_rest, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(all_that_may_be_taken_fits, open_tasks, close_tasks),
        cmocka_unit_test_setup_teardown(a_busy_server_says_when_to_come_again, open_tasks, close_tasks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
