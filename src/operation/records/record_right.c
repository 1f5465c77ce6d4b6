/* record_right: the rules for records, for everybody but the administrator. */
#include "operation/records/record_right.h"

#include <string.h>

#include "base/clock.h"
#include "base/coding/siphash.h"
#include "operation/access/access.h"
#include "operation/quota.h"

bool record_right_allows(const struct call *call, const struct record_rules *rules, struct bytes key,
                         bool is_write)
{
    return access_is_administrator(call) || record_rules_allow(rules, &call->caller, key, is_write);
}

bool record_right_allows_some(const struct call *call, const struct record_rules *rules)
{
    return access_is_administrator(call) ||
           record_rules_seek(call->arena, rules, &call->caller, BYTES("")).data;
}

enum fault record_right_refuse(const struct reader *reader, const struct json *command)
{
    enum fault fault = reply_fault(reader->call, reader->reply, FAULT_SCLOSED,
                                   "No rule for records of the namespace allows it.", "record", NULL);
    reader_place(reader, command, NULL);
    return fault;
}

enum fault record_right_refuse_spread(const struct reader *reader, const struct ns_conf *conf)
{
    return conf->is_spread
               ? reply_fault(reader->call, reader->reply, FAULT_ORECORDS,
                             "Several hosts hold the records of this namespace: stamp-journal serves them.",
                             NULL)
               : FAULT_NONE;
}

/* --- terms --- */

/* Where a rule has no numbers of its own: of what the namespace may have, all callers of a rule get a part,
 * and each of them another one.  All callers of all rules leave something for the administrator. */
enum { RULE_PART = 2, CALLER_PART = 16, PAYERS_QUARTERS = 3 };
#define ANYONE_TTL_MOST_MS INT64_C(86400000)

/* The same in all processes, and on disk. */
static uint64_t digest(const struct reader *reader, struct bytes prefix, const char *kind,
                       struct bytes subject)
{
    static const struct siphash_key key = {{UINT64_C(0x7265636f72647320), UINT64_C(0x7061796572732e31)}};
    size_t size = prefix.size + 2 + subject.size;
    char *text = arena_alloc(reader->call->arena, size);
    memcpy(text, prefix.data, prefix.size);
    text[prefix.size] = 0;
    text[prefix.size + 1] = *kind;
    if (subject.size)
        memcpy(text + prefix.size + 2, subject.data, subject.size);
    uint64_t found = siphash_short(&key, (struct bytes){text, size});
    return found ? found : 1;
}

static int64_t ttl_most(const struct record_terms *terms)
{
    bool is_standard = !terms->ttl_most_ms && terms->writers == RECORD_WRITERS_ALL;
    return !is_standard                         ? terms->ttl_most_ms
           : terms->ttl_ms > ANYONE_TTL_MOST_MS ? terms->ttl_ms
                                                : ANYONE_TTL_MOST_MS;
}

static uint64_t own_or_part(int64_t own, uint64_t part)
{
    return own ? (uint64_t)own : part;
}

/* What the caller, an account or an address, may have by the rule. */
static const struct records_payer *find_payer(const struct reader *reader, const struct record_terms *terms)
{
    const struct settings *settings = reader->settings;
    struct call *call = reader->call;
    int64_t mb =
        settings->limit_namespace_records_mb ? settings->limit_namespace_records_mb : settings->records_mb;
    uint64_t whole = (uint64_t)mb << 20, part = terms->writers == RECORD_WRITERS_ROLE ? 0 : whole;
    struct bytes account = quota_subject(call, QUOTA_ACCOUNT);
    struct bytes address = account.data ? NO_BYTES : quota_subject(call, QUOTA_ADDRESS);
    struct records_payer *payer = ARENA_NEW(call->arena, struct records_payer);
    *payer = (struct records_payer){
        .rule = digest(reader, terms->prefix, "r", BYTES("")),
        .caller = digest(reader, terms->prefix, account.data ? "a" : "c", account.data ? account : address),
        .rule_bytes = own_or_part(terms->bytes, part / RULE_PART),
        .rule_records = (uint64_t)terms->records,
        .payers_bytes = whole / 4 * PAYERS_QUARTERS,
    };
    if (!account.data && !address.data)
        return payer; /* an address without limits */
    payer->caller_bytes = own_or_part(terms->caller_bytes, part / CALLER_PART);
    payer->caller_records = (uint64_t)terms->caller_records;
    return payer;
}

