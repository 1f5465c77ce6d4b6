/* module: what applications declare, their documents, rights and limits. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <math.h>
#include "model/document/stamp.h"
#include "fake_store.h"
#include "module_world.h"
#include "segment/counts/metrics.h"
#include "operation/reply.h"

/* --- what is declared --- */

static void refused(struct stampd_module wrong, const char *words)
{
    char problem[256] = "";
    assert_false(module_add(&wrong, "wrong.so", problem, sizeof problem));
    assert_non_null(strstr(problem, words));
    assert_int_equal(strncmp(problem, "module wrong.so: ", 17), 0);
    assert_null(strchr(problem, '\n'));
}

static void what_cannot_be_is_refused_in_one_line(void **state UNUSED)
{
    static const struct stampd_operation put[] = {{.name = "put", .work = do_work}, {.name = NULL}},
                                         twice[] = {{.name = "Trial", .work = do_work}, {.name = NULL}},
                                         idle[] = {{.name = "Idle"}, {.name = NULL}},
                                         odd[] = {{.name = "a/b", .work = do_work}, {.name = NULL}},
                                         later[] = {{.name = "Later", .work = do_work, .reserved = {put}},
                                                    {.name = NULL}};
    static const struct stampd_task_class leaping = {.period = "Y02290000"};
    static const struct stampd_operation leap[] = {{.name = "Leap", .work = do_work, .task = &leaping},
                                                   {.name = NULL}};
    static const struct stampd_document_class small[] = {{.name = "firm"}, {.name = NULL}};
    static const struct stampd_item_class double_items[] = {{.name = "A"}, {.name = "A"}, {.name = NULL}};
    static const struct stampd_document_class doubled[] = {{.name = "Two", .items = double_items},
                                                           {.name = NULL}};
    static const struct stampd_item_class attached[] = {{.name = "P"}, {.name = NULL}};
    static const struct stampd_document_class attaching[] = {{.name = "Two", .items = attached},
                                                             {.name = NULL}};
    static const char *const nowhere[] = {NULL}, *const twice_there[] = {"Four", "Four", NULL},
                             *const far[] = {"None", NULL}, *const here[] = {"Six", NULL};
    static const struct stampd_item_class
        none_items[] = {{.name = "A", .copied_to = nowhere}, {.name = NULL}},
        two_items[] = {{.name = "A", .copied_to = twice_there}, {.name = NULL}},
        far_items[] = {{.name = "A", .copied_to = far}, {.name = NULL}},
        wide_items[] = {{.name = "A", .copied_to = here, .separator = "123456789"}, {.name = NULL}},
        lone_items[] = {{.name = "A", .separator = "."}, {.name = NULL}},
        own_items[] = {{.name = "A", .copied_to = here}, {.name = NULL}};
    static const struct stampd_document_class
        nothing_copied[] = {{.name = "Three", .items = none_items}, {.name = NULL}},
        doubly[] = {{.name = "Four", .items = two_items}, {.name = NULL}},
        distant[] = {{.name = "Five", .items = far_items}, {.name = NULL}},
        wide[] = {{.name = "Seven", .items = wide_items}, {.name = NULL}},
        lone[] = {{.name = "Eight", .items = lone_items}, {.name = NULL}},
        own[] = {{.name = "Six", .items = own_items}, {.name = NULL}};
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = nothing_copied},
            "copied to no class");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = doubly},
            "copied to Four twice");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = distant},
            "A cannot be copied to None: The class is not declared");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = wide}, "1 to 8 bytes");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = lone},
            "a separator and no copies");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = own}, "not copied further");
    refused((struct stampd_module){.abi = STAMPD_ABI + 1000, .name = "x"}, "built for version 2 of stampd.h");
    refused((struct stampd_module){.abi = STAMPD_ABI + 1, .name = "x"}, "too new");
    refused((struct stampd_module){.abi = 0, .name = "x"}, "built for version 0");
    refused((struct stampd_module){.abi = STAMPD_ABI}, "no name of a module");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x y"}, "no name of a module");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .reserved = {put}}, "reserved");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = put},
            "operation put already");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = twice}, "Trial already");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = idle}, "Idle has no work");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = odd}, "a/b is no name");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = later}, "reserved");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .operations = leap}, "is no period");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = classes}, "Firm is declared");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = small}, "firm is no name");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = doubled}, "declares A twice");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = attaching},
            "reserved for attachments");
    refused((struct stampd_module){.abi = STAMPD_ABI, .name = "x", .classes = attaching},
            "reserved for attachments");
}

