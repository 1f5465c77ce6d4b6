/* cluster_host: what a host knows of the others: their clocks, and what they may have. */
#include "cluster/cluster_private.h"

#include "base/memory.h"

enum { CLOCK_DRIFT = 4096 }; /* a clock is wrong by less than one part in so many */

uint64_t cluster_digest(const struct cluster_host *cluster, unsigned level, struct bytes key)
{
    return siphash_short(&cluster->settings.places, key) + level;
}

uint64_t cluster_space(const struct cluster_host *cluster, struct bytes key)
{
    size_t size = cluster->settings.space ? cluster->settings.space(key) : 0;
    return siphash_short(&cluster->settings.places,
                         (struct bytes){key.data, size < key.size ? size : key.size});
}

void cluster_pay(struct cluster_host *cluster, struct cluster_entry *entry, const struct cluster_payer *payer)
{
    if (!cluster->settings.space)
        return;
    struct cluster_payer whole = *payer;
    whole.space = cluster_space(cluster, cluster_table_key(entry));
    cluster_table_pay(cluster->table, entry, &whole);
}

struct bytes cluster_copy_text(struct bytes text)
{
    char *copy = memory_grown(NULL, text.size + 1, 1, "text of the cluster");
    if (text.size)
        memcpy(copy, text.data, text.size);
    return (struct bytes){copy, text.size};
}

void cluster_send(struct cluster_host *cluster, struct cluster_message *message)
{
    message->from = cluster->number;
    message->version = cluster->map ? cluster_map_version(cluster->map) : 0;
    message->sent_ms = cluster->time.now_ms;
    cluster->sent++;
    cluster->hooks.send(cluster->hooks.context, message);
}

bool cluster_is_serving(const struct cluster_host *cluster, uint32_t number)
{
    int64_t at = cluster->map ? cluster_map_find(cluster->map, number) : -1;
    return at >= 0 && !cluster_map_member(cluster->map, (uint32_t)at)->is_guest;
}

int64_t cluster_time_of(const struct cluster_host *cluster, uint32_t number, int64_t ms)
{
    if (number == cluster->number)
        return ms;
    int64_t at = cluster->map ? cluster_map_find(cluster->map, number) : -1;
    if (at < 0 || cluster->peers[at].mine_ms == 0)
        return 0;
    const struct cluster_peer *peer = &cluster->peers[at];
    int64_t since = ms - peer->mine_ms;
    return peer->theirs_ms + since - (since < 0 ? -since : since) / CLOCK_DRIFT;
}

unsigned cluster_depth(const struct cluster_host *cluster)
{
    return cluster->map ? cluster_map_depth(cluster->map) : 1;
}

bool cluster_is_sure(const struct cluster_host *cluster, unsigned level)
{
    int64_t now = cluster->time.now_ms;
    return cluster->self >= 0 && now >= cluster->level_until_ms[level] && now < cluster->sure_until_ms &&
           now >= cluster->doubt_until_ms;
}

bool cluster_is_exhaustive(const struct cluster_host *cluster, unsigned level)
{
    int64_t now = cluster->time.now_ms;
    return cluster_is_sure(cluster, level) && now >= cluster->default_until_ms &&
           (cluster->is_settled || now >= cluster->settles_ms);
}

int64_t cluster_past(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    if (!entry || (entry->kind != CLUSTER_RECORD && entry->kind != CLUSTER_REMOVED))
        return 0;
    int64_t end_ms = entry->end_ms + (entry->kind == CLUSTER_RECORD ? cluster->settings.request_ms : 0);
    return end_ms > entry->past_ms ? end_ms : entry->past_ms;
}

void cluster_doubt(struct cluster_host *cluster, unsigned level, struct bytes key, uint64_t digest,
                   int64_t end_ms, bool is_full)
{
    struct cluster_entry *entry =
        cluster_table_find(cluster->table, level, key, digest, cluster->time.now_ms);
    if (entry && entry->kind == CLUSTER_DOUBTFUL) {
        if (entry->end_ms < end_ms)
            cluster_table_set_end(cluster->table, entry, end_ms);
        entry->is_full |= is_full;
        return;
    }
    entry = cluster_table_note(cluster->table, CLUSTER_DOUBTFUL, level, key, digest, end_ms);
    if (entry) {
        entry->is_full = is_full;
        return;
    }
    /* The list is full.  Nothing may be forgotten that is doubted, so all is. */
    int64_t latest = cluster_table_clear(cluster->table, CLUSTER_DOUBTFUL);
    if (latest < end_ms)
        latest = end_ms;
    if (cluster->default_until_ms < latest)
        cluster->default_until_ms = latest;
    entry = cluster_table_find(cluster->table, level, key, digest, cluster->time.now_ms);
    if (entry)
        cluster_table_remove(cluster->table, entry);
}
