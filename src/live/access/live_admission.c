/* live_admission: listeners go from one state to the next. */
#include "live/access/live_admission.h"

#include "live/live_audience_private.h"
#include "live/live_listener.h"
#include "live/live_opening.h"
#include "live/topics/live_records.h"
#include "operation/judge/filters.h"
#include "operation/quota.h"
#include "segment/counts/metrics.h"
#include "segment/counts/refusals.h"
#include "segment/slots.h"

static enum fault judge_live_admission(const struct live_listener *listener)
{
    const struct live_audience *audience = listener->audience;
    enum fault fault = live_access_judge(audience->access, audience->all->settings, bytes_of(audience->code),
                                         bytes_of(audience->database), listener->is_administrator);
    if (fault == FAULT_NNAMESPACE)
        return fault;
    if (audience->number < 0)
        return FAULT_BINTERNAL; /* no room in the segment */
    return fault || slots_have_lease(audience->segment) ? fault : FAULT_OTWIN;
}

static void refuse_access(struct live_listener *listener, enum fault fault)
{
    const struct live_audience *audience = listener->audience;
    bool has_message = fault == FAULT_OOFF || fault == FAULT_OGONE;
    live_listener_refuse(listener, fault,
                         fault == FAULT_SCLOSED      ? BYTES("live")
                         : fault == FAULT_NNAMESPACE ? bytes_of(audience->code)
                                                     : NO_BYTES,
                         has_message ? live_access_message(audience->access) : NULL);
}

/* Looks at the connections that each subject has, counts the opening, then the connection.  All processes for
 * live events count by themselves: this one serves all connections of its instance. */
static enum fault take_quotas(struct live_listener *listener, struct call *call)
{
    struct live_audience *audience = listener->audience;
    struct live_shares *shares = audience->all->quota_shares;
    struct reply *reply = &listener->opening->reply;
    uint64_t keys[QUOTA_SUBJECTS];
    for (int i = 0; i < QUOTA_SUBJECTS; i++) {
        keys[i] = quota_number_key(audience->segment, call, audience->number, (enum quota_subject)i,
                                   QUOTA_LIVE_OPEN);
        const struct live_share *share = keys[i] ? live_shares_find(shares, keys[i]) : NULL;
        enum fault fault =
            quota_check_number(audience->segment, call, reply, audience->number, (enum quota_subject)i,
                               QUOTA_LIVE_OPEN, share ? (int64_t)share->count : 0);
        if (fault)
            return fault;
    }
    enum fault fault = quota_take(audience->segment, call, reply, audience->number, QUOTA_LIVE);
    for (int i = 0; i < QUOTA_SUBJECTS && !fault && !listener->is_administrator; i++)
        if (keys[i] && !listener->quota_shares[i])
            listener->quota_shares[i] = live_shares_join(shares, keys[i]);
    return fault;
}

/* Counts the connection against the quotas; a refusal is recorded in the reply of the opening. */
static enum fault count_opening(struct live_listener *listener)
{
    const struct live_audience *audience = listener->audience;
    const struct quotas *quotas = live_access_quotas(audience->access);
    struct call call = {.arena = listener->opening->arena,
                        .ns = bytes_of(audience->code),
                        .client = listener->share ? listener->share->client : 0,
                        .quotas = listener->is_administrator ? NULL : quotas};
    if (listener->caller)
        call.caller = *live_caller_rules(listener->caller);
    listener->opening->reply = (struct reply){0};
    enum fault fault = take_quotas(listener, &call);
    if (fault) {
        pulse_count(&feed_subscriber_slot(audience->all->subscriber)->refused, 1);
        refusals_count(audience->segment, fault, listener->opening->reply.arguments[0]);
    }
    return fault;
}

/* False: a quota refuses the connection; it is answered, and the listener freed. */
static bool may_open(struct live_listener *listener)
{
    if (!count_opening(listener))
        return true;
    listener->opening->is_settled = true;
    live_listener_end(listener);
    return false;
}

/* As the operation `record`.  False: the listener was refused. */
static bool may_follow_records(struct live_listener *listener)
{
    struct bytes refused = live_records_refused(listener);
    if (refused.data)
        live_listener_refuse(listener, FAULT_SCLOSED, refused,
                             live_access_is_spread(listener->audience->access)
                                 ? "Several hosts hold the records of the namespace."
                                 : "No rule for records of the namespace allows it.");
    return !refused.data;
}

/* The caller is known: counts the connection, or answers and frees the listener. */
static void wait_for_horizon(struct live_listener *listener)
{
    listener->state = LIVE_WAITS_FOR_HORIZON;
    listener->configured = live_access_configured(listener->audience->access);
    if (may_open(listener) && may_follow_records(listener))
        live_audience_queue(listener);
}

/* A cookie counts in a namespace with accounts alone.  False: the listener was refused. */
static bool settle_caller(struct live_listener *listener)
{
    if (!listener->caller || live_access_has_accounts(listener->audience->access))
        return true;
    if (!live_caller_is_cookie(listener->caller)) {
        live_listener_refuse_key(listener, "The namespace has no accounts.");
        return false;
    }
    live_caller_destroy(listener->caller);
    listener->caller = NULL;
    return true;
}

