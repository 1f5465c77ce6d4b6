/* test_cluster_faults: hosts that join, leave, die, stop, are cut off, are slow, are full, and whose clocks
 * step, while clients change and read a few keys; each answer is checked against all that was asked before.
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

enum {
    HOSTS = 7,
    KEYS = 24,
    DEEDS_MOST = 96, /* of a key that are remembered */
    SECONDS = 240,
    REQUEST_MS = 4000,
    SILENCE_MS = 300,
    TTL_MOST_MS = 20000,
    EARLY_MS = 3000, /* a record may end so much earlier: by the delays of its way through several hosts */
    LATE_MS = 2500   /* a change whose outcome is unknown happens so long after its question's end at most */
};

/* A question and its answer. */
struct deed {
    uint64_t value;             /* of INSERT and CHANGE: no other has it */
    int64_t began_ms, ended_ms; /* ended_ms 0: not yet */
    int64_t ttl_ms;
    enum cluster_deed deed;
    enum cluster_outcome outcome;
    struct cluster_stamp stamp;
    bool is_weak; /* on fewer hosts than there shall be copies: others had no room */
    bool is_lost; /* no host had it any more */
};

struct key {
    struct deed deeds[DEEDS_MOST];
    unsigned next;
};

struct campaign {
    struct world *world;
    struct key keys[KEYS];
    uint64_t last_value;
    uint64_t outcomes[CLUSTER_DEEDS][CLUSTER_OUTCOMES];
    uint64_t lost, weak, faults;
    unsigned seed, copies, problems;
    bool is_harsh; /* three of eight faults are hosts that leave */
};

static int64_t now_ms(const struct campaign *campaign)
{
    return world_now(campaign->world) / WORLD_MS;
}

static void problem(struct campaign *campaign, unsigned key, const struct deed *deed, const char *what,
                    const struct deed *other)
{
    campaign->problems++;
    print_error("seed %u, key %u, %lld ms: %s (deed %d, began %lld, outcome %d; against deed %d, %lld to "
                "%lld, ttl %lld)\n",
                campaign->seed, key, (long long)now_ms(campaign), what, deed->deed, (long long)deed->began_ms,
                deed->outcome, other ? (int)other->deed : -1, other ? (long long)other->began_ms : 0,
                other ? (long long)other->ended_ms : 0, other ? (long long)other->ttl_ms : 0);
}

static bool is_change(const struct deed *deed)
{
    return deed->deed == CLUSTER_INSERT || deed->deed == CLUSTER_CHANGE || deed->deed == CLUSTER_TOUCH;
}

/* May it have happened, or happen yet? */
static bool is_possible(const struct deed *deed)
{
    return deed->began_ms != 0 && deed->deed != CLUSTER_READ &&
           (deed->ended_ms == 0 || deed->outcome == CLUSTER_OK || deed->outcome == CLUSTER_UNKNOWN);
}

/* The latest time at which it happened, or will. */
static int64_t latest(const struct deed *deed)
{
    bool is_known = deed->ended_ms != 0 && deed->outcome != CLUSTER_UNKNOWN;
    return is_known ? deed->ended_ms : deed->began_ms + REQUEST_MS + LATE_MS;
}

/* The deed by which the key had a record from `from_ms` to `to_ms`, whatever else happened; NULL: it may not
 * have. */
static const struct deed *proof_of_life(const struct key *key, int64_t from_ms, int64_t to_ms)
{
    for (unsigned i = 0; i < DEEDS_MOST; i++) {
        const struct deed *deed = &key->deeds[i];
        if (!is_change(deed) || deed->ended_ms == 0 || deed->outcome != CLUSTER_OK || deed->is_lost ||
            deed->is_weak || deed->ended_ms >= from_ms || deed->began_ms + deed->ttl_ms - EARLY_MS <= to_ms)
            continue;
        bool is_certain = true;
        for (unsigned j = 0; j < DEEDS_MOST && is_certain; j++) {
            const struct deed *other = &key->deeds[j];
            /* In the same millisecond: either may have been first. */
            if (j == i || !is_possible(other) || other->began_ms > to_ms)
                continue;
            /* What is unknown may have stayed at a host that was cut off, and come back with it. */
            int64_t until = other->ended_ms != 0 && other->outcome == CLUSTER_OK ? latest(other) : INT64_MAX;
            if (until < deed->began_ms)
                continue;
            is_certain = is_change(other) && other->began_ms + other->ttl_ms - EARLY_MS > to_ms;
        }
        if (is_certain)
            return deed;
    }
    return NULL;
}

