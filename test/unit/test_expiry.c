/* life: documents that end by themselves: what says so, and how copies of them are judged. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdlib.h>
#include <unistd.h>

#include "base/clock.h"
#include "model/document/document.h"
#include "model/document/expiry.h"
#include "document/transaction.h"
#include "transaction_world.h"

static const char declaration[] = "{\"classes\":{\"Doc\":{\"items\":{\"Sta\":{\"singleton\":true},\"K\":{}},"
                                  "\"maxLife\":\"Sta.until\"},\"Other\":{\"items\":{}}}}";

/* --- the clock that is followed --- */

static int clock_file;

static void add_minutes(int64_t minutes)
{
    assert_int_equal(pwrite(clock_file, &minutes, sizeof minutes, 0), sizeof minutes);
}

static int start(void **state)
{
    char path[] = "/tmp/stampd-clock-XXXXXX";
    clock_file = mkstemp(path);
    if (clock_file < 0 || !clock_follow(path) || unlink(path) || world_start(state))
        return -1;
    add_minutes(0);
    fake.schema = declaration;
    return 0;
}

static int stop(void **state)
{
    close(clock_file);
    return world_stop(state);
}

static const char *ends_in(int64_t minutes)
{
    return arena_printf(arena, "{\"until\":%lld}", (long long)(clock_present_minute() + minutes));
}

/* --- what says so --- */

static int64_t until_of(const char *class, const struct item *item)
{
    struct schema *schema;
    struct schema_problem problem;
    const struct header header = {
        .class = bytes_of(class), .id = BYTES("x"), .version = 5, .ctime = 5, .dtime = 5};
    assert_int_equal(schema_read(arena, bytes_of(declaration), &schema, &problem), FAULT_NONE);
    struct document *document = document_build(&header, item, item != NULL);
    int64_t until = expiry_of(schema, document);
    document_release(document);
    return until;
}

static void only_an_integer_of_the_property_ends_a_document(void **state UNUSED)
{
    static const struct {
        const char *content;
        int64_t until;
    } cases[] = {
        {"{\"until\":7}", 7},
        {"{\"a\":[{\"until\":9}], \"until\" : -7 }", -7},
        {"{\"until\":0}", 0},
        {"{\"until\":9223372036854775807}", INT64_MAX},
        {"{\"until\":9223372036854775808}", DOCUMENT_FOREVER},
        {"{\"until\":7.0}", DOCUMENT_FOREVER},
        {"{\"until\":7e0}", DOCUMENT_FOREVER},
        {"{\"until\":\"7\"}", DOCUMENT_FOREVER},
        {"{\"until\":null}", DOCUMENT_FOREVER},
        {"{\"until\":[7]}", DOCUMENT_FOREVER},
        {"{}", DOCUMENT_FOREVER},
        {"7", DOCUMENT_FOREVER},
        {"[{\"until\":7}]", DOCUMENT_FOREVER},
    };
    struct item item = {.iclass = BYTES("Sta"), .key = BYTES(""), .version = 5, .vop = 5};
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        item.content = bytes_of(cases[i].content);
        assert_int_equal(until_of("Doc", &item), cases[i].until);
    }
    item.content = BYTES("{\"until\":7}");
    assert_int_equal(until_of("Other", &item), DOCUMENT_FOREVER);
    assert_int_equal(until_of("Undeclared", &item), DOCUMENT_FOREVER);
    item.raw = true;
    assert_int_equal(until_of("Doc", &item), DOCUMENT_FOREVER);
    item.raw = false;
    item.key = BYTES("k");
    assert_int_equal(until_of("Doc", &item), DOCUMENT_FOREVER);
    assert_int_equal(until_of("Doc", NULL), DOCUMENT_FOREVER);
}

static void the_end_travels_with_a_copy(void **state UNUSED)
{
    const struct header header = {
        .class = BYTES("Doc"), .id = BYTES("a"), .version = 5, .ctime = 5, .dtime = 5};
    struct document *document = document_build(&header, NULL, 0);
    assert_int_equal(document->until, DOCUMENT_FOREVER);
    document->until = 7;
    void *packed = arena_alloc(arena, document->block_bytes);
    document_pack(document, packed);
    struct document *copy = document_unpack(packed, document->block_bytes);
    assert_int_equal(copy->until, 7);
    struct document *ended = document_end(copy);
    assert_true(ended->has_ended);
    assert_false(document_exists(ended));
    assert_int_equal(ended->header.version, 5);
    assert_string_equal(arena_copy(arena, ended->json.data, ended->json.size),
                        "{\"c\":\"Doc\",\"id\":\"a\",\"v\":0,\"ct\":0,\"dt\":0,\"items\":[]}");
    document_release(ended);
    document_release(copy);
    document_release(document);
}

