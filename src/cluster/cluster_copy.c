/* cluster_copy: each change goes to the hosts that shall have it, nearest first, as many as there are copies;
 * a host that has no room is passed over, and remembers that it cannot know.  The sweep does the same,
 * without a change, for keys that another map places elsewhere. */
#include "cluster/cluster_private.h"

#include <stdlib.h>

/* NULL: it has ended, whatever is known of the key now. */
static struct cluster_entry *entry_of(struct cluster_host *cluster, const struct cluster_round *round)
{
    struct cluster_entry *entry =
        cluster_table_find(cluster->table, round->level, round->key, round->digest, cluster->time.now_ms);
    return entry && entry->round == (uint32_t)(round - cluster->rounds) + 1 ? entry : NULL;
}

static struct cluster_round *round_of(struct cluster_host *cluster, const struct cluster_entry *entry)
{
    return &cluster->rounds[entry->round - 1];
}

static struct cluster_round *free_round(const struct cluster_host *cluster)
{
    for (uint32_t at = 0; at < cluster->settings.rounds_most; at++)
        if (cluster->rounds[at].id == 0)
            return &cluster->rounds[at];
    return NULL;
}

bool cluster_copy_is_free(const struct cluster_host *cluster)
{
    return free_round(cluster) != NULL;
}

/* Ends a round, whose entry may be gone. */
static void end_round(struct cluster_host *cluster, struct cluster_round *round, struct cluster_entry *entry,
                      enum cluster_outcome outcome)
{
    if (entry)
        entry->round = 0;
    if (round->is_asked) {
        struct cluster_message answer = {.kind = CLUSTER_ANSWER,
                                         .to = round->asker,
                                         .id = round->question,
                                         .outcome = outcome,
                                         .copies = round->copies,
                                         .is_sure = cluster_is_sure(cluster, round->level)};
        if (entry && outcome == CLUSTER_OK)
            answer.stamp = entry->stamp;
        if (entry && entry->kind == CLUSTER_RECORD)
            answer.ttl_ms = entry->end_ms - cluster->time.now_ms;
        cluster_send(cluster, &answer);
    } else {
        cluster->pass_rounds--;
    }
    free((char *)round->key.data);
    *round = (struct cluster_round){0};
}

static void fill(struct cluster_host *cluster, struct cluster_message *message,
                 const struct cluster_entry *entry)
{
    message->level = entry->level;
    message->key = cluster_table_key(entry);
    message->content = cluster_table_content(entry);
    message->stamp = entry->stamp;
    message->is_removed = entry->kind == CLUSTER_REMOVED;
    message->end_ms = cluster_time_of(cluster, message->to, entry->end_ms);
    /* A duration: with the way of the message it ends late, and an end never does. */
    int64_t past_ms = entry->kind == CLUSTER_REMOVED ? entry->end_ms : entry->past_ms;
    message->past_ms = past_ms > cluster->time.now_ms ? past_ms - cluster->time.now_ms : 0;
    cluster_share_read(entry->share, &message->payer);
}

static void send_copy(struct cluster_host *cluster, const struct cluster_round *round,
                      const struct cluster_entry *entry, uint32_t number)
{
    struct cluster_message message = {.kind = CLUSTER_COPY,
                                      .to = number,
                                      .id = round->id,
                                      .is_unsure = round->is_unsure,
                                      .is_check = round->is_check,
                                      .reach = entry->reach};
    fill(cluster, &message, entry);
    cluster_send(cluster, &message);
}

