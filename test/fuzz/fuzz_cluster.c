/* fuzz_cluster: what another host sends to a host of the cluster, message after message, as its connection
 * reads them.
 *
 * Besides not crashing: a message that is whole is partial with fewer bytes, and is written again as the same
 * bytes; answers to programs have the outcomes that there are; memory stays within its bounds. */
#include "fuzz.h"

#include <stdlib.h>

#include "cluster/cluster_wire.h"

const char fuzz_target[] = "cluster";

enum { CONTENT_MOST = 512, RECORD_BYTES = 4096, KEYS = 8, KEY_BYTES = 8192, HOSTS = 3, DEPTH = 2 };

struct world {
    struct cluster_host *cluster;
    struct cluster_time time;
    struct builder sent;
};

static void keep_message(void *context, const struct cluster_message *message)
{
    struct world *world = context;
    builder_clear(&world->sent, CONTENT_MOST);
    cluster_wire_write(&world->sent, message);
}

static void check_answer(void *context UNUSED, uint64_t cookie UNUSED, const struct cluster_answer *answer)
{
    assert(answer->outcome < CLUSTER_OUTCOMES && answer->content.size <= CONTENT_MOST);
}

/* One of three hosts, which all have seen the first list. */
static void open_world(struct world *world)
{
    const struct cluster_settings settings = {.bounds = {RECORD_BYTES, KEYS, KEY_BYTES},
                                              .ttl_most_ms = 1000,
                                              .request_ms = 100,
                                              .silence_ms = 30,
                                              .copies = 1,
                                              .asks_most = 2,
                                              .rounds_most = 4,
                                              .sweep_entries = 4};
    struct cluster_member members[HOSTS] = {{0}};
    for (uint32_t i = 0; i < HOSTS; i++)
        members[i] = (struct cluster_member){.number = i + 1, .joined = 1, .groups = {1, i + 1}};
    world->time = (struct cluster_time){1000, 0};
    world->cluster = cluster_create(&settings, &(struct cluster_hooks){world, keep_message, check_answer});
    struct cluster_map *map = cluster_map_create(members, HOSTS, DEPTH, 1);
    cluster_see(world->cluster, &(struct cluster_view){map, 1, 1, 1, 1 << 20, 0}, world->time);
    cluster_map_destroy(map);
}

static void check_size(struct world *world)
{
    struct cluster_report report;
    cluster_report(world->cluster, &report);
    assert(report.record_bytes <= RECORD_BYTES && report.key_bytes <= KEY_BYTES && report.doubtful <= KEYS);
}

/* This host asks, too: the message may be taken for the answer. */
static void ask(struct world *world, const struct cluster_message *message)
{
    struct cluster_request request = {.deed = message->deed,
                                      .level = message->level,
                                      .key = message->key,
                                      .content = message->content,
                                      .ttl_ms = message->ttl_ms};
    bool is_asked = cluster_ask(world->cluster, &request, 1, world->time);
    assert(!is_asked || (message->level > 0 && message->level <= DEPTH));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct world world;
    static struct builder again;
    struct bytes rest = {(const char *)data, size};
    struct cluster_message message, shorter;
    size_t used, other;
    open_world(&world);
    while (rest.size && cluster_wire_read(rest, CONTENT_MOST, &message, &used) == CLUSTER_WHOLE) {
        enum cluster_reading reading =
            cluster_wire_read((struct bytes){rest.data, used - 1}, CONTENT_MOST, &shorter, &other);
        assert(reading == CLUSTER_PARTIAL);
        builder_clear(&again, CONTENT_MOST);
        cluster_wire_write(&again, &message);
        assert(bytes_equal(builder_bytes(&again), (struct bytes){rest.data, used}));
        world.time.now_ms += message.reach % 64; /* any number of it will do */
        cluster_receive(world.cluster, &message, world.time);
        if (message.copies & 1)
            ask(&world, &message);
        if (message.copies & 2)
            cluster_tick(world.cluster, world.time);
        check_size(&world);
        rest.data += used;
        rest.size -= used;
    }
    cluster_destroy(world.cluster);
    builder_clear(&world.sent, CONTENT_MOST);
    return 0;
}
