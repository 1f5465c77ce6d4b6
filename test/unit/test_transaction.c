/* transaction: the rule of freshness and the validation, against rows in memory and a real shared segment. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "segment/feed.h"
#include "model/document/stamp.h"
#include "segment/processes.h"
#include "segment/slots.h"
#include "segment/segment_open.h"
#include "store/documents/store_commit.h"
#include "document/transaction.h"
#include "transaction_world.h"

static void a_proven_copy_costs_no_load(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    assert_int_equal(newest_version(A), 100);
    assert_int_equal(newest_version(B), 0); /* known to be absent */
    assert_int_equal(newest_version(B), 0);
    assert_int_equal(fake.loads, 2);
    commit_elsewhere(A, 200, "2");
    commit_elsewhere(B, 201, "3");
    assert_int_equal(newest_version(A), 200);
    assert_int_equal(newest_version(B), 201);
    assert_int_equal(fake.loads, 4);
}

static void a_marked_slot_is_asked_for_each_time(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    uint32_t slot = slot_of(A);
    uint64_t own;
    segment_join(segment, other_index);
    slots_begin(segment, ns);
    slots_mark(segment, &slot, 1, &own);
    segment_join(segment, own_index);
    assert_int_equal(newest_version(A), 100);
    fake_change("Doc", "a", 200, "2"); /* committed, not yet published */
    assert_int_equal(newest_version(A), 200);
    assert_int_equal(fake.loads, 3);
}

static void missing_documents_come_in_one_round_trip(void **state UNUSED)
{
    fake_change("Doc", "a", 100, "1");
    const struct document_name names[] = {A, B, A};
    struct draft *drafts[3];
    struct transaction *transaction = begin(false);
    assert_int_equal(transaction_fetch_many(transaction, names, 3, drafts), FAULT_NONE);
    assert_ptr_equal(drafts[0], drafts[2]);
    assert_ptr_not_equal(drafts[0], drafts[1]);
    assert_int_equal(fake.round_trips, 1);
    assert_ptr_equal(fetch(transaction, A), drafts[0]); /* one object for the whole operation */
    int64_t version;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, 0);
}

static void two_documents_of_different_instants_are_refused(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    fake_change("Doc", "b", 100, "1");
    struct transaction *transaction = begin(false);
    fetched_version(transaction, A);
    commit_elsewhere(A, 200, "2");
    fetched_version(transaction, B);
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    /* a lone document was true at its own instant */
    transaction = begin(false);
    fetched_version(transaction, A);
    commit_elsewhere(A, 300, "3");
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    /* in a snapshot nothing is left to verify */
    transaction = begin(true);
    fetched_version(transaction, A);
    commit_elsewhere(A, 400, "4");
    fetched_version(transaction, B);
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(fake.snapshots, 1);
    assert_int_equal(newest_version(A), 400); /* what the snapshot read was not cached */
}

static void a_commit_writes_and_its_copy_is_proven(void **state UNUSED)
{
    int64_t version, future = stamp_add_ms(stamp_now(), 3600 * 1000);
    fake_change("Doc", "a", future, "1"); /* the clock stepped back by an hour */
    struct transaction *transaction = begin(false);
    draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false, BYTES("2"));
    draft_set_item(fetch(transaction, B), BYTES("Sta"), BYTES(""), false, BYTES("3"));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, stamp_next(future));
    assert_int_equal(fake_version("Doc", "a"), version);
    assert_int_equal(fake_version("Doc", "b"), version);
    int loads = fake.loads;
    assert_int_equal(newest_version(A), version);
    assert_int_equal(newest_version(B), version);
    assert_int_equal(fake.loads, loads);
    assert_false(slots_see(segment, slot_of(A)).busy);
    assert_int_equal(processes_namespace(segment, own_index), -1);
}

static void same_content_is_no_commit(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    struct transaction *transaction = begin(false);
    draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false, BYTES("1"));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, 0);
    assert_int_equal(fake.commits, 0);
}

static void a_birth_is_above_the_floor(void **state UNUSED)
{
    int64_t version, future = stamp_add_ms(stamp_now(), 3600 * 1000);
    fake_set_floor(future);
    struct transaction *transaction = begin(false);
    draft_create(fetch(transaction, A));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, stamp_next(future));
}

static void a_document_changed_meanwhile_is_a_conflict(void **state UNUSED)
{
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    struct transaction *transaction = begin(false);
    draft_set_item(fetch(transaction, A), BYTES("Sta"), BYTES(""), false, BYTES("2"));
    fake.before_commit = change_a_elsewhere;
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    assert_false(slots_see(segment, slot_of(A)).busy);
    fake.before_commit = NULL;
    assert_int_equal(newest_version(A), fake_version("Doc", "a"));
    /* a document merely read counts as well */
    transaction = begin(false);
    fetched_version(transaction, A);
    draft_create(fetch(transaction, B));
    fake.before_commit = change_a_elsewhere;
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    assert_int_equal(fake_version("Doc", "b"), 0);
}