/* All that have answered have it, or have no room. */
static void settle(struct cluster_host *cluster, struct cluster_round *round, struct cluster_entry *entry)
{
    entry->is_owed = false;
    entry->is_kept = entry->is_kept && round->is_unsure && !cluster->is_settled;
    if (!round->is_check)
        entry->is_short = round->full > 0 && round->holders <= cluster->settings.copies;
    cluster->is_short |= entry->is_short;
    entry->reach = round->reach;
    if (!round->is_check)
        entry->server = round->nearer;
    /* Questions that passed the nearer hosts before these had it still come here, for a while. */
    bool is_superfluous =
        round->holders > cluster->settings.copies || (cluster->left != 0 && round->holders > 0);
    bool is_to_drop = entry->kind == CLUSTER_RECORD || cluster->left != 0;
    if (is_to_drop && !round->has_passed_self && is_superfluous && round->nearer != 0)
        entry->wait_ms = cluster->time.now_ms + 2 * cluster->settings.request_ms;
    else if (is_to_drop)
        entry->wait_ms = 0;
    end_round(cluster, round, entry, CLUSTER_OK);
}

/* Sends it to further hosts until enough have it or are asked. */
static void cluster_copy_go_on(struct cluster_host *cluster, struct cluster_round *round,
                               struct cluster_entry *entry)
{
    unsigned copies = cluster->settings.copies;
    /* As far as the change before went, too: no host keeps an older one. */
    while (round->wait_count <= copies &&
           (round->holders + round->wait_count <= copies || round->reach < entry->reach)) {
        int64_t at = cluster_map_next(&round->walk);
        if (at < 0)
            break;
        round->reach++;
        if (at == cluster->self) {
            round->holders++;
            round->has_passed_self = true;
            continue;
        }
        uint32_t number = cluster_map_member(cluster->map, (uint32_t)at)->number;
        bool is_nearer = cluster->left != 0 || cluster_map_is_nearer(cluster->map, round->digest,
                                                                     (uint32_t)at, (uint32_t)cluster->self);
        round->waits[round->wait_count++] = (struct cluster_wait){.number = number, .is_nearer = is_nearer};
        send_copy(cluster, round, entry, number);
    }
    if (round->wait_count == 0)
        settle(cluster, round, entry);
}

static void begin_walk(struct cluster_host *cluster, struct cluster_round *round, struct cluster_entry *entry)
{
    uint64_t at = (uint64_t)(round - cluster->rounds);
    round->id = ++cluster->last_id * cluster->settings.rounds_most + at;
    round->wait_count = round->holders = round->copies = round->full = 0;
    round->has_passed_self = false;
    round->reach = 0;
    round->nearer = 0;
    round->ends_ms = cluster->time.now_ms + cluster->settings.silence_ms;
    cluster_map_begin(&round->walk, cluster->map, round->digest, round->level,
                      (uint32_t)(cluster->self < 0 ? 0 : cluster->self));
    cluster_copy_go_on(cluster, round, entry);
}

void cluster_copy_begin(struct cluster_host *cluster, struct cluster_entry *entry,
                        const struct cluster_message *question)
{
    struct cluster_round *round = free_round(cluster);
    assert(round && entry->round == 0);
    *round = (struct cluster_round){
        .digest = entry->digest, .level = entry->level, .key = cluster_copy_text(cluster_table_key(entry))};
    if (question) {
        round->is_asked = true;
        round->asker = question->from;
        round->question = question->id;
        round->is_unsure = question->silent_count > 0;
    } else {
        cluster->pass_rounds++;
        round->is_unsure = true;
        round->is_check = entry->kind == CLUSTER_RECORD && entry->server != 0 && !entry->is_kept &&
                          !entry->is_owed && cluster_is_serving(cluster, entry->server);
    }
    entry->round = (uint32_t)(round - cluster->rounds) + 1;
    begin_walk(cluster, round, entry);
}

/* There is another map: which hosts shall have it is decided again; those that have it answer so. */
void cluster_copy_restart(struct cluster_host *cluster)
{
    for (uint32_t at = 0; at < cluster->settings.rounds_most; at++) {
        struct cluster_round *round = &cluster->rounds[at];
        if (round->id == 0)
            continue;
        struct cluster_entry *entry = entry_of(cluster, round);
        if (!entry)
            end_round(cluster, round, NULL, CLUSTER_UNKNOWN);
        else
            begin_walk(cluster, round, entry);
    }
}

