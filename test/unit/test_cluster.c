/* test_cluster: records on several hosts: outcomes, levels, joining, leaving, dying, and being cut off. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "cluster/cluster_private.h"
#include "cluster_world.h"

enum { HOSTS = 6, FAN = 2, TTL_MS = 20000, ENTRY = sizeof(struct cluster_entry) };

static const struct cluster_bounds wide = {1 << 20, 1024, 1 << 20};

static struct world *world;
static struct cluster_answer last;
static char last_content[64];
static bool has_answer;

static void heed(void *context UNUSED, uint64_t cookie UNUSED, const struct cluster_answer *answer)
{
    last = *answer;
    assert_true(answer->content.size < sizeof last_content);
    if (answer->content.size)
        memcpy(last_content, answer->content.data, answer->content.size);
    last.content.data = last_content;
    has_answer = true;
}

static void run_ms(int64_t ms)
{
    world_run(world, world_now(world) + ms * WORLD_MS);
}

static int set_up(void **state UNUSED)
{
    const struct world_settings settings = {.hosts_most = HOSTS,
                                            .depth = 3,
                                            .cluster = {.ttl_most_ms = TTL_MS,
                                                        .request_ms = 4000,
                                                        .silence_ms = 300,
                                                        .copies = 1,
                                                        .asks_most = 8,
                                                        .rounds_most = 8,
                                                        .sweep_entries = 16},
                                            .lease_ms = 2000,
                                            .lapse_ms = 3000,
                                            .beat_ms = 250,
                                            .seed = 1};
    world = world_create(&settings, heed, NULL);
    return 0;
}

static int tear_down(void **state UNUSED)
{
    world_destroy(world);
    return 0;
}

static void start(uint32_t from, uint32_t to, const struct cluster_bounds *bounds)
{
    for (uint32_t host = from; host < to; host++) {
        world_start(world, host, FAN, bounds);
        run_ms(1500);
    }
}

/* Asks until there is an answer, and returns its outcome. */
static enum cluster_outcome ask_at(uint32_t host, enum cluster_deed deed, unsigned level, const char *key,
                                   const char *content)
{
    struct cluster_request request = {
        .deed = deed, .level = level, .key = bytes_of(key), .content = bytes_of(content), .ttl_ms = TTL_MS};
    has_answer = false;
    assert_true(world_ask(world, host, &request, 1));
    for (int i = 0; i < 1000 && !has_answer; i++)
        run_ms(10);
    assert_true(has_answer);
    return last.outcome;
}

static enum cluster_outcome ask(uint32_t host, enum cluster_deed deed, const char *key, const char *content)
{
    return ask_at(host, deed, 3, key, content);
}

static uint64_t records_at(uint32_t host)
{
    struct cluster_report report;
    cluster_report(world_host(world, host), &report);
    return report.records;
}

static struct cluster_entry *entry_at(uint32_t host, const char *key)
{
    struct cluster_host *cluster = world_host(world, host);
    return cluster_table_find(cluster->table, 3, bytes_of(key), cluster_digest(cluster, 3, bytes_of(key)), 0);
}

/* The host that serves this key. */
static uint32_t server_of(const char *key)
{
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct cluster_entry *entry = world_is_alive(world, host) ? entry_at(host, key) : NULL;
        if (entry && entry->kind == CLUSTER_RECORD && entry->server == 0)
            return host;
    }
    fail_msg("nobody serves %s", key);
    return 0;
}

static void assert_content(const char *content)
{
    assert_int_equal(last.content.size, strlen(content));
    assert_memory_equal(last.content.data, content, strlen(content));
}

