/* cluster_serve: what a host answers to a question, of a key that it has or has not. */
#include "cluster/cluster_private.h"

enum { STAMP_STEP = 1 << 20 };

/* The level of a question, also of one that is out of range. */
static unsigned level_of(const struct cluster_host *cluster, const struct cluster_message *question)
{
    unsigned depth = cluster_depth(cluster);
    return question->level > 0 && question->level < depth ? question->level : depth;
}

static void reply(struct cluster_host *cluster, const struct cluster_message *question,
                  enum cluster_outcome outcome, const struct cluster_entry *entry)
{
    struct cluster_message answer = {.kind = CLUSTER_ANSWER,
                                     .to = question->from,
                                     .id = question->id,
                                     .outcome = outcome,
                                     .is_sure = cluster_is_sure(cluster, level_of(cluster, question))};
    if (entry) {
        answer.stamp = entry->stamp;
        answer.content = cluster_table_content(entry);
        answer.ttl_ms = entry->end_ms - cluster->time.now_ms;
    }
    cluster_send(cluster, &answer);
}

/* The asker is to go on to farther hosts, and they learn which change of the key this one has: a host that
 * was not sent it must not serve an older one. */
static void pass_on(struct cluster_host *cluster, const struct cluster_message *question,
                    enum cluster_outcome outcome, const struct cluster_entry *entry)
{
    struct cluster_message answer = {
        .kind = CLUSTER_ANSWER, .to = question->from, .id = question->id, .outcome = outcome};
    if (entry && (entry->kind == CLUSTER_RECORD || entry->kind == CLUSTER_REMOVED))
        answer.stamp = entry->stamp;
    cluster_send(cluster, &answer);
}

static bool is_silent(const struct cluster_message *question, uint32_t number)
{
    for (unsigned i = 0; i < question->silent_count; i++)
        if (question->silent[i] == number)
            return true;
    return false;
}

/* Of a change that begins now: later than the one before, of whatever host.  One that is made while a nearer
 * host is silent is only just later: a change that was acknowledged on the other side, of the same record, is
 * later than it. */
static struct cluster_stamp next_stamp(const struct cluster_host *cluster, const struct cluster_stamp *before,
                                       bool is_sure)
{
    struct cluster_stamp next = {before->version, before->number + 1, cluster->number};
    if (!is_sure)
        return next;
    uint64_t version = cluster_map_version(cluster->map);
    next.number = before->number + STAMP_STEP;
    if (next.version < version)
        next.version = version;
    if (cluster->time.wall_us > 0 && next.number < (uint64_t)cluster->time.wall_us)
        next.number = (uint64_t)cluster->time.wall_us;
    return next;
}

static int64_t end_of(const struct cluster_host *cluster, int64_t ttl_ms)
{
    int64_t most = cluster->settings.ttl_most_ms;
    return cluster->time.now_ms + (ttl_ms < 0 ? 0 : ttl_ms > most ? most : ttl_ms);
}

/* May what the question stores be kept?  The namespace and the caller have their shares of this host;
 * CLUSTER_OK: it may. */
static enum cluster_outcome judge_share(const struct cluster_host *cluster, const struct cluster_entry *entry,
                                        const struct cluster_message *question)
{
    struct cluster_payer payer = question->payer;
    struct cluster_limits limits = question->limits;
    if (!cluster->settings.space)
        return CLUSTER_OK;
    payer.space = cluster_space(cluster, question->key);
    limits.space_bytes = cluster->settings.limits.space_bytes;
    limits.space_records = cluster->settings.limits.space_records;
    switch (cluster_table_judge(cluster->table, entry, &payer, &limits, question->key.size,
                                question->content.size)) {
    case CLUSTER_SHARE_FREE:
        return CLUSTER_OK;
    case CLUSTER_SHARE_OF_SPACE:
        return CLUSTER_OUT_OF_MEMORY;
    default:
        return CLUSTER_OUT_OF_SHARE;
    }
}