static void reply(struct cluster_host *cluster, const struct cluster_message *copy,
                  enum cluster_outcome outcome, const struct cluster_entry *entry)
{
    struct cluster_message answer = {
        .kind = CLUSTER_COPIED, .to = copy->from, .id = copy->id, .outcome = outcome};
    if (outcome == CLUSTER_OLDER)
        fill(cluster, &answer, entry);
    answer.is_unsure = outcome == CLUSTER_OK && entry->is_kept;
    cluster_send(cluster, &answer);
}

/* The change of this host is not the last one: what asked for it starts again. */
static void give_up(struct cluster_host *cluster, struct cluster_entry *entry)
{
    if (entry->round != 0)
        end_round(cluster, round_of(cluster, entry), entry, CLUSTER_REDO);
}

/* Is the host with this number asked before this one?  A guest never is. */
static bool is_before(const struct cluster_host *cluster, uint64_t digest, uint32_t number)
{
    int64_t at = cluster_map_find(cluster->map, number);
    return at >= 0 && cluster->self >= 0 && !cluster_map_member(cluster->map, (uint32_t)at)->is_guest &&
           cluster_map_is_nearer(cluster->map, digest, (uint32_t)at, (uint32_t)cluster->self);
}

/* Nothing that a host has lasts longer, whatever another one sends. */
static int64_t latest_of(const struct cluster_host *cluster)
{
    return cluster->time.now_ms + cluster->settings.ttl_most_ms + cluster->settings.request_ms;
}

static int64_t earlier(int64_t a, int64_t b)
{
    return a < b ? a : b;
}

/* The same as cluster_past, of what the other host has. */
static int64_t past_of(const struct cluster_host *cluster, const struct cluster_message *message)
{
    int64_t past_ms = cluster->time.now_ms + message->past_ms;
    int64_t end_ms = message->end_ms + (message->is_removed ? 0 : cluster->settings.request_ms);
    return earlier(past_ms > end_ms ? past_ms : end_ms, latest_of(cluster));
}

/* The copy is of an earlier change than the entry, and may be at other hosts, too. */
static void outlive(struct cluster_host *cluster, struct cluster_entry *entry,
                    const struct cluster_message *copy)
{
    int64_t past_ms = past_of(cluster, copy);
    if (entry->kind == CLUSTER_REMOVED && entry->end_ms < past_ms)
        cluster_table_set_end(cluster->table, entry, past_ms);
    else if (entry->past_ms < past_ms)
        entry->past_ms = past_ms;
}

/* Makes the later change of another host that of this one.  NULL: there is no room, and this host has
 * neither. */
static struct cluster_entry *adopt(struct cluster_host *cluster, const struct cluster_message *message,
                                   uint64_t digest)
{
    struct cluster_entry *entry =
        cluster_table_find(cluster->table, message->level, message->key, digest, cluster->time.now_ms);
    int64_t past_ms = cluster_past(cluster, entry), end_ms = earlier(message->end_ms, latest_of(cluster));
    if (past_ms < cluster->time.now_ms + message->past_ms)
        past_ms = earlier(cluster->time.now_ms + message->past_ms, latest_of(cluster));
    if (message->is_removed)
        entry = cluster_table_note(cluster->table, CLUSTER_REMOVED, message->level, message->key, digest,
                                   end_ms > past_ms ? end_ms : past_ms);
    else
        entry = cluster_table_store(cluster->table, message->level, message->key, digest, message->content,
                                    end_ms);
    if (!entry) {
        cluster_doubt(cluster, message->level, message->key, digest, latest_of(cluster), true);
        return NULL;
    }
    cluster_pay(cluster, entry, &message->payer);
    entry->stamp = message->stamp;
    entry->past_ms = past_ms;
    entry->is_owed = false;
    entry->reach = message->reach;
    entry->server = is_before(cluster, digest, message->from) ? message->from : 0;
    return entry;
}

