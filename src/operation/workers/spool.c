/* spool: stores requests that stamp-forward brings from a spool, as tasks, each once (spool.md).
 * param {"series":32 digits,"records":[{"n":number,"d":digest,"task":{…as of the operation task},
 * "traceparent","tracestate"}]}, the numbers in order → out
 * {"stored":count,"known":count,"refused":[{"n","code","message"}]}. The commit that creates the tasks stores
 * the names of their records; one that has a name already is left out.  Of a record that is refused nothing
 * is stored.  For administrators, and for service keys, whose tasks are those of their accounts. */
#include "operation/builtin.h"

#include "base/fault.h"
#include "base/coding/hex.h"
#include "document/transaction.h"
#include "model/trace.h"
#include "operation/access/access.h"
#include "operation/administration/task.h"
#include "operation/keyed_digest.h"
#include "operation/quota.h"
#include "operation/reader.h"
#include "store/tasks/store_spool.h"

enum { SERIES_DIGITS = 32, DIGEST_DIGITS = 64 };

/* The records of a call, and what becomes of them. */
struct spool_work {
    struct attempt *attempt;
    struct reader reader;
    const struct json *records;
    struct bytes series;
    int64_t *sequences;
    struct bytes *digests;
    struct spool_batch fresh; /* those that are stored now */
    size_t known;
    bool has_refused;
    bool is_blind; /* the first try: which are stored already is unknown */
};

static bool are_digits(struct bytes text, size_t count)
{
    for (size_t i = 0; i < text.size; i++)
        if (!strchr("0123456789abcdef", text.data[i]) || !text.data[i])
            return false;
    return text.data && text.size == count;
}

static enum fault read_records(const struct reader *reader, const struct json **records_r)
{
    return reader_array(reader, reader->call->param, "records", "limit_spool_records",
                        reader->settings->limit_spool_records, records_r);
}

static enum fault spool_read_names(struct spool_work *work)
{
    const struct reader *reader = &work->reader;
    const struct json *param = work->attempt->call->param;
    enum fault fault = FAULT_FIRST(reader_members(reader, param, "series records"),
                                   reader_text(reader, param, "series", &work->series));
    if (!fault && !are_digits(work->series, SERIES_DIGITS))
        fault = reader_wrong(reader, param, "series", "32 digits, 0 to 9 and a to f, are expected.");
    if (!fault)
        fault = read_records(reader, &work->records);
    size_t count = fault ? 0 : work->records->count, i = 0;
    work->sequences = ARENA_ARRAY(reader->call->arena, int64_t, count + 1);
    work->digests = ARENA_ARRAY(reader->call->arena, struct bytes, count + 1);
    for (const struct json *record = fault ? NULL : work->records->first; !fault && record;
         record = record->next, i++) {
        if (record->kind != JSON_OBJECT)
            return reader_wrong_value(reader, record, "records", "An object is expected.");
        fault = FAULT_FIRST(reader_members(reader, record, "n d task traceparent tracestate"),
                            reader_integer(reader, record, "n", i ? work->sequences[i - 1] + 1 : 1,
                                           INT64_MAX - 1, 0, &work->sequences[i]));
        if (!fault && !work->sequences[i])
            fault = reader_wrong(reader, record, "n", "The number of the record is expected.");
        if (!fault)
            fault = reader_text(reader, record, "d", &work->digests[i]);
        if (!fault && !are_digits(work->digests[i], DIGEST_DIGITS))
            fault = reader_wrong(reader, record, "d", "64 digits, 0 to 9 and a to f, are expected.");
    }
    return fault;
}

/* --- the answer --- */

static void spool_refuse(struct spool_work *work, int64_t sequence, const char *code, const char *message)
{
    struct builder *body = work->attempt->reply->body;
    builder_printf(body, "%s{\"n\":%lld,\"code\":", work->has_refused ? "," : "", (long long)sequence);
    json_add_string(body, bytes_of(code));
    json_add_text(body, ",\"message\":", bytes_of(message));
    builder_add_text(body, "}");
    work->has_refused = true;
}

/* Words of a fault: "… (argument, argument)". */
static const char *describe(struct arena *arena, const struct reply *reply)
{
    const char *words = reply->detail ? reply->detail : reply_words(reply);
    for (int i = 0; i < reply->argument_count; i++)
        words = arena_printf(arena, "%s%s%s", words, i ? ", " : " (", reply->arguments[i]);
    if (reply->argument_count)
        words = arena_printf(arena, "%s)", words);
    return words;
}

/* Would the same record be refused later, too, as long as nobody changes the server or the caller? */
static bool is_final(enum fault fault)
{
    enum fault_remedy remedy = fault_remedy_of_code(fault_code(fault));
    return remedy == REMEDY_FINAL || remedy == REMEDY_SETUP || remedy == REMEDY_SIGN;
}

/* --- the tasks --- */

static enum fault add_task(struct spool_work *work, const struct json *record, struct reply *reply)
{
    struct call call = *work->attempt->call;
    struct attempt inner = *work->attempt;
    struct task_request request;
    struct task_excess excess;
    struct bytes parent, state;
    enum fault fault;
    const struct reader reader = {work->reader.settings, &call, reply};
    call.param = json_member(record, "task");
    call.param_at = "/task";
    inner.call = &call;
    inner.reply = reply;
    fault = FAULT_FIRST(reader_text(&reader, record, "traceparent", &parent),
                        reader_text(&reader, record, "tracestate", &state));
    if (fault)
        return fault;
    call.trace = trace_read(call.arena, parent, state);
    if (!call.param || call.param->kind != JSON_OBJECT)
        return reader_wrong_value(&reader, call.param, "task", "An object is expected.");
    fault = task_read(&inner, "", &request);
    if (fault)
        return fault;
    request.is_of_batch = true;
    fault = task_request_add(&inner, &request, &excess);
    return fault ? reader_over(&reader, NULL, excess.limit, excess.most, excess.value) : FAULT_NONE;
}

