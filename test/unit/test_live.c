/* test_live: what a listener asks for, who is told of what, and the pipe by which commits are heard. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

#include "arena_fixture.h"
#include "segment/feed.h"
#include "live/topics/live_index.h"
#include "live/live_horizon.h"
#include "live/topics/live_key.h"
#include "live/topics/live_question.h"
#include "segment/segment.h"
#include "segment/segment_open.h"

enum { MOST = 10, SLOTS = 1024 };

static struct live_question question;
static const char *wrong;

static enum fault ask(const char *query, const char *type, const char *body)
{
    const struct live_source source = {.query = bytes_of(query),
                                       .content_type = bytes_of(type),
                                       .body = bytes_of(body),
                                       .definitions_most = MOST,
                                       .definition_bytes_most = 2048,
                                       .records_most = 2};
    return live_question_read(arena, &source, &question, &wrong);
}

static bool is(struct bytes bytes, const char *text)
{
    return bytes_equal(bytes, bytes_of(text));
}

/* --- questions --- */

static void definitions_are_read(void **state UNUSED)
{
    assert_int_equal(ask("def=Person&def=Person%2Fa%2540b%2Fc&def=Person%2Fteam%40red%2540&last=x+y", "", ""),
                     FAULT_NONE);
    assert_int_equal(question.count, 3);
    assert_true(is(question.last, "x y"));
    const struct definition *class = &question.definitions[0], *document = &question.definitions[1],
                            *member = &question.definitions[2];
    assert_true(is(class->class, "Person") && !class->id.data && !class->collection.data);
    assert_true(is(document->class, "Person") && is(document->id, "a@b/c"));
    assert_true(is(document->text, "Person/a%40b/c"));
    assert_true(is(member->collection, "team") && is(member->value, "red@") && member->value_count == 1);
}

static void several_values_are_joined_as_the_database_joins_them(void **state UNUSED)
{
    assert_int_equal(ask("", "application/json; charset=utf-8", "{\"defs\":[\"P/place@Paris@rue%20X@\"]}"),
                     FAULT_NONE);
    assert_true(is(question.definitions[0].value, "5:Paris5:rue X0:"));
    assert_int_equal(question.definitions[0].value_count, 3);
}

static void bodies_and_queries_add_up_and_doubles_are_dropped(void **state UNUSED)
{
    assert_int_equal(
        ask("def=A", "application/json", "{\"defs\":[\"B\",\"A\"],\"last\":\"l\",\"admin\":\"k\"}"),
        FAULT_NONE);
    assert_int_equal(question.count, 2);
    assert_true(is(question.last, "l") && is(question.admin, "k"));
}

static void what_is_wrong_is_refused(void **state UNUSED)
{
    static const struct {
        const char *query, *type, *body;
        enum fault fault;
    } cases[] = {
        {"", "", "", FAULT_AARG},
        {"def", "", "", FAULT_AARG},
        {"def=a", "", "", FAULT_AARG},
        {"def=A&other=1", "", "", FAULT_AARG},
        {"def=A&admin=1", "", "", FAULT_AARG},
        {"def=A&last=1&last=2", "", "", FAULT_AARG},
        {"def=A%2", "", "", FAULT_AARG},
        {"def=A/%2500", "", "", FAULT_AARG},
        {"def=A/%25ff", "", "", FAULT_AARG},
        {"def=A/", "", "", FAULT_AARG},
        {"def=A/1c@x", "", "", FAULT_AARG},
        {"def=A/c@1@2@3@4@5", "", "", FAULT_AARG},
        {"", "text/plain", "{\"defs\":[\"A\"]}", FAULT_ATYPE},
        {"", "application/jsonx", "{\"defs\":[\"A\"]}", FAULT_ATYPE},
        {"", "application/json", "{\"defs\":\"A\"}", FAULT_AARG},
        {"", "application/json", "{\"defs\":[1]}", FAULT_AARG},
        {"", "application/json", "{\"defs\":[\"A\"],\"x\":1}", FAULT_AARG},
        {"", "application/json", "[\"A\"]", FAULT_AARG},
        {"", "application/json", "{\"defs\":[[[\"A\"]]]}", FAULT_AARG},
        {"", "application/json", "{", FAULT_AJSON},
        {"def=A&def=B&def=C&def=D&def=E&def=F&def=G&def=H&def=I&def=J&def=K", "", "", FAULT_ALIMIT},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        enum fault fault = ask(cases[i].query, cases[i].type, cases[i].body);
        if (fault != cases[i].fault)
            fail_msg("case %zu: %s", i, fault_code(fault));
    }
    assert_int_equal(question.count, 11);
}

