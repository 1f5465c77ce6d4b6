/* task_run: requests of several tasks whose database goes away in the middle, against a queue in memory. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include <cmocka.h>

#include "fake_store.h"
#include "fake_tasks.h"
#include "operation/registry.h"
#include "operation/tasks/task_run.h"
#include "operation/tasks/task_wakeup.h"
#include "segment/counts/backlog.h"
#include "store/documents/store_commit.h"
#include "worker_context_world.h"

enum { TASKS = 4 };

static const char *const names[TASKS] = {"a", "b", "c", "d"};
static struct task_outcome outcomes[TASKS];

static int start(void **state UNUSED)
{
    static char none[] = "";
    static struct settings limits = {.limit_answer_bytes = 4 << 20,
                                     .limit_items = 100000,
                                     .limit_tombstones = 100000,
                                     .limit_content_bytes = 100,
                                     .limit_depth = 32,
                                     .limit_document_bytes = 575,
                                     .limit_documents = 32,
                                     .limit_name_bytes = 16,
                                     .limit_syncs = 50};
    limits.queue_remotes = none;
    limits.queue_socket = limits.run_directory = limits.queue_code = limits.task_queues =
        limits.task_retries = limits.task_retries_of = none;
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"open\"}");
    return 0;
}

static int stop(void **state)
{
    fake_forget_tasks();
    return worker_context_world_close(state);
}

/* Tasks that put a document each, all in one request. */
static void run_all(const char *operation)
{
    struct call call = {.arena = arena,
                        .ns = BYTES("lab"),
                        .database = BYTES("lab"),
                        .request_id = "test",
                        .deadline_ms = INT64_MAX / 2};
    memset(outcomes, 0, sizeof outcomes);
    for (size_t i = 0; i < TASKS; i++) {
        fake_add_task(
            names[i], operation,
            arena_printf(arena, "{\"docs\":[{\"c\":\"Doc\",\"id\":\"%s\",\"items\":[]}]}", names[i]));
        outcomes[i].id = bytes_of(names[i]);
    }
    reply = (struct reply){.body = &body};
    int ns = documents_ns(worker_context.documents, BYTES("lab"));
    assert_int_equal(task_run(&worker_context, &call, &reply, ns, outcomes, TASKS), FAULT_NONE);
}

static void expect_results(const char *const results[TASKS])
{
    for (size_t i = 0; i < TASKS; i++)
        assert_string_equal(outcomes[i].result, results[i]);
}

/* A copy of `put` whose tasks share commits. */
static const char *together(void)
{
    static struct operation operation;
    if (!operation.name) {
        operation = *registry_find(BYTES("put"));
        operation.name = "PutTogether";
        operation.task.batch = TASKS;
        assert_true(registry_add(&operation));
    }
    return operation.name;
}

static void lose_the_database(void)
{
    fake.outcome = COMMIT_UNKNOWN;
    fake.reconnect_fault = FAULT_XAWAY; /* the old backend may still be there */
}

static void all_are_done_alone_or_together(void **state UNUSED)
{
    run_all("put");
    expect_results((const char *const[TASKS]){"done", "done", "done", "done"});
    assert_int_equal(fake.commits, TASKS);
    fake_forget_tasks();
    run_all(together());
    expect_results((const char *const[TASKS]){"done", "done", "done", "done"});
    assert_int_equal(fake.commits, TASKS + 1);
}

static void a_worker_that_is_cut_off_begins_no_other_task(void **state UNUSED)
{
    lose_the_database();
    run_all("put");
    assert_true(documents_must_exit(worker_context.documents));
    expect_results((const char *const[TASKS]){"failed", "busy", "busy", "busy"});
    assert_string_equal(outcomes[0].code, "XUNKNOWN");
    assert_int_equal(fake.commits, 1);
    assert_int_equal(queue.end_count, 0); /* nor is anything put back: a scan does it */
}

static void what_shared_a_commit_that_is_unknown_is_not_run_alone(void **state UNUSED)
{
    lose_the_database();
    run_all(together());
    assert_true(documents_must_exit(worker_context.documents));
    expect_results((const char *const[TASKS]){"failed", "failed", "failed", "failed"});
    for (size_t i = 0; i < TASKS; i++)
        assert_string_equal(outcomes[i].code, "XUNKNOWN");
    assert_int_equal(fake.commits, 1);
    assert_int_equal(queue.end_count, 0);
}

static void the_end_of_a_limited_task_wakes_all_managers(void **state UNUSED)
{
    static char remotes[] = "https://b/qm1", path[] = "/tmp/stampd-wake-XXXXXX";
    char code[BACKLOG_CODE_BYTES + 1];
    struct task_claim claims[2] = {{.result = CLAIM_DONE},
                                   {.result = CLAIM_RUNNING, .task.is_limited = true}};
    struct backlog *backlog = backlog_of(segment, 0);
    settings.queue_remotes = remotes;
    task_wakeup_limited(&worker_context, 0, BYTES("lab"), claims, 2);
    assert_false(backlog_take(backlog, BACKLOG_REMOTE, code));
    claims[0].task.is_limited = true;
    task_wakeup_limited(&worker_context, 0, BYTES("lab"), claims, 2);
    assert_true(backlog_take(backlog, BACKLOG_REMOTE, code));
    assert_string_equal(code, "lab");
    assert_false(backlog_take(backlog, BACKLOG_LOCAL, code));

    /* The manager of this host does not read. */
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    int listener = socket(AF_UNIX, SOCK_DGRAM, 0);
    assert_int_equal(close(mkstemp(path)), 0);
    assert_int_equal(unlink(path), 0);
    strcpy(address.sun_path, path);
    assert_int_equal(bind(listener, (const struct sockaddr *)&address, sizeof address), 0);
    settings.queue_socket = path;
    for (int i = 0; i < 2000; i++)
        task_wakeup_limited(&worker_context, 0, BYTES("lab"), claims, 2);
    assert_true(backlog_take(backlog, BACKLOG_LOCAL, code));
    close(listener);
    unlink(path);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(all_are_done_alone_or_together),
        TEST(a_worker_that_is_cut_off_begins_no_other_task),
        TEST(what_shared_a_commit_that_is_unknown_is_not_run_alone),
        TEST(the_end_of_a_limited_task_wakes_all_managers),
    };
    return cmocka_run_group_tests_name("task_run", tests, NULL, NULL);
}
