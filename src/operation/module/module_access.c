/* module_access: who the caller is, what it may do, and how often (stampd.h). */
#include "operation/module/module_access.h"
#include "operation/module/module_document.h"
#include "operation/module/module_try.h"

#include "base/clock.h"
#include "operation/judge/judge.h"
#include "segment/counts/limiter.h"

/* --- the caller --- */

static const struct rules_caller *caller_of(const struct stampd_call *call)
{
    return &module_try_attempt(call)->call->caller;
}

static const char *module_access_text_of(const struct stampd_call *call, struct bytes bytes)
{
    return bytes.data ? arena_copy(module_try_arena(call), bytes.data, bytes.size) : NULL;
}

const char *stampd_caller(const struct stampd_call *call)
{
    return module_access_text_of(call, caller_of(call)->account);
}

size_t stampd_role_count(const struct stampd_call *call)
{
    return caller_of(call)->role_count;
}

const char *stampd_role(const struct stampd_call *call, size_t place)
{
    const struct rules_caller *caller = caller_of(call);
    return place < caller->role_count ? module_access_text_of(call, caller->roles[place]) : NULL;
}

bool stampd_has_role(const struct stampd_call *call, const char *role)
{
    const struct rules_caller *caller = caller_of(call);
    for (size_t i = 0; i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], bytes_of(role)))
            return true;
    return false;
}

/* --- the rules --- */

bool module_access_allows(const struct stampd_call *try, enum access_level level)
{
    const struct call *call = module_try_attempt(try)->call;
    bool is_own = call->task && !call->task->is_of_client;
    return is_own || call->rules || call->level >= level;
}

/* NULL: any items. */
typedef enum fault judge(struct attempt *attempt, const struct document *document, const char *item_class,
                         bool *may_r);

static enum fault judge_read(struct attempt *attempt, const struct document *document, const char *item_class,
                             bool *may_r)
{
    struct view view;
    enum fault fault = judge_show(attempt, &document, &view);
    (void)item_class;
    *may_r = !fault && document_exists(document);
    return fault;
}

static enum fault judge_list(struct attempt *attempt, const struct document *document, const char *item_class,
                             bool *may_r)
{
    struct view view;
    enum fault fault = judge_show_listed(attempt, &document, &view);
    (void)item_class;
    *may_r = !fault && document_exists(document);
    return fault;
}

static enum fault judge_items(struct attempt *attempt, const struct document *document,
                              const char *item_class, bool *may_r)
{
    return judge_see(attempt, document, bytes_of(item_class), may_r);
}

static bool may_look(struct stampd_document *document, judge *decide, const char *item_class)
{
    bool may = false;
    if (!document->draft || !document_exists(draft_base(document->draft)) ||
        !module_access_allows(document->call, LEVEL_READ))
        return false;
    module_try_unwatch(document->call); /* it may load a team */
    enum fault fault =
        decide(module_try_attempt(document->call), draft_base(document->draft), item_class, &may);
    module_try_watch(document->call);
    if (fault)
        module_try_fail(document->call, fault, NULL, NULL);
    return may && !fault;
}

bool stampd_may_read(struct stampd_document *document)
{
    return may_look(document, judge_read, NULL);
}

bool stampd_may_list(struct stampd_document *document)
{
    return may_look(document, judge_list, NULL);
}

bool stampd_may_see(struct stampd_document *document, const char *item_class)
{
    return may_look(document, judge_items, item_class);
}

bool stampd_may_change(struct stampd_document *document)
{
    bool may = false;
    if (!document->draft || module_try_fault(document->call))
        return false;
    if (!draft_is_changed(document->draft))
        return true;
    if (!module_access_allows(document->call, LEVEL_WRITE))
        return false;
    module_try_unwatch(document->call);
    enum fault fault = judge_change(module_try_attempt(document->call), document->draft, &may);
    module_try_watch(document->call);
    if (fault)
        module_try_fail(document->call, fault, NULL, NULL);
    return may && !fault;
}

/* --- rates --- */

bool stampd_limit(struct stampd_call *call, const char *name, const char *subject, const char *rate)
{
    const struct attempt *attempt = module_try_attempt(call);
    struct arena *arena = module_try_arena(call);
    struct quota_rate read;
    if (module_try_is_filter(call))
        module_try_fail(call, FAULT_BMODULE, "A filter counts nothing.", name);
    if (module_try_fault(call))
        return false;
    if (!quotas_read_rate(arena, bytes_of(rate), &read)) {
        module_try_fail(call, FAULT_BMODULE, "This is no rate.", rate);
        return false;
    }
    const char *whole = arena_printf(arena, "%zu %s %s", strlen(name), name, subject);
    struct segment *segment = attempt->worker_context->segment;
    const struct limiter_rate limit = {read.count, read.period_ms, read.burst};
    uint64_t key = limiter_key(segment, attempt->ns, LIMITER_MODULES, bytes_of(whole));
    int64_t wait_ms = limiter_take(segment, key, &limit, 1, clock_monotonic_ms());
    if (!wait_ms)
        return true;
    attempt->reply->retry_after_s = (wait_ms + 999) / 1000;
    module_try_set_fault(call,
                         reply_fault(attempt->call, attempt->reply, FAULT_XBUSY, NULL, name, rate, NULL));
    return false;
}