/* Does what the question asks with the record.  CLUSTER_OUTCOMES: it is done, and has to be copied. */
static enum cluster_outcome change(struct cluster_host *cluster, struct cluster_entry *entry,
                                   const struct cluster_message *question)
{
    struct cluster_stamp before = entry->stamp;
    if (question->deed == CLUSTER_INSERT)
        return CLUSTER_NOT_FREE;
    if (question->stamp.number != 0 && cluster_table_compare(&question->stamp, &before) != 0)
        return CLUSTER_OTHER_STAMP;
    if (question->deed == CLUSTER_READ)
        return CLUSTER_OK;
    int64_t end_ms = end_of(cluster, question->ttl_ms), past_ms = cluster_past(cluster, entry);
    if (question->deed == CLUSTER_CHANGE) {
        enum cluster_outcome verdict = judge_share(cluster, entry, question);
        if (verdict)
            return verdict;
        if (!cluster_table_store(cluster->table, question->level, question->key, entry->digest,
                                 question->content, end_ms))
            return CLUSTER_OUT_OF_MEMORY;
        cluster_pay(cluster, entry, &question->payer);
    } else if (question->deed == CLUSTER_TOUCH) {
        cluster_table_set_end(cluster->table, entry, end_ms);
    } else {
        /* The removal is remembered for as long as any host may have the record, its mark, or a copy of it.
         */
        end_ms = end_of(cluster, cluster->settings.ttl_most_ms) + cluster->settings.request_ms;
        cluster_table_note(cluster->table, CLUSTER_REMOVED, question->level, question->key, entry->digest,
                           end_ms > past_ms ? end_ms : past_ms);
    }
    entry->past_ms = past_ms;
    entry->stamp = next_stamp(cluster, &before, question->silent_count == 0);
    return CLUSTER_OUTCOMES;
}

static void serve_present(struct cluster_host *cluster, struct cluster_entry *entry,
                          const struct cluster_message *question)
{
    if ((entry->is_kept && !cluster->is_settled) ||
        cluster_table_compare(&entry->stamp, &question->known) < 0) {
        pass_on(cluster, question, CLUSTER_NOT_EXHAUSTIVE, entry);
        return;
    }
    /* A nearer host has it, too, and may have changed it since. */
    if (entry->server != 0 && cluster_is_serving(cluster, entry->server) &&
        !is_silent(question, entry->server)) {
        reply(cluster, question, CLUSTER_REDO, NULL);
        return;
    }
    if (question->deed != CLUSTER_READ && !cluster_copy_is_free(cluster)) {
        reply(cluster, question, CLUSTER_REDO, NULL);
        return;
    }
    enum cluster_outcome outcome = change(cluster, entry, question);
    if (outcome == CLUSTER_OUTCOMES)
        cluster_copy_begin(cluster, entry, question);
    else
        reply(cluster, question, outcome, entry);
}

/* This host is the first that can know: the key is free. */
static void insert(struct cluster_host *cluster, const struct cluster_entry *before,
                   const struct cluster_message *question, uint64_t digest)
{
    struct cluster_stamp stamp =
        before && before->kind == CLUSTER_REMOVED ? before->stamp : (struct cluster_stamp){0};
    int64_t past_ms = cluster_past(cluster, before);
    enum cluster_outcome verdict = judge_share(cluster, before, question);
    if (verdict) { /* it stays free, and no host that is farther away is asked */
        reply(cluster, question, verdict, NULL);
        return;
    }
    if (!cluster_copy_is_free(cluster)) {
        reply(cluster, question, CLUSTER_REDO, NULL);
        return;
    }
    struct cluster_entry *entry = cluster_table_store(cluster->table, question->level, question->key, digest,
                                                      question->content, end_of(cluster, question->ttl_ms));
    if (!entry) {
        /* The next host may take it: from now on this one cannot know. */
        cluster_doubt(cluster, question->level, question->key, digest,
                      end_of(cluster, cluster->settings.ttl_most_ms) + cluster->settings.request_ms, true);
        reply(cluster, question, CLUSTER_FULL, NULL);
        return;
    }
    entry->stamp = next_stamp(cluster, &stamp, true);
    entry->past_ms = past_ms;
    entry->is_kept = false;
    cluster_pay(cluster, entry, &question->payer);
    cluster_copy_begin(cluster, entry, question);
}