/* No record of this key can have been there at this time or later. */
static bool is_over(const struct key *key, int64_t at_ms)
{
    for (unsigned i = 0; i < DEEDS_MOST; i++) {
        const struct deed *deed = &key->deeds[i];
        if (is_possible(deed) && is_change(deed) && latest(deed) + deed->ttl_ms >= at_ms)
            return false;
    }
    return true;
}

static void check_value(struct campaign *campaign, unsigned number, const struct deed *deed,
                        const struct cluster_answer *answer)
{
    const struct key *key = &campaign->keys[number];
    const struct deed *writer = NULL;
    uint64_t value = 0;
    assert_int_equal(answer->content.size, sizeof value);
    memcpy(&value, answer->content.data, sizeof value);
    for (unsigned i = 0; i < DEEDS_MOST; i++)
        if (key->deeds[i].value == value)
            writer = &key->deeds[i];
    if (!writer) /* it is forgotten here, unless it never was */
        return;
    if (writer->ended_ms == 0 || writer->outcome != CLUSTER_OK || deed->deed != CLUSTER_READ ||
        !answer->is_sure)
        return;
    for (unsigned i = 0; i < DEEDS_MOST; i++) {
        const struct deed *later = &key->deeds[i];
        if (is_possible(later) && later->deed != CLUSTER_TOUCH && later->ended_ms != 0 &&
            later->outcome == CLUSTER_OK && !later->is_lost && !later->is_weak &&
            later->began_ms > writer->ended_ms && later->ended_ms < deed->began_ms)
            problem(campaign, number, deed, "an older value than an acknowledged one", later);
    }
}

static void check(struct campaign *campaign, unsigned number, const struct deed *deed,
                  const struct cluster_answer *answer)
{
    const struct key *key = &campaign->keys[number];
    bool is_free = deed->outcome == CLUSTER_NOT_FOUND || deed->outcome == CLUSTER_OUT_OF_MEMORY ||
                   (deed->deed == CLUSTER_INSERT && deed->outcome == CLUSTER_OK);
    const struct deed *life = is_free ? proof_of_life(key, deed->began_ms, deed->ended_ms) : NULL;
    if (life && (deed->deed == CLUSTER_INSERT || deed->outcome == CLUSTER_NOT_FOUND))
        problem(campaign, number, deed,
                deed->outcome == CLUSTER_NOT_FOUND ? "a false NOT_FOUND" : "a false OK", life);
    bool is_there =
        deed->outcome == CLUSTER_NOT_FREE || (deed->deed != CLUSTER_INSERT && deed->outcome == CLUSTER_OK);
    if (is_there && is_over(key, deed->began_ms))
        problem(campaign, number, deed, "a record after its end", NULL);
    if (deed->outcome == CLUSTER_NOT_FREE || (deed->deed == CLUSTER_READ && deed->outcome == CLUSTER_OK))
        check_value(campaign, number, deed, answer);
}

static void heed(void *context, uint64_t cookie, const struct cluster_answer *answer)
{
    struct campaign *campaign = context;
    unsigned number = (unsigned)(cookie % KEYS);
    struct key *key = &campaign->keys[number];
    for (unsigned i = 0; i < DEEDS_MOST; i++) {
        struct deed *deed = &key->deeds[i];
        if (deed->began_ms == 0 || deed->value != cookie / KEYS)
            continue;
        deed->ended_ms = now_ms(campaign) + 1;
        deed->outcome = answer->outcome;
        deed->stamp = answer->stamp;
        deed->is_weak = answer->copies < campaign->copies;
        campaign->weak += deed->is_weak && deed->outcome == CLUSTER_OK && deed->deed != CLUSTER_READ;
        campaign->outcomes[deed->deed][answer->outcome]++;
        check(campaign, number, deed, answer);
        return;
    }
}

/* Of the keys, one third is searched among the hosts 0 to 3, one among the others, and one among all. */
enum { FIRST_GROUP = 4 };

static unsigned level_of(uint32_t number)
{
    return number < 2 * KEYS / 3 ? 1 : 2;
}

static uint32_t choose_host(struct world *world, uint32_t number)
{
    if (number < KEYS / 3)
        return world_random(world, FIRST_GROUP);
    return level_of(number) == 1 ? FIRST_GROUP + world_random(world, HOSTS - FIRST_GROUP)
                                 : world_random(world, HOSTS);
}