static void record_right_shorten(int64_t *most_ms, const struct record_terms *terms)
{
    int64_t most = terms ? ttl_most(terms) : 0;
    if (most && (!*most_ms || most < *most_ms))
        *most_ms = most;
}

static enum fault check_member(const struct reader *reader, const struct record_request *request,
                               const char *member, int64_t most_ms, int64_t given_ms)
{
    return most_ms && given_ms > most_ms
               ? reader_over(reader, json_member(request->at, member), "ttl_most_ms", most_ms, given_ms)
               : FAULT_NONE;
}

static enum fault check_times(const struct reader *reader, const struct record_request *request,
                              int64_t most_ms)
{
    const struct records_command *command = &request->command;
    const char *lease = command->deed == RECORDS_LOCK ? "lock_ms" : "work_ms";
    return FAULT_FIRST(check_member(reader, request, "ttl_ms", most_ms, request->ttl_ms),
                       check_member(reader, request, "touch_s", most_ms, command->touch_s * 1000),
                       check_member(reader, request, lease, most_ms, command->lease_ms));
}

/* What a `get` of many, or a module, wants for longer. */
static void cut_times(struct records_command *command, int64_t most_ms)
{
    if (most_ms && command->lease_ms > most_ms)
        command->lease_ms = most_ms;
    if (most_ms && command->touch_s > most_ms / 1000)
        command->touch_s = most_ms / 1000;
}

static void hold_record_right(const struct reader *reader, const struct record_terms *terms, int64_t most_ms,
                              struct records_command *command)
{
    int64_t now_ms = clock_present_ms();
    bool is_made = command->deed == RECORDS_SET || command->deed == RECORDS_ADD;
    if (is_made && !command->expires_ms && terms->ttl_ms)
        command->expires_ms = now_ms + terms->ttl_ms;
    command->ends_by_ms = most_ms ? now_ms + most_ms : 0;
    cut_times(command, most_ms);
    command->payer = find_payer(reader, terms);
}

enum fault record_right_hold(const struct reader *reader, const struct record_rules *rules,
                             struct record_request *request)
{
    struct records_command *command = &request->command;
    const struct rules_caller *caller = &reader->call->caller;
    if (access_is_administrator(reader->call) || !record_is_write(request))
        return FAULT_NONE;
    bool is_moved = command->deed == RECORDS_RENAME;
    const struct record_terms *terms =
        record_rules_terms(rules, caller, is_moved ? command->to : command->key);
    int64_t most_ms = 0;
    record_right_shorten(&most_ms, terms);
    if (command->to.data)
        record_right_shorten(&most_ms, record_rules_terms(rules, caller, command->to));
    for (size_t i = 0; i < command->more_count; i++)
        record_right_shorten(&most_ms, record_rules_terms(rules, caller, command->more[i]));
    enum fault fault = check_times(reader, request, most_ms);
    if (!fault && terms)
        hold_record_right(reader, terms, most_ms, command);
    return fault;
}

void record_right_hold_one(const struct reader *reader, const struct record_rules *rules, struct bytes key,
                           struct records_command *command)
{
    const struct record_terms *terms = record_rules_terms(rules, &reader->call->caller, key);
    command->payer = NULL;
    command->ends_by_ms = 0;
    if (!access_is_administrator(reader->call) && terms)
        hold_record_right(reader, terms, ttl_most(terms), command);
}