/* --- ids of events --- */

static void ids_open_in_their_namespace_only(void **state UNUSED)
{
    const struct live_horizon known = {.life = 1, .horizon = INT64_MAX, .floor = 0};
    struct live_horizon read;
    const struct bytes secret = BYTES("a secret"), other = BYTES("another");
    struct bytes id = live_horizon_write_id(arena, secret, BYTES("lab"), &known);
    assert_true(live_horizon_read_id(arena, secret, BYTES("lab"), id, &read));
    assert_true(read.life == 1 && read.horizon == INT64_MAX && read.floor == 0);
    assert_false(live_horizon_read_id(arena, secret, BYTES("demo"), id, &read));
    assert_false(live_horizon_read_id(arena, other, BYTES("lab"), id, &read));
    for (size_t i = 0; i < id.size; i++)
        assert_false(live_horizon_read_id(arena, secret, BYTES("lab"), (struct bytes){id.data, i}, &read));
}

/* --- who is told --- */

static size_t tell(struct live_feed *feed, struct live_index *index, struct bytes key, int64_t version)
{
    size_t count = 0;
    live_index_match(index, key, version);
    while (live_index_take_matched(index))
        ;
    for (struct live_mark *mark; (mark = live_index_take_changed(feed)); count++)
        assert_int_equal(mark->version, version);
    return count;
}

static void those_who_want_it_are_told(void **state UNUSED)
{
    struct live_index *index = live_index_create();
    struct live_feed one, other;
    struct builder key = {0};
    assert_int_equal(ask("def=A&def=A/1&def=A/%2531&def=A/c@v", "", ""), FAULT_NONE);
    assert_int_equal(question.count, 3); /* of two ways to write one, the first */
    assert_true(is(question.definitions[1].text, "A/1"));
    live_index_add(index, &one, question.definitions, question.count);
    assert_int_equal(ask("def=A/1&def=B", "", ""), FAULT_NONE);
    live_index_add(index, &other, question.definitions, question.count);
    assert_true(live_index_has_members_of(index, BYTES("A")));
    assert_false(live_index_has_members_of(index, BYTES("B")));
    assert_int_equal(tell(&one, index, live_key_of_class(&key, BYTES("A")), 7), 1);
    assert_int_equal(tell(&one, index, live_key_of_document(&key, BYTES("A"), BYTES("1")), 8), 1);
    assert_int_equal(tell(&other, index, live_key_of_document(&key, BYTES("A"), BYTES("1")), 8), 1);
    while (live_index_take_changed(&one)) /* of the last one, too */
        ;
    assert_int_equal(tell(&one, index, live_key_of_member(&key, BYTES("A"), BYTES("c"), BYTES("v")), 9), 1);
    assert_int_equal(tell(&one, index, live_key_of_member(&key, BYTES("A"), BYTES("c"), BYTES("w")), 9), 0);
    live_index_match(index, live_key_of_class(&key, BYTES("B")), 3);
    live_index_match(index, live_key_of_class(&key, BYTES("B")), 5);
    live_index_match(index, live_key_of_class(&key, BYTES("B")), 4);
    assert_ptr_equal(live_index_take_matched(index), &other);
    assert_null(live_index_take_matched(index));
    assert_int_equal(live_index_take_changed(&other)->version, 5);
    assert_null(live_index_take_changed(&other));
    live_index_match_feed(index, &one);
    live_index_remove(index, &one); /* touched, and gone */
    assert_null(live_index_take_matched(index));
    assert_false(live_index_has_members_of(index, BYTES("A")));
    live_index_remove(index, &other);
    live_index_destroy(index);
    builder_free(&key);
}