/* --- copies --- */

static bool is_there(struct document_name name)
{
    struct transaction *transaction = begin(false);
    bool exists = draft_exists(fetch(transaction, name));
    int64_t version;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    return exists;
}

static void a_proven_copy_ends_without_a_load(void **state UNUSED)
{
    fake_change("Doc", "a", 10, ends_in(5));
    fake_change("Doc", "b", 10, "{}");
    assert_true(is_there(A));
    assert_true(is_there(B));
    int loads = fake.loads;
    add_minutes(5);
    assert_false(is_there(A));
    assert_true(is_there(B));
    assert_int_equal(newest_version(A), 10);
    assert_int_equal(fake.loads, loads);
}

static void who_saw_it_alive_runs_again_when_it_ends_before_the_validation(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 10, ends_in(5));
    for (int writes = 0; writes < 2; writes++) {
        add_minutes(0);
        struct transaction *transaction = begin(false);
        struct draft *draft = fetch(transaction, A), *other = fetch(transaction, B);
        assert_true(draft_exists(draft));
        if (writes)
            draft_set_item(other, BYTES("K"), BYTES("k"), false, BYTES("1"));
        add_minutes(6);
        assert_int_equal(validate(transaction, &version), FAULT_STALE);
        assert_int_equal(fake.commits, 0);
    }
    assert_false(is_there(A));
}

static void what_is_written_to_one_that_has_ended_is_a_new_life(void **state UNUSED)
{
    fake_change("Doc", "a", 10, ends_in(-1));
    struct transaction *transaction = begin(false);
    struct draft *draft = fetch(transaction, A);
    assert_false(draft_exists(draft));
    assert_null(draft_find_item(draft, BYTES("Sta"), BYTES("")));
    assert_int_equal(draft_act(draft), DRAFT_READ);
    draft_delete(draft);
    assert_int_equal(draft_act(draft), DRAFT_READ);
    draft_set_item(draft, BYTES("K"), BYTES("k"), false, BYTES("1"));
    assert_int_equal(draft_act(draft), DRAFT_RENEW);
    int64_t version;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_true(version > 10);
    assert_true(is_there(A));
}

static void an_old_copy_does_not_tell_of_an_end_that_was_put_off(void **state UNUSED)
{
    const struct document *document;
    fake_change("Doc", "a", 10, ends_in(5));
    assert_true(is_there(A));
    commit_elsewhere(A, 20, ends_in(50));
    struct transaction *transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 1000, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 10); /* it is young enough */
    transaction_end(transaction);
    add_minutes(6);
    transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 1000, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 20);
    assert_true(document_exists(document));
    transaction_end(transaction);
    add_minutes(60);
    transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 1000, &document), FAULT_NONE);
    assert_false(document_exists(document));
    transaction_end(transaction);
}

static void what_is_read_in_a_snapshot_ends_too(void **state UNUSED)
{
    fake_change("Doc", "a", 10, ends_in(-1));
    struct transaction *transaction = begin(true);
    assert_false(draft_exists(fetch(transaction, A)));
    transaction_end(transaction);
}

static void what_was_written_is_kept_only_when_its_end_is_known(void **state UNUSED)
{
    int64_t version;
    for (int forgets = 0; forgets < 2; forgets++) {
        fake.is_forgetful = forgets;
        struct transaction *transaction = begin(false);
        draft_set_item(fetch(transaction, A), BYTES("K"), BYTES("k"), false,
                       forgets ? BYTES("1") : BYTES("2"));
        assert_int_equal(validate(transaction, &version), FAULT_NONE);
        int loads = fake.loads;
        assert_int_equal(newest_version(A), version);
        assert_int_equal(fake.loads - loads, forgets);
    }
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, start, stop)
    const struct CMUnitTest tests[] = {
        TEST(only_an_integer_of_the_property_ends_a_document),
        TEST(the_end_travels_with_a_copy),
        TEST(a_proven_copy_ends_without_a_load),
        TEST(who_saw_it_alive_runs_again_when_it_ends_before_the_validation),
        TEST(what_is_written_to_one_that_has_ended_is_a_new_life),
        TEST(an_old_copy_does_not_tell_of_an_end_that_was_put_off),
        TEST(what_is_read_in_a_snapshot_ends_too),
        TEST(what_was_written_is_kept_only_when_its_end_is_known),
    };
    return cmocka_run_group_tests_name("life", tests, NULL, NULL);
}
