/* test_cluster_share: what namespaces and callers may have of the memory of hosts, and of their questions. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>

#include "cluster/cluster_private.h"
#include "cluster_world.h"

enum { HOSTS = 3, FAN = 2, TTL_MS = 20000 };

static struct world *world;
static enum cluster_outcome last;
static bool has_answer;

static void heed(void *context UNUSED, uint64_t cookie UNUSED, const struct cluster_answer *answer)
{
    last = answer->outcome;
    has_answer = true;
}

static void run_ms(int64_t ms)
{
    world_run(world, world_now(world) + ms * WORLD_MS);
}

/* Keys as "a:name", of two namespaces. */
static size_t space_of(struct bytes key)
{
    return key.size < 2 ? key.size : 2;
}

static int set_up(void **state UNUSED)
{
    const struct world_settings settings = {.hosts_most = HOSTS,
                                            .depth = 3,
                                            .cluster = {.ttl_most_ms = TTL_MS,
                                                        .request_ms = 4000,
                                                        .silence_ms = 300,
                                                        .copies = 1,
                                                        .space = space_of,
                                                        .limits = {.space_records = 3},
                                                        .asks_bytes = 20,
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

static void start(uint32_t from, uint32_t to)
{
    static const struct cluster_bounds wide = {1 << 20, 1024, 1 << 20};
    for (uint32_t host = from; host < to; host++) {
        world_start(world, host, FAN, &wide);
        run_ms(1500);
    }
}

static enum cluster_outcome ask_for(uint32_t host, const struct cluster_request *request)
{
    has_answer = false;
    assert_true(world_ask(world, host, request, 1));
    for (int i = 0; i < 1000 && !has_answer; i++)
        run_ms(10);
    assert_true(has_answer);
    return last;
}

static enum cluster_outcome ask(uint32_t host, enum cluster_deed deed, const char *key, const char *content)
{
    return ask_for(
        host,
        &(struct cluster_request){
            .deed = deed, .level = 3, .key = bytes_of(key), .content = bytes_of(content), .ttl_ms = TTL_MS});
}

/* The host that serves this key. */
static uint32_t server_of(const char *key)
{
    for (uint32_t host = 0; host < HOSTS; host++) {
        struct cluster_host *cluster = world_host(world, host);
        struct cluster_entry *entry = cluster
                                          ? cluster_table_find(cluster->table, 3, bytes_of(key),
                                                               cluster_digest(cluster, 3, bytes_of(key)), 0)
                                          : NULL;
        if (entry && entry->kind == CLUSTER_RECORD && entry->server == 0)
            return host;
    }
    fail_msg("nobody serves %s", key);
    return 0;
}

/* A namespace that has what it may is refused, and no other one; what was refused is free, and all know it.
 */
static void test_share_of_namespace(void **state UNUSED)
{
    char key[16];
    start(0, 3);
    unsigned stored = 0, refused = 0;
    for (unsigned i = 0; i < 40; i++) {
        snprintf(key, sizeof key, "a:%u", i);
        enum cluster_outcome outcome = ask(i % 3, CLUSTER_INSERT, key, "one");
        stored += outcome == CLUSTER_OK;
        refused += outcome == CLUSTER_OUT_OF_MEMORY;
        if (outcome == CLUSTER_OUT_OF_MEMORY)
            assert_int_equal(ask((i + 1) % 3, CLUSTER_READ, key, NULL), CLUSTER_NOT_FOUND);
    }
    assert_int_equal(stored + refused, 40);
    assert_true(stored >= 3 && stored <= 3 * 3);
    for (uint32_t host = 0; host < 3; host++) {
        struct cluster_report report;
        cluster_report(world_host(world, host), &report);
        assert_true(report.is_exhaustive && !report.is_short && report.doubtful == 0);
    }
    assert_int_equal(ask(0, CLUSTER_INSERT, "b:1", "one"), CLUSTER_OK);
    assert_int_equal(ask(0, CLUSTER_CHANGE, "b:1", "two"), CLUSTER_OK);
    for (unsigned i = 0; i < 40; i++) { /* a removal takes the place of its record, and gives it back */
        snprintf(key, sizeof key, "a:%u", i);
        if (ask(0, CLUSTER_REMOVE, key, NULL) == CLUSTER_OK)
            assert_int_equal(ask(1, CLUSTER_INSERT, key, "two"), CLUSTER_OK);
    }
}

/* The same of a caller; a copy counts for it, too, when it is served. */
static void test_share_of_caller(void **state UNUSED)
{
    struct cluster_request request = {.deed = CLUSTER_INSERT,
                                      .level = 3,
                                      .key = BYTES("a:1"),
                                      .content = BYTES("one"),
                                      .ttl_ms = TTL_MS,
                                      .payer = {0, 7, 8},
                                      .limits = {.caller_records = 1}};
    start(0, 2);
    for (int i = 0; i < 5; i++) {
        static const struct {
            struct bytes key;
            uint64_t caller;
            enum cluster_outcome outcome;
        } steps[] = {{BYTES("a:1"), 8, CLUSTER_OK},
                     {BYTES("a:2"), 8, CLUSTER_OUT_OF_SHARE},
                     {BYTES("a:2"), 9, CLUSTER_OK},
                     {BYTES("a:3"), 9, CLUSTER_OUT_OF_SHARE},
                     {BYTES("b:1"), 9, CLUSTER_OK}}; /* of another namespace: another share */
        if (i == 3)
            world_kill(world, server_of("a:2")); /* the other host has both */
        if (i == 3)
            run_ms(6000);
        request.key = steps[i].key;
        request.payer.caller = steps[i].caller;
        uint32_t host = world_is_alive(world, 0) ? 0 : 1;
        assert_int_equal(ask_for(host, &request), steps[i].outcome);
    }
}

/* A namespace has half of the questions, and of their bytes. */
static void test_share_of_questions(void **state UNUSED)
{
    start(0, 1);
    struct cluster_request request = {
        .deed = CLUSTER_READ, .level = 3, .key = BYTES("a:1"), .ttl_ms = TTL_MS};
    for (unsigned i = 0; i < 5; i++)
        assert_int_equal(world_ask(world, 0, &request, i), i < 3); /* nine bytes of ten */
    request.key = BYTES("b:2");
    assert_true(world_ask(world, 0, &request, 9));
    run_ms(10);
    request.key = BYTES("a:and all the bytes that there are"); /* one is always taken */
    assert_true(world_ask(world, 0, &request, 10));
    assert_false(world_ask(world, 0, &request, 11));
    run_ms(10);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_share_of_namespace, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_share_of_caller, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_share_of_questions, set_up, tear_down),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