static void test_each_outcome(void **state UNUSED)
{
    start(0, 3, &wide);
    assert_int_equal(ask(0, CLUSTER_READ, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask(0, CLUSTER_CHANGE, "a", "x"), CLUSTER_NOT_FOUND);
    assert_int_equal(ask(1, CLUSTER_TOUCH, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask(2, CLUSTER_REMOVE, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    assert_int_equal(last.copies, 1);
    assert_int_equal(ask(1, CLUSTER_INSERT, "a", "two"), CLUSTER_NOT_FREE);
    assert_content("one");
    assert_int_equal(ask(2, CLUSTER_CHANGE, "a", "three"), CLUSTER_OK);
    assert_int_equal(ask(1, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("three");
    assert_true(last.is_sure);
    assert_true(last.ttl_ms > TTL_MS - 1000 && last.ttl_ms <= TTL_MS);
    assert_int_equal(ask(1, CLUSTER_REMOVE, "a", NULL), CLUSTER_OK);
    assert_int_equal(ask(0, CLUSTER_READ, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "four"), CLUSTER_OK);
}

static void test_expected_stamp(void **state UNUSED)
{
    start(0, 2, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    struct cluster_request request = {.deed = CLUSTER_CHANGE,
                                      .level = 3,
                                      .key = BYTES("a"),
                                      .content = BYTES("two"),
                                      .ttl_ms = TTL_MS,
                                      .stamp = last.stamp};
    assert_true(world_ask(world, 1, &request, 1));
    run_ms(500);
    assert_int_equal(last.outcome, CLUSTER_OK);
    assert_true(world_ask(world, 1, &request, 1));
    run_ms(500);
    assert_int_equal(last.outcome, CLUSTER_OTHER_STAMP);
    assert_content("two");
}

static void test_bounds_of_requests(void **state UNUSED)
{
    start(0, 1, &wide);
    char key[CLUSTER_KEY_MOST + 1];
    memset(key, 'k', sizeof key);
    struct cluster_request request = {
        .deed = CLUSTER_READ, .level = 3, .key = {key, sizeof key}, .ttl_ms = TTL_MS};
    assert_false(world_ask(world, 0, &request, 1));
    request.key.size--;
    request.level = 4;
    assert_false(world_ask(world, 0, &request, 1));
    request.level = 0;
    assert_false(world_ask(world, 0, &request, 1));
    request.level = 3;
    for (int i = 0; i < 8; i++)
        assert_true(world_ask(world, 0, &request, 1));
    assert_false(world_ask(world, 0, &request, 1));
}

static void test_nobody_takes_part(void **state UNUSED)
{
    start(0, 2, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    world_leave(world, 0);
    run_ms(15000);
    assert_false(world_is_alive(world, 0)); /* it has passed on what it had */
    assert_int_equal(ask(1, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    world_leave(world, 1); /* it cannot: nobody takes it */
    run_ms(2000);
    assert_int_equal(ask(1, CLUSTER_READ, "a", NULL), CLUSTER_NO_PARTICIPANTS);
    assert_int_equal(records_at(1), 1);
}

/* Its copy serves, and a second death loses nothing either. */
static void test_deaths(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    for (int deaths = 0; deaths < 3; deaths++) {
        uint32_t server = server_of("a"), other = (server + 1) % 4;
        while (!world_is_alive(world, other))
            other = (other + 1) % 4;
        world_kill(world, server);
        assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
        assert_false(last.is_sure); /* the dead one may be alive, and have changed it */
        enum cluster_outcome outcome = ask(other, CLUSTER_READ, "b", NULL);
        assert_true(outcome == CLUSTER_UNKNOWN || outcome == CLUSTER_NOT_FOUND);
        run_ms(5000);
        assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
        assert_true(last.is_sure);
    }
}

static uint32_t copy_of(const char *key)
{
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct cluster_entry *entry = world_is_alive(world, host) ? entry_at(host, key) : NULL;
        if (entry && entry->kind == CLUSTER_RECORD && entry->server != 0)
            return host;
    }
    fail_msg("there is no copy of %s", key);
    return 0;
}

/* For so long this host can pass nothing on to others but the one. */
static void hold_back(uint32_t host, uint32_t but, int64_t ms)
{
    for (uint32_t other = 0; other < 4; other++)
        if (other != but)
            world_cut(world, host, other, world_now(world) + ms * WORLD_MS);
}

/* A host that stays. */
static uint32_t third(uint32_t one, uint32_t other)
{
    uint32_t host = 0;
    while (host == one || host == other)
        host++;
    return host;
}

/* All that have the record leave at once: nobody finds it absent before they have passed it on. */
static void test_leave_together(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), copy = copy_of("a"), other = third(server, copy);
    world_leave(world, server);
    world_leave(world, copy);
    hold_back(server, server, 3000);
    hold_back(copy, copy, 3000);
    run_ms(500);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_UNKNOWN);
    assert_int_equal(ask(other, CLUSTER_INSERT, "a", "two"), CLUSTER_UNKNOWN);
    run_ms(8000);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("one");
    assert_int_equal(ask(other, CLUSTER_READ, "b", NULL), CLUSTER_NOT_FOUND);
}

/* A host that leaves keeps what it has until the others have passed on what they have, too: the one that
 * serves the record may die before it has. */
static void test_leave_before_a_death(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), copy = copy_of("a"), other = third(server, copy);
    world_leave(world, copy);
    hold_back(server, copy, 13000);
    run_ms(12000);
    world_kill(world, server);
    run_ms(5000);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("one");
}

/* A host that leaves serves nothing from then on: the next one does, and passes on what it has. */
static void test_leave_slowly(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), copy = copy_of("a"), other = third(server, copy);
    world_leave(world, server);
    hold_back(server, server, 15000);
    run_ms(2000);
    assert_int_equal(entry_at(copy, "a")->server, 0);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_int_equal(ask(other, CLUSTER_CHANGE, "a", "two"), CLUSTER_OK);
    world_kill(world, copy);
    run_ms(4000);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("two");
}

/* This host gets the record as a copy that it is about to drop, since others have it: changes are not sent to
 * it any more. */
static void leave_copy(uint32_t host, uint32_t server)
{
    const struct cluster_entry *entry = entry_at(server, "a");
    struct cluster_host *cluster = world_host(world, host);
    struct cluster_entry *copy =
        cluster_table_store(cluster->table, 3, BYTES("a"), entry->digest, cluster_table_content(entry),
                            cluster->time.now_ms + TTL_MS - 2000);
    copy->stamp = entry->stamp;
    copy->server = world_host(world, server)->number;
    copy->wait_ms = cluster->time.now_ms + TTL_MS;
}

/* A host that has a removal, and cannot know whether there is a later record, does not let a farther one with
 * an older copy serve that. */
static void test_older_copy_farther_away(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), copy = copy_of("a"), other = third(server, copy);
    leave_copy(other, server);
    entry_at(other, "a")->server = 0; /* as if that had left */
    assert_int_equal(ask(0, CLUSTER_REMOVE, "a", NULL), CLUSTER_OK);
    for (uint32_t host = 0; host < 4; host++)
        world_host(world, host)->doubt_until_ms = INT64_MAX;
    assert_int_equal(ask(0, CLUSTER_READ, "a", NULL), CLUSTER_UNKNOWN);
    assert_int_equal(ask(0, CLUSTER_CHANGE, "a", "two"), CLUSTER_UNKNOWN);
}

/* A host that starts again knows nothing: nobody is told that the key is free. */
static void test_joins(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), other = (server + 1) % 4;
    world_kill(world, server);
    world_start(world, server, FAN, &wide);
    for (int i = 0; i < 40; i++) {
        enum cluster_outcome outcome = ask(other, CLUSTER_INSERT, "a", "two");
        assert_true(outcome == CLUSTER_NOT_FREE || outcome == CLUSTER_UNKNOWN);
        run_ms(50);
    }
    run_ms(3000);
    struct cluster_entry *entry = entry_at(server, "a");
    assert_true(entry && entry->kind == CLUSTER_RECORD && entry->server == 0);
    assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("one");
}

/* A host that has just joined takes no change that was made past silent hosts for the last one. */
static void test_joins_one_side(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), copy = copy_of("a");
    struct cluster_host *joined = world_host(world, server);
    joined->is_settled = false; /* as if it had just joined, and had been given nothing yet */
    cluster_table_remove(joined->table, entry_at(server, "a"));
    struct cluster_host *alone = world_host(world, copy);
    struct cluster_message question = {.kind = CLUSTER_ASK,
                                       .from = alone->number,
                                       .to = alone->number,
                                       .version = cluster_map_version(alone->map),
                                       .level = 3,
                                       .key = BYTES("a"),
                                       .content = BYTES("alone"),
                                       .deed = CLUSTER_CHANGE,
                                       .ttl_ms = TTL_MS,
                                       .end_ms = alone->time.now_ms + 1000,
                                       .silent = {joined->number},
                                       .silent_count = 1};
    cluster_receive(alone, &question, alone->time);
    run_ms(10);
    struct cluster_entry *entry = entry_at(server, "a");
    assert_true(entry && entry->kind == CLUSTER_RECORD && entry->is_kept);
}

static enum cluster_outcome ask_for(uint32_t host, enum cluster_deed deed, const char *content,
                                    int64_t ttl_ms)
{
    struct cluster_request request = {
        .deed = deed, .level = 3, .key = BYTES("a"), .content = bytes_of(content), .ttl_ms = ttl_ms};
    has_answer = false;
    assert_true(world_ask(world, host, &request, 1));
    run_ms(500);
    assert_true(has_answer);
    return last.outcome;
}

/* A record that ended early does not come back from a copy of an earlier change, which ends later. */
static void test_ends_before_a_copy(void **state UNUSED)
{
    for (int is_removed = 0; is_removed < 2; is_removed++) {
        start(0, 4, &wide);
        assert_int_equal(ask_for(0, CLUSTER_INSERT, "one", TTL_MS), CLUSTER_OK);
        uint32_t server = server_of("a"), other = third(server, copy_of("a"));
        leave_copy(other, server);
        if (is_removed)
            assert_int_equal(ask_for(other, CLUSTER_REMOVE, NULL, 0), CLUSTER_OK);
        assert_int_equal(ask_for(other, is_removed ? CLUSTER_INSERT : CLUSTER_CHANGE, "two", 1000),
                         CLUSTER_OK);
        run_ms(1000);
        assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_NOT_FOUND);
        world_leave(world, server); /* so the copy is passed on */
        run_ms(5000);
        assert_int_equal(ask(other, CLUSTER_READ, "a", NULL), CLUSTER_NOT_FOUND);
        assert_int_equal(ask(other, CLUSTER_INSERT, "a", "three"), CLUSTER_OK);
        tear_down(NULL);
        set_up(NULL);
    }
}

static void test_ends(void **state UNUSED)
{
    start(0, 3, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    run_ms(TTL_MS / 2);
    assert_int_equal(ask(0, CLUSTER_TOUCH, "a", NULL), CLUSTER_OK);
    run_ms(TTL_MS - 1000);
    assert_int_equal(ask(1, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    run_ms(1000);
    assert_int_equal(ask(1, CLUSTER_READ, "a", NULL), CLUSTER_NOT_FOUND);
    run_ms(100);
    for (uint32_t host = 0; host < 3; host++)
        assert_int_equal(records_at(host), 0);
}

/* A full host passes on; all are full: OUT_OF_MEMORY; nothing is dropped. */
static void test_full(void **state UNUSED)
{
    const struct cluster_bounds narrow = {4 * (ENTRY + 16), 64, 1 << 16};
    start(0, 3, &narrow);
    unsigned stored = 0, refused = 0;
    char key[16];
    for (unsigned i = 0; i < 16; i++) {
        snprintf(key, sizeof key, "key %u", i);
        enum cluster_outcome outcome = ask(i % 3, CLUSTER_INSERT, key, "one");
        stored += outcome == CLUSTER_OK;
        refused += outcome == CLUSTER_OUT_OF_MEMORY;
    }
    assert_int_equal(stored + refused, 16);
    assert_true(stored >= 6 &&
                refused > 0); /* twelve places: the record and one copy each, while there is room */
    unsigned found = 0;
    for (unsigned i = 0; i < 16; i++) {
        snprintf(key, sizeof key, "key %u", i);
        enum cluster_outcome outcome = ask(i % 3, CLUSTER_READ, key, NULL);
        assert_true(outcome == CLUSTER_OK || outcome == CLUSTER_NOT_FOUND);
        found += outcome == CLUSTER_OK;
    }
    assert_int_equal(found, stored);
}

static struct bytes numbered(char name[16], unsigned number)
{
    snprintf(name, 16, "%u", number);
    return bytes_of(name);
}

/* What a host that leaves can pass on to nobody, since all are full, is not said to be absent, and goes to
 * the first host that has room. */
static void test_leave_full_hosts(void **state UNUSED)
{
    const struct cluster_bounds narrow = {ENTRY, 64, 1 << 16}; /* no record has room */
    start(0, 1, &wide);
    start(1, 3, &narrow);
    char key[16];
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(ask(0, CLUSTER_INSERT, numbered(key, i).data, "one"), CLUSTER_OK);
    world_leave(world, 0);
    run_ms(3000);
    assert_true(world_is_alive(world, 0));
    assert_int_equal(ask(1, CLUSTER_READ, key, NULL), CLUSTER_UNKNOWN);
    start(3, 4, &wide);
    run_ms(2000);
    for (unsigned i = 0; i < 8; i++)
        assert_int_equal(ask(1, CLUSTER_READ, numbered(key, i).data, NULL), CLUSTER_OK);
}

/* In another site the key has another value, or none. */
static void test_levels(void **state UNUSED)
{
    start(0, 6, &wide); /* sites 0 to 3 and 4 to 5; racks of two */
    assert_int_equal(ask_at(0, CLUSTER_INSERT, 2, "a", "here"), CLUSTER_OK);
    assert_int_equal(ask_at(3, CLUSTER_READ, 2, "a", NULL), CLUSTER_OK);
    assert_int_equal(ask_at(4, CLUSTER_READ, 2, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask_at(5, CLUSTER_INSERT, 2, "a", "there"), CLUSTER_OK);
    assert_int_equal(ask_at(1, CLUSTER_READ, 2, "a", NULL), CLUSTER_OK);
    assert_content("here");
    assert_int_equal(ask_at(1, CLUSTER_READ, 3, "a", NULL), CLUSTER_NOT_FOUND);
    assert_int_equal(ask_at(1, CLUSTER_READ, 1, "a", NULL), CLUSTER_NOT_FOUND);
}

/* Who is cut off from z stops saying what is absent, and what it changed alone never wins. */
static void test_partition(void **state UNUSED)
{
    start(0, 4, &wide);
    assert_int_equal(ask(0, CLUSTER_INSERT, "a", "one"), CLUSTER_OK);
    uint32_t server = server_of("a"), other = (server + 1) % 4;
    int64_t until_us = world_now(world) + 12000 * WORLD_MS;
    for (uint32_t host = 0; host < 4; host++) {
        world_cut(world, server, host, until_us);
        world_cut(world, host, server, until_us);
    }
    world_cut(world, server, WORLD_Z, until_us);
    world_cut(world, WORLD_Z, server, until_us);
    run_ms(5000);
    world_step_wall(world, server, INT64_C(3600) * 1000 * WORLD_MS);
    assert_int_equal(ask(server, CLUSTER_CHANGE, "a", "alone"), CLUSTER_UNKNOWN);
    assert_int_equal(ask(server, CLUSTER_INSERT, "b", "alone"), CLUSTER_UNKNOWN);
    assert_int_equal(ask(other, CLUSTER_CHANGE, "a", "together"), CLUSTER_OK);
    assert_int_equal(ask(other, CLUSTER_INSERT, "b", "together"), CLUSTER_OK);
    run_ms(12000);
    assert_int_equal(ask(server, CLUSTER_READ, "a", NULL), CLUSTER_OK);
    assert_content("together");
    assert_int_equal(ask(server, CLUSTER_READ, "b", NULL), CLUSTER_OK);
    assert_content("together");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_each_outcome, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_expected_stamp, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_bounds_of_requests, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_nobody_takes_part, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_deaths, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leave_together, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leave_before_a_death, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leave_slowly, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_older_copy_farther_away, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_joins, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_joins_one_side, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ends, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_ends_before_a_copy, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_full, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_leave_full_hosts, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_levels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_partition, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
