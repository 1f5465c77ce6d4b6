/* resp_listener: channels and patterns, in the order of their subscription. */
#include "journal/resp/resp_listener.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/log.h"
#include "journal/resp/resp_scan.h"
#include "records/records_changes.h"

enum { READINGS_MOST = 4, KEY_STEPS = 25000, EVENT_STEPS = 100, CHANNEL_MOST = RECORDS_KEY_MOST + 64 };

/* --- what is listened to --- */

static struct resp_subscription *find_subscription(struct resp_session *resp, bool is_pattern,
                                                   struct bytes name)
{
    for (size_t i = 0; i < resp->subscription_count; i++)
        if (resp->subscriptions[i].is_pattern == is_pattern && bytes_equal(resp->subscriptions[i].name, name))
            return &resp->subscriptions[i];
    return NULL;
}

static void add_subscription(struct resp_session *resp, bool is_pattern, struct bytes name)
{
    char *copy = malloc(name.size + 1);
    if (!copy)
        log_fatal("out of memory listening");
    memcpy(copy, name.data, name.size);
    resp->subscriptions[resp->subscription_count++] =
        (struct resp_subscription){is_pattern, {copy, name.size}};
}

static void drop_subscription(struct resp_session *resp, struct resp_subscription *one)
{
    size_t place = (size_t)(one - resp->subscriptions);
    free((char *)(uintptr_t)one->name.data);
    resp->subscription_count--;
    memmove(one, one + 1, (resp->subscription_count - place) * sizeof *one);
}

void resp_listener_free(struct resp_session *resp)
{
    while (resp->subscription_count)
        drop_subscription(resp, &resp->subscriptions[resp->subscription_count - 1]);
    resp->is_behind = false;
}

static void reply_subscription(const struct resp_session *resp, const char *what, struct bytes name,
                               struct builder *out)
{
    resp_add_push(out, resp->version, 3);
    resp_add_bulk(out, bytes_of(what));
    if (name.data)
        resp_add_bulk(out, name);
    else
        resp_add_null(out, resp->version);
    resp_add_integer(out, (int64_t)resp->subscription_count);
}

/* Why not; NULL: it may be added. */
static const char *why_not(struct resp_session *resp, bool is_pattern, struct bytes name)
{
    if (find_subscription(resp, is_pattern, name))
        return NULL;
    if (resp->subscription_count == RESP_SUBSCRIPTIONS_MOST)
        return "LISTENS a connection listens to at most 256 channels and patterns";
    if (name.size > CHANNEL_MOST)
        return "ERR a channel or pattern has at most 1088 bytes";
    if (!is_pattern && !bytes_has_prefix(name, BYTES("__keyspace@")) &&
        !bytes_has_prefix(name, BYTES("__keyevent@")))
        return "ERR only the channels __keyspace@… and __keyevent@… have messages";
    return NULL;
}

/* SUBSCRIBE, PSUBSCRIBE: each name has its own reply. */
enum journal_next resp_listener_subscribe(struct journal_session *session, struct builder *out)
{
    struct resp_session *resp = session->resp;
    bool is_pattern = (resp_session_word(session, 0).data[0] | 0x20) == 'p';
    enum journal_next next;
    if (!resp_session_admit(session, false, out, &next))
        return next;
    if (session->is_spread) /* each host learns of its own keys alone */
        return resp_session_refuse_outcome(out, RECORDS_UNSUPPORTED);
    for (size_t i = 1; i < resp_session_count(session); i++) {
        struct bytes name = resp_session_word(session, i);
        const char *refusal = why_not(resp, is_pattern, name);
        if (!refusal && !resp->subscription_count &&
            !records_changes_position(session->records, &resp->position))
            refusal = "BUSY the records are busy; send it again";
        if (refusal)
            return resp_session_refuse(out, refusal);
        if (!find_subscription(resp, is_pattern, name))
            add_subscription(resp, is_pattern, name);
        reply_subscription(resp, is_pattern ? "psubscribe" : "subscribe", name, out);
    }
    return JOURNAL_GO_ON;
}

/* UNSUBSCRIBE, PUNSUBSCRIBE; without names: all. */
enum journal_next resp_listener_unsubscribe(struct journal_session *session, struct builder *out)
{
    struct resp_session *resp = session->resp;
    bool is_pattern = (resp_session_word(session, 0).data[0] | 0x20) == 'p', has_one = false;
    const char *what = is_pattern ? "punsubscribe" : "unsubscribe";
    for (size_t i = 1; i < resp_session_count(session); i++) {
        struct bytes name = resp_session_word(session, i);
        struct resp_subscription *one = find_subscription(resp, is_pattern, name);
        if (one)
            drop_subscription(resp, one);
        reply_subscription(resp, what, name, out);
    }
    for (size_t i = 0; resp_session_count(session) == 1 && i < resp->subscription_count;) {
        struct resp_subscription one = resp->subscriptions[i];
        if (one.is_pattern != is_pattern) {
            i++;
            continue;
        }
        memmove(&resp->subscriptions[i], &resp->subscriptions[i + 1],
                (resp->subscription_count - i - 1) * sizeof one);
        resp->subscription_count--;
        has_one = true;
        reply_subscription(resp, what, one.name, out);
        free((char *)(uintptr_t)one.name.data);
    }
    if (resp_session_count(session) == 1 && !has_one)
        reply_subscription(resp, what, NO_BYTES, out);
    return JOURNAL_GO_ON;
}

