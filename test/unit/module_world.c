/* module_world: see the header. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "module_world.h"

#include <stdio.h>

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
    {.name = "Grant", .access = STAMPD_PUBLIC, .flags = STAMPD_GRANTS_READ, .work = do_work},
    {.name = "Rule", .work = do_work},
    {.name = NULL},
};
static const struct stampd_module module = {
    .abi = STAMPD_ABI, .name = "trial", .version = "1", .classes = classes, .operations = operations};

int open_world(void **state UNUSED)
{
    char problem[256];
    bool good = module_add(&module, "trial.so", problem, sizeof problem);
    return good ? 0 : (fprintf(stderr, "%s\n", problem), -1);
}

int start_world(void **state UNUSED)
{
    static const struct settings limits = {.limit_kept_bytes = 1000,
                                           .idempotency_s = 100,
                                           .limit_answer_bytes = 4 << 20,
                                           .limit_items = 100000,
                                           .limit_tombstones = 100000,
                                           .dhop_past_s = 1000,
                                           .limit_content_bytes = 100,
                                           .limit_depth = 8,
                                           .limit_document_bytes = 575,
                                           .limit_documents = 4,
                                           .limit_name_bytes = 20,
                                           .limit_syncs = 50};
    if (worker_context_world_open(&limits))
        return -1;
    configure("{\"access\":\"closed\"}");
    work = NULL;
    afterwork = NULL;
    works = 0;
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
    call.operation = bytes_of(operation);
    call.param = root;
    reply = (struct reply){.body = &body};
    works = 0;
    return run_in_world(&call);
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
