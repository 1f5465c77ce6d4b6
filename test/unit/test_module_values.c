/* module: what applications read and write: arguments, JSON texts, results, exceptions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "model/document/stamp.h"
#include "fake_store.h"
#include "module_world.h"
#include "segment/slots.h"
#include "operation/reply.h"

/* --- reading --- */

static enum stampd_outcome read_all(struct stampd_call *call)
{
    static const char *const words[] = {"one", "two", NULL};
    const struct stampd_json *param = stampd_param(call);
    assert_int_equal(stampd_read_integer(call, param, "i", -5, 5), -5);
    assert_int_equal(stampd_read_integer_or(call, param, "absent", 0, 9, 7), 7);
    assert_int_equal(stampd_read_integer_or(call, param, "null", 0, 9, 8), 8);
    assert_true(stampd_read_number(call, param, "d", 0, 1) == 0.25);
    assert_true(stampd_read_number_or(call, param, "absent", 0, 1, 0.5) == 0.5);
    assert_true(stampd_read_boolean(call, param, "b"));
    assert_true(stampd_read_boolean_or(call, param, "absent", true));
    assert_string_equal(stampd_read_text(call, param, "t", 1, 9), "a\nb");
    assert_string_equal(stampd_read_text_or(call, param, "absent", 1, 9, "else"), "else");
    assert_null(stampd_read_text_or(call, param, "null", 1, 9, NULL));
    assert_int_equal(stampd_read_bytes(call, param, "t", 3).size, 3);
    assert_int_equal(stampd_read_choice(call, param, "c", words), 1);
    assert_int_equal(stampd_read_choice_or(call, param, "c", words, 0), 1);
    assert_int_equal(stampd_read_choice_or(call, param, "absent", words, 7), 7);
    assert_int_equal(stampd_read_stamp(call, param, "s"), 261121103000123);
    const struct stampd_json *object = stampd_read_object(call, param, "o");
    const struct stampd_json *array = stampd_read_array(call, object, "a", 2, 3);
    assert_int_equal(stampd_count(array), 3);
    int64_t sum = 0;
    for (const struct stampd_json *e = stampd_first(call, array); e; e = stampd_next(e))
        sum = sum * 10 + stampd_read_integer(call, stampd_read_object(call, e, NULL), "n", 0, 9);
    assert_int_equal(sum, 123);
    const struct stampd_json *member = stampd_first(call, object);
    assert_memory_equal(stampd_member_name(member).data, "a", 1);
    assert_memory_equal(stampd_json_text(member).data, "[{", 2);
    assert_int_equal(stampd_kind(stampd_member(call, param, "null")), STAMPD_NULL);
    assert_int_equal(stampd_kind(array), STAMPD_ARRAY);
    assert_null(stampd_member(call, NULL, "x"));
    assert_null(stampd_first(call, NULL));
    assert_null(stampd_next(NULL));
    assert_null(stampd_parse(call, stampd_bytes("{} {}", 5)));
    assert_int_equal(stampd_count(stampd_parse(call, stampd_bytes("[1,2]", 5))), 2);
    assert_false(stampd_failed(call));
    return STAMPD_DONE;
}

static void arguments_are_read(void **state UNUSED)
{
    assert_int_equal(run(read_all,
                         "{\"i\":-5,\"d\":0.25,\"b\":true,\"t\":\"a\\nb\",\"c\":\"two\",\"null\":null,"
                         "\"s\":261121103000123,\"o\":{\"a\":[{\"n\":1},{\"n\":2},{\"n\":3}]}}"),
                     FAULT_NONE);
    assert_int_equal(works, 1);
}