static enum fault store_record(struct spool_work *work, const struct json *record, size_t i)
{
    struct attempt *attempt = work->attempt;
    struct reply reply = {.body = attempt->reply->body, .mime = MIME_JSON};
    enum fault fault = add_task(work, record, &reply);
    if (!fault) {
        int64_t *sequences = (int64_t *)work->fresh.sequences;
        struct bytes *digests = (struct bytes *)work->fresh.digests;
        sequences[work->fresh.count] = work->sequences[i];
        digests[work->fresh.count++] = work->digests[i];
        return FAULT_NONE;
    }
    if (work->is_blind)
        return FAULT_STALE; /* it may be stored already */
    if (is_final(fault)) {
        spool_refuse(work, work->sequences[i], fault_code(fault), describe(attempt->call->arena, &reply));
        return FAULT_NONE;
    }
    reply.timing = attempt->reply->timing;
    reply.outlet = attempt->reply->outlet;
    *attempt->reply = reply;
    return fault;
}

static enum fault store_records(struct spool_work *work, const struct spool_known *known, int64_t forgotten)
{
    size_t i = 0;
    for (const struct json *record = work->records->first; record; record = record->next, i++) {
        enum fault fault = FAULT_NONE;
        if (known[i].is_stored && bytes_equal(known[i].digest, work->digests[i]))
            work->known++;
        else if (known[i].is_stored)
            spool_refuse(
                work, work->sequences[i], "DIVERGED",
                "Another record was stored under this number: the spool is a copy that has diverged.");
        else if (work->sequences[i] <= forgotten)
            spool_refuse(work, work->sequences[i], "FORGOTTEN",
                         "The server no longer knows whether this record was stored (spool_s).");
        else
            fault = store_record(work, record, i);
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* The digests that the client has sent are those of records, which somebody may guess. */
static enum fault key_digests(struct spool_work *work)
{
    enum fault fault = FAULT_NONE;
    for (size_t i = 0; !fault && i < work->records->count; i++)
        fault = keyed_digest(work->attempt, "spool", work->digests[i], &work->digests[i]);
    return fault;
}

/* Which records are stored.  The first try expects that none is, which its commit verifies; the next one
 * reads. */
static enum fault find_known(struct spool_work *work, const struct spool_batch *all,
                             struct spool_known *known_r, int64_t *forgotten_r)
{
    struct attempt *attempt = work->attempt;
    attempt->kept = work;
    *forgotten_r = 0;
    if (work->is_blind)
        return FAULT_NONE;
    return store_spool_find(documents_store(attempt->worker_context->documents), attempt->ns,
                            attempt->call->arena, all, known_r, forgotten_r);
}

static enum fault spool_work(struct attempt *attempt)
{
    struct call *call = attempt->call;
    struct spool_work *work = arena_alloc(call->arena, sizeof *work);
    *work = (struct spool_work){.attempt = attempt,
                                .reader = {attempt->worker_context->settings, call, attempt->reply},
                                .is_blind = !attempt->kept};
    if (!access_is_administrator(call) && !call->is_by_service_key)
        return reply_fault(call, attempt->reply, FAULT_SCLOSED,
                           "Only the administrator and service keys may forward spools.", "spool", NULL);
    enum fault fault = FAULT_FIRST(spool_read_names(work), key_digests(work));
    if (fault)
        return fault;
    struct bytes account = call->caller.account.data ? call->caller.account : BYTES("");
    const struct spool_batch all = {account, work->series, work->sequences, work->digests,
                                    work->records->count};
    struct spool_known *known = ARENA_ARRAY(call->arena, struct spool_known, all.count + 1);
    int64_t forgotten;
    work->fresh =
        (struct spool_batch){account, work->series, ARENA_ARRAY(call->arena, int64_t, all.count + 1),
                             ARENA_ARRAY(call->arena, struct bytes, all.count + 1), 0};
    fault = find_known(work, &all, known, &forgotten);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"refused\":[");
    quota_limit_tasks(attempt);
    fault = store_records(work, known, forgotten);
    if (fault)
        return fault;
    builder_printf(body, "],\"stored\":%zu,\"known\":%zu}", work->fresh.count, work->known);
    if (work->fresh.count)
        transaction_spool(attempt->transaction, &work->fresh);
    return FAULT_NONE;
}

/* Each record counts as a task; the first has been counted with the call. */
static enum fault spool_prepare(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *records;
    enum fault fault = read_records(&reader, &records);
    for (size_t i = 1; !fault && i < records->count; i++)
        fault = quota_take(attempt->worker_context->segment, attempt->call, attempt->reply, attempt->ns,
                           QUOTA_TASKS);
    return fault;
}

static int spool_quota(const struct call *call UNUSED)
{
    return QUOTA_TASKS;
}

const struct operation builtin_spool = {.name = "spool",
                                        .right = RIGHT_PUBLIC,
                                        .prepare = spool_prepare,
                                        .work = spool_work,
                                        .quota = spool_quota,
                                        .is_secret = true,
                                        .obeys_rules = true};
