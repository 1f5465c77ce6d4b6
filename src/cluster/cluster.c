/* cluster: a host: its map, what arrives, and the time. */
#include "cluster/cluster.h"

#include <stdlib.h>

#include "base/memory.h"
#include "cluster/cluster_private.h"

enum { PEER_FRESH_MS = 60000 }; /* so long the best reading of another clock is kept */

struct cluster_host *cluster_create(const struct cluster_settings *settings,
                                    const struct cluster_hooks *hooks)
{
    assert(settings->copies <= CLUSTER_COPIES_MOST && settings->asks_most > 0 && settings->rounds_most > 0);
    struct cluster_host *cluster = memory_zeroed(1, sizeof *cluster, "host of the cluster");
    cluster->settings = *settings;
    cluster->hooks = *hooks;
    cluster->table = cluster_table_create(&settings->bounds);
    cluster->questions = memory_zeroed(settings->asks_most, sizeof *cluster->questions, "questions");
    cluster->rounds = memory_zeroed(settings->rounds_most, sizeof *cluster->rounds, "copies");
    cluster->self = -1;
    cluster->settles_ms = INT64_MAX;
    return cluster;
}

void cluster_destroy(struct cluster_host *cluster)
{
    if (!cluster)
        return;
    for (uint32_t at = 0; at < cluster->settings.asks_most; at++) {
        free((char *)cluster->questions[at].request.key.data);
        free((char *)cluster->questions[at].request.content.data);
    }
    for (uint32_t at = 0; at < cluster->settings.rounds_most; at++)
        free((char *)cluster->rounds[at].key.data);
    free(cluster->questions);
    free(cluster->rounds);
    free(cluster->peers);
    cluster_table_destroy(cluster->table);
    cluster_map_destroy(cluster->map);
    cluster_map_destroy(cluster->swept_map);
    cluster_map_destroy(cluster->pass_map);
    free(cluster);
}

/* The time that a message took makes a reading worse, never wrong: the best one is kept, for a while. */
static void read_clock(struct cluster_host *cluster, const struct cluster_message *message)
{
    int64_t at = cluster->map ? cluster_map_find(cluster->map, message->from) : -1;
    if (at < 0 || message->from == cluster->number)
        return;
    struct cluster_peer *peer = &cluster->peers[at];
    int64_t now = cluster->time.now_ms;
    if (peer->mine_ms == 0 || now - peer->mine_ms > PEER_FRESH_MS ||
        message->sent_ms - now > peer->theirs_ms - peer->mine_ms) {
        peer->theirs_ms = message->sent_ms;
        peer->mine_ms = now;
    }
}

/* This host has another number than before: what it holds is of the time before. */
static void join(struct cluster_host *cluster, uint64_t version)
{
    struct cluster_entry *entry;
    for (uint64_t bucket = 0; cluster_table_walk(cluster->table, &bucket, &entry);)
        for (; entry; entry = entry->next)
            entry->is_kept = true;
    cluster_table_clear(cluster->table, CLUSTER_DOUBTFUL);
    cluster->joined = version;
    cluster->settles_ms = INT64_MAX;
    cluster->is_settled = false;
    cluster->swept = cluster->left = 0;
    cluster_map_destroy(cluster->swept_map);
    cluster->swept_map = NULL;
}

/* Of a group, a time to live from now on: so long the bits stand in each map. */
static void take_alone(struct cluster_host *cluster)
{
    const struct cluster_map *map = cluster->map;
    for (uint32_t at = 0; at < cluster_map_count(map); at++) {
        const struct cluster_member *member = cluster_map_member(map, at);
        struct cluster_peer *peer = &cluster->peers[at];
        if (member->alone & ~peer->alone)
            peer->alone_ms = cluster->time.now_ms;
        peer->alone = member->alone;
    }
    for (unsigned level = 1; level < cluster_map_depth(map); level++) {
        int64_t until_ms = 0;
        for (uint32_t at = 0; cluster->self >= 0 && at < cluster_map_count(map); at++) {
            int64_t its_ms = cluster->peers[at].alone_ms + cluster->settings.ttl_most_ms +
                             2 * cluster->settings.request_ms;
            if (cluster->peers[at].alone >> (level - 1) & 1 && its_ms > until_ms &&
                cluster_map_is_near(map, level, at, (uint32_t)cluster->self))
                until_ms = its_ms;
        }
        cluster->level_until_ms[level] = until_ms;
    }
}