static void rights_are_declared(void **state UNUSED)
{
    const struct call administrator = {.admin = BYTES("open sesame")},
                      in_z = {.ns = BYTES("z"), .database = BYTES("z")};
    work = nothing;
    assert_int_equal(run_call("Trial", NULL, (struct call){0}), FAULT_NONE); /* in a closed namespace */
    assert_string_equal(body.data, "{}");
    assert_int_equal(run_call("Rule", NULL, (struct call){0}), FAULT_SCLOSED);
    assert_int_equal(run_call("Rule", NULL, administrator), FAULT_NONE);
    assert_int_equal(run_call("Trial", NULL, in_z), FAULT_SCLOSED);
    configure("{\"access\":\"open\"}");
    assert_int_equal(run_call("Rule", NULL, (struct call){0}), FAULT_SCLOSED);
    configure("{\"access\":\"open\",\"state\":2,\"message\":\"back at noon\"}");
    assert_int_equal(run_call("Trial", NULL, (struct call){0}), FAULT_OOFF);
    assert_int_equal(works, 0);
}

/* --- documents and items --- */

static enum stampd_outcome write_items(struct stampd_call *call)
{
    struct stampd_document *firm = stampd_fetch(call, "Firm", "b");
    struct stampd_item item;
    char key[] = "k1";
    assert_false(stampd_exists(firm));
    assert_int_equal(stampd_version(firm), 0);
    assert_false(stampd_find_item(firm, "Adh", key, &item));
    stampd_set_value(firm, "Adh", key, stampd_member(call, stampd_param(call), "j"));
    key[1] = '2'; /* keys are copied */
    stampd_set_json(firm, "Adh", key, stampd_bytes("[1]", 3));
    stampd_set_raw(firm, "Raw", "r", stampd_bytes("{no json", 8));
    struct stampd_writer *status = stampd_write_object(call);
    stampd_add_text(status, "t", "x");
    stampd_set_written(firm, "Sta", NULL, status);
    assert_ptr_equal(stampd_fetch(call, "Firm", "b"), firm);
    assert_true(stampd_exists(firm));
    assert_true(stampd_find_item(firm, "Adh", "k1", &item));
    assert_memory_equal(item.content.data, "{\"a\":[1.0]}", item.content.size);
    assert_int_equal(item.version, 0);
    assert_false(item.is_raw);
    assert_true(stampd_find_item(firm, "Raw", "r", &item));
    assert_true(item.is_raw);
    assert_null(stampd_item_value(firm, "Raw", "r"));
    stampd_copy_item(firm, "Adh", "k3", firm, "Adh", "k2");
    stampd_copy_item(firm, "Adh", "k2", firm, "Adh", "none");
    stampd_set_json(firm, "Adh", "k4", stampd_bytes("null", 4));
    assert_false(stampd_find_item(firm, "Adh", "k2", NULL));
    assert_false(stampd_find_item(firm, "Adh", "k4", NULL));
    assert_int_equal(stampd_volume(firm), 2 + 11 + 2 + 3 + 1 + 8 + 9);
    return STAMPD_DONE;
}