static void ask_something(struct campaign *campaign)
{
    struct world *world = campaign->world;
    uint32_t number = world_random(world, KEYS), host = choose_host(world, number);
    if (!world_is_alive(world, host))
        return;
    struct key *key = &campaign->keys[number];
    struct deed *deed = &key->deeds[key->next++ % DEEDS_MOST];
    static const enum cluster_deed kinds[] = {CLUSTER_READ,   CLUSTER_READ,   CLUSTER_READ,  CLUSTER_INSERT,
                                              CLUSTER_INSERT, CLUSTER_CHANGE, CLUSTER_TOUCH, CLUSTER_REMOVE};
    uint64_t value = ++campaign->last_value;
    *deed = (struct deed){.value = value,
                          .began_ms = now_ms(campaign) + 1,
                          .ttl_ms = 8000 + world_random(world, TTL_MOST_MS - 8000),
                          .deed = kinds[world_random(world, COUNT_OF(kinds))]};
    char name[16];
    snprintf(name, sizeof name, "key %u", number);
    struct cluster_request request = {.deed = deed->deed,
                                      .level = level_of(number),
                                      .key = bytes_of(name),
                                      .content = {(const char *)&value, sizeof value},
                                      .ttl_ms = deed->ttl_ms};
    if (!world_ask(world, host, &request, value * KEYS + number))
        *deed = (struct deed){0};
}

/* What was acknowledged and is at no host any more, whatever hosts do now, is lost: by the deaths of all that
 * had it. */
static void look_for_lost(struct campaign *campaign)
{
    for (unsigned number = 0; number < KEYS; number++) {
        char name[16];
        snprintf(name, sizeof name, "key %u", number);
        struct cluster_stamp best = {0};
        for (uint32_t host = 0; host < HOSTS; host++) {
            struct cluster_host *cluster = world_host(campaign->world, host);
            struct cluster_entry *entry =
                cluster ? cluster_table_find(cluster->table, level_of(number), bytes_of(name),
                                             cluster_digest(cluster, level_of(number), bytes_of(name)), 0)
                        : NULL;
            if (entry && (entry->kind == CLUSTER_RECORD || entry->kind == CLUSTER_REMOVED) &&
                cluster_table_compare(&entry->stamp, &best) > 0)
                best = entry->stamp;
        }
        for (unsigned i = 0; i < DEEDS_MOST; i++) {
            struct deed *deed = &campaign->keys[number].deeds[i];
            if (deed->ended_ms != 0 && deed->outcome == CLUSTER_OK && deed->deed != CLUSTER_READ &&
                !deed->is_lost && deed->began_ms + deed->ttl_ms - EARLY_MS > now_ms(campaign) &&
                cluster_table_compare(&deed->stamp, &best) > 0) {
                deed->is_lost = true;
                campaign->lost++;
            }
        }
    }
}

static const struct cluster_bounds wide = {1 << 20, 4096, 1 << 20};
static const struct cluster_bounds narrow = {4 * (sizeof(struct cluster_entry) + 16), 12, 1 << 14};

static void cut_apart(struct campaign *campaign, int64_t until_us)
{
    struct world *world = campaign->world;
    uint32_t sides = world_random(world, 1u << HOSTS), with_z = world_random(world, 4);
    bool is_one_way = world_random(world, 4) == 0;
    for (uint32_t a = 0; a < HOSTS; a++) {
        for (uint32_t b = 0; b < HOSTS; b++)
            if ((sides >> a & 1) > (sides >> b & 1)) {
                world_cut(world, a, b, until_us);
                if (!is_one_way)
                    world_cut(world, b, a, until_us);
            }
        if (with_z < 2 && (sides >> a & 1) == with_z) {
            world_cut(world, a, WORLD_Z, until_us);
            world_cut(world, WORLD_Z, a, until_us);
        }
    }
}

static void do_harm(struct campaign *campaign, bool is_narrow)
{
    struct world *world = campaign->world;
    uint32_t host = world_random(world, HOSTS);
    int64_t until_us = world_now(world) + (200 + world_random(world, 9000)) * WORLD_MS;
    campaign->faults++;
    if (!world_is_alive(world, host)) {
        world_start(world, host, 4, is_narrow && world_random(world, 2) ? &narrow : &wide);
        return;
    }
    static const uint32_t often[] = {0, 1, 1, 1, 2, 3, 4, 5};
    uint32_t fault = world_random(world, 8);
    switch (campaign->is_harsh ? often[fault] : fault) {
    case 0:
        world_kill(world, host);
        look_for_lost(campaign);
        return;
    case 1:
        world_leave(world, host);
        return;
    case 2:
        cut_apart(campaign, until_us);
        return;
    case 3:
        world_cut(world, host, WORLD_Z, until_us);
        return;
    case 4:
        world_cut(world, host, world_random(world, HOSTS), until_us);
        return;
    case 5:
        world_stop(world, host, until_us);
        return;
    case 6:
        world_delay(world, host, (1 + world_random(world, 400)) * WORLD_MS, until_us);
        return;
    default:
        world_step_wall(world, host, ((int64_t)world_random(world, 7200) - 3600) * 1000 * WORLD_MS);
        return;
    }
}