void cluster_copy_accept(struct cluster_host *cluster, const struct cluster_message *copy)
{
    if (cluster->self < 0 || copy->version != cluster_map_version(cluster->map) || copy->level == 0 ||
        copy->level > cluster_map_depth(cluster->map) || copy->key.size > CLUSTER_KEY_MOST) {
        reply(cluster, copy, CLUSTER_REDO, NULL);
        return;
    }
    if (copy->end_ms == 0) {
        reply(cluster, copy, CLUSTER_NO_TIME, NULL);
        return;
    }
    uint64_t digest = cluster_digest(cluster, copy->level, copy->key);
    struct cluster_entry *entry =
        cluster_table_find(cluster->table, copy->level, copy->key, digest, cluster->time.now_ms);
    bool is_held = entry && (entry->kind == CLUSTER_RECORD || entry->kind == CLUSTER_REMOVED);
    int order = is_held ? cluster_table_compare(&entry->stamp, &copy->stamp) : -1;
    if (order > 0) {
        outlive(cluster, entry, copy);
        reply(cluster, copy, CLUSTER_OLDER, entry);
    } else if (order == 0) {
        if (entry->kind == CLUSTER_RECORD && is_before(cluster, digest, copy->from))
            entry->server = copy->from;
        if (!copy->is_unsure)
            entry->is_kept = false;
        reply(cluster, copy, CLUSTER_OK, entry);
    } else if (copy->is_check) {
        reply(cluster, copy, CLUSTER_FULL, NULL);
    } else {
        /* This host had no room for the record whose removal it notes now: so one more host may have it. */
        bool is_elsewhere = copy->is_removed && entry && entry->kind == CLUSTER_DOUBTFUL;
        if (entry)
            give_up(cluster, entry);
        entry = adopt(cluster, copy, digest);
        /* A host that has just joined does not serve what a sweep brings before all have swept:
         * others may have later changes. */
        if (entry)
            entry->is_kept = copy->is_unsure && !cluster->is_settled;
        reply(cluster, copy, entry && !is_elsewhere ? CLUSTER_OK : CLUSTER_FULL, entry);
    }
}

/* The other one has a later change. */
static void yield_to(struct cluster_host *cluster, struct cluster_entry *entry,
                     const struct cluster_message *answer)
{
    give_up(cluster, entry);
    if (answer->level != entry->level || !bytes_equal(answer->key, cluster_table_key(entry)))
        return; /* no host answers so */
    if (answer->end_ms == 0 || cluster_table_compare(&entry->stamp, &answer->stamp) >= 0) {
        entry->is_owed = true; /* once more, when its end is known by this clock */
        return;
    }
    bool is_kept = entry->is_kept;
    entry = adopt(cluster, answer, entry->digest);
    if (!entry)
        return;
    entry->is_kept = is_kept && !cluster->is_settled;
    entry->is_owed = entry->server == 0; /* the other hosts may not have it */
}

void cluster_copy_heed(struct cluster_host *cluster, const struct cluster_message *answer)
{
    struct cluster_round *round = &cluster->rounds[answer->id % cluster->settings.rounds_most];
    if (round->id == 0 || round->id != answer->id)
        return;
    unsigned wait = 0;
    while (wait < round->wait_count && round->waits[wait].number != answer->from)
        wait++;
    if (wait == round->wait_count)
        return;
    struct cluster_entry *entry = entry_of(cluster, round);
    if (!entry) {
        end_round(cluster, round, NULL, CLUSTER_UNKNOWN);
        return;
    }
    switch ((int)answer->outcome) {
    case CLUSTER_NO_TIME:
        send_copy(cluster, round, entry, answer->from);
        return;
    case CLUSTER_OLDER:
        yield_to(cluster, entry, answer);
        return;
    case CLUSTER_FULL:
        round->full++;
        break;
    case CLUSTER_OK: {
        round->holders++;
        round->copies++;
        int64_t from = cluster_map_find(cluster->map, answer->from);
        int64_t nearer = round->nearer ? cluster_map_find(cluster->map, round->nearer) : -1;
        if (round->waits[wait].is_nearer && !answer->is_unsure &&
            (nearer < 0 ||
             cluster_map_is_nearer(cluster->map, round->digest, (uint32_t)from, (uint32_t)nearer)))
            round->nearer = answer->from;
        break;
    }
    default:
        round->waits[wait].is_again = true; /* one of the two will see the other's map soon */
        return;
    }
    round->waits[wait] = round->waits[--round->wait_count];
    cluster_copy_go_on(cluster, round, entry);
}