static enum stampd_outcome walk_items(struct stampd_call *call)
{
    struct stampd_document *firm = stampd_fetch(call, "Firm", "b");
    struct stampd_item item = {0};
    struct stampd_writer *result = stampd_write_array(call);
    stampd_remove_item(firm, "Adh", "k1");
    stampd_set_json(firm, "Adh", "k0", stampd_bytes("0", 1));
    while (stampd_next_item(firm, NULL, &item)) {
        stampd_open_array(result, NULL);
        stampd_add_text(result, NULL, item.item_class);
        stampd_add_text(result, NULL, item.key);
        stampd_add_content(result, NULL, &item);
        stampd_close(result);
    }
    item = (struct stampd_item){0};
    while (stampd_next_item(firm, "Sta", &item))
        stampd_add_text(result, NULL, item.key);
    item = (struct stampd_item){0};
    while (stampd_next_item(firm, "Adh", &item))
        stampd_add_text(result, NULL, item.key);
    item = (struct stampd_item){0};
    assert_false(stampd_next_item(firm, "Ad", &item));
    assert_false(stampd_next_item(stampd_fetch(call, "Firm", "none"), NULL, &item));
    return stampd_result(call, result);
}

static void items_are_read_and_written(void **state UNUSED)
{
    assert_int_equal(run(write_items, "{\"j\":{\"a\":[1.0]}}"), FAULT_NONE);
    assert_int_equal(fake.commits, 1);
    assert_true(fake_version("Firm", "b") > 0);
    run(walk_items, NULL);
    expect_body("{\"out\":[[\"Adh\",\"k0\",0],[\"Adh\",\"k3\",[1]],[\"Raw\",\"r\",\"{no json\"],"
                "[\"Sta\",\"\",{\"t\":\"x\"}],\"\",\"k0\",\"k3\"]}");
}

static enum stampd_outcome compare_with_before(struct stampd_call *call)
{
    struct stampd_document *firm = stampd_fetch(call, "Firm", "a"),
                           *none = stampd_fetch(call, "Firm", "none");
    struct stampd_item item, before;
    assert_true(stampd_find_item(firm, "Adh", "k", &item));
    assert_true(stampd_find_loaded_item(firm, "Adh", "k", &before));
    assert_int_equal(before.version, item.version);
    assert_false(stampd_is_changed(firm));
    stampd_set_json(firm, "Adh", "k", stampd_bytes("[2]", 3));
    stampd_set_json(firm, "Adh", "l", stampd_bytes("1", 1));
    assert_true(stampd_is_changed(firm));
    assert_true(stampd_find_loaded_item(firm, "Adh", "k", &before));
    assert_true(before.version > 0);
    assert_memory_equal(before.content.data, item.content.data, item.content.size);
    assert_false(stampd_find_loaded_item(firm, "Adh", "l", &before));
    assert_null(before.item_class);
    stampd_remove_item(firm, "Adh", "l");
    stampd_set_json(firm, "Adh", "k", item.content);
    assert_false(stampd_is_changed(firm)); /* as it was */
    stampd_delete(firm);
    assert_true(stampd_is_changed(firm));
    assert_true(stampd_find_loaded_item(firm, "Adh", "k", NULL));
    assert_false(stampd_find_loaded_item(none, "Adh", "k", NULL));
    stampd_create(none);
    assert_true(stampd_is_changed(none));
    stampd_delete(none);
    assert_false(stampd_is_changed(none));
    return STAMPD_DONE;
}

static enum stampd_outcome make_one(struct stampd_call *call)
{
    stampd_set_json(stampd_fetch(call, "Firm", "a"), "Adh", "k", stampd_bytes("[1]", 3));
    return STAMPD_DONE;
}

static void what_was_loaded_can_be_compared(void **state UNUSED)
{
    assert_int_equal(run(make_one, NULL), FAULT_NONE);
    assert_int_equal(run(compare_with_before, NULL), FAULT_NONE);
}