static void records_are_named_beside_documents(void **state UNUSED)
{
    assert_int_equal(ask("def=A&def=record:a%2540b&def=records:&def=record:a%2540b&def=A/1", "", ""),
                     FAULT_ALIMIT); /* before it is known that two are one */
    assert_int_equal(question.record_count, 3);
    assert_int_equal(ask("def=A&def=records:&def=A/1&def=record:a%2540b", "", ""), FAULT_NONE);
    assert_true(question.count == 2 && question.record_count == 2);
    assert_true(question.records[0].kind == DEFINITION_OF_PREFIX && is(question.records[0].value, ""));
    assert_true(question.records[1].kind == DEFINITION_OF_RECORD && is(question.records[1].value, "a@b"));
    assert_true(is(question.records[1].text, "record:a%40b"));
    assert_int_equal(ask("def=record:a&def=record:%2561", "", ""), FAULT_NONE);
    assert_true(question.count == 0 && question.record_count == 1 &&
                is(question.records[0].text, "record:a"));
    assert_int_equal(ask("", "application/json", "{\"defs\":[\"A\",\"record:a\",\"record:\"]}"), FAULT_AARG);
    assert_true(question.wrong == 3 && strcmp(question.at, "/defs/2") == 0);
    assert_int_equal(ask("def=record:a&def=records:a@b", "", ""), FAULT_AARG);
    assert_int_equal(question.wrong, 2);
}

/* --- the pipe --- */

static struct segment *segment;
static char folder[64];

static int open_segment(void **state UNUSED)
{
    char path[128], problem[256];
    snprintf(folder, sizeof folder, "/tmp/stampd-test-live-XXXXXX");
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/segment", folder);
    return segment_open(&segment, path, SLOTS, 0, problem, sizeof problem) ? 0 : -1;
}

static int close_segment(void **state UNUSED)
{
    char path[128];
    segment_close(segment);
    snprintf(path, sizeof path, "%s/segment", folder);
    unlink(path);
    return rmdir(folder);
}

static void commits_are_heard(void **state UNUSED)
{
    char problem[256], id[255];
    struct subscriber *subscriber = feed_subscriber_open(segment, folder, problem, sizeof problem);
    struct publisher *publisher = feed_publisher_create(segment);
    struct subscriber_change changes[100];
    struct subscriber_news news;
    memset(id, 'x', sizeof id);
    for (size_t i = 0; i < COUNT_OF(changes); i++)
        changes[i] = (struct subscriber_change){BYTES("Class"), {id, i + 1}};
    assert_non_null(subscriber);
    feed_publisher_send(publisher, 3, 5, changes, COUNT_OF(changes)); /* nobody wants it */
    assert_false(feed_are_wanted(segment, 3));
    assert_false(feed_subscriber_next(subscriber, &news));
    feed_subscriber_want(subscriber, 3, true);
    assert_true(feed_are_wanted(segment, 3) && !feed_are_wanted(segment, 4));
    feed_publisher_send(publisher, 3, 5, changes, COUNT_OF(changes)); /* more than one message */
    feed_publisher_miss(publisher, 3);
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        assert_true(feed_subscriber_next(subscriber, &news));
        assert_true(news.ns == 3 && news.version == 5 && is(news.class, "Class"));
        assert_int_equal(news.id.size, i + 1);
    }
    assert_true(feed_subscriber_next(subscriber, &news) && !news.class.data);
    assert_false(feed_subscriber_next(subscriber, &news));
    assert_int_equal(feed_subscriber_missed(subscriber, 3), 1);
    while (feed_subscriber_missed(subscriber, 3) == 1) /* nobody reads: it fills, and is not waited for */
        feed_publisher_send(publisher, 3, 6, changes, COUNT_OF(changes));
    while (feed_subscriber_next(subscriber, &news))
        assert_int_equal(news.version, 6);
    feed_subscriber_close(subscriber);
    assert_false(feed_are_wanted(segment, 3));
    feed_publisher_destroy(publisher);
}

static void who_was_killed_is_not_told(void **state UNUSED)
{
    char problem[256];
    pid_t child = fork();
    if (child == 0) {
        struct subscriber *subscriber = feed_subscriber_open(segment, folder, problem, sizeof problem);
        feed_subscriber_want(subscriber, 3, true);
        _exit(0); /* without a farewell */
    }
    int status;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(feed_are_wanted(segment, 3));
    struct publisher *publisher = feed_publisher_create(segment);
    const struct subscriber_change change = {BYTES("A"), BYTES("1")};
    feed_publisher_send(publisher, 3, 1, &change, 1); /* writes to nobody */
    struct subscriber *subscriber = feed_subscriber_open(segment, folder, problem, sizeof problem);
    assert_non_null(subscriber);
    assert_false(feed_are_wanted(segment, 3));
    feed_subscriber_want(subscriber, 3, true);
    feed_publisher_send(publisher, 3, 2, &change, 1); /* by the new pipe */
    struct subscriber_news news;
    assert_true(feed_subscriber_next(subscriber, &news) && news.version == 2);
    feed_subscriber_close(subscriber);
    feed_publisher_destroy(publisher);
}