/* What a decision depended on must still be so when its commit happens. */
static void a_consulted_document_is_verified(void **state UNUSED)
{
    const struct document *document;
    int64_t version;
    fake_change("Doc", "a", 100, "1");
    fake_change("Doc", "b", 100, "1");
    struct transaction *transaction = begin(false);
    draft_set_item(fetch(transaction, B), BYTES("Sta"), BYTES(""), false, BYTES("2"));
    assert_int_equal(transaction_consult(transaction, A, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 100);
    assert_ptr_equal(draft_base(fetch(transaction, A)), document); /* one object for the whole operation */
    fake.before_commit = change_a_elsewhere;
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    fake.before_commit = NULL;
    assert_int_equal(fake_version("Doc", "b"), 100);
    /* with reads alone, too */
    transaction = begin(false);
    fetched_version(transaction, B);
    assert_int_equal(transaction_consult(transaction, A, &document), FAULT_NONE);
    change_a_elsewhere();
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    /* a copy that was read with a tolerance is promoted, unless it is old */
    transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 10, &document), FAULT_NONE);
    change_a_elsewhere();
    assert_int_equal(transaction_consult(transaction, A, &document), FAULT_STALE);
    transaction_end(transaction);
}

static void another_commit_in_the_slot_takes_the_tag_away(void **state UNUSED)
{
    int64_t version;
    struct transaction *transaction = begin(false);
    draft_create(fetch(transaction, A));
    fake.before_commit = move_slot_of_a;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    int loads = fake.loads;
    assert_int_equal(newest_version(A), version);
    assert_int_equal(fake.loads, loads + 1);
}

static void an_unknown_outcome_is_published_after_the_backend_is_gone(void **state UNUSED)
{
    int64_t version;
    uint64_t before = slots_see(segment, slot_of(A)).stamp;
    char problem[256];
    struct subscriber *subscriber = feed_subscriber_open(segment, "/tmp", problem, sizeof problem);
    assert_non_null(subscriber);
    feed_subscriber_want(subscriber, ns, true);
    struct transaction *transaction = begin(false);
    draft_create(fetch(transaction, A));
    fake.outcome = COMMIT_UNKNOWN;
    assert_int_equal(validate(transaction, &version), FAULT_XUNKNOWN);
    assert_false(slots_see(segment, slot_of(A)).busy);
    assert_int_equal(slots_see(segment, slot_of(A)).stamp, before + 1);
    assert_false(documents_must_exit(documents));
    struct subscriber_news news;
    assert_true(feed_subscriber_next(subscriber, &news));
    assert_true(news.ns == ns && !news.class.data); /* who listens has missed something perhaps */
    assert_false(feed_subscriber_next(subscriber, &news));
    feed_subscriber_close(subscriber);
    /* the database stays away: the mark stays and the process must go */
    transaction = begin(false);
    draft_create(fetch(transaction, A));
    fake.reconnect_fault = FAULT_XAWAY;
    assert_int_equal(validate(transaction, &version), FAULT_XUNKNOWN);
    assert_true(documents_must_exit(documents));
    assert_true(slots_see(segment, slot_of(A)).busy);
    assert_int_equal(processes_namespace(segment, own_index), ns);
    assert_true(slots_sweep(segment) >= 1); /* the recovery process */
    assert_false(slots_see(segment, slot_of(A)).busy);
}

static void a_tolerance_allows_an_old_copy(void **state UNUSED)
{
    const struct document *document;
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    commit_elsewhere(A, 200, "2");
    struct transaction *transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 10, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 100);
    assert_int_equal(fake.loads, 1);
    /* asked at 0 later: the copy is no longer the newest, the operation runs again and gets the newest */
    struct draft *draft;
    assert_int_equal(transaction_fetch(transaction, A, &draft), FAULT_STALE);
    transaction_end(transaction);
    transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 10, &document), FAULT_NONE);
    assert_int_equal(document->header.version, 200);
    assert_int_equal(transaction_fetch(transaction, A, &draft), FAULT_NONE); /* promoted */
    draft_set_item(draft, BYTES("Sta"), BYTES(""), false, BYTES("3"));
    int64_t version;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(fake_version("Doc", "a"), version);
}

/* What lies between two versions, as a document that refers to another: nobody who has seen the older one may
 * see a newer document with a lower number. */
/* choose_version looks at all documents of the transaction. */
static void a_version_is_above_those_that_are_merely_read(void **state UNUSED)
{
    int64_t version, future = stamp_add_ms(stamp_now(), 3600 * 1000);
    fake_change("Doc", "a", future, "1");
    struct transaction *transaction = begin(false);
    fetch(transaction, A);
    draft_create(fetch(transaction, B));
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    assert_int_equal(version, stamp_next(future));
}