static enum stampd_outcome fail_late(struct stampd_call *call)
{
    struct stampd_document *firm = stampd_fetch(call, "Firm", "c");
    stampd_set_json(firm, "Adh", "k", stampd_bytes("1", 1));
    stampd_raise(call, "AQUOTA", NULL, NULL);
    stampd_set_json(firm, "Adh", "l", stampd_bytes("1", 1));
    assert_false(stampd_find_item(firm, "Adh", "l", NULL));
    assert_false(stampd_exists(stampd_fetch(call, "Firm", "a")));
    assert_int_equal(stampd_result_text(call, NULL, stampd_bytes("x", 1)), STAMPD_FAULT);
    return STAMPD_DONE;
}

static void after_a_failure_nothing_is_written(void **state UNUSED)
{
    fake_change("Firm", "a", 100, "1");
    assert_int_equal(run(fail_late, NULL), FAULT_RAISED);
    assert_int_equal(fake.commits, 0);
    assert_int_equal(works, 1);
    assert_int_equal(body.size, 0);
}

static enum stampd_outcome read_then_fetch(struct stampd_call *call)
{
    struct stampd_document *old = stampd_read(call, "Firm", "a", 60), *firm;
    assert_true(stampd_exists(old));
    assert_int_equal(stampd_version(old), 100);
    assert_int_equal(stampd_ctime(old), 100);
    firm = stampd_fetch(call, "Firm", "a");
    assert_ptr_equal(firm, old);
    stampd_delete(firm);
    assert_false(stampd_exists(old));
    assert_ptr_equal(stampd_read(call, "Firm", "a", 60), old);
    stampd_create(firm);
    assert_true(stampd_exists(firm));
    assert_int_equal(stampd_volume(firm), 0);
    return STAMPD_DONE;
}

static enum stampd_outcome change_what_was_read(struct stampd_call *call)
{
    stampd_delete(stampd_read(call, "Firm", "a", 60));
    return STAMPD_DONE;
}

static void only_what_was_fetched_is_changed(void **state UNUSED)
{
    fake_change("Firm", "a", 100, "1");
    assert_int_equal(run(change_what_was_read, NULL), FAULT_BREADONLY);
    work = fetch_and_change;
    assert_int_equal(run_call("Look", NULL, (struct call){0}), FAULT_BREADONLY);
    assert_int_equal(fake.commits, 0);
    assert_int_equal(run(read_then_fetch, NULL), FAULT_NONE);
    assert_int_equal(fake.commits, 1);
}

static enum stampd_outcome fetch_many(struct stampd_call *call)
{
    static const struct stampd_name names[] = {{"Firm", "a"}, {"Firm", "b"}, {"Firm", "a"}, {"Free", "c"}};
    struct stampd_document *documents[4];
    stampd_fetch_many(call, names, 4, documents);
    assert_ptr_equal(documents[0], documents[2]);
    assert_true(stampd_exists(documents[0]));
    assert_false(stampd_exists(documents[1]));
    assert_string_equal(stampd_document_class(documents[3]), "Free");
    assert_string_equal(stampd_document_id(documents[3]), "c");
    return STAMPD_DONE;
}

static void a_list_comes_in_one_round_trip(void **state UNUSED)
{
    fake_change("Firm", "a", 100, "1");
    work = nothing;
    run_call("Trial", NULL, (struct call){0}); /* the namespace's configuration is loaded once */
    int before = fake.round_trips;
    assert_int_equal(run(fetch_many, NULL), FAULT_NONE);
    assert_int_equal(fake.round_trips, before + 1);
}

static char bound; /* which of them */

/* --- limits, and what a module may not do --- */