/* This host knows nothing of the key but perhaps that it may be farther away.
 *
 * A question that was refused here may still make a record at a farther host until it ends.  An insertion at
 * this host before that could be a second one: so a refusal is remembered for as long, and when it is about
 * to be forgotten, or was when this host became sure of all other keys, the question starts again later. */
static void cluster_serve_refuse(struct cluster_host *cluster, struct cluster_entry *entry,
                                 const struct cluster_message *question, uint64_t digest)
{
    int64_t until_ms = cluster->time.now_ms + cluster->settings.request_ms;
    bool is_insertion = question->deed == CLUSTER_INSERT;
    enum cluster_outcome outcome = CLUSTER_NOT_EXHAUSTIVE;
    if (entry && entry->kind != CLUSTER_DOUBTFUL) {
        if (is_insertion)
            entry->wait_ms = until_ms;
    } else if (!cluster_is_exhaustive(cluster, question->level)) {
        if (is_insertion)
            cluster_doubt(cluster, question->level, question->key, digest, until_ms, false);
    } else {
        assert(entry && entry->kind == CLUSTER_DOUBTFUL);
        outcome = CLUSTER_KEY_DOUBTFUL;
        if (is_insertion && entry->is_full &&
            !cluster_table_has_room(cluster->table, question->key.size, question->content.size)) {
            cluster_doubt(cluster, question->level, question->key, digest,
                          until_ms + cluster->settings.ttl_most_ms, true);
            outcome = CLUSTER_FULL;
        } else if (is_insertion && entry->end_ms <= until_ms) {
            outcome = CLUSTER_REDO;
        }
    }
    pass_on(cluster, question, outcome, entry);
}

static void serve_absent(struct cluster_host *cluster, struct cluster_entry *entry,
                         const struct cluster_message *question, uint64_t digest)
{
    int64_t now = cluster->time.now_ms;
    bool is_known =
        entry && entry->kind != CLUSTER_DOUBTFUL
            ? cluster_is_sure(cluster, question->level) && (cluster->is_settled || !entry->is_kept)
            : !entry && cluster_is_exhaustive(cluster, question->level);
    if (!is_known)
        cluster_serve_refuse(cluster, entry, question, digest);
    else if (question->silent_count > 0)
        reply(cluster, question, CLUSTER_UNKNOWN, NULL); /* a silent host may have it; no farther one has */
    else if (question->deed == CLUSTER_INSERT && entry && now < entry->wait_ms)
        reply(cluster, question, CLUSTER_REDO, NULL);
    else if (question->deed == CLUSTER_INSERT)
        insert(cluster, entry, question, digest);
    else {
        if (!entry)
            cluster_table_note(cluster->table, CLUSTER_ABSENT, question->level, question->key, digest,
                               end_of(cluster, cluster->settings.ttl_most_ms));
        reply(cluster, question, CLUSTER_NOT_FOUND, NULL);
    }
}

void cluster_serve(struct cluster_host *cluster, const struct cluster_message *question)
{
    if (cluster->self < 0 || question->version != cluster_map_version(cluster->map) ||
        question->end_ms <= cluster->time.now_ms || question->level == 0 ||
        question->level > cluster_map_depth(cluster->map) || question->key.size > CLUSTER_KEY_MOST) {
        reply(cluster, question, CLUSTER_REDO, NULL);
        return;
    }
    uint64_t digest = cluster_digest(cluster, question->level, question->key);
    struct cluster_entry *entry =
        cluster_table_find(cluster->table, question->level, question->key, digest, cluster->time.now_ms);
    if (entry && entry->round != 0)
        reply(cluster, question, CLUSTER_REDO, NULL); /* held until its last change is at the others */
    else if (entry && entry->kind == CLUSTER_RECORD)
        serve_present(cluster, entry, question);
    else
        serve_absent(cluster, entry, question, digest);
}
