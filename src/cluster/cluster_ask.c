/* cluster_ask: a question walks over the hosts from the nearest one on, until one knows the answer. */
#include "cluster/cluster_private.h"

#include <stdlib.h>

enum { REDO_MS = 20 };

static uint64_t next_id(struct cluster_host *cluster, const struct cluster_question *question)
{
    return ++cluster->last_id * cluster->settings.asks_most + (uint64_t)(question - cluster->questions);
}

/* One question more, or less. */
static void count_ask(struct cluster_host *cluster, const struct cluster_question *question, int by)
{
    struct cluster_asks *asks[] = {&cluster->asks, &cluster->asks_of[question->space]};
    size_t bytes = question->request.key.size + question->request.content.size;
    for (size_t i = 0; i < COUNT_OF(asks); i++) {
        asks[i]->count += (uint32_t)by;
        asks[i]->bytes += by < 0 ? -bytes : bytes;
    }
}

/* One content is always taken; a namespace has no more than its part, so that others have room. */
static bool may_ask(const struct cluster_host *cluster, uint32_t space, size_t bytes)
{
    const struct cluster_asks *of_space = &cluster->asks_of[space];
    size_t most = cluster->settings.asks_bytes;
    if (!cluster->settings.space)
        return true;
    return of_space->count < (cluster->settings.asks_most + 1) / CLUSTER_SPACE_PART &&
           (!most || !cluster->asks.count || cluster->asks.bytes + bytes <= most) &&
           (!most || !of_space->count || of_space->bytes + bytes <= most / CLUSTER_SPACE_PART);
}

static void finish(struct cluster_host *cluster, struct cluster_question *question,
                   const struct cluster_answer *answer)
{
    struct cluster_answer with_hosts = *answer;
    with_hosts.hosts = question->asked;
    uint64_t cookie = question->cookie;
    count_ask(cluster, question, -1);
    free((char *)question->request.key.data);
    free((char *)question->request.content.data);
    *question = (struct cluster_question){0};
    cluster->hooks.answer(cluster->hooks.context, cookie, &with_hosts);
}

static void finish_with(struct cluster_host *cluster, struct cluster_question *question,
                        enum cluster_outcome outcome)
{
    finish(cluster, question, &(struct cluster_answer){.outcome = outcome, .is_sure = true});
}

static void ask(struct cluster_host *cluster, struct cluster_question *question, uint32_t number)
{
    const struct cluster_request *request = &question->request;
    int64_t now = cluster->time.now_ms;
    question->to = number;
    /* An answer to a change comes after its copies. */
    question->silent_ms = now + cluster->settings.silence_ms * (request->deed == CLUSTER_READ ? 1 : 3);
    question->pause_ms = 0;
    question->id = next_id(cluster, question);
    question->asked++;
    struct cluster_message message = {.kind = CLUSTER_ASK,
                                      .to = number,
                                      .id = question->id,
                                      .level = request->level,
                                      .key = request->key,
                                      .content = request->content,
                                      .deed = request->deed,
                                      .ttl_ms = request->ttl_ms,
                                      .stamp = request->stamp,
                                      .payer = request->payer,
                                      .limits = request->limits,
                                      .known = question->known,
                                      .end_ms = cluster_time_of(cluster, number, question->ends_ms),
                                      .silent_count = question->silent_count};
    memcpy(message.silent, question->silent, sizeof message.silent);
    question->has_time = message.end_ms != 0;
    cluster_send(cluster, &message);
}

/* A guest may have what no other host had room for, and is not asked. */
static bool has_guests(const struct cluster_map *map)
{
    for (uint32_t at = 0; at < cluster_map_count(map); at++)
        if (cluster_map_member(map, at)->is_guest)
            return true;
    return false;
}

/* All have been asked, and nobody has it. */
static void conclude(struct cluster_host *cluster, struct cluster_question *question)
{
    enum cluster_outcome outcome = CLUSTER_UNKNOWN;
    bool is_insertion = question->request.deed == CLUSTER_INSERT;
    if (question->full + question->doubtful + question->not_exhaustive + question->silent_count == 0)
        outcome = CLUSTER_NO_PARTICIPANTS;
    else if (question->not_exhaustive + question->silent_count > 0)
        outcome = CLUSTER_UNKNOWN;
    else if (!is_insertion)
        /* Each of them only feared that another one has it. */
        outcome = has_guests(cluster->map) ? CLUSTER_UNKNOWN : CLUSTER_NOT_FOUND;
    else if (question->doubtful == 0)
        outcome = CLUSTER_OUT_OF_MEMORY;
    finish_with(cluster, question, outcome);
}

static void cluster_ask_go_on(struct cluster_host *cluster, struct cluster_question *question)
{
    int64_t at = cluster_map_next(&question->walk);
    if (at < 0)
        conclude(cluster, question);
    else
        ask(cluster, question, cluster_map_member(cluster->map, (uint32_t)at)->number);
}

