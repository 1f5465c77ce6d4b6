/* test_redelivery: what workers hand to each other: copies in the shared cache, and turns. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "transaction_world.h"
#include "segment/slots.h"
#include "segment/writer_queue.h"
#include "segment/segment_open.h"
#include "document/transaction.h"

/* --- what another worker has: the shared cache --- */

static int64_t newest_version_elsewhere(struct document_name name)
{
    const struct document *document;
    assert_int_equal(documents_newest(others, ns, arena, &name, 1, &document), FAULT_NONE);
    return document->header.version;
}

static void what_one_has_loaded_the_others_need_not(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    assert_int_equal(newest_version(B), 0);
    assert_int_equal(newest_version_elsewhere(A), 100);
    assert_int_equal(newest_version_elsewhere(B), 0);
    assert_int_equal(fake.loads, 2);
    commit_elsewhere(A, 200, "2"); /* by a worker that puts nothing in the shared cache */
    assert_int_equal(newest_version_elsewhere(A), 200);
    assert_int_equal(newest_version(A), 200);
    assert_int_equal(fake.loads, 3);
    const struct document *document;
    struct transaction *transaction;
    assert_int_equal(transaction_begin(others, ns, arena, false, &transaction), FAULT_NONE);
    assert_int_equal(transaction_read(transaction, A, 10, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 200);
}

static void what_one_has_written_the_others_need_not_load(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version_elsewhere(A), 100);
    for (int i = 0; i < 3; i++) {
        struct transaction *transaction = begin(false);
        draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false,
                       i % 2 ? BYTES("2") : BYTES("3"));
        draft_set_item(fetch(transaction, B), BYTES("Sta"), BYTES(""), false,
                       i % 2 ? BYTES("4") : BYTES("5"));
        assert_int_equal(validate(transaction, &version), FAULT_NONE);
        assert_int_equal(newest_version_elsewhere(A), version);
        assert_int_equal(newest_version_elsewhere(B), version);
    }
    assert_int_equal(fake.loads, 2); /* A at first, and the absence of B */
    struct transaction *transaction = begin(false);
    draft_delete(fetch(transaction, A));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(newest_version_elsewhere(A), version); /* its zombie's */
    assert_int_equal(fake.loads, 2);
}

static void change_a_after_the_load(void)
{
    fake.after_load = NULL;
    commit_elsewhere(A, 200, "2");
}

static void a_copy_on_the_shared_cache_is_as_old_as_its_look(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    fake.after_load = change_a_after_the_load; /* and before the copy is in the shared cache */
    assert_int_equal(newest_version(A), 100);
    assert_int_equal(newest_version_elsewhere(A), 200);
    assert_int_equal(newest_version(A), 200);
}

static void a_mark_counts_more_than_the_shared_cache(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    uint32_t slot = slot_of(A);
    uint64_t own;
    segment_join(segment, other_index);
    slots_begin(segment, ns);
    slots_mark(segment, &slot, 1, &own);
    segment_join(segment, own_index);
    fake_change("Doc", "a", 200, "2"); /* committed, not yet published */
    assert_int_equal(newest_version_elsewhere(A), 200);
    assert_int_equal(newest_version(A), 200);
}

static void a_commit_beside_another_puts_nothing_on_the_shared_cache(void **state UNUSED)
{
    int64_t version;
    struct transaction *transaction = begin(false);
    draft_create(fetch(transaction, A));
    fake.before_commit = move_slot_of_a;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    int loads = fake.loads;
    assert_int_equal(newest_version_elsewhere(A), version);
    assert_int_equal(fake.loads, loads + 1);
}

static void what_the_database_contradicts_is_not_taken_from_the_shared_cache(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    fake_change("Doc", "a", 200, "2"); /* by psql: no stamp has moved yet */
    struct transaction *transaction = begin(false);
    draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false, BYTES("3"));
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    transaction = begin(false);
    assert_int_equal(fetched_version(transaction, A), 200);
    draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false, BYTES("3"));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(newest_version_elsewhere(A), version);
}

/* --- turns --- */

static bool is_in_turn(struct document_name name)
{
    return atomic_load(writer_queue_word(segment, slot_of(name))) != 0;
}

/* One try of an operation that may write, up to its validation; `changes` A, reads B. */
static struct transaction *try_in_turn(bool in_snapshot, const char *content)
{
    const struct document_name names[] = {A, B};
    struct draft *drafts[2];
    struct transaction *transaction = begin(in_snapshot);
    transaction_take_turns(transaction);
    assert_int_equal(transaction_fetch_many(transaction, names, 2, drafts), FAULT_NONE);
    if (content)
        draft_set_item(drafts[0], BYTES("Sta"), BYTES(""), false, bytes_of(content));
    return transaction;
}

static void what_is_written_again_is_written_in_turn(void **state UNUSED)
{
    int64_t version;
    for (int i = 0; i < 3; i++) {
        struct transaction *transaction = try_in_turn(i == 2, i % 2 ? "1" : "2");
        assert_int_equal(is_in_turn(A), i > 0); /* nothing was known at first */
        assert_false(is_in_turn(B));            /* merely read */
        assert_int_equal(transaction_validate(transaction, &version), FAULT_NONE);
        assert_int_equal(is_in_turn(A), i > 0);
        transaction_end(transaction);
        assert_false(is_in_turn(A));
    }
    assert_int_equal(newest_version(A), version);
    struct transaction *reading = begin(false); /* one that does not write */
    fetched_version(reading, A);
    assert_false(is_in_turn(A));
    assert_int_equal(validate(reading, &version), FAULT_NONE);
}

static void what_is_merely_read_is_not_waited_for_again(void **state UNUSED)
{
    int64_t version;
    assert_int_equal(validate(try_in_turn(false, "1"), &version), FAULT_NONE);
    struct transaction *transaction = try_in_turn(false, NULL);
    assert_true(is_in_turn(A));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_false(is_in_turn(A));
    transaction = try_in_turn(false, NULL);
    assert_false(is_in_turn(A));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
}

static void who_was_refused_comes_in_turn(void **state UNUSED)
{
    int64_t version;
    struct transaction *transaction = try_in_turn(false, "1");
    fake.before_commit = change_a_elsewhere;
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    fake.before_commit = NULL;
    transaction = try_in_turn(false, "1");
    assert_true(is_in_turn(A));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
}

static void who_gets_no_turn_goes_without(void **state UNUSED)
{
    int64_t version;
    assert_int_equal(validate(try_in_turn(false, "1"), &version), FAULT_NONE);
    atomic_store(writer_queue_word(segment, slot_of(A)),
                 (uint32_t)(other_index + 1)); /* lock_timeout_ms is 0 */
    struct transaction *transaction = try_in_turn(false, "2");
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_true(is_in_turn(A)); /* still the other's */
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_start, world_stop)
    const struct CMUnitTest tests[] = {
        TEST(what_one_has_loaded_the_others_need_not),
        TEST(what_one_has_written_the_others_need_not_load),
        TEST(a_copy_on_the_shared_cache_is_as_old_as_its_look),
        TEST(a_mark_counts_more_than_the_shared_cache),
        TEST(a_commit_beside_another_puts_nothing_on_the_shared_cache),
        TEST(what_the_database_contradicts_is_not_taken_from_the_shared_cache),
        TEST(what_is_written_again_is_written_in_turn),
        TEST(what_is_merely_read_is_not_waited_for_again),
        TEST(who_was_refused_comes_in_turn),
        TEST(who_gets_no_turn_goes_without),
    };
    return cmocka_run_group_tests_name("handing", tests, NULL, NULL);
}