/* The slot has moved since our commit, by whom nobody knows: that stamp proves nothing. */
static void a_tolerated_copy_without_tag_is_not_the_newest(void **state UNUSED)
{
    int64_t version;
    const struct document *document;
    struct draft *draft;
    struct transaction *transaction = begin(false);
    draft_create(fetch(transaction, A));
    fake.before_commit = move_slot_of_a;
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
    fake.before_commit = NULL;
    fake_change("Doc", "a", stamp_next(version), "2"); /* by who has moved it */
    transaction = begin(false);
    assert_int_equal(transaction_read(transaction, A, 10, &document), FAULT_NONE);
    assert_int_equal(document->header.version, version);
    assert_int_equal(transaction_fetch(transaction, A, &draft), FAULT_STALE);
    transaction_end(transaction);
}

static void thirty_two_documents_and_no_more(void **state UNUSED)
{
    struct document_name names[33];
    struct draft *drafts[33];
    char ids[33][16];
    for (int i = 0; i < 33; i++) {
        snprintf(ids[i], sizeof ids[i], "d%d", i);
        names[i] = (struct document_name){BYTES("Doc"), bytes_of(ids[i])};
    }
    struct transaction *transaction = begin(false);
    assert_int_equal(transaction_fetch_many(transaction, names, 32, drafts), FAULT_NONE);
    const struct document *document; /* one that is consulted does not count, unless it is fetched too */
    assert_int_equal(transaction_consult(transaction, names[32], &document), FAULT_NONE);
    assert_int_equal(transaction_fetch_many(transaction, names, 32, drafts), FAULT_NONE);
    assert_int_equal(transaction_fetch(transaction, names[32], drafts), FAULT_ALIMIT);
    transaction_end(transaction);
    transaction = begin(false);
    assert_int_equal(transaction_fetch_many(transaction, names, 33, drafts), FAULT_ALIMIT);
    transaction_end(transaction);
    transaction = begin(false);
    for (int i = 0; i < 33; i++)
        assert_int_equal(transaction_consult(transaction, names[i], &document), FAULT_NONE);
    assert_int_equal(transaction_fetch_many(transaction, names, 32, drafts), FAULT_NONE);
    assert_int_equal(transaction_fetch(transaction, names[31], drafts), FAULT_NONE);
    assert_int_equal(transaction_fetch(transaction, names[32], drafts), FAULT_ALIMIT);
    transaction_end(transaction);
    transaction = begin(false); /* one that was read with a tolerance counts when it is fetched */
    assert_int_equal(transaction_read(transaction, names[32], 10, &document), FAULT_NONE);
    assert_int_equal(transaction_fetch_many(transaction, names, 32, drafts), FAULT_NONE);
    assert_int_equal(transaction_fetch(transaction, names[32], drafts), FAULT_ALIMIT);
    transaction_end(transaction);
}

static void with_other_hosts_the_database_verifies(void **state UNUSED)
{
    int64_t version;
    settings.hosts = HOSTS_MANY;
    documents_destroy(documents);
    documents = documents_create(&settings, segment);
    documents_begin_request(documents, INT64_MAX);
    fake_change("Doc", "a", 100, "1");
    assert_int_equal(newest_version(A), 100);
    fake_change("Doc", "a", 200, "2"); /* on another host: no stamp of ours moves */
    assert_int_equal(newest_version(A), 200);
    struct transaction *transaction = begin(false);
    fetched_version(transaction, A);
    fake_change("Doc", "a", 300, "3");
    assert_int_equal(validate(transaction, &version), FAULT_STALE);
    transaction = begin(false);
    assert_int_equal(fetched_version(transaction, A), 300);
    assert_int_equal(validate(transaction, &version), FAULT_NONE);
}

static void a_request_that_is_late_loads_nothing(void **state UNUSED)
{
    struct draft *draft;
    documents_begin_request(documents, 0);
    struct transaction *transaction = begin(false);
    assert_int_equal(transaction_fetch(transaction, A, &draft), FAULT_XTIME);
    assert_int_equal(fake.loads, 0);
    transaction_end(transaction);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, world_start, world_stop)
    const struct CMUnitTest tests[] = {
        TEST(a_proven_copy_costs_no_load),
        TEST(a_marked_slot_is_asked_for_each_time),
        TEST(missing_documents_come_in_one_round_trip),
        TEST(two_documents_of_different_instants_are_refused),
        TEST(a_commit_writes_and_its_copy_is_proven),
        TEST(same_content_is_no_commit),
        TEST(a_birth_is_above_the_floor),
        TEST(a_document_changed_meanwhile_is_a_conflict),
        TEST(a_consulted_document_is_verified),
        TEST(another_commit_in_the_slot_takes_the_tag_away),
        TEST(an_unknown_outcome_is_published_after_the_backend_is_gone),
        TEST(a_tolerance_allows_an_old_copy),
        TEST(a_version_is_above_those_that_are_merely_read),
        TEST(a_tolerated_copy_without_tag_is_not_the_newest),
        TEST(thirty_two_documents_and_no_more),
        TEST(with_other_hosts_the_database_verifies),
        TEST(a_request_that_is_late_loads_nothing),
    };
    return cmocka_run_group_tests_name("transaction", tests, NULL, NULL);
}
