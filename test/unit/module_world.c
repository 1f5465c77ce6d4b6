/* module_world: see the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "module_world.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "edge/crypto.h"
#include "fake_store.h"
#include "operation/access.h"

#include "operation/module.h"
#include "operation/operation.h"

static char build[] = "test", hosts[] = "one", z_database[] = "z";
struct settings settings;
struct stamps *stamps;
struct workshop workshop;
struct arena *arena;
struct builder body;
struct reply reply;
static char key_digest[CRYPTO_SHA256_HEX + 1];

/* --- the module under test: its operations do what the test at hand wants --- */

enum stampd_outcome (*work)(struct stampd_call *call);
enum stampd_outcome (*afterwork)(struct stampd_call *call);
int works;

enum stampd_outcome do_work(struct stampd_call *call)
{
    works++;
    return work(call);
}

static enum stampd_outcome do_afterwork(struct stampd_call *call)
{
    return afterwork ? afterwork(call) : STAMPD_DONE;
}

static const struct stampd_item_class firm_items[] = {
    {.name = "Sta", .is_singleton = true}, {.name = "Adh"}, {.name = "Raw", .is_raw = true}, {.name = NULL}};
const struct stampd_document_class classes[] = {{.name = "Firm", .items = firm_items}, {.name = NULL}};
static const struct stampd_operation operations[] = {
    {.name = "Trial", .access = STAMPD_PUBLIC, .work = do_work, .afterwork = do_afterwork},
    {.name = "Look", .access = STAMPD_PUBLIC, .is_read_only = true, .work = do_work},
    {.name = "Brief", .access = STAMPD_PUBLIC, .seconds = 1, .work = do_work},
    {.name = "Rule", .work = do_work},
    {.name = NULL},
};
static const struct stampd_module module = {
    .abi = STAMPD_ABI, .name = "trial", .version = "1", .classes = classes, .operations = operations};

void configure(const char *conf)
{
    static int64_t version = 101;
    fake_change("Namespace", "lab", version++, conf);
    stamps_move_all(stamps);
}

int open_world(void **state)
{
    (void)state;
    char problem[256];
    bool good = module_add(&module, "trial.so", problem, sizeof problem);
    return good ? 0 : (fprintf(stderr, "%s\n", problem), -1);
}

int start_world(void **state)
{
    (void)state;
    char problem[256], path[] = "/tmp/stampd-segment-XXXXXX";
    int index, fd = mkstemp(path);
    close(fd);
    unlink(path);
    crypto_sha256_hex(BYTES("open sesame"), key_digest);
    settings = (struct settings){.admin_key_sha256 = key_digest,
                                 .build = build,
                                 .cache_mb = 1,
                                 .cache_age_s = 1000,
                                 .dhop_past_s = 1000,
                                 .hosts = hosts,
                                 .limit_content_bytes = 100,
                                 .limit_depth = 8,
                                 .limit_document_bytes = 200,
                                 .limit_documents = 4,
                                 .limit_name_bytes = 20,
                                 .limit_syncs = 50,
                                 .tombstone_s = 100,
                                 .z_database = z_database};
    if (!stamps_open(&stamps, path, 1024, problem, sizeof problem))
        return fprintf(stderr, "%s\n", problem), -1;
    unlink(path);
    if (stamps_take_entries(stamps, 1, 1, 1, &index) != 1)
        return -1;
    stamps_become(stamps, index);
    fake_reset();
    workshop = (struct workshop){.settings = &settings,
                                 .stamps = stamps,
                                 .documents = documents_create(&settings, stamps),
                                 .access = access_memory_create()};
    arena = arena_create("test");
    configure("{\"access\":\"closed\"}");
    work = NULL;
    afterwork = NULL;
    works = 0;
    return 0;
}

int stop_world(void **state)
{
    (void)state;
    access_memory_destroy(workshop.access);
    documents_destroy(workshop.documents);
    stamps_close(stamps);
    arena_destroy(arena);
    builder_free(&body);
    body = (struct builder){0};
    return 0;
}

/* Runs an operation; `param` is the JSON text of the argument, built as shallow as the server builds it. */
enum fault run_call(const char *operation, const char *param, struct call call)
{
    static const struct json_limits limits = {.depth = 32, .tree_depth = 2};
    struct json *root = NULL;
    struct json_problem problem;
    if (param)
        assert_int_equal(json_read(arena, bytes_of(param), &limits, &root, &problem), FAULT_NONE);
    call.arena = arena;
    call.route = CALL_OPERATION;
    call.space = BYTES("lab");
    if (!call.database.data)
        call.database = BYTES("lab");
    call.operation = bytes_of(operation);
    call.param = root;
    call.request_id = "test";
    if (!call.deadline_ms)
        call.deadline_ms = INT64_MAX / 2;
    reply = (struct reply){.body = &body};
    body.size = 0;
    works = 0;
    operation_run(&workshop, &call, &reply);
    builder_add(&body, "", 1);
    body.size--;
    return reply.fault;
}

enum fault run(enum stampd_outcome (*function)(struct stampd_call *), const char *param)
{
    work = function;
    return run_call("Trial", param, (struct call){0});
}

void expect_fault(enum fault fault, const char *argument)
{
    assert_string_equal(reply_code(&reply), fault_code(fault));
    assert_int_equal(reply.argument_count > 0, argument != NULL);
    if (argument)
        assert_string_equal(reply.arguments[0], argument);
    assert_int_equal(body.size, 0);
}

void expect_body(const char *text)
{
    assert_int_equal(reply.fault, FAULT_NONE);
    assert_string_equal(body.data, text);
}

enum stampd_outcome nothing(struct stampd_call *call)
{
    (void)call;
    return STAMPD_DONE;
}

enum stampd_outcome fetch_and_change(struct stampd_call *call)
{
    stampd_delete(stampd_fetch(call, "Firm", "a"));
    return STAMPD_DONE;
}