/* --- reports --- */

/* A message of a channel, to each subscription that has it. */
static void report_channel(struct journal_session *session, struct bytes channel, struct bytes text,
                           struct builder *out)
{
    const struct resp_session *resp = session->resp;
    for (size_t i = 0; i < resp->subscription_count; i++) {
        const struct resp_subscription *one = &resp->subscriptions[i];
        int64_t left = KEY_STEPS;
        bool is_it =
            one->is_pattern ? resp_glob_matches(one->name, channel, &left) : bytes_equal(one->name, channel);
        session->cost += 2 + (KEY_STEPS - left) / 4;
        if (!is_it)
            continue;
        resp_add_push(out, resp->version, one->is_pattern ? 4 : 3);
        resp_add_bulk(out, one->is_pattern ? BYTES("pmessage") : BYTES("message"));
        if (one->is_pattern)
            resp_add_bulk(out, one->name);
        resp_add_bulk(out, channel);
        resp_add_bulk(out, text);
    }
}

static void report_event(struct journal_session *session, const char *database, struct bytes key,
                         struct bytes event, struct builder *out)
{
    char channel[CHANNEL_MOST];
    int size = snprintf(channel, sizeof channel, "__keyspace@%s__:", database);
    memcpy(channel + size, key.data, key.size);
    report_channel(session, (struct bytes){channel, (size_t)size + key.size}, event, out);
    size = snprintf(channel, sizeof channel, "__keyevent@%s__:%.*s", database, (int)event.size, event.data);
    report_channel(session, (struct bytes){channel, (size_t)size}, key, out);
}

/* Under the number of the database, and under the code of the namespace.  False: the records are busy. */
static bool report_key(struct journal_session *session, struct bytes key, struct builder *out)
{
    struct records_command command = {.deed = RECORDS_GET, .key = key, .is_probe = true};
    char database[32];
    struct records_found found;
    enum records_outcome outcome;
    session->cost += EVENT_STEPS;
    if (!journal_keys_allow(&session->caller, key, false))
        return true;
    command.is_encrypted = session->resp->is_encrypted;
    enum journal_next next = journal_session_run(session, &command, &outcome, &found);
    if (next != JOURNAL_GO_ON || outcome == RECORDS_BUSY)
        return false;
    struct bytes event = outcome == RECORDS_NOT_FOUND ? BYTES("del") : BYTES("set");
    int number = resp_session_database(session);
    snprintf(database, sizeof database, "%d", number);
    if (number >= 0)
        report_event(session, database, key, event, out);
    snprintf(database, sizeof database, "%.*s", (int)session->caller.ns.size, session->caller.ns.data);
    report_event(session, database, key, event, out);
    return true;
}

/* All that was read; what cannot be reported is read again.  False: there is more. */
static bool report_read(struct journal_session *session, struct bytes read, size_t most, int64_t steps,
                        struct builder *out)
{
    struct bytes key;
    uint64_t position;
    while (records_changes_take(&read, &key, &position)) {
        if (out->size >= most || session->cost >= steps || !report_key(session, key, out))
            return false;
        session->resp->position = position;
    }
    return true;
}

enum resp_report resp_listener_report(struct journal_session *session, size_t most, int64_t steps,
                                      struct builder *out)
{
    struct resp_session *resp = session->resp;
    struct records_answer answer;
    enum records_changes_end end = RECORDS_CHANGES_MORE;
    struct builder read = {0};
    bool is_all = journal_session_is_served(session, false, &answer);
    session->is_spread = is_all && answer.is_spread;
    /* A namespace that was replaced by one that is encrypted, or the reverse, has none of the former keys; of
     * one that is spread, each host learns of its own keys alone. */
    bool is_other = is_all && (answer.is_spread || answer.is_encrypted != resp->is_encrypted);
    bool is_counted = false;
    for (int i = 0; i < READINGS_MOST && is_all && !is_other && end == RECORDS_CHANGES_MORE; i++) {
        uint64_t position = resp->position;
        read.size = 0;
        end =
            records_changes_read(session->records, session->caller.ns, resp->is_encrypted, &position, &read);
        if (read.size && !is_counted)
            is_all = is_counted = journal_session_is_served(session, true, &answer);
        is_all = is_all && report_read(session, builder_bytes(&read), most, steps, out);
        if (is_all && end != RECORDS_CHANGES_LOST)
            resp->position = position;
    }
    builder_free(&read);
    resp->is_behind = !is_all || end != RECORDS_CHANGES_ALL;
    return is_other || end == RECORDS_CHANGES_LOST ? RESP_OVERTAKEN
           : resp->is_behind                       ? RESP_HAS_MORE
                                                   : RESP_REPORTED;
}