static size_t space_of(struct bytes key)
{
    return key.size < 5 ? key.size : 5; /* "key 1" of keys 1, 10 to 19 */
}

static void run(struct campaign *campaign, unsigned seed)
{
    bool is_narrow = seed % 2;
    const struct world_settings settings = {.hosts_most = HOSTS,
                                            .depth = 2,
                                            .cluster = {.ttl_most_ms = TTL_MOST_MS,
                                                        .request_ms = REQUEST_MS,
                                                        .silence_ms = SILENCE_MS,
                                                        .copies = 1 + seed % 3,
                                                        .space = space_of,
                                                        .limits = {.space_records = seed % 5 ? 0 : 4},
                                                        .asks_most = 32,
                                                        .rounds_most = 16,
                                                        .sweep_entries = 64},
                                            .lease_ms = 2000,
                                            .lapse_ms = 3000,
                                            .beat_ms = 250,
                                            .seed = seed};
    campaign->seed = seed;
    campaign->copies = settings.cluster.copies;
    memset(campaign->keys, 0, sizeof campaign->keys);
    campaign->world = world_create(&settings, heed, campaign);
    for (uint32_t host = 0; host < HOSTS; host++) {
        world_start(campaign->world, host, 4, is_narrow ? &narrow : &wide);
        world_run(campaign->world, world_now(campaign->world) + 100 * WORLD_MS);
    }
    int64_t harm_us = world_now(campaign->world);
    for (int64_t at = world_now(campaign->world), end = at + SECONDS * INT64_C(1000000); at < end;
         at += 10 * WORLD_MS) {
        world_run(campaign->world, at);
        ask_something(campaign);
        if (at >= harm_us) {
            do_harm(campaign, is_narrow);
            harm_us = at + (500 + world_random(campaign->world, 6000)) * WORLD_MS;
        }
    }
    world_destroy(campaign->world);
}

static void run_seeds(bool is_harsh)
{
    const char *wanted = getenv("STAMPD_CLUSTER_SEEDS"), *first = getenv("STAMPD_CLUSTER_SEED");
    unsigned seeds = wanted ? (unsigned)strtoul(wanted, NULL, 10) : 4;
    unsigned from = first ? (unsigned)strtoul(first, NULL, 10) : 1;
    struct campaign *campaign = test_calloc(1, sizeof *campaign);
    campaign->is_harsh = is_harsh;
    for (unsigned seed = from; seed < from + seeds; seed++)
        run(campaign, seed);
    static const char *deeds[] = {"read", "insert", "change", "touch", "remove"};
    for (unsigned deed = 0; deed < CLUSTER_DEEDS; deed++)
        print_message("%-7s OK %llu, NOT_FOUND %llu, NOT_FREE %llu, OUT_OF_MEMORY %llu, NO_PARTICIPANTS "
                      "%llu, UNKNOWN %llu\n",
                      deeds[deed], (unsigned long long)campaign->outcomes[deed][CLUSTER_OK],
                      (unsigned long long)campaign->outcomes[deed][CLUSTER_NOT_FOUND],
                      (unsigned long long)campaign->outcomes[deed][CLUSTER_NOT_FREE],
                      (unsigned long long)campaign->outcomes[deed][CLUSTER_OUT_OF_MEMORY],
                      (unsigned long long)campaign->outcomes[deed][CLUSTER_NO_PARTICIPANTS],
                      (unsigned long long)campaign->outcomes[deed][CLUSTER_UNKNOWN]);
    print_message("%u seeds, %llu faults, %llu acknowledged changes with fewer copies, %llu that died with "
                  "all their hosts\n",
                  seeds, (unsigned long long)campaign->faults, (unsigned long long)campaign->weak,
                  (unsigned long long)campaign->lost);
    unsigned problems = campaign->problems;
    test_free(campaign);
    assert_int_equal(problems, 0);
}

static void test_nothing_false(void **state UNUSED)
{
    run_seeds(false);
}

static void test_nothing_false_while_hosts_leave(void **state UNUSED)
{
    run_seeds(true);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_nothing_false),
                                       cmocka_unit_test(test_nothing_false_while_hosts_leave)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