/* Each of these reads the member that the test names; `bound` says which reader. */
static char bound;
static enum stampd_outcome read_one(struct stampd_call *call)
{
    static const char *const words[] = {"one", "two", NULL};
    const struct stampd_json *param = stampd_param(call);
    switch (bound) {
    case 'i':
        assert_int_equal(stampd_read_integer(call, param, "m", 1, 5), 1);
        break;
    case 'o':
        assert_int_equal(stampd_read_integer_or(call, param, "m", 1, 5, 3), 3);
        break;
    case 'd':
        assert_true(stampd_read_number(call, param, "m", 0, 1) == 0);
        break;
    case 'b':
        assert_false(stampd_read_boolean(call, param, "m"));
        break;
    case 't':
        assert_string_equal(stampd_read_text(call, param, "m", 2, 3), "");
        break;
    case 'y':
        assert_int_equal(stampd_read_bytes(call, param, "m", 3).size, 0);
        break;
    case 'c':
        assert_int_equal(stampd_read_choice(call, param, "m", words), 0);
        break;
    case 's':
        stampd_read_stamp(call, param, "m");
        break;
    case 'j':
        assert_null(stampd_first(call, stampd_read_object(call, param, "m")));
        break;
    default:
        assert_null(stampd_first(call, stampd_read_array(call, param, "m", 1, 2)));
    }
    assert_true(stampd_failed(call));
    stampd_raise(call, "NOTHER", "Only the first failure counts.", NULL);
    return STAMPD_DONE;
}

static void what_is_out_of_bounds_is_the_callers_fault(void **state UNUSED)
{
    static const struct {
        char reader;
        const char *param;
    } cases[] = {
        {'i', "{}"},
        {'i', "{\"m\":null}"},
        {'i', "{\"m\":0}"},
        {'i', "{\"m\":6}"},
        {'i', "{\"m\":2.0}"},
        {'i', "{\"m\":\"2\"}"},
        {'i', "{\"m\":99999999999999999999}"},
        {'o', "{\"m\":0}"},
        {'o', "{\"m\":[]}"},
        {'d', "{\"m\":1.1}"},
        {'d', "{\"m\":-1e-9}"},
        {'d', "{\"m\":1e999}"},
        {'d', "{\"m\":true}"},
        {'b', "{\"m\":1}"},
        {'b', "{}"},
        {'t', "{\"m\":\"a\"}"},
        {'t', "{\"m\":\"abcd\"}"},
        {'t', "{\"m\":12}"},
        {'t', "{}"},
        {'y', "{\"m\":\"abcd\"}"},
        {'c', "{\"m\":\"three\"}"},
        {'c', "{\"m\":1}"},
        {'s', "{\"m\":261321103000123}"},
        {'s', "{\"m\":1}"},
        {'j', "{\"m\":[]}"},
        {'j', "{}"},
        {'a', "{\"m\":[]}"},
        {'a', "{\"m\":[1,2,3]}"},
        {'a', "{\"m\":{}}"},
        {'a', "{}"},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        bound = cases[i].reader;
        run(read_one, cases[i].param);
        expect_fault(FAULT_AARG, "m");
        assert_int_equal(works, 1);
    }
    bound = 'i';
    run(read_one, NULL); /* no param at all */
    expect_fault(FAULT_AARG, "m");
}

static enum stampd_outcome read_stored(struct stampd_call *call)
{
    const struct stampd_json *status = stampd_item_value(stampd_fetch(call, "Firm", "a"), "Sta", NULL);
    stampd_read_integer(call, status, "n", 0, 9);
    return STAMPD_DONE;
}

static void what_is_wrong_in_a_stored_content_is_not(void **state UNUSED)
{
    fake_change("Firm", "a", 100, "{\"n\":5}");
    assert_int_equal(run(read_stored, NULL), FAULT_NONE);
    fake_change("Firm", "a", 200, "{\"n\":50}");
    slots_move_all(segment);
    run(read_stored, "{\"n\":5}");
    expect_fault(FAULT_BCONTENT, "n");
    assert_int_equal(works, 3); /* class B */
}

/* --- writing and results --- */

