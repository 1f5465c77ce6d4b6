/* module_search: searches and schemas that modules declare, and their searches as they run. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "fake_store.h"
#include "module_world.h"

static const struct stampd_search searches[] = {{.name = "By", .sql = "select $1, $2", .arguments = 2},
                                                {.name = "All", .sql = "select 1"},
                                                {.name = NULL}};
static const struct stampd_module searching = {.abi = STAMPD_ABI, .name = "searching", .searches = searches};

static int open_searches(void **state)
{
    char problem[256];
    return open_world(state) || !module_add(&searching, "searching.so", problem, sizeof problem) ? -1 : 0;
}

/* --- what is declared --- */

static void refused_search(struct stampd_search wrong, const char *words)
{
    const struct stampd_search list[] = {wrong, {.name = NULL}};
    const struct stampd_module module = {.abi = STAMPD_ABI, .name = "x", .searches = list};
    char problem[256] = "";
    assert_false(module_add(&module, "wrong.so", problem, sizeof problem));
    assert_non_null(strstr(problem, words));
}

static void a_search_is_one_select(void **state UNUSED)
{
    refused_search((struct stampd_search){.name = "a b", .sql = "select 1"}, "no name of a search");
    refused_search((struct stampd_search){.name = "x"}, "one select");
    refused_search((struct stampd_search){.name = "x", .sql = "select 1; drop"}, "one select");
    refused_search((struct stampd_search){.name = "x", .sql = "select 1", .arguments = 17}, "up to 16");
    refused_search((struct stampd_search){.name = "x", .sql = "select 1", .reserved = {searches}},
                   "reserved");
    refused_search((struct stampd_search){.name = "By", .sql = "select 1"}, "By already");
    const struct stampd_search twice[] = {
        {.name = "Z", .sql = "select 1"}, {.name = "Z", .sql = "select 1"}, {.name = NULL}};
    const struct stampd_module module = {.abi = STAMPD_ABI, .name = "x", .searches = twice};
    char problem[256];
    assert_false(module_add(&module, "wrong.so", problem, sizeof problem));
    assert_non_null(strstr(problem, "Z already"));
}

