/* quota: from the call to the counters. */
#include "operation/quota.h"

#include <string.h>

#include "base/clock.h"
#include "operation/access/access.h"
#include "model/rules/rules.h"
#include "segment/counts/limiter.h"
#include "segment/counts/refusals.h"
#include "segment/counts/stored.h"
#include "segment/counts/shares.h"
#include "store/collections/store_list.h"
#include "store/documents/store_owners.h"

enum { MEASURED_MOST = 10000 /* classes */ };

_Static_assert((int)QUOTAS_CLASSES_MOST + 1 <= (int)STORED_SUMS, "each class with a quota has its sum");
_Static_assert((int)QUOTAS_ALL <= (int)REFUSALS_QUOTAS, "each quota has its counter");
_Static_assert((int)QUOTAS_ALL <= (int)LIMITER_ATTEMPTS, "the kinds of the limiter differ");
_Static_assert((int)QUOTA_SUBJECTS == (int)SHARES_SUBJECTS, "a stream has each subject");

struct bytes quota_subject(const struct call *call, enum quota_subject subject)
{
    if (subject == QUOTA_NAMESPACE)
        return BYTES("");
    if (subject == QUOTA_ACCOUNT)
        return call->caller.account;
    if (call->task) /* by whom it was requested */
        return call->task->requester
                   ? (struct bytes){(const char *)&call->task->requester, sizeof call->task->requester}
                   : NO_BYTES;
    return call->client ? (struct bytes){(const char *)&call->client, sizeof call->client} : NO_BYTES;
}

static enum fault quota_refuse(struct segment *segment, struct call *call, struct reply *reply, int ns,
                               enum quota_subject subject, enum quota_kind kind, int64_t wait_ms)
{
    const struct quota_rate *rate = &call->quotas->rates[subject][kind];
    refusals_count_quota(segment, ns, call->ns, quotas_rate(subject, kind));
    reply->retry_after_s = (wait_ms + 999) / 1000;
    return reply_fault(call, reply, FAULT_XBUSY, NULL,
                       arena_printf(call->arena, "quotas.%s", quotas_name(quotas_rate(subject, kind))),
                       rate->text, NULL);
}

static enum fault take_rates(struct segment *segment, struct call *call, struct reply *reply, int ns,
                             enum quota_kind kind)
{
    const struct quotas *quotas = call->quotas;
    if (!quotas || !(quotas->kinds >> kind & 1))
        return FAULT_NONE;
    int64_t now_ms = clock_monotonic_ms();
    for (enum quota_subject subject = 0; subject < QUOTA_SUBJECTS; subject++) {
        const struct quota_rate *rate = &quotas->rates[subject][kind];
        struct bytes of = rate->count ? quota_subject(call, subject) : NO_BYTES;
        if (!of.data)
            continue;
        uint64_t key = limiter_key(segment, ns, quotas_rate(subject, kind), of);
        const struct limiter_rate limit = {rate->count, rate->period_ms, rate->burst};
        int64_t wait_ms = limiter_take(segment, key, &limit, 1, now_ms);
        if (wait_ms)
            return quota_refuse(segment, call, reply, ns, subject, kind, wait_ms);
    }
    return FAULT_NONE;
}

enum fault quota_take(struct segment *segment, struct call *call, struct reply *reply, int ns,
                      enum quota_kind kind)
{
    return call->task ? FAULT_NONE : take_rates(segment, call, reply, ns, kind);
}