static void start(struct cluster_host *cluster, struct cluster_question *question)
{
    question->is_of_former_map = false;
    question->known = (struct cluster_stamp){0};
    question->silent_count = question->full = question->doubtful = question->not_exhaustive = 0;
    const struct cluster_request *request = &question->request;
    if (!cluster->map || (cluster->self < 0 && request->level < cluster_map_depth(cluster->map))) {
        finish_with(cluster, question, CLUSTER_NO_PARTICIPANTS);
        return;
    }
    cluster_map_begin(&question->walk, cluster->map, cluster_digest(cluster, request->level, request->key),
                      request->level, (uint32_t)(cluster->self < 0 ? 0 : cluster->self));
    cluster_ask_go_on(cluster, question);
}

bool cluster_ask(struct cluster_host *cluster, const struct cluster_request *request, uint64_t cookie,
                 struct cluster_time time)
{
    cluster->time = time;
    unsigned depth = cluster->map ? cluster_map_depth(cluster->map) : CLUSTER_LEVELS_MOST;
    if (request->level == 0 || request->level > depth || request->key.size > CLUSTER_KEY_MOST)
        return false;
    uint32_t at = 0, space = (uint32_t)(cluster_space(cluster, request->key) % CLUSTER_SPACES);
    if (!may_ask(cluster, space, request->key.size + request->content.size))
        return false;
    while (at < cluster->settings.asks_most && cluster->questions[at].id != 0)
        at++;
    if (at == cluster->settings.asks_most)
        return false;
    struct cluster_question *question = &cluster->questions[at];
    *question = (struct cluster_question){.id = next_id(cluster, question),
                                          .cookie = cookie,
                                          .request = *request,
                                          .space = space,
                                          .ends_ms = time.now_ms + cluster->settings.request_ms};
    question->request.key = cluster_copy_text(request->key);
    question->request.content = cluster_copy_text(request->content);
    count_ask(cluster, question, 1);
    start(cluster, question);
    return true;
}

/* An answer to the former walk is none any more. */
static void start_later(struct cluster_host *cluster, struct cluster_question *question)
{
    question->id = next_id(cluster, question);
    question->pause_ms = cluster->time.now_ms + REDO_MS;
}

void cluster_ask_restart(struct cluster_host *cluster)
{
    for (uint32_t at = 0; at < cluster->settings.asks_most; at++) {
        struct cluster_question *question = &cluster->questions[at];
        if (question->id == 0)
            continue;
        /* A change may have happened where it was sent: its answer is waited for. */
        question->is_of_former_map = true;
        if (question->request.deed == CLUSTER_READ)
            start_later(cluster, question);
    }
}

/* A host has decided. */
static void conclude_with(struct cluster_host *cluster, struct cluster_question *question,
                          const struct cluster_message *message)
{
    struct cluster_answer answer = {.outcome = message->outcome,
                                    .content = message->content,
                                    .ttl_ms = message->ttl_ms,
                                    .stamp = message->stamp,
                                    .copies = message->copies,
                                    .is_sure = message->is_sure && question->silent_count == 0};
    if (question->is_ambiguous)
        answer.outcome = CLUSTER_UNKNOWN;
    finish(cluster, question, &answer);
}

void cluster_ask_heed(struct cluster_host *cluster, const struct cluster_message *message)
{
    struct cluster_question *question = &cluster->questions[message->id % cluster->settings.asks_most];
    if (question->id == 0 || question->id != message->id || question->to != message->from ||
        question->pause_ms != 0)
        return;
    switch ((int)message->outcome) {
    case CLUSTER_NOT_EXHAUSTIVE:
        question->not_exhaustive++;
        break;
    case CLUSTER_KEY_DOUBTFUL:
        question->doubtful++;
        break;
    case CLUSTER_FULL:
        question->full++;
        break;
    case CLUSTER_REDO:
        if (!question->has_time && message->version == cluster_map_version(cluster->map)) {
            ask(cluster, question, question->to); /* its clock is known now */
            return;
        }
        start_later(cluster, question);
        return;
    default:
        conclude_with(cluster, question, message);
        return;
    }
    if (cluster_table_compare(&message->stamp, &question->known) > 0)
        question->known = message->stamp;
    if (question->is_of_former_map)
        start_later(cluster, question);
    else
        cluster_ask_go_on(cluster, question);
}

/* The host that was asked does not answer: it may have done it, or do it yet. */
static void pass_over(struct cluster_host *cluster, struct cluster_question *question)
{
    question->is_ambiguous = question->request.deed != CLUSTER_READ;
    if (question->silent_count == CLUSTER_SILENT_MOST || question->is_of_former_map) {
        finish_with(cluster, question, CLUSTER_UNKNOWN);
        return;
    }
    question->silent[question->silent_count++] = question->to;
    cluster_ask_go_on(cluster, question);
}

void cluster_ask_tick(struct cluster_host *cluster)
{
    int64_t now = cluster->time.now_ms;
    for (uint32_t at = 0; at < cluster->settings.asks_most; at++) {
        struct cluster_question *question = &cluster->questions[at];
        if (question->id == 0)
            continue;
        if (now >= question->ends_ms) {
            finish_with(cluster, question, CLUSTER_UNKNOWN);
        } else if (question->pause_ms != 0) {
            if (now >= question->pause_ms)
                start(cluster, question);
        } else if (now >= question->silent_ms) {
            pass_over(cluster, question);
        }
    }
}