static void send_again(struct cluster_host *cluster, struct cluster_round *round)
{
    struct cluster_entry *entry = entry_of(cluster, round);
    for (unsigned wait = 0; entry && wait < round->wait_count; wait++)
        if (round->waits[wait].is_again) {
            round->waits[wait].is_again = false;
            send_copy(cluster, round, entry, round->waits[wait].number);
        }
}

/* Some have not answered: nobody can say where the change is.  It is owed to them. */
static void end_unsure(struct cluster_host *cluster, struct cluster_round *round)
{
    struct cluster_entry *entry = entry_of(cluster, round);
    cluster->has_owed = true;
    if (entry) {
        entry->is_owed = true;
        entry->server = round->nearer;
        for (unsigned wait = 0; wait < round->wait_count && entry->server == 0; wait++)
            if (round->waits[wait].is_nearer)
                entry->server = round->waits[wait].number;
    }
    end_round(cluster, round, entry, CLUSTER_UNKNOWN);
}

/* The first hosts of this key, as many as shall have it. */
static unsigned places(const struct cluster_host *cluster, struct cluster_map *map,
                       const struct cluster_entry *entry, uint32_t number_r[CLUSTER_COPIES_MOST + 1])
{
    int64_t self = cluster_map_find(map, cluster->number);
    if (self < 0 && entry->level < cluster_map_depth(map))
        return 0;
    struct cluster_walk walk;
    cluster_map_begin(&walk, map, entry->digest, entry->level, (uint32_t)(self < 0 ? 0 : self));
    unsigned count = 0;
    for (int64_t at; count <= cluster->settings.copies && (at = cluster_map_next(&walk)) >= 0;)
        number_r[count++] = cluster_map_member(map, (uint32_t)at)->number;
    return count;
}

static bool is_among(const uint32_t *numbers, unsigned count, uint32_t number)
{
    for (unsigned i = 0; i < count; i++)
        if (numbers[i] == number)
            return true;
    return false;
}

/* Hosts without room have made more hosts have it. */
static bool is_far(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    return entry->reach > cluster->settings.copies + 1;
}

/* Does the present map want it at hosts that the map of the last sweep did not?  What too few have, any host
 * that is new may take. */
static bool is_misplaced(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    uint32_t now[CLUSTER_COPIES_MOST + 1], before[CLUSTER_COPIES_MOST + 1];
    if (!cluster->swept_map || is_far(cluster, entry) || entry->is_kept || entry->is_short)
        return true;
    unsigned count = places(cluster, cluster->map, entry, now);
    unsigned count_before = places(cluster, cluster->swept_map, entry, before);
    for (unsigned i = 0; i < count; i++)
        if (!is_among(before, count_before, now[i]))
            return true;
    return false;
}

static bool is_placed_here(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    uint32_t now[CLUSTER_COPIES_MOST + 1];
    return is_among(now, places(cluster, cluster->map, entry, now), cluster->number);
}

static bool has_to_move(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    if (entry->kind != CLUSTER_RECORD && entry->kind != CLUSTER_REMOVED)
        return false;
    if (entry->is_owed)
        return true;
    /* That host does, but for a copy that may be of no use any more. */
    if (entry->server != 0 && cluster_is_serving(cluster, entry->server) && !entry->is_kept)
        return entry->wait_ms == 0 && (!is_far(cluster, entry) || !cluster->is_again) &&
               !is_placed_here(cluster, entry);
    if (cluster->is_again)
        return false;
    /* A host that leaves offers all that it serves, also if all others have it: one of them is to serve it.
     */
    return (entry->server != 0 && !cluster_is_serving(cluster, entry->server)) ||
           (entry->server == 0 && cluster->left != 0) || is_misplaced(cluster, entry);
}

