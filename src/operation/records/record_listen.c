/* record_listen: a long poll of the ring of changes. */
#include "operation/records/record_listen.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/coding/siphash.h"
#include "edge/crypto/crypto.h"
#include "operation/access/access.h"
#include "operation/records/record_right.h"
#include "operation/long_poll.h"
#include "operation/record_changes.h"

enum {
    KEYS_MOST = 1000, /* of an answer */
    RENEW_MS = 1000   /* between two judgements of a caller that waits */
};

struct listening {
    struct attempt *attempt;
    const struct record_request *request;
    const struct record_rules *rules;
    struct record_changes changes;
    struct siphash_key secret;
    uint64_t hashes[KEYS_MOST]; /* of the keys that are in the answer */
    size_t count;
    int64_t judged_ms;
};

/* --- what is listened to --- */

static bool is_in_range(const struct record_query *query, struct bytes key)
{
    return (!query->from.data || bytes_compare(key, query->from) >= 0) &&
           (!query->to.data || bytes_compare(key, query->to) <= 0);
}

static bool is_listened_to(const struct record_request *request, struct bytes key)
{
    const struct record_listen *listen = &request->listen;
    bool has_range = request->query.from.data || request->query.to.data;
    for (size_t i = 0; i < listen->key_count; i++)
        if (bytes_equal(listen->keys[i], key))
            return true;
    for (size_t i = 0; i < listen->prefix_count; i++)
        if (bytes_has_prefix(key, listen->prefixes[i]))
            return true;
    return has_range ? is_in_range(&request->query, key) : !listen->key_count && !listen->prefix_count;
}

/* --- reading --- */

static bool is_new(struct listening *listening, struct bytes key)
{
    uint64_t hash = siphash_short(&listening->secret, key);
    for (size_t i = 0; i < listening->count; i++)
        if (listening->hashes[i] == hash)
            return false;
    listening->hashes[listening->count] = hash;
    return true;
}

static bool record_listen_has_room(const struct listening *listening)
{
    int64_t most = listening->attempt->worker_context->settings->limit_answer_bytes / 2;
    return listening->count < KEYS_MOST && listening->attempt->reply->body->size < (size_t)most;
}

static bool take_key(void *context, struct bytes key)
{
    struct listening *listening = context;
    struct builder *body = listening->attempt->reply->body;
    if (!is_listened_to(listening->request, key) ||
        !record_right_allows(listening->attempt->call, listening->rules, key, false))
        return true;
    if (!record_listen_has_room(listening))
        return false;
    if (is_new(listening, key)) {
        builder_printf(body, "%s", listening->count++ ? "," : "");
        json_add_string(body, key);
    }
    return true;
}

/* --- rights --- */

enum fault record_listen_judge(const struct reader *reader, const struct record_request *request,
                               const struct record_rules *rules)
{
    const struct record_listen *listen = &request->listen;
    bool is_allowed = record_right_allows_some(reader->call, rules);
    for (size_t i = 0; i < listen->key_count && is_allowed; i++)
        is_allowed = record_right_allows(reader->call, rules, listen->keys[i], false);
    return is_allowed ? FAULT_NONE : record_right_refuse(reader, request->at);
}

/* After a wait the rights of the caller, and the rules, may have changed. */
static enum fault judge_again(struct listening *listening)
{
    struct attempt *attempt = listening->attempt;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct ns_conf conf;
    enum fault fault =
        access_renew(attempt->worker_context, attempt->call, attempt->reply, attempt->operation);
    if (!fault)
        fault = access_configuration(attempt->worker_context, attempt->call, &conf);
    if (fault)
        return fault;
    listening->rules = conf.records;
    listening->changes.is_encrypted = conf.is_encrypted;
    listening->judged_ms = clock_monotonic_ms();
    return record_listen_judge(&reader, listening->request, conf.records);
}

/* --- waiting --- */

struct sighting {
    const struct record_request *request;
    bool is_there;
};

static bool note_key(void *context, struct bytes key)
{
    struct sighting *sighting = context;
    sighting->is_there = is_listened_to(sighting->request, key);
    return !sighting->is_there;
}

static bool record_listen_is_worth_a_look(void *context)
{
    const struct listening *listening = context;
    return record_changes_are_likely(&listening->changes) ||
           clock_monotonic_ms() >= listening->judged_ms + RENEW_MS;
}

/* Nothing is written before the caller was judged again. */
static enum fault look_again(void *context, bool *is_over_r)
{
    struct listening *listening = context;
    struct sighting sighting = {.request = listening->request};
    record_changes_read(&listening->changes, note_key, &sighting);
    bool is_found = sighting.is_there || listening->changes.is_lost;
    enum fault fault = is_found || clock_monotonic_ms() >= listening->judged_ms + RENEW_MS
                           ? judge_again(listening)
                           : FAULT_NONE;
    if (!fault && sighting.is_there)
        record_changes_read(&listening->changes, take_key, listening);
    *is_over_r = listening->count || listening->changes.is_lost;
    return fault;
}

static enum fault wait_for_change(struct listening *listening, struct long_poll *poll)
{
    const struct settings *settings = listening->attempt->worker_context->settings;
    *poll = (struct long_poll){
        .kind = PULSE_WAITS_FOR_RECORDS,
        .wait_ms = listening->request->listen.wait_ms,
        .processes = settings->record_waiters,
        .context = listening,
        .is_worth_a_look = record_listen_is_worth_a_look,
        .look = look_again,
    };
    if (poll->wait_ms > settings->record_wait_s * 1000)
        poll->wait_ms = settings->record_wait_s * 1000;
    return long_poll_wait(listening->attempt, poll);
}

/* --- the answer --- */

static enum fault write_end(struct listening *listening, const struct long_poll *poll)
{
    struct builder *body = listening->attempt->reply->body;
    struct bytes position = NO_BYTES;
    enum fault fault = record_changes_position(&listening->changes, &position);
    if (fault)
        return fault;
    builder_printf(body, "]%s,\"position\":", listening->changes.is_lost ? ",\"lost\":true" : "");
    json_add_string(body, position);
    if (listening->request->listen.wait_ms)
        builder_printf(body, ",\"pause\":%" PRId64, poll->pauses_ms);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

enum fault record_listen_run(struct attempt *attempt, const struct record_request *request,
                             const struct record_rules *rules)
{
    struct builder *body = attempt->reply->body;
    struct listening *listening = ARENA_ARRAY(attempt->call->arena, struct listening, 1);
    struct long_poll poll = {0};
    size_t start = body->size;
    bool is_busy;
    *listening = (struct listening){
        .attempt = attempt, .request = request, .rules = rules, .judged_ms = clock_monotonic_ms()};
    crypto_random(&listening->secret, sizeof listening->secret);
    enum fault fault = record_changes_begin(attempt, request->command.is_encrypted, request->listen.since,
                                            &listening->changes, &is_busy);
    builder_add_text(body, "{\"state\":\"OK\",\"keys\":[");
    if (!fault && !is_busy && request->listen.since.data)
        is_busy = !record_changes_read(&listening->changes, take_key, listening);
    if (!fault && is_busy) {
        body->size = start;
        builder_add_text(body, "{\"state\":\"BUSY\"}");
        return FAULT_NONE;
    }
    if (!fault && !listening->count && !listening->changes.is_lost)
        fault = wait_for_change(listening, &poll);
    return fault ? fault : write_end(listening, &poll);
}