/* A collection of a class with a filter: which documents have left it for the caller is not recorded. */
static const struct definition *find_filtered(const struct live_listener *listener)
{
    const struct live_question *question = &listener->opening->question;
    const struct filters *filters =
        live_access_filters(listener->audience->access, listener->is_administrator);
    for (size_t i = 0; i < question->count; i++)
        if (question->definitions[i].collection.data &&
            filters_cover(filters, question->definitions[i].class))
            return &question->definitions[i];
    return NULL;
}

static void admit_ruled(struct live_listener *listener)
{
    const struct live_question *question = &listener->opening->question;
    const struct definition *collection = find_filtered(listener);
    if (collection) {
        live_listener_refuse(listener, FAULT_AARG, collection->text,
                             "A filter of a module applies to this class: listen to the class.");
        return;
    }
    listener->audience->admitted_count++;
    live_audience_rule(listener, question->definitions, question->count);
    listener->turn = live_access_turn(listener->audience->access);
    if (!listener->caller) {
        wait_for_horizon(listener);
        return;
    }
    listener->state = LIVE_WAITS_FOR_ACCOUNT;
    live_audience_trust(listener, LIVE_DOUBTED);
}

/* The values of collections are hashed, and only workers have the keys. */
static bool listens_to_hashes(const struct live_listener *listener)
{
    const struct live_question *question = &listener->opening->question;
    for (size_t i = 0; i < question->count; i++)
        if (question->definitions[i].collection.data)
            return live_access_is_encrypted(listener->audience->access);
    return false;
}

static void admit(struct live_listener *listener)
{
    const struct live_access *access = listener->audience->access;
    if (!settle_caller(listener))
        return;
    if (listens_to_hashes(listener)) {
        live_listener_refuse(listener, FAULT_OENCRYPTED, NO_BYTES,
                             "Live events of collections are not available: listen to the class.");
        return;
    }
    if (live_access_is_judged(access, listener->is_administrator)) {
        admit_ruled(listener);
        return;
    }
    listener->audience->admitted_count++;
    wait_for_horizon(listener);
}

/* Other rules may show it other documents. */
static void follow_rules(struct live_listener *listener)
{
    uint64_t turn = live_access_turn(listener->audience->access);
    if (listener->turn != turn)
        listener->must_reset = true;
    listener->turn = turn;
    if (listener->caller && live_caller_issuer(listener->caller).data) /* its provider may be gone */
        live_audience_trust(listener, LIVE_DOUBTED);
    live_listener_flush(listener);
}

/* The configuration has been read again, perhaps with other rules for records.  A listener whose account is
 * not known is judged when it is.  False: it was refused. */
static bool follow_record_rules(struct live_listener *listener)
{
    uint64_t configured = live_access_configured(listener->audience->access);
    if (!listener->records.count)
        return true;
    if (listener->trust == LIVE_TRUSTED && !may_follow_records(listener))
        return false;
    if (listener->configured != configured)
        live_records_match(listener);
    listener->configured = configured;
    return true;
}

void live_admission_judge(struct live_listener *listener)
{
    if (listener->opening && listener->opening->is_settled) {
        live_listener_end(listener);
        return;
    }
    enum fault fault = judge_live_admission(listener);
    if (fault)
        refuse_access(listener, fault);
    else if (listener->state == LIVE_WAITS_FOR_ACCESS)
        admit(listener);
    else if (listener->is_ruled !=
             live_access_is_judged(listener->audience->access, listener->is_administrator))
        live_listener_end(listener);
    else if (!follow_record_rules(listener))
        return;
    else if (listener->is_ruled)
        follow_rules(listener);
    else
        live_listener_flush(listener);
}

void live_admission_judge_all(struct live_audience *audience)
{
    for (struct live_listener *listener = audience->listeners, *next; listener; listener = next) {
        next = listener->next;
        live_admission_judge(listener);
    }
}

void live_admission_refuse_unjudged(struct live_audience *audience)
{
    for (struct live_listener *listener = audience->listeners, *next; listener; listener = next) {
        next = listener->next;
        if (listener->opening && listener->opening->is_settled)
            live_listener_end(listener);
        else if (listener->state == LIVE_WAITS_FOR_ACCESS)
            live_listener_refuse(listener, FAULT_XAWAY, NO_BYTES, NULL);
    }
}

/* --- the account --- */

void live_admission_trust(struct live_listener *listener)
{
    live_audience_trust(listener, LIVE_TRUSTED);
    live_listener_count_memory(listener);
    listener->sight = 0; /* other roles */
    if (listener->state == LIVE_WAITS_FOR_ACCOUNT) {
        wait_for_horizon(listener);
        return;
    }
    if (!may_follow_records(listener))
        return;
    listener->must_reset = true;
    live_listener_flush(listener);
}

/* Wrong credentials count as openings: each costs the account's document, or a signature. */
void live_admission_distrust(struct live_listener *listener)
{
    if (listener->state != LIVE_WAITS_FOR_ACCOUNT || may_open(listener))
        live_listener_refuse_key(listener, LIVE_KEY_IS_WRONG);
}