/* --- sessions --- */

static void sessions_that_listen_are_known(void **state UNUSED)
{
    char problem[256];
    struct subscriber *subscriber = feed_subscriber_open(segment, folder, problem, sizeof problem);
    struct bytes one = BYTES("one"), other = BYTES("other");
    assert_non_null(subscriber);
    assert_false(feed_session_listens(segment, 3, one));
    uint64_t first = feed_session_add(subscriber, 3, one), second = feed_session_add(subscriber, 3, one);
    assert_true(first && first == second);
    assert_true(feed_session_listens(segment, 3, one));
    assert_false(feed_session_listens(segment, 4, one) || feed_session_listens(segment, 3, other));
    feed_session_remove(subscriber, first);
    assert_true(feed_session_listens(segment, 3, one)); /* it has another connection */
    struct subscriber *beside = feed_subscriber_open(segment, folder, problem, sizeof problem);
    assert_true(feed_session_add(beside, 3, one));
    feed_session_remove(subscriber, second);
    assert_true(feed_session_listens(segment, 3, one)); /* to another process */
    feed_subscriber_close(beside);
    assert_false(feed_session_listens(segment, 3, one));
    assert_true(feed_session_add(subscriber, 3, other));
    feed_retire(segment, (uint32_t)getpid() + 1); /* somebody else */
    assert_true(feed_session_listens(segment, 3, other));
    feed_retire(segment, (uint32_t)getpid());
    assert_false(feed_session_listens(segment, 3, other));
    feed_subscriber_close(subscriber);
}

/* Few beginnings of chains, so that they are long, meet, and go around the end. */
static uint64_t colliding(uint32_t number)
{
    return ((uint64_t)(FEED_SESSIONS - 3 + number % 5) << 32) + 7 + number;
}

static void sessions_come_and_go(void **state UNUSED)
{
    enum { NAMES = 300, STEPS = 20000 };
    struct feed_sessions *sessions = calloc(1, sizeof *sessions);
    struct subscriber_counts *counts = calloc(1, sizeof *counts);
    unsigned expected[NAMES] = {0};
    uint32_t chance = 1;
    assert_true(sessions && counts);
    for (int step = 0; step < STEPS; step++) {
        chance = chance * 1664525 + 1013904223;
        uint32_t name = (chance >> 8) % NAMES;
        if (chance >> 31 || !expected[name]) {
            assert_true(feed_sessions_add(sessions, counts, colliding(name)));
            expected[name]++;
        } else {
            feed_sessions_remove(sessions, counts, colliding(name));
            expected[name]--;
        }
        assert_int_equal(feed_sessions_has(sessions, colliding(name)), expected[name] > 0);
    }
    for (uint32_t name = 0; name < NAMES; name++) {
        assert_int_equal(feed_sessions_has(sessions, colliding(name)), expected[name] > 0);
        while (expected[name]--)
            feed_sessions_remove(sessions, counts, colliding(name));
    }
    for (size_t i = 0; i < FEED_SESSIONS; i++) /* nothing is left behind */
        assert_int_equal(atomic_load(&sessions->keys[i]), 0);
    uint64_t more = FEED_SESSIONS;
    for (uint64_t key = 2; key < 2 + FEED_SESSIONS_MOST; key++)
        assert_true(feed_sessions_add(sessions, counts, key << 32));
    assert_false(feed_sessions_add(sessions, counts, more << 32)); /* full */
    assert_true(feed_sessions_add(sessions, counts, UINT64_C(2) << 32));
    assert_false(feed_sessions_has(sessions, more << 32));
    free(sessions);
    free(counts);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(definitions_are_read),
        cmocka_unit_test(several_values_are_joined_as_the_database_joins_them),
        cmocka_unit_test(bodies_and_queries_add_up_and_doubles_are_dropped),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(records_are_named_beside_documents),
        cmocka_unit_test(ids_open_in_their_namespace_only),
        cmocka_unit_test(those_who_want_it_are_told),
        cmocka_unit_test_setup_teardown(commits_are_heard, open_segment, close_segment),
        cmocka_unit_test_setup_teardown(who_was_killed_is_not_told, open_segment, close_segment),
        cmocka_unit_test_setup_teardown(sessions_that_listen_are_known, open_segment, close_segment),
        cmocka_unit_test(sessions_come_and_go),
    };
    return cmocka_run_group_tests(tests, arena_set_up, arena_tear_down);
}