static enum stampd_outcome write_everything(struct stampd_call *call)
{
    struct stampd_writer *writer = stampd_write_object(call);
    const struct stampd_json *param = stampd_param(call);
    stampd_add_text(writer, "t\"", "a\nb");
    stampd_add_text(writer, "null", NULL);
    stampd_add_bytes(writer, "b", stampd_bytes("xyz", 2));
    stampd_add_integer(writer, "i", INT64_MIN);
    stampd_add_number(writer, "d", 0.1);
    stampd_add_number(writer, "e", 1.0 / 3);
    stampd_add_boolean(writer, "yes", true);
    stampd_open_array(writer, "a");
    stampd_add_boolean(writer, NULL, false);
    stampd_add_null(writer, NULL);
    stampd_open_object(writer, NULL);
    stampd_close(writer);
    stampd_close(writer);
    stampd_add_value(writer, "v", stampd_member(call, param, "v"));
    stampd_open_object(writer, "o");
    return stampd_result(call, writer);
}

static enum stampd_outcome give(struct stampd_call *call)
{
    struct stampd_bytes text = {"a\0b", 3};
    switch (bound) {
    case 'j':
        return stampd_result_json(call, stampd_bytes("[1, 2]", 6));
    case 'v':
        return stampd_result_value(call, stampd_member(call, stampd_param(call), "v"));
    case 't':
        stampd_result_json(call, stampd_bytes("1", 1)); /* replaced */
        return stampd_result_text(call, NULL, stampd_bytes("a line", 6));
    default:
        return stampd_result_bytes(call, bound == 'b' ? NULL : "image/x", text);
    }
}

static void results_are_of_every_kind(void **state UNUSED)
{
    struct json *syncs;
    struct json_problem problem;
    const struct json_limits limits = {.depth = 8, .tree_depth = 8};
    run(write_everything, "{\"v\":[1.50, 2]}");
    expect_body(
        "{\"out\":{\"t\\\"\":\"a\\nb\",\"null\":null,\"b\":\"xy\",\"i\":-9223372036854775808,\"d\":0.1,"
        "\"e\":0.3333333333333333,\"yes\":true,\"a\":[false,null,{}],\"v\":[1.50, 2],\"o\":{}}}");
    assert_string_equal(reply.mime, "application/json");
    bound = 'j';
    run(give, NULL);
    expect_body("{\"out\":[1, 2]}");
    bound = 'v';
    run(give, "{\"v\":{\"deep\":[[[1]]]}}");
    expect_body("{\"out\":{\"deep\":[[[1]]]}}");
    bound = 't';
    run(give, NULL);
    expect_body("a line");
    assert_string_equal(reply.mime, "text/plain; charset=utf-8");
    bound = 'b';
    run(give, NULL);
    assert_int_equal(body.size, 3);
    assert_memory_equal(body.data, "a\0b", 3);
    assert_string_equal(reply.mime, "application/octet-stream");
    bound = 'm';
    assert_int_equal(json_read(arena, BYTES("[{\"c\":\"Firm\",\"id\":\"a\"}]"), &limits, &syncs, &problem),
                     0);
    configure("{\"access\":\"read\"}"); /* or they would be refused */
    work = give;
    run_call("Trial", NULL, (struct call){.syncs = syncs});
    assert_int_equal(body.size, 3); /* bytes are the whole answer */
    assert_string_equal(reply.mime, "image/x");
    bound = 'j';
    run_call("Trial", NULL, (struct call){.syncs = syncs});
    expect_body("{\"out\":[1, 2],\"syncs\":[{\"c\":\"Firm\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0}]}");
}

/* --- exceptions --- */

static const char *code;
static enum stampd_outcome raise_code(struct stampd_call *call)
{
    return stampd_raise(call, code, "So many words.", "one", stampd_format(call, "%d", 2), NULL);
}