static enum stampd_outcome misuse_texts(struct stampd_call *call)
{
    struct stampd_writer *writer = stampd_write_object(call);
    switch (bound) {
    case 'i':
        stampd_add_integer(writer, NULL, 1);
        break;
    case 'j':
        stampd_add_number(writer, "n", INFINITY);
        break;
    case 'k':
        stampd_add_text(writer, "n", "\xc3");
        break;
    case 'l':
        stampd_close(writer);
        stampd_close(writer);
        break;
    case 'm':
        stampd_result(call, writer);
        stampd_add_null(writer, "n");
        break;
    case 'n':
        stampd_raise(call, "QUOTA", NULL, NULL);
        break;
    case 'o':
        stampd_raise(call, "A", NULL, NULL);
        break;
    case 'p':
        stampd_raise(call, "ABCDEFGHIJKLMNOPQ", NULL, NULL);
        break;
    case 'q':
        stampd_raise(call, "XUNKNOWN", NULL, NULL);
        break;
    case 'r':
        stampd_result_bytes(call, "text/html\r\nX: y", stampd_bytes("x", 1));
        break;
    case 's':
        stampd_result_text(call, NULL, stampd_bytes("\xff", 1));
        break;
    case 't':
        stampd_result_json(call, stampd_bytes("{", 1));
        break;
    case 'x':
        stampd_result_bytes(call, "application/json", stampd_bytes("{}", 2));
        break;
    case 'y':
        for (int level = 0; level < 200; level++)
            stampd_open_array(writer, level ? NULL : "n");
        break;
    default:
        break;
    }
    return STAMPD_DONE;
}

static enum stampd_outcome misbehave(struct stampd_call *call)
{
    static const char long_text[] =
        "\"xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx"
        "xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx\"";
    struct stampd_document *firm = stampd_fetch(call, "Firm", "d"), *free = stampd_fetch(call, "Free", "d");
    switch (bound) {
    case 'a':
        stampd_set_json(firm, "Adh", NULL, stampd_bytes("1", 1));
        break;
    case 'b':
        stampd_set_json(firm, "Sta", "k", stampd_bytes("1", 1));
        break;
    case 'c':
        stampd_set_raw(firm, "Adh", "k", stampd_bytes("1", 1));
        break;
    case 'd':
        stampd_set_json(firm, "Raw", "k", stampd_bytes("1", 1));
        break;
    case 'e':
        stampd_set_json(firm, "Other", "k", stampd_bytes("1", 1));
        break;
    case 'f':
        stampd_set_json(free, "Any", "k", stampd_bytes("{\"a\":1,\"a\":2}", 13));
        break;
    case 'g':
        stampd_set_raw(free, "Any", "k", stampd_bytes("\xff", 1));
        break;
    case 'h':
        stampd_set_value(free, "Any", "k", NULL);
        break;
    case 'u':
        stampd_read(call, "Firm", "e", 0);
        break;
    case 'v':
        stampd_fetch(call, "firm", "e");
        break;
    case 'w':
        return STAMPD_FAULT;
    case '1':
        stampd_set_json(free, "Any", "k", stampd_bytes(long_text, sizeof long_text - 1));
        break;
    case '2':
        for (int i = 0; i < 3; i++)
            stampd_set_raw(free, "Any", stampd_format(call, "k%d", i), stampd_bytes(long_text, 90));
        break;
    case '3':
        for (int i = 0; i < 4; i++)
            stampd_fetch(call, "Free", stampd_format(call, "e%d", i));
        break;
    case '4':
        stampd_fetch(call, "Free", "a name of too many bytes");
        break;
    case '5':
        stampd_set_json(free, "Any", "a key of too many bytes", stampd_bytes("1", 1));
        break;
    default:
        return misuse_texts(call);
    }
    return STAMPD_DONE;
}

static void what_a_module_may_not_do_is_noticed(void **state UNUSED)
{
    for (bound = 'a'; bound <= 'y'; bound++) {
        run(misbehave, NULL);
        assert_string_equal(reply_code(&reply), "BMODULE");
        assert_non_null(reply.detail);
        assert_int_equal(fake.commits, 0);
        assert_int_equal(works, 3);
    }
}

static void limits_hold_for_modules_too(void **state UNUSED)
{
    static const char *const limits[] = {"limit_content_bytes", "limit_document_bytes", "limit_documents",
                                         "limit_name_bytes", "limit_name_bytes"};
    for (bound = '1'; bound <= '5'; bound++) {
        run(misbehave, NULL);
        expect_fault(FAULT_ALIMIT, limits[bound - '1']);
        assert_int_equal(reply.argument_count, 3);
    }
}