static void take_map(struct cluster_host *cluster, const struct cluster_view *view)
{
    struct cluster_map *map = cluster_map_share(view->map);
    uint32_t count = cluster_map_count(map);
    struct cluster_peer *peers = memory_zeroed(count + 1, sizeof *peers, "clocks of the cluster");
    for (uint32_t at = 0; at < count; at++) {
        uint32_t number = cluster_map_member(map, at)->number;
        int64_t before = cluster->map ? cluster_map_find(cluster->map, number) : -1;
        if (before >= 0)
            peers[at] = cluster->peers[before];
    }
    free(cluster->peers);
    cluster->peers = peers;
    cluster_map_destroy(cluster->map);
    cluster->map = map;
    cluster->self = cluster_map_find(map, view->self);
    if (view->self != cluster->number) {
        cluster->number = view->self;
        join(cluster, cluster_map_version(map));
    }
    if (cluster->self >= 0)
        cluster->joined = cluster_map_member(map, (uint32_t)cluster->self)->joined;
    if (cluster->self >= 0 && !cluster_map_member(map, (uint32_t)cluster->self)->is_guest)
        cluster->left = 0;
    else if (cluster->left == 0)
        cluster->left = cluster_map_version(map);
    take_alone(cluster);
    cluster_copy_restart(cluster);
    cluster_ask_restart(cluster);
}

void cluster_see(struct cluster_host *cluster, const struct cluster_view *view, struct cluster_time time)
{
    cluster->time = time;
    uint64_t version = cluster_map_version(view->map);
    if (!cluster->map || version > cluster_map_version(cluster->map))
        take_map(cluster, view);
    if (view->self != cluster->number || cluster->self < 0)
        return;
    if (view->sure_until_ms > cluster->sure_until_ms)
        cluster->sure_until_ms = view->sure_until_ms;
    if (view->doubt_ms > 0 && cluster->doubt_until_ms < time.now_ms + view->doubt_ms)
        cluster->doubt_until_ms = time.now_ms + view->doubt_ms;
    cluster->swept_by_all = view->swept;
    if (view->swept >= cluster->joined)
        cluster->is_settled = true;
    if (view->seen >= cluster->joined && cluster->settles_ms == INT64_MAX)
        cluster->settles_ms = time.now_ms + cluster->settings.ttl_most_ms + cluster->settings.request_ms;
}

void cluster_receive(struct cluster_host *cluster, const struct cluster_message *message,
                     struct cluster_time time)
{
    cluster->time = time;
    if (message->to != cluster->number)
        return; /* for the host that was here before */
    cluster->received++;
    read_clock(cluster, message);
    switch (message->kind) {
    case CLUSTER_ASK:
        cluster_serve(cluster, message);
        return;
    case CLUSTER_ANSWER:
        cluster_ask_heed(cluster, message);
        return;
    case CLUSTER_COPY:
        cluster_copy_accept(cluster, message);
        return;
    case CLUSTER_COPIED:
        cluster_copy_heed(cluster, message);
        return;
    }
}

void cluster_tick(struct cluster_host *cluster, struct cluster_time time)
{
    cluster->time = time;
    cluster_table_expire(cluster->table, time.now_ms);
    cluster_ask_tick(cluster);
    cluster_copy_tick(cluster);
}

/* As in struct cluster_report. */
static int64_t unsure_ms(const struct cluster_host *cluster, int64_t now_ms)
{
    int64_t until_ms = cluster->doubt_until_ms;
    if (cluster_is_exhaustive(cluster, cluster_depth(cluster)))
        return 0;
    if (until_ms < cluster->default_until_ms)
        until_ms = cluster->default_until_ms;
    if (!cluster->is_settled && cluster->settles_ms == INT64_MAX)
        return -1;
    if (!cluster->is_settled && until_ms < cluster->settles_ms)
        until_ms = cluster->settles_ms;
    return until_ms > now_ms ? until_ms - now_ms : -1;
}

void cluster_report(struct cluster_host *cluster, struct cluster_report *report_r)
{
    *report_r = (struct cluster_report){
        .seen = cluster->map ? cluster_map_version(cluster->map) : 0,
        .swept = cluster->swept,
        .is_short = cluster->is_short || cluster->has_short,
        .is_exhaustive = cluster_is_exhaustive(cluster, cluster_depth(cluster)),
        .records = cluster_table_count(cluster->table, CLUSTER_RECORD),
        .removed = cluster_table_count(cluster->table, CLUSTER_REMOVED),
        .doubtful = cluster_table_count(cluster->table, CLUSTER_DOUBTFUL),
        .absent = cluster_table_count(cluster->table, CLUSTER_ABSENT),
        .record_bytes = cluster_table_bytes(cluster->table, CLUSTER_RECORD) +
                        cluster_table_bytes(cluster->table, CLUSTER_REMOVED),
    };
    if (cluster->self >= 0)
        for (unsigned level = 1; level < cluster_depth(cluster); level++)
            if (cluster->time.now_ms >= cluster->level_until_ms[level])
                report_r->alone_over |= (uint8_t)(cluster->peers[cluster->self].alone & 1u << (level - 1));
    report_r->unsure_ms = unsure_ms(cluster, cluster->time.now_ms);
    report_r->missing =
        cluster->missing > cluster->missing_before ? cluster->missing : cluster->missing_before;
    report_r->sent = cluster->sent;
    report_r->received = cluster->received;
    report_r->key_bytes = cluster_table_bytes(cluster->table, CLUSTER_DOUBTFUL) +
                          cluster_table_bytes(cluster->table, CLUSTER_ABSENT);
}