static void exceptions_bear_code_arguments_and_detail(void **state UNUSED)
{
    static const struct {
        const char *code;
        int major, works;
    } cases[] = {{"AQUOTA", 1, 1}, {"NASSO", 1, 1},  {"BLOST7", 2, 3},  {"XPRINTER", 3, 3},
                 {"DOLD", 4, 1},   {"CRUSH1", 5, 3}, {"OSUNDAY", 6, 1}, {"SGUEST", 7, 1}};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        code = cases[i].code;
        assert_int_equal(run(raise_code, NULL), FAULT_RAISED);
        assert_string_equal(reply_code(&reply), code);
        assert_int_equal(reply_major(&reply), cases[i].major);
        assert_int_equal(works, cases[i].works);
        assert_int_equal(reply.phase, PHASE_WORK);
        assert_string_equal(reply.detail, "So many words.");
        assert_int_equal(reply.argument_count, 2);
        assert_string_equal(reply.arguments[1], "2");
    }
    code = "AVERSION"; /* the server's own */
    assert_int_equal(run(raise_code, NULL), FAULT_AVERSION);
    assert_string_equal(reply_words(&reply), fault_words(FAULT_AVERSION));
    assert_int_equal(reply.argument_count, 2);
    code = "CONTENTION";
    assert_int_equal(run(raise_code, NULL), FAULT_CONTENTION);
    assert_int_equal(works, 3);
}

/* --- afterwork, the call --- */

static enum stampd_outcome write_and_tell(struct stampd_call *call)
{
    assert_int_equal(stampd_commit_version(call), 0);
    stampd_set_json(stampd_fetch(call, "Firm", "f"), "Adh", "k", stampd_bytes("1", 1));
    return stampd_result_json(call, stampd_bytes("{\"n\":7}", 7));
}

static enum stampd_outcome tell_version(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_object(call);
    stampd_add_integer(result, "n", stampd_read_integer(call, stampd_result_of_work(call), "n", 7, 7));
    stampd_add_boolean(result, "committed", stampd_commit_version(call) == fake_version("Firm", "f"));
    stampd_add_integer(result, "written", stampd_commit_version(call) != 0);
    return stampd_result(call, result);
}

/* Firm f is changed or left as it is, g is only looked at, h does not exist. */
static enum stampd_outcome look_at_three(struct stampd_call *call)
{
    stampd_version(stampd_fetch(call, "Firm", "g"));
    stampd_version(stampd_fetch(call, "Firm", "h"));
    return write_and_tell(call);
}

static enum stampd_outcome tell_three(struct stampd_call *call)
{
    struct stampd_writer *result = stampd_write_array(call);
    stampd_add_boolean(result, NULL, stampd_version_after(call, "Firm", "f") == fake_version("Firm", "f"));
    stampd_add_boolean(result, NULL, stampd_version_after(call, "Firm", "f") == stampd_commit_version(call));
    stampd_add_integer(result, NULL, stampd_version_after(call, "Firm", "g"));
    stampd_add_integer(result, NULL, stampd_version_after(call, "Firm", "h"));
    return stampd_result(call, result);
}

static enum stampd_outcome tell_another(struct stampd_call *call)
{
    stampd_version_after(call, "Firm", "never fetched");
    return STAMPD_DONE;
}

static enum stampd_outcome tell_too_early(struct stampd_call *call)
{
    stampd_fetch(call, "Firm", "f");
    stampd_version_after(call, "Firm", "f");
    return STAMPD_DONE;
}

static void afterwork_sees_the_version_of_each_document(void **state UNUSED)
{
    afterwork = tell_three;
    fake_change("Firm", "g", 261121103000123, "1");
    work = look_at_three;
    for (int i = 0; i < 2; i++) {
        run_call("Trial", NULL,
                 (struct call){.idempotency_key = BYTES("k")}); /* the second gets the answer */
        assert_int_equal(reply.is_replayed, i);
        expect_body("{\"out\":[true,true,261121103000123,0]}");
    }
    run(look_at_three, NULL); /* all is as wanted: nothing is written */
    expect_body("{\"out\":[true,false,261121103000123,0]}");
    afterwork = tell_another;
    run(write_and_tell, NULL);
    assert_string_equal(reply_code(&reply), "BMODULE");
    run(tell_too_early, NULL);
    assert_string_equal(reply_code(&reply), "BMODULE");
    assert_int_equal(reply.phase, PHASE_WORK);
}