static int64_t left_ms;
static enum stampd_outcome note_time(struct stampd_call *call)
{
    left_ms = stampd_time_left_ms(call);
    const struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    assert_true(atomic_load(&pulse->deadline_ms) > 0);
    assert_string_equal(pulse->application, "Brief");
    return STAMPD_DONE;
}

static void application_code_is_watched(void **state UNUSED)
{
    const struct pulse *pulse = metrics_pulse(segment, segment_index(segment));
    work = note_time;
    assert_int_equal(run_call("Brief", NULL, (struct call){0}), FAULT_NONE);
    assert_in_range(left_ms, 0, 1000);
    assert_int_equal(atomic_load(&pulse->deadline_ms), 0);
    work = fetch_and_change;
    assert_int_equal(run_call("Trial", NULL, (struct call){.deadline_ms = 1}), FAULT_XTIME);
}

/* --- the generic put --- */

static void put_knows_the_declared_classes(void **state UNUSED)
{
    static const struct {
        const char *class, *item;
        enum fault fault;
    } cases[] = {
        {"Firm", "\"c\":\"Sta\",\"j\":1", FAULT_NONE},
        {"Firm", "\"c\":\"Adh\",\"k\":\"x\",\"j\":1", FAULT_NONE},
        {"Firm", "\"c\":\"Raw\",\"k\":\"x\",\"s\":\"1\"", FAULT_NONE},
        {"Firm", "\"c\":\"Sta\",\"k\":\"x\",\"j\":1", FAULT_AARG},
        {"Firm", "\"c\":\"Adh\",\"j\":1", FAULT_AARG},
        {"Firm", "\"c\":\"Raw\",\"k\":\"x\",\"j\":1", FAULT_AARG},
        {"Firm", "\"c\":\"Adh\",\"k\":\"x\",\"s\":\"1\"", FAULT_AARG},
        {"Firm", "\"c\":\"Other\",\"j\":1", FAULT_AARG},
        {"Firm", "\"c\":\"Other\",\"del\":true", FAULT_NONE},
        {"Free", "\"c\":\"Other\",\"j\":1", FAULT_NONE},
    };
    configure("{\"access\":\"open\"}");
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        char *param = arena_printf(arena, "{\"docs\":[{\"c\":\"%s\",\"id\":\"p\",\"items\":[{%s}]}]}",
                                   cases[i].class, cases[i].item);
        struct json *root;
        struct json_problem problem;
        const struct json_limits limits = {.depth = 8, .tree_depth = 8};
        assert_int_equal(json_read(arena, bytes_of(param), &limits, &root, &problem), FAULT_NONE);
        struct call call = {.arena = arena,
                            .route = CALL_OPERATION,
                            .ns = BYTES("lab"),
                            .database = BYTES("lab"),
                            .operation = BYTES("put"),
                            .param = root,
                            .deadline_ms = INT64_MAX};
        reply = (struct reply){.body = &body};
        body.size = 0;
        route_run(&worker_context, &call, &reply);
        assert_int_equal(reply.fault, cases[i].fault);
    }
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_world, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(what_cannot_be_is_refused_in_one_line),
        TEST(rights_are_declared),
        TEST(items_are_read_and_written),
        TEST(what_was_loaded_can_be_compared),
        TEST(after_a_failure_nothing_is_written),
        TEST(only_what_was_fetched_is_changed),
        TEST(a_list_comes_in_one_round_trip),
        TEST(what_a_module_may_not_do_is_noticed),
        TEST(limits_hold_for_modules_too),
        TEST(application_code_is_watched),
        TEST(put_knows_the_declared_classes),
    };
    return cmocka_run_group_tests_name("module", tests, open_world, NULL);
}