static void a_schema_tells_of_the_same_items(void **state UNUSED)
{
    static const struct stampd_item_class items[] = {
        {.name = "A", .is_singleton = true}, {.name = "B"}, {.name = NULL}};
    static const struct {
        const char *schema, *words;
    } cases[] = {
        {"{", "JSON"},
        {"{\"items\":{\"A\":{\"singleton\":true},\"B\":{}},\"maxlife\":1}", "classes.Odd.maxlife"},
        {"{\"items\":{\"A\":{\"singleton\":true}}}", "something else of B"},
        {"{\"items\":{\"A\":{},\"B\":{}}}", "something else of A"},
        {"{\"items\":{\"A\":{\"singleton\":true},\"B\":{\"raw\":true}}}", "something else of B"},
        {"{\"items\":{\"A\":{\"singleton\":true},\"B\":{},\"C\":{}}}", "other items"},
        {"{\"open\":true,\"items\":{\"A\":{\"singleton\":true},\"B\":{}}}", "other items"},
        {"{\"items\":{\"A\":{\"singleton\":true},\"B\":{}}},\"Other\":{\"items\":{}}", "one class"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const struct stampd_document_class list[] = {
            {.name = "Odd", .items = items, .schema = cases[i].schema}, {.name = NULL}};
        const struct stampd_module module = {.abi = STAMPD_ABI, .name = "x", .classes = list};
        char problem[256] = "";
        assert_false(module_add(&module, "wrong.so", problem, sizeof problem));
        assert_non_null(strstr(problem, cases[i].words));
    }
}

/* --- what runs --- */

static enum stampd_outcome search_by(struct stampd_call *call)
{
    const char *const arguments[] = {"it's", NULL};
    return stampd_result_value(call, stampd_run_search(call, "By", arguments, COUNT_OF(arguments)));
}

static void rows_come_as_a_value(void **state UNUSED)
{
    fake.rows = "[{\"a\":1},{\"a\":[null]}]";
    assert_int_equal(run(search_by, NULL), FAULT_NONE);
    expect_body("{\"out\":[{\"a\":1},{\"a\":[null]}]}");
    assert_int_equal(fake.selects, 1);
    assert_true(bytes_equal(fake.selected, BYTES("it's")));
}

static void failures_of_a_search_are_told(void **state UNUSED)
{
    fake.rows = NULL;
    assert_int_equal(run(search_by, NULL), FAULT_ALIMIT);
    expect_fault(FAULT_ALIMIT, "bytes of a search");
    fake.rows = "[[[[[[[[[[1]]]]]]]]]]";
    assert_int_equal(run(search_by, NULL), FAULT_BMODULE);
    fake.select_fault = FAULT_AARG;
    assert_int_equal(run(search_by, NULL), FAULT_AARG);
    expect_fault(FAULT_AARG, "By");
    fake.select_fault = FAULT_XTIME;
    assert_int_equal(run(search_by, NULL), FAULT_XTIME);
}

/* A class whose ids are encrypted, and its keys. */
static void encrypt_ids(void)
{
    static struct sealing_keys key;
    static char of_ids[] = "Person";
    static const unsigned char secret[SEALING_KEY] = {7};
    sealing_derive(1, secret, &key);
    fake.keys = (struct data_keys){.keys = &key, .count = 1, .id_classes = of_ids};
}

static void rows_that_name_a_document_have_its_id(void **state UNUSED)
{
    struct arena *own = arena_create("test");
    encrypt_ids();
    const struct bytes stored = data_keys_seal_id(&fake.keys, own, BYTES("Person"), BYTES("a\"b"));
    assert_true(stored.size && !bytes_equal(stored, BYTES("a\"b")));
    fake.rows = arena_printf(own,
                             "[{\"class\":\"Person\",\"id\":\"%s\",\"n\":1},{\"id\":\"%s\"},"
                             "{\"class\":\"Open\",\"id\":\"b\"}, {\"id\":\"%s\",\"class\":\"Person\"},"
                             "{\"class\":\"Person\",\"id\":null},{\"class\":\"Person\",\"id\":\"\"}]",
                             stored.data, stored.data, stored.data);
    assert_int_equal(run(search_by, NULL), FAULT_NONE);
    expect_body(arena_printf(own,
                             "{\"out\":[{\"class\":\"Person\",\"id\":\"a\\\"b\",\"n\":1},{\"id\":\"%s\"},"
                             "{\"class\":\"Open\",\"id\":\"b\"}, {\"id\":\"a\\\"b\",\"class\":\"Person\"},"
                             "{\"class\":\"Person\",\"id\":null},{\"class\":\"Person\",\"id\":\"\"}]}",
                             stored.data));
    fake.rows = "[{\"class\":\"Person\",\"id\":\"b\"}]"; /* no server has stored it so */
    assert_int_equal(run(search_by, NULL), FAULT_BCONTENT);
    fake.rows = "[]";
    assert_int_equal(run(search_by, NULL), FAULT_NONE);
    expect_body("{\"out\":[]}");
    arena_destroy(own);
}

static enum stampd_outcome search_wrongly(struct stampd_call *call)
{
    static const char *const names[] = {"None", "By", "All", "By"};
    const char *const arguments[] = {"\xff", "x"};
    static const size_t counts[] = {0, 1, 1, 2};
    assert_null(stampd_run_search(call, names[works - 1], arguments, counts[works - 1]));
    assert_null(stampd_run_search(call, "All", NULL, 0)); /* the first failure counts */
    return STAMPD_DONE;
}

static void mistakes_reach_no_database(void **state UNUSED)
{
    assert_int_equal(run(search_wrongly, NULL), FAULT_BMODULE);
    assert_int_equal(fake.selects, 0);
    assert_true(works > 1); /* each try made another mistake */
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_world, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_search_is_one_select),     TEST(a_schema_tells_of_the_same_items),
        TEST(rows_come_as_a_value),       TEST(failures_of_a_search_are_told),
        TEST(mistakes_reach_no_database), TEST(rows_that_name_a_document_have_its_id),
    };
    return cmocka_run_group_tests_name("module_search", tests, open_searches, NULL);
}