static enum stampd_outcome fetch_too_late(struct stampd_call *call)
{
    stampd_fetch(call, "Firm", "f");
    return STAMPD_DONE;
}

static void afterwork_sees_the_version(void **state UNUSED)
{
    afterwork = tell_version;
    run(write_and_tell, NULL);
    expect_body("{\"out\":{\"n\":7,\"committed\":true,\"written\":1}}");
    run(write_and_tell, NULL); /* all is as wanted: nothing is written */
    expect_body("{\"out\":{\"n\":7,\"committed\":false,\"written\":0}}");
    afterwork = fetch_too_late;
    run(write_and_tell, NULL);
    assert_string_equal(reply_code(&reply), "BMODULE");
    assert_int_equal(reply.phase, PHASE_AFTERWORK);
}

static enum stampd_outcome look_around(struct stampd_call *call)
{
    assert_string_equal(stampd_namespace(call), "lab");
    assert_string_equal(stampd_request_id(call), "test");
    assert_string_equal(stampd_account(call), "ann");
    assert_null(stampd_key(call));
    assert_string_equal(stampd_lang(call), "");
    assert_false(stampd_is_administrator(call));
    assert_int_equal(stampd_path_count(call), 2);
    assert_string_equal(stampd_path(call, 1), "b/c");
    assert_null(stampd_path(call, 2));
    assert_int_equal(stampd_file_count(call), 1);
    assert_string_equal(stampd_file(call, 0)->name, "photo");
    assert_string_equal(stampd_file(call, 0)->file_name, "a.png");
    assert_string_equal(stampd_file(call, 0)->type, "image/png");
    assert_int_equal(stampd_file(call, 0)->content.size, 3);
    assert_memory_equal(stampd_file(call, 0)->content.data, "\0x\xFF", 3);
    assert_null(stampd_file(call, 1));
    assert_int_equal(stampd_dhop(call), 0);
    assert_true(stampd_time_left_ms(call) > 0);
    assert_int_equal(stampd_stamp_from_epoch_ms(stampd_stamp_to_epoch_ms(261121103000123)), 261121103000123);
    assert_in_range(stampd_now(), STAMP_MIN, STAMP_MAX);
    char *memory = stampd_alloc(call, 100);
    for (int i = 0; i < 100; i++)
        assert_int_equal(memory[i], 0);
    assert_string_equal(stampd_copy(call, "copy", 2), "co");
    return STAMPD_DONE;
}

static void a_call_tells_about_its_request(void **state UNUSED)
{
    const struct bytes path[] = {BYTES("a"), BYTES("b/c")};
    const struct call_file file = {BYTES("photo"), BYTES("a.png"), BYTES("image/png"), BYTES("\0x\xFF")};
    work = look_around;
    assert_int_equal(run_call("Trial", NULL,
                              (struct call){.account = BYTES("ann"),
                                            .lang = BYTES(""),
                                            .path = path,
                                            .path_count = COUNT_OF(path),
                                            .files = &file,
                                            .file_count = 1}),
                     FAULT_NONE);
    assert_int_equal(works, 1);
}

#define TEST(function) cmocka_unit_test_setup_teardown(function, start_world, worker_context_world_close)

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(arguments_are_read),
        TEST(what_is_out_of_bounds_is_the_callers_fault),
        TEST(what_is_wrong_in_a_stored_content_is_not),
        TEST(results_are_of_every_kind),
        TEST(exceptions_bear_code_arguments_and_detail),
        TEST(afterwork_sees_the_version),
        TEST(afterwork_sees_the_version_of_each_document),
        TEST(a_call_tells_about_its_request),
    };
    return cmocka_run_group_tests_name("module values", tests, open_world, NULL);
}