enum fault quota_take_commit(struct segment *segment, struct call *call, struct reply *reply, int ns)
{
    bool is_further = call->task && call->task->is_of_client && call->task->step > 0;
    return is_further ? take_rates(segment, call, reply, ns, QUOTA_WRITES) : FAULT_NONE;
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

/* --- numbers --- */

uint64_t quota_number_key(const struct segment *segment, const struct call *call, int ns,
                          enum quota_subject subject, enum quota_number number)
{
    struct bytes of = quota_subject(call, subject);
    return of.data ? limiter_key(segment, ns, quotas_number(subject, number), of) : 0;
}

static enum fault refuse_number(struct segment *segment, struct call *call, struct reply *reply, int ns,
                                enum quota_subject subject, enum quota_number number)
{
    int quota = quotas_number(subject, number);
    refusals_count_quota(segment, ns, call->ns, quota);
    return reply_fault(
        call, reply, FAULT_XBUSY, NULL, arena_printf(call->arena, "quotas.%s", quotas_name(quota)),
        arena_printf(call->arena, "%lld", (long long)call->quotas->numbers[subject][number]), NULL);
}

enum fault quota_check_number(struct segment *segment, struct call *call, struct reply *reply, int ns,
                              enum quota_subject subject, enum quota_number number, int64_t present)
{
    int64_t most = call->quotas && !call->task ? call->quotas->numbers[subject][number] : 0;
    if (!most || present < most || !quota_subject(call, subject).data)
        return FAULT_NONE;
    return refuse_number(segment, call, reply, ns, subject, number);
}

static bool limits_streams(const struct call *call)
{
    bool limits = false;
    for (int subject = 0; call->quotas && !call->task && subject < QUOTA_SUBJECTS; subject++)
        limits = limits || call->quotas->numbers[subject][QUOTA_STREAMS_OPEN];
    return limits;
}

enum fault quota_begin_stream(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct segment *segment = attempt->worker_context->segment;
    struct shares_subject subjects[SHARES_SUBJECTS];
    int full;
    if (!limits_streams(call))
        return FAULT_NONE;
    for (int i = 0; i < SHARES_SUBJECTS; i++)
        subjects[i] = (struct shares_subject){
            .key = quota_number_key(segment, call, attempt->ns, (enum quota_subject)i, QUOTA_STREAMS_OPEN),
            .most = call->quotas->numbers[i][QUOTA_STREAMS_OPEN]};
    if (shares_enter(segment, SHARES_STREAMS, subjects, &full))
        return FAULT_NONE;
    return refuse_number(segment, call, attempt->reply, attempt->ns, (enum quota_subject)full,
                         QUOTA_STREAMS_OPEN);
}

void quota_end_stream(struct attempt *attempt)
{
    if (limits_streams(attempt->call))
        shares_leave(attempt->worker_context->segment, SHARES_STREAMS);
}

/* --- bytes --- */

static void add_growth(const struct draft *draft, int64_t growth[STORED_KINDS])
{
    const struct header *base = &draft_base(draft)->header;
    int64_t files = draft_exists(draft) ? draft_attached(draft) : 0;
    growth[STORED_BYTES] += files + (draft_exists(draft) ? draft_volume(draft) : 0) - header_bytes(base);
    growth[STORED_FILE_BYTES] += files - base->v2;
}

/* Of all documents, or of those of a class. */
static void find_growth(const struct transaction *transaction, struct bytes class,
                        int64_t growth_r[STORED_KINDS])
{
    const struct draft *draft;
    memset(growth_r, 0, STORED_KINDS * sizeof *growth_r);
    for (size_t position = 0; (draft = transaction_next_draft(transaction, &position));) {
        const struct header *base = &draft_base(draft)->header;
        if (!draft_is_changed(draft) || (class.data && !bytes_equal(base->class, class)))
            continue;
        add_growth(draft, growth_r);
    }
}

static bool changes_documents(const struct transaction *transaction)
{
    const struct draft *draft;
    for (size_t position = 0; (draft = transaction_next_draft(transaction, &position));)
        if (draft_is_changed(draft))
            return true;
    return false;
}

enum fault quota_limit_owners(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    struct store *store = documents_store(attempt->worker_context->documents);
    int64_t most = call->quotas ? call->quotas->numbers[QUOTA_ACCOUNT][QUOTA_BYTES] : 0;
    if ((call->task && !call->task->is_of_client) || call->level == LEVEL_EVERYTHING ||
        !changes_documents(attempt->transaction))
        return FAULT_NONE;
    transaction_limit_owners(attempt->transaction, most, call->caller.account);
    return store_owners_declare(store, attempt->ns, call->arena,
                                most && call->rules ? rules_owners(call->rules) : STORE_OWNERS_NONE);
}

void quota_find_numbers(const struct call *call, enum quota_number number, int64_t most_r[QUOTA_SUBJECTS])
{
    for (int subject = 0; subject < QUOTA_SUBJECTS; subject++)
        most_r[subject] = call->quotas ? call->quotas->numbers[subject][number] : 0;
}

void quota_limit_tasks(struct attempt *attempt)
{
    int64_t most[QUOTA_SUBJECTS];
    quota_find_numbers(attempt->call, QUOTA_TASKS_WAITING, most);
    if (attempt->call->quotas)
        transaction_limit_tasks(attempt->transaction, most[QUOTA_ADDRESS], most[QUOTA_ACCOUNT],
                                most[QUOTA_NAMESPACE]);
}

void quota_count_refusal(const struct attempt *attempt, const char *limit)
{
    static const char prefix[] = "quotas.";
    bool is_quota = limit && strncmp(limit, prefix, sizeof prefix - 1) == 0;
    for (int quota = 0; is_quota && quota < QUOTAS_ALL; quota++)
        if (strcmp(limit + sizeof prefix - 1, quotas_name(quota)) == 0)
            refusals_count_quota(attempt->worker_context->segment, attempt->ns, attempt->call->ns, quota);
}

/* Volumes are read from a row for each class. */
static enum fault quota_measure(struct attempt *attempt)
{
    struct segment *segment = attempt->worker_context->segment;
    struct stored_measurement measurement;
    struct volume *volumes;
    size_t count;
    stored_begin(segment, attempt->ns, &measurement);
    enum fault fault = store_list_volumes(documents_store(attempt->worker_context->documents), attempt->ns,
                                          attempt->call->arena, MEASURED_MOST, &volumes, &count);
    if (fault)
        return fault;
    struct stored_volume *stored = ARENA_ARRAY(attempt->call->arena, struct stored_volume, count + 1);
    for (size_t i = 0; i < count; i++)
        stored[i] = (struct stored_volume){volumes[i].class, {volumes[i].v1 + volumes[i].v2, volumes[i].v2}};
    stored_end(segment, attempt->ns, &measurement, stored, count);
    return FAULT_NONE;
}

/* What a quota limits: the namespace, or a class. */
struct stored_limit {
    struct bytes class;         /* NO_BYTES: the namespace */
    int64_t most[STORED_KINDS]; /* 0: not limited */
    int quotas[STORED_KINDS];   /* for the counters */
};

static enum fault refuse_bytes(struct attempt *attempt, const struct stored_limit *limit, int kind,
                               int64_t sum)
{
    struct call *call = attempt->call;
    static const char *const kinds[STORED_KINDS] = {"bytes", "file_bytes"};
    const char *name = limit->class.data
                           ? arena_printf(call->arena, "quotas.classes.%.*s.%s", (int)limit->class.size,
                                          limit->class.data, kinds[kind])
                           : arena_printf(call->arena, "quotas.namespace.%s", kinds[kind]);
    refusals_count_quota(attempt->worker_context->segment, attempt->ns, call->ns, limit->quotas[kind]);
    return reply_fault(call, attempt->reply, FAULT_ALIMIT, NULL, name,
                       arena_printf(call->arena, "%lld", (long long)limit->most[kind]),
                       arena_printf(call->arena, "%lld", (long long)sum), NULL);
}

static enum fault check_limit(struct attempt *attempt, const struct stored_limit *limit)
{
    struct segment *segment = attempt->worker_context->segment;
    int64_t growth[STORED_KINDS], stored[STORED_KINDS];
    if (!limit->most[STORED_BYTES] && !limit->most[STORED_FILE_BYTES])
        return FAULT_NONE;
    int sum = stored_want(segment, attempt->ns, attempt->call->ns, limit->class);
    find_growth(attempt->transaction, limit->class, growth);
    if (sum < 0 || (growth[STORED_BYTES] <= 0 && growth[STORED_FILE_BYTES] <= 0))
        return FAULT_NONE;
    enum fault fault = stored_read(segment, attempt->ns, sum, stored) ? FAULT_NONE : quota_measure(attempt);
    if (fault || !stored_read(segment, attempt->ns, sum, stored))
        return fault;
    for (int kind = 0; kind < STORED_KINDS && !fault; kind++)
        if (limit->most[kind] && growth[kind] > 0 && stored[kind] + growth[kind] > limit->most[kind])
            fault = refuse_bytes(attempt, limit, kind, stored[kind] + growth[kind]);
    return fault;
}

enum fault quota_check_bytes(struct attempt *attempt)
{
    const struct quotas *quotas = attempt->call->quotas;
    if (!quotas)
        return FAULT_NONE;
    const struct stored_limit whole = {
        .class = NO_BYTES,
        .most = {quotas->numbers[QUOTA_NAMESPACE][QUOTA_BYTES],
                 quotas->numbers[QUOTA_NAMESPACE][QUOTA_FILE_BYTES]},
        .quotas = {quotas_number(QUOTA_NAMESPACE, QUOTA_BYTES),
                   quotas_number(QUOTA_NAMESPACE, QUOTA_FILE_BYTES)},
    };
    enum fault fault = check_limit(attempt, &whole);
    for (size_t i = 0; i < quotas->class_count && !fault; i++) {
        const struct quota_class *class = &quotas->classes[i];
        const struct stored_limit limit = {
            .class = class->name,
            .most = {class->most[QUOTA_STORED_ALL], class->most[QUOTA_STORED_FILES]},
            .quotas = {QUOTAS_OF_CLASSES + QUOTA_STORED_ALL, QUOTAS_OF_CLASSES + QUOTA_STORED_FILES},
        };
        fault = check_limit(attempt, &limit);
    }
    return fault;
}

bool quota_limits_bytes(const struct call *call)
{
    const struct quotas *quotas = call->quotas;
    return quotas && (quotas->numbers[QUOTA_NAMESPACE][QUOTA_BYTES] ||
                      quotas->numbers[QUOTA_NAMESPACE][QUOTA_FILE_BYTES] ||
                      quotas->numbers[QUOTA_ACCOUNT][QUOTA_BYTES] || quotas->class_count);
}

static enum fault refuse_owner(struct attempt *attempt, struct bytes account, int64_t most, int64_t sum)
{
    struct call *call = attempt->call;
    static const char name[] = "quotas.account.bytes";
    quota_count_refusal(attempt, name);
    return reply_fault(
        call, attempt->reply, FAULT_ALIMIT, NULL, name, arena_printf(call->arena, "%lld", (long long)most),
        bytes_equal(account, call->caller.account) ? arena_printf(call->arena, "%lld", (long long)sum) : NULL,
        NULL);
}

static enum fault check_owner(struct attempt *attempt, const struct draft *draft, int64_t most)
{
    struct bytes account;
    int64_t stored, growth[STORED_KINDS] = {0};
    const struct header *base = &draft_base(draft)->header;
    add_growth(draft, growth);
    if (growth[STORED_BYTES] <= 0)
        return FAULT_NONE;
    enum fault fault = store_owners_find(documents_store(attempt->worker_context->documents), attempt->ns,
                                         attempt->call->arena, base->class, base->id, &account, &stored);
    if (fault || !account.data || stored + growth[STORED_BYTES] <= most)
        return fault;
    return refuse_owner(attempt, account, most, stored + growth[STORED_BYTES]);
}

enum fault quota_check_owners(struct attempt *attempt)
{
    const struct call *call = attempt->call;
    int64_t most = call->quotas ? call->quotas->numbers[QUOTA_ACCOUNT][QUOTA_BYTES] : 0;
    const struct draft *draft;
    enum fault fault = FAULT_NONE;
    if (!most || !call->rules)
        return FAULT_NONE;
    for (size_t position = 0; !fault && (draft = transaction_next_draft(attempt->transaction, &position));)
        if (draft_is_changed(draft))
            fault = check_owner(attempt, draft, most);
    return fault;
}