/* A guest may have the only copy until all have passed on what they have since it left.  Only a guest drops
 * removals. */
static bool is_droppable(const struct cluster_host *cluster, const struct cluster_entry *entry)
{
    bool is_to_drop = entry->kind == CLUSTER_RECORD || (entry->kind == CLUSTER_REMOVED && cluster->left != 0);
    return is_to_drop && entry->wait_ms != 0 && entry->wait_ms <= cluster->time.now_ms &&
           cluster_is_serving(cluster, entry->server) &&
           (cluster->left == 0 || cluster->swept_by_all >= cluster->left);
}

static void sweep_entry(struct cluster_host *cluster, struct cluster_entry *entry)
{
    if (is_droppable(cluster, entry))
        cluster_table_remove(cluster->table, entry);
    else if (has_to_move(cluster, entry))
        cluster_copy_begin(cluster, entry, NULL);
}

static void end_pass(struct cluster_host *cluster)
{
    cluster->bucket = 0;
    cluster->has_short = cluster->is_short;
    cluster->is_short = false;
    cluster->missing_before = cluster->missing;
    cluster->missing = 0;
    cluster->is_again = true; /* from now on it looks for what is owed, and for what is to be dropped */
    cluster->pause_ms = cluster->time.now_ms +
                        (cluster->has_owed ? cluster->settings.silence_ms : cluster->settings.request_ms);
    if (cluster->has_owed || !cluster->pass_map) {
        cluster->has_owed = false;
        return;
    }
    cluster->swept = cluster_map_version(cluster->pass_map);
    cluster_map_destroy(cluster->swept_map);
    cluster->swept_map = cluster->pass_map;
    cluster->pass_map = NULL;
}

static void sweep(struct cluster_host *cluster)
{
    if (cluster->self < 0)
        return;
    if (!cluster->pass_map && cluster->swept < cluster_map_version(cluster->map)) {
        cluster->pass_map = cluster_map_share(cluster->map);
        cluster->bucket = 0;
        cluster->is_again = cluster->has_owed = false;
        cluster->pause_ms = 0;
    }
    if (cluster->bucket == 0 && cluster->time.now_ms < cluster->pause_ms)
        return;
    struct cluster_entry *entry;
    for (uint32_t looked = 0; looked < cluster->settings.sweep_entries;) {
        /* Half of the places for rounds are kept for changes. */
        if (cluster->pass_rounds >= (cluster->settings.rounds_most + 1) / 2 || !cluster_copy_is_free(cluster))
            return;
        uint64_t bucket = cluster->bucket;
        if (!cluster_table_walk(cluster->table, &cluster->bucket, &entry)) {
            if (cluster->pass_rounds == 0)
                end_pass(cluster);
            return;
        }
        looked++;
        for (struct cluster_entry *next; entry; entry = next) {
            next = entry->next;
            cluster->has_owed |= entry->is_owed || entry->round != 0;
            cluster->is_short |= entry->is_short;
            cluster->missing += entry->is_short || entry->is_owed;
            if (entry->round == 0 && cluster_copy_is_free(cluster))
                sweep_entry(cluster, entry);
            else if (entry->round == 0 && has_to_move(cluster, entry))
                cluster->bucket = bucket; /* the rest of this bucket in the next tick */
        }
    }
}

void cluster_copy_tick(struct cluster_host *cluster)
{
    for (uint32_t at = 0; at < cluster->settings.rounds_most; at++) {
        struct cluster_round *round = &cluster->rounds[at];
        if (round->id != 0 && cluster->time.now_ms >= round->ends_ms)
            end_unsure(cluster, round);
        else if (round->id != 0)
            send_again(cluster, round);
    }
    sweep(cluster);
}
