/* quota: from the call to the counters. */
#include "operation/quota.h"

#include "base/clock.h"
#include "operation/access.h"
#include "segment/limiter.h"
#include "segment/refusals.h"
#include "segment/stored.h"

_Static_assert((int)QUOTA_SUBJECTS *(int)QUOTA_KINDS <= (int)REFUSALS_QUOTAS, "each quota has its counter");
_Static_assert((int)REFUSALS_QUOTAS <= (int)LIMITER_ATTEMPTS, "the kinds of the limiter differ");

/* Whom a quota counts; NO_BYTES: it does not apply. */
static struct bytes subject_of(const struct call *call, enum quota_subject subject)
{
    if (subject == QUOTA_NAMESPACE)
        return BYTES("");
    if (subject == QUOTA_ACCOUNT)
        return call->caller.account;
    return call->client ? (struct bytes){(const char *)&call->client, sizeof call->client} : NO_BYTES;
}

static enum fault refuse(struct segment *segment, struct call *call, struct reply *reply, int ns,
                         enum quota_subject subject, enum quota_kind kind, int64_t wait_ms)
{
    const struct quota_rate *rate = &call->quotas->rates[subject][kind];
    refusals_count_quota(segment, ns, call->ns, subject * QUOTA_KINDS + kind);
    reply->retry_after_s = (wait_ms + 999) / 1000;
    return reply_fault(call, reply, FAULT_XBUSY, NULL,
                       arena_printf(call->arena, "quotas.%s", quotas_name(subject, kind)), rate->text, NULL);
}

enum fault quota_take(struct segment *segment, struct call *call, struct reply *reply, int ns,
                      enum quota_kind kind)
{
    const struct quotas *quotas = call->quotas;
    if (!quotas || call->task || !(quotas->kinds >> kind & 1))
        return FAULT_NONE;
    int64_t now_ms = clock_monotonic_ms();
    for (enum quota_subject subject = 0; subject < QUOTA_SUBJECTS; subject++) {
        const struct quota_rate *rate = &quotas->rates[subject][kind];
        struct bytes of = rate->count ? subject_of(call, subject) : NO_BYTES;
        if (!of.data)
            continue;
        uint64_t key = limiter_key(segment, ns, subject * QUOTA_KINDS + kind, of);
        const struct limiter_rate limit = {rate->count, rate->period_ms, rate->burst};
        int64_t wait_ms = limiter_take(segment, key, &limit, 1, now_ms);
        if (wait_ms)
            return refuse(segment, call, reply, ns, subject, kind, wait_ms);
    }
    return FAULT_NONE;
}

enum fault quota_enter(struct segment *segment, struct call *call, struct reply *reply, int ns,
                       const struct operation *operation)
{
    if (!call->quotas)
        return FAULT_NONE;
    enum fault fault = quota_take(segment, call, reply, ns, QUOTA_REQUESTS);
    if (!fault && operation && !operation->only_reads && access_may_change(call, operation))
        fault = quota_take(segment, call, reply, ns, QUOTA_WRITES);
    int kind = !fault && operation && operation->quota ? operation->quota(call) : -1;
    return kind < 0 ? fault : quota_take(segment, call, reply, ns, (enum quota_kind)kind);
}

/* --- bytes --- */

static int64_t growth_of(const struct transaction *transaction)
{
    const struct draft *draft;
    int64_t growth = 0;
    for (size_t i = 0; (draft = transaction_draft(transaction, i)); i++)
        if (draft_is_changed(draft))
            growth += (draft_exists(draft) ? draft_volume(draft) : 0) - draft_base(draft)->header.v1;
    return growth;
}

enum fault quota_check_bytes(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct segment *segment = attempt->worker_context->segment;
    int64_t stored;
    if (!call->quotas || !call->quotas->bytes || call->task)
        return FAULT_NONE;
    stored_want(segment, attempt->ns, call->ns);
    int64_t growth = growth_of(attempt->transaction);
    if (growth <= 0 || !stored_read(segment, attempt->ns, &stored, NULL) ||
        stored + growth <= call->quotas->bytes)
        return FAULT_NONE;
    refusals_count_quota(segment, attempt->ns, call->ns, QUOTAS_BYTES);
    return reply_fault(call, attempt->reply, FAULT_ALIMIT, NULL, "quotas." QUOTAS_BYTES_NAME,
                       arena_printf(call->arena, "%lld", (long long)call->quotas->bytes),
                       arena_printf(call->arena, "%lld", (long long)(stored + growth)), NULL);
}
