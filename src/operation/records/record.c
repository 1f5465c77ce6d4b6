/* record: values by key in memory (records/records.h).  param {"commands":[{"do":word,…}…]} → out
 * {"results":[{"state":word,…}…]}, one after the other, each whole or not at all.
 *
 * Who may do what is in the member `records` of the namespace's configuration (model/record_rules.h): every
 * command is judged before the first one runs, and a record that the caller may not read is not there. */
#include "operation/records/record.h"

#include <inttypes.h>
#include <string.h>

#include "base/clock.h"
#include "base/coding/siphash.h"
#include "edge/crypto/crypto.h"
#include "edge/pattern.h"
#include "model/record_rules.h"
#include "operation/access/access.h"
#include "operation/attempt.h"
#include "operation/builtin.h"
#include "operation/classes.h"
#include "operation/long_poll.h"
#include "operation/record_changes.h"
#include "operation/records/record_hosts.h"
#include "operation/records/record_right.h"
#include "records/records_save.h"

/* The command `listen` of the operation `record`: which keys have changed since a position;
 * waits for the first one, if the client wants it. */

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

/* FAULT_SCLOSED, recorded in the reply: the caller may not read a key that the command names, or none at all.
 */
MUST_USE static enum fault record_listen_judge(const struct reader *reader,
                                               const struct record_request *request,
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
    if (!fault)
        fault = record_right_refuse_spread(&reader, &conf);
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

/* Appends the result, after record_listen_judge, which is repeated after a wait.  What the caller may not
 * read is not there. */
MUST_USE static enum fault record_listen_run(struct attempt *attempt, const struct record_request *request,
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

struct record_work {
    struct attempt *attempt;
    struct reader reader;
    struct records *records;
    size_t quota;
    const struct record_rules *rules;
    bool is_spread;  /* several hosts hold the records of the namespace */
    uint64_t saving; /* what the disk is to have before the answer; 0: nothing */
    size_t saved_states[RECORD_COMMANDS_MOST], saved_count; /* where the body says OK about that */
    int64_t passed, steps;                                  /* left */
};

static bool may(const struct record_work *work, struct bytes key, bool is_write)
{
    return record_right_allows(work->attempt->call, work->rules, key, is_write);
}

/* With what it is answered with: no fault comes behind other commands that have run. */
static enum fault judge_listen(const struct record_work *work, const struct record_request *request)
{
    const struct schema *schema;
    return FAULT_FIRST(record_listen_judge(&work->reader, request, work->rules),
                       classes_schema(work->attempt, &schema));
}

static enum fault record_judge(const struct record_work *work, struct record_request *request)
{
    const struct records_command *command = &request->command;
    bool is_write = record_is_write(request);
    if (request->is_listen)
        return judge_listen(work, request);
    if (request->is_query)
        return FAULT_NONE; /* each record that it finds */
    bool is_allowed =
        may(work, command->key, is_write) && (!command->to.data || may(work, command->to, true));
    for (size_t i = 0; i < command->more_count && is_allowed; i++)
        is_allowed = may(work, command->more[i], true);
    return is_allowed ? record_right_hold(&work->reader, work->rules, request)
                      : record_right_refuse(&work->reader, request->at);
}

/* What a command that changes a record answers about it is for those who may read it. */
static void write_found(const struct record_work *work, const struct records_found *found)
{
    struct builder *body = work->attempt->reply->body;
    if (!found->key.data || !may(work, found->key, false))
        return;
    json_add_text(body, ",\"key\":", found->key);
    record_write(body, found);
}

/* What was found is to be on disk before the answer, of which the state of the command is here. */
static void note_saving(struct record_work *work, const struct records_found *found, size_t state_at)
{
    work->saving = found->saving;
    if (!work->saved_count || work->saved_states[work->saved_count - 1] != state_at)
        work->saved_states[work->saved_count++] = state_at;
}

/* OK becomes NOT_SAVED, where it was said too early. */
static void take_back(struct record_work *work)
{
    static const char more[] = "NOT_SAVED";
    struct builder *body = work->attempt->reply->body;
    size_t longer = strlen(more) - strlen("OK");
    while (work->saved_count) {
        size_t at = work->saved_states[--work->saved_count];
        builder_reserve(body, longer);
        memmove(body->data + at + longer, body->data + at, body->size - at);
        memcpy(body->data + at, more, strlen(more));
        body->size += longer;
    }
}

/* Noted before it runs, so that no fault behind it, and no end of the worker, counts as "nothing was
 * changed". */
static enum records_outcome run_command(const struct record_work *work, bool is_write,
                                        const struct records_command *command, struct records_found *found_r)
{
    if (is_write)
        attempt_note_change(work->attempt);
    enum records_outcome outcome =
        work->is_spread ? record_hosts_run(work->attempt, command, found_r)
                        : records_run(work->records, work->attempt->call->ns, work->quota, command, found_r);
    if (is_write && outcome != RECORDS_OK && outcome != RECORDS_UNKNOWN && !found_r->saving)
        attempt_undo_change(work->attempt);
    return outcome;
}

/* For one more content: its characters may be escaped, so half of the answer is left for it. */
static bool record_has_room(const struct record_work *work)
{
    return work->attempt->reply->body->size < (size_t)work->reader.settings->limit_answer_bytes / 2;
}

/* Nothing was done. */
static enum fault refuse_one(struct record_work *work, const char *word)
{
    builder_printf(work->attempt->reply->body, "{\"state\":\"%s\"}", word);
    return FAULT_NONE;
}

static enum fault run_one(struct record_work *work, const struct record_request *request)
{
    struct builder *body = work->attempt->reply->body;
    struct records_found found;
    if (request->command.deed == RECORDS_GET && !request->command.is_probe && !record_has_room(work))
        return refuse_one(work, "NO_ROOM");
    struct records_command command = request->command;
    command.shows_present = record_has_room(work);
    enum records_outcome outcome = run_command(work, record_is_write(request), &command, &found);
    builder_printf(body, "{\"state\":\"%s\"", records_outcome_word(outcome));
    if (found.saving && outcome == RECORDS_OK)
        note_saving(work, &found, body->size - strlen("OK\""));
    else if (found.saving)
        work->saving = found.saving; /* a deletion that came before what it deletes */
    write_found(work, &found);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

/* --- many --- */

struct record_page {
    const struct record_query *query;
    const struct pattern *pattern; /* NULL: any */
    size_t state_at;               /* in the body */
    struct bytes last;             /* the key that was looked at last, in the arena */
    struct bytes to;               /* the end of what is looked at; NO_BYTES: none */
    int64_t count;
    bool is_over;
};

static struct bytes keep_text(const struct record_work *work, struct bytes text)
{
    return arena_keep(work->attempt->call->arena, text);
}

/* Each key has steps of its own: whether it is found does not depend on the keys before it. */
static bool is_match(struct record_work *work, const struct record_page *page)
{
    int64_t left = RECORD_KEY_STEPS;
    enum pattern_result result = pattern_match(page->pattern, page->last, &left);
    work->steps -= RECORD_KEY_STEPS - left;
    return result == PATTERN_MATCHES;
}

/* One key: is it wanted?  Sets is_over at the end of the prefix, and when a limit of the request is used up.
 */
static bool is_wanted(struct record_work *work, struct record_page *page, bool is_write)
{
    if (page->query->prefix.data && !bytes_has_prefix(page->last, page->query->prefix)) {
        page->is_over = bytes_compare(page->last, page->query->prefix) > 0;
        return false;
    }
    if (is_write && !may(work, page->last, true))
        return false;
    return !page->pattern || is_match(work, page);
}

static enum records_outcome record_add_record(struct record_work *work, struct record_page *page,
                                              const struct record_request *request)
{
    struct builder *body = work->attempt->reply->body;
    struct records_found found;
    struct records_command command = request->command;
    bool is_write = record_is_write(request);
    command.key = page->last;
    if (is_write)
        record_right_hold_one(&work->reader, work->rules, page->last, &command);
    enum records_outcome outcome = run_command(work, is_write, &command, &found);
    if (outcome != RECORDS_OK && outcome != RECORDS_NOT_READ)
        return outcome; /* gone meanwhile, worked on, BUSY, or a mark without room */
    if (found.saving)
        note_saving(work, &found, page->state_at);
    builder_printf(body, "%s{\"key\":", page->count++ ? "," : "");
    json_add_string(body, found.key);
    record_write(body, &found);
    if (outcome == RECORDS_NOT_READ)
        builder_add_text(body, ",\"state\":\"NOT_READ\"");
    builder_add_text(body, "}");
    return RECORDS_OK;
}

/* The first key to look at: an end of the range, the prefix, or behind the page before. */
static struct bytes find_start(const struct record_query *query)
{
    bool is_prefix_later = query->prefix.data && bytes_compare(query->prefix, query->from) > 0;
    struct bytes start = is_prefix_later ? query->prefix : query->from;
    return start.data ? start : BYTES("");
}

/* What the caller may not read is not even passed: where a page ends would show its keys. */
static void pass_hidden(const struct record_work *work, struct record_page *page, struct bytes key,
                        struct bytes *from_r)
{
    const struct call *call = work->attempt->call;
    *from_r = record_rules_seek(call->arena, work->rules, &call->caller, key);
    page->is_over = !from_r->data;
}

static bool may_go_on(const struct record_work *work)
{
    return work->passed > 0 && work->steps > 0 && record_has_room(work);
}

static bool ends_page(enum records_outcome outcome)
{
    return outcome == RECORDS_BUSY || outcome == RECORDS_OUT_OF_MEMORY || outcome == RECORDS_OUT_OF_SHARE;
}

static enum fault run_many(struct record_work *work, const struct record_request *request)
{
    struct builder *body = work->attempt->reply->body;
    struct record_page page = {
        .query = &request->query, .pattern = request->pattern, .last = request->query.after};
    enum records_outcome outcome = RECORDS_OK;
    const size_t start = body->size;
    page.state_at = body->size + strlen("{\"state\":\"");
    builder_add_text(body, "{\"state\":\"OK\",\"records\":[");
    struct bytes from = find_start(page.query), after = page.last;
    while (!page.is_over && page.count < page.query->limit && may_go_on(work)) {
        struct records_found found;
        outcome = records_next(work->records, work->attempt->call->ns, request->command.is_encrypted, from,
                               after, page.query->to, &found);
        if (!found.key.data)
            break;
        work->passed -= outcome == RECORDS_BUSY ? RECORDS_STEPS : 1;
        struct bytes key = keep_text(work, found.key);
        if (!may(work, key, false)) {
            pass_hidden(work, &page, key, &from);
            after = NO_BYTES;
            continue;
        }
        const struct bytes before = page.last;
        page.last = after = key;
        if (outcome == RECORDS_OK && is_wanted(work, &page, record_is_write(request)) &&
            ends_page(outcome = record_add_record(work, &page, request))) {
            page.last = before; /* the next page begins with it */
            break;
        }
        outcome = RECORDS_OK;
    }
    bool is_end = page.is_over || outcome == RECORDS_NOT_FOUND;
    bool is_stuck =
        !page.count && ends_page(outcome) && outcome != RECORDS_BUSY; /* as the next one would be */
    if (!is_end &&
        (!page.last.data || is_stuck)) { /* a page without `after` would mean that there is no more */
        body->size = start;
        return refuse_one(work, ends_page(outcome) ? records_outcome_word(outcome) : "NO_ROOM");
    }
    builder_add_text(body, "]");
    if (!is_end)
        json_add_text(body, ",\"after\":", page.last);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

/* --- the operation --- */

/* Of a spread namespace no host has all keys, and each learns of its own changes alone. */
static enum fault run_any(struct record_work *work, const struct record_request *request)
{
    if (work->is_spread && (request->is_listen || request->is_query))
        return refuse_one(work, records_outcome_word(RECORDS_UNSUPPORTED));
    if (request->is_listen)
        return record_listen_run(work->attempt, request, work->rules);
    return request->is_query ? run_many(work, request) : run_one(work, request);
}

/* A request listens once, and waits only when it does nothing else. */
static enum fault check_listens(const struct record_work *work, const struct record_request *requests,
                                size_t count)
{
    size_t listens = 0;
    for (size_t i = 0; i < count; i++) {
        listens += requests[i].is_listen;
        if (listens > 1)
            return reader_wrong_value(&work->reader, requests[i].at, "do",
                                      "At most one listen in a request is expected.");
        if (requests[i].listen.wait_ms && count > 1)
            return reader_wrong(&work->reader, requests[i].at, "wait",
                                "A listen that waits is expected to be the only command.");
    }
    return FAULT_NONE;
}

static enum fault run_all(struct record_work *work, const struct record_request *requests, size_t count)
{
    struct builder *body = work->attempt->reply->body;
    enum fault fault = FAULT_NONE;
    builder_add_text(body, "{\"results\":[");
    for (size_t i = 0; i < count && !fault; i++) {
        if (i)
            builder_add_text(body, ",");
        fault = run_any(work, &requests[i]);
    }
    builder_add_text(body, "]}");
    if (work->saving && !records_save(work->records, work->saving))
        take_back(work);
    return fault;
}

/* Another try, after a conflict of what the request does beside, must not run the commands again. */
static enum fault record_work(struct attempt *attempt)
{
    const struct settings *settings = attempt->worker_context->settings;
    struct record_work work = {
        .attempt = attempt,
        .reader = {settings, attempt->call, attempt->reply},
        .records = attempt->worker_context->segment->records,
        .quota = (size_t)settings->limit_namespace_records_mb << 20,
        .passed = RECORD_PASSED_MOST,
        .steps = RECORD_MATCH_STEPS,
    };
    const struct json *commands;
    struct ns_conf conf;
    struct builder *body = attempt->reply->body;
    const struct bytes *done = attempt->kept;
    if (done) {
        builder_add_bytes(body, *done);
        return FAULT_NONE;
    }
    enum fault fault = reader_members(&work.reader, attempt->call->param, "commands");
    if (!fault && !work.records)
        fault = reply_fault(attempt->call, attempt->reply, FAULT_ORECORDS, NULL, NULL);
    if (!fault)
        fault = FAULT_FIRST(reader_array(&work.reader, attempt->call->param, "commands", "record_commands",
                                         RECORD_COMMANDS_MOST, &commands),
                            access_configuration(attempt->worker_context, attempt->call, &conf));
    if (fault)
        return fault;
    work.rules = conf.records;
    work.is_spread = conf.is_spread;
    struct record_request *requests =
        ARENA_ARRAY(attempt->call->arena, struct record_request, commands->count + 1);
    size_t count = 0;
    for (const struct json *one = commands->first; one && !fault; one = one->next, count++) {
        fault = record_read(&work.reader, one, &requests[count]);
        requests[count].command.is_encrypted = conf.is_encrypted;
        requests[count].command.records_most =
            (uint64_t)attempt->worker_context->settings->limit_namespace_records;
        if (!fault)
            fault = record_judge(&work, &requests[count]);
    }
    if (!fault)
        fault = check_listens(&work, requests, count);
    size_t start = body->size;
    if (!fault)
        fault = run_all(&work, requests, count);
    if (fault)
        return fault;
    struct bytes *kept = ARENA_ARRAY(attempt->call->arena, struct bytes, 1);
    *kept = keep_text(&work, (struct bytes){body->data + start, body->size - start});
    attempt->kept = kept;
    attempt->has_acted = !record_is_look(attempt->call);
    return FAULT_NONE;
}

const struct operation builtin_record = {.name = "record",
                                         .right = RIGHT_PUBLIC,
                                         .is_secret = true,
                                         .work = record_work,
                                         .is_look = record_is_look};
