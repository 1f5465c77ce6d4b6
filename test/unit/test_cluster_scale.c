/* test_cluster_scale: what an operation, a join and a death cost in messages, and a record in memory, in
 * clusters of several sizes.  STAMPD_CLUSTER_HOSTS and STAMPD_CLUSTER_KEYS (of each host) make another size.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cluster/cluster_private.h"
#include "cluster_world.h"

enum { COPIES = 1, TTL_MS = 3600000, CONTENT = 100 };

static const struct cluster_bounds wide = {1 << 30, 4096, 1 << 20};

struct crowd {
    struct world *world;
    uint32_t hosts, fan;
    uint64_t open, outcomes[CLUSTER_OUTCOMES], asked;
};

static void heed(void *context, uint64_t cookie UNUSED, const struct cluster_answer *answer)
{
    struct crowd *crowd = context;
    crowd->open--;
    crowd->outcomes[answer->outcome]++;
    crowd->asked += answer->hosts;
}

static void run_ms(struct crowd *crowd, int64_t ms)
{
    world_run(crowd->world, world_now(crowd->world) + ms * WORLD_MS);
}

static uint64_t messages(const struct crowd *crowd)
{
    struct world_counts counts;
    world_count(crowd->world, &counts);
    return counts.messages[CLUSTER_ASK] + counts.messages[CLUSTER_ANSWER] + counts.messages[CLUSTER_COPY] +
           counts.messages[CLUSTER_COPIED];
}

/* Asks for keys by number, from hosts at random; returns how many messages that took. */
static uint64_t ask_all(struct crowd *crowd, enum cluster_deed deed, uint64_t keys,
                        enum cluster_outcome wanted)
{
    uint64_t before = messages(crowd), had = crowd->outcomes[wanted];
    static const char content[CONTENT];
    for (uint64_t number = 0; number < keys; number++) {
        char key[32];
        snprintf(key, sizeof key, "key %llu", (unsigned long long)number);
        struct cluster_request request = {.deed = deed,
                                          .level = 3,
                                          .key = bytes_of(key),
                                          .content = {content, deed == CLUSTER_READ ? 0 : CONTENT},
                                          .ttl_ms = TTL_MS};
        uint32_t host = world_random(crowd->world, crowd->hosts - 1);
        crowd->open += world_ask(crowd->world, host, &request, number);
        if (number % crowd->hosts == crowd->hosts - 1)
            run_ms(crowd, 10);
    }
    for (int i = 0; i < 1000 && crowd->open > 0; i++)
        run_ms(crowd, 10);
    assert_int_equal(crowd->open, 0);
    assert_int_equal(crowd->outcomes[wanted] - had, keys);
    return messages(crowd) - before;
}

static uint64_t records(const struct crowd *crowd, size_t *bytes_r)
{
    uint64_t count = 0;
    *bytes_r = 0;
    for (uint32_t host = 0; host < crowd->hosts; host++) {
        struct cluster_report report;
        if (!world_is_alive(crowd->world, host))
            continue;
        cluster_report(world_host(crowd->world, host), &report);
        count += report.records;
        *bytes_r += report.record_bytes;
    }
    return count;
}

static void measure(uint32_t hosts, uint64_t keys_of_host)
{
    uint32_t fan = 2;
    while (fan * fan * fan < hosts)
        fan++;
    struct crowd crowd = {.hosts = hosts, .fan = fan};
    const struct world_settings settings = {.hosts_most = hosts,
                                            .depth = 3,
                                            .cluster = {.ttl_most_ms = TTL_MS,
                                                        .request_ms = 8000,
                                                        .silence_ms = 500,
                                                        .copies = COPIES,
                                                        .asks_most = 32,
                                                        .rounds_most = 16,
                                                        .sweep_entries = 256},
                                            .lease_ms = 6000,
                                            .lapse_ms = 10000,
                                            .beat_ms = 1000,
                                            .seed = 1};
    crowd.world = world_create(&settings, heed, &crowd);
    world_start_all(crowd.world, hosts - 1, fan, &wide);
    run_ms(&crowd, 4000);
    uint64_t keys = keys_of_host * hosts, sent[5];
    size_t bytes;
    sent[0] = ask_all(&crowd, CLUSTER_INSERT, keys, CLUSTER_OK);
    sent[1] = ask_all(&crowd, CLUSTER_READ, keys, CLUSTER_OK);
    sent[2] = ask_all(&crowd, CLUSTER_TOUCH, keys, CLUSTER_OK);
    uint64_t held = records(&crowd, &bytes);
    assert_true(held == (COPIES + 1) * keys);
    uint64_t before = messages(&crowd);
    world_start(crowd.world, hosts - 1, fan, &wide);
    run_ms(&crowd, 10000);
    sent[3] = messages(&crowd) - before;
    struct cluster_report report;
    cluster_report(world_host(crowd.world, hosts - 1), &report);
    assert_true(report.is_exhaustive);
    before = messages(&crowd);
    world_kill(crowd.world, 0);
    run_ms(&crowd, 25000);
    sent[4] = messages(&crowd) - before;
    assert_true(records(&crowd, &bytes) >= (COPIES + 1) * keys);
    print_message("| %u | %llu | %.2f | %.2f | %.2f | %llu of %llu | %llu | %zu |\n", hosts,
                  (unsigned long long)keys, (double)sent[0] / (double)keys, (double)sent[1] / (double)keys,
                  (double)sent[2] / (double)keys, (unsigned long long)sent[3],
                  (unsigned long long)report.records, (unsigned long long)sent[4],
                  bytes / (size_t)records(&crowd, &bytes));
    /* It moves what one host holds, and no more, however many hosts there are. */
    assert_true(sent[3] < 8 * (COPIES + 1) * keys_of_host * 4);
    world_destroy(crowd.world);
}

static void test_sizes(void **state UNUSED)
{
    print_message("| hosts | keys | messages of an insertion | of a read | of a touch | of a join, and "
                  "records moved | of a death | bytes of a record |\n");
    const char *hosts = getenv("STAMPD_CLUSTER_HOSTS"), *keys = getenv("STAMPD_CLUSTER_KEYS");
    if (hosts) {
        measure((uint32_t)strtoul(hosts, NULL, 10), keys ? strtoul(keys, NULL, 10) : 100);
        return;
    }
    measure(10, 200);
    measure(100, 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_sizes)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
