/* access: who may do what in which namespace, and what is returned beside operations. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <string.h>

#include "fake_store.h"
#include "module_world.h"
#include "operation/access/access.h"
#include "segment/namespaces.h"
#include "segment/slots.h"

#define DOCUMENT "{\"c\":\"Firm\",\"id\":\"%s\"}"

static const struct call administrator = {.admin = {"open sesame", 11}};

static struct json *read(const char *text)
{
    static const struct json_limits limits = {.depth = 8, .tree_depth = 8};
    struct json *root;
    struct json_problem problem;
    assert_int_equal(json_read(arena, bytes_of(text), &limits, &root, &problem), FAULT_NONE);
    return root;
}

static struct json *names(const char *one, const char *other)
{
    return read(arena_printf(arena, "[" DOCUMENT "," DOCUMENT "]", one, other));
}

/* --- which namespace --- */

static void a_name_and_its_database_belong_together(void **state UNUSED)
{
    static const struct {
        const char *code, *database;
        bool is;
    } cases[] = {
        {"lab", "lab", true},    {"lab", "z", false}, {"z", "lab", false}, {"lab", "other", false},
        {"other", "lab", false}, {"lab", "", false},  {"", "lab", false},  {"z", "z", true},
    };
    int before = namespaces_count(segment);
    work = nothing;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        struct call call = {.admin = BYTES("open sesame"),
                            .ns = bytes_of(cases[i].code),
                            .database = bytes_of(cases[i].database)};
        assert_int_equal(run_call("Trial", NULL, call), cases[i].is ? FAULT_NONE : FAULT_NNAMESPACE);
        assert_int_equal(works > 0, cases[i].is);
    }
    assert_in_range(namespaces_count(segment), before, 2); /* lab and z: no other name has entered */
}

static void levels(void **state UNUSED)
{
    static const enum access_mode modes[] = {ACCESS_CLOSED, ACCESS_READ, ACCESS_OPEN};
    static const enum access_level expected[] = {LEVEL_PUBLIC, LEVEL_READ, LEVEL_WRITE};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        const struct ns_conf conf = {.mode = modes[i]};
        assert_int_equal(access_level(&settings, &conf, BYTES("lab"), false), expected[i]);
        assert_int_equal(access_level(&settings, &conf, BYTES("lab"), true), LEVEL_EVERYTHING);
        assert_int_equal(access_level(&settings, &conf, BYTES("z"), false), LEVEL_NOTHING);
        assert_int_equal(access_level(&settings, &conf, BYTES("z"), true), LEVEL_EVERYTHING);
    }
}

/* --- beside an operation --- */

static void nothing_is_returned_beside_a_public_operation(void **state UNUSED)
{
    struct call syncs = {.syncs = names("a", "b")}, none = {.syncs = read("[]")},
                session = {.session = BYTES("0123456789abcdef")};
    work = nothing;
    assert_int_equal(run_call("Trial", NULL, syncs), FAULT_SCLOSED);
    expect_fault(FAULT_SCLOSED, "syncs");
    assert_int_equal(works, 0);
    assert_int_equal(run_call("Trial", NULL, session), FAULT_SCLOSED);
    expect_fault(FAULT_SCLOSED, "session");
    assert_int_equal(run_call("Grant", NULL, session), FAULT_SCLOSED);
    assert_int_equal(works, 0);
    assert_int_equal(run_call("pushkey", NULL, syncs), FAULT_SCLOSED);
    assert_int_equal(run_call("task", NULL, syncs), FAULT_SCLOSED);
    assert_int_equal(run_call("Trial", NULL, none), FAULT_NONE);
    expect_body("{\"syncs\":[]}");
    syncs.admin = administrator.admin;
    assert_int_equal(run_call("Trial", NULL, syncs), FAULT_NONE);
    assert_non_null(strstr(body.data, "{\"c\":\"Firm\",\"id\":\"a\",\"v\":"));
}

static void unknown_operations_are_refused_like_closed_ones(void **state UNUSED)
{
    assert_int_equal(run_call("Nothing", NULL, (struct call){0}), FAULT_SCLOSED);
    expect_fault(FAULT_SCLOSED, "Nothing");
    const char *detail = arena_copy(arena, reply.detail, strlen(reply.detail));
    assert_int_equal(run_call("Rule", NULL, (struct call){0}), FAULT_SCLOSED);
    assert_string_equal(reply.detail, detail);
    assert_int_equal(run_call("task", "{\"op\":\"Nothing\"}", (struct call){0}), FAULT_SCLOSED);
    assert_int_equal(run_call("Nothing", NULL, administrator), FAULT_NOPERATION);
    configure("{\"access\":\"read\"}");
    assert_int_equal(run_call("Nothing", NULL, (struct call){0}), FAULT_NOPERATION);
}

/* --- grants --- */

static enum stampd_outcome grant(struct stampd_call *call)
{
    char id[] = "a";
    stampd_grant_read(call, "Firm", id);
    id[0] = 'x'; /* it was copied */
    return STAMPD_DONE;
}

static enum stampd_outcome grant_at_first(struct stampd_call *call)
{
    return works == 1 ? grant(call), stampd_raise(call, "XAGAIN", NULL, NULL) : STAMPD_DONE;
}

static void what_is_granted_is_synchronised(void **state UNUSED)
{
    struct call call = {.syncs = names("b", "a")};
    fake_change("Firm", "a", INT64_C(261121000000001), "1");
    fake_change("Firm", "b", INT64_C(261121000000001), "2");
    slots_move_all(segment);
    work = grant;
    assert_int_equal(run_call("Grant", NULL, call), FAULT_NONE);
    expect_body(
        "{\"syncs\":[{\"c\":\"Firm\",\"id\":\"b\",\"closed\":true},"
        "{\"c\":\"Firm\",\"id\":\"a\",\"v\":261121000000001,\"ct\":261121000000001,"
        "\"dt\":261121000000001,\"items\":[{\"c\":\"Sta\",\"v\":261121000000001,\"j\":1}],\"dels\":[]}]}");
    call.syncs = names("b", "none");
    assert_int_equal(run_call("Grant", NULL, call), FAULT_NONE);
    expect_body("{\"syncs\":[{\"c\":\"Firm\",\"id\":\"b\",\"closed\":true},"
                "{\"c\":\"Firm\",\"id\":\"none\",\"closed\":true}]}");
}

static void a_grant_is_of_one_try(void **state UNUSED)
{
    work = grant_at_first;
    assert_int_equal(run_call("Grant", NULL, (struct call){.syncs = names("a", "b")}), FAULT_NONE);
    assert_int_equal(works, 2);
    assert_null(strstr(body.data, "\"v\":"));
}

static void grants_are_declared(void **state UNUSED)
{
    assert_int_equal(run(grant, NULL), FAULT_BMODULE);
    static const struct stampd_operation strange[] = {{.name = "Strange", .flags = 2, .work = do_work},
                                                      {.name = NULL}};
    const struct stampd_module module = {.abi = STAMPD_ABI, .name = "x", .operations = strange};
    char problem[256];
    assert_false(module_add(&module, "x.so", problem, sizeof problem));
    assert_non_null(strstr(problem, "unknown flag"));
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_world, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_name_and_its_database_belong_together),
        TEST(levels),
        TEST(nothing_is_returned_beside_a_public_operation),
        TEST(unknown_operations_are_refused_like_closed_ones),
        TEST(what_is_granted_is_synchronised),
        TEST(a_grant_is_of_one_try),
        TEST(grants_are_declared),
    };
    return cmocka_run_group_tests_name("access", tests, open_world, NULL);
}
