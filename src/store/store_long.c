/* store_long: the place of a request among the workers, and its time limits: that of a statement is sent with
 * it, in the same round trip. */
#include "store/store_long.h"

#include <inttypes.h>

#include "base/clock.h"
#include "segment/counts/long_requests.h"
#include "segment/segment.h"
#include "segment/slots.h"
#include "store/statements.h"
#include "store/store_reading.h"
#include "edge/pg/pg_pipeline.h"

/* A trial may take this part of the allowed time. */
enum { TRIAL_PART = 8 };

/* A request that loads more documents than this reads long. */
enum { LOADS_SHORT = 64 };

enum {
    WORK_SHORT_MS = 100,
    /* A commit of so many items takes less than that: an item costs PostgreSQL some 30 microseconds. */
    COMMIT_SHORT_ITEMS = 2000,
    COMMIT_SHORT_BYTES = 1048576,
};

static int64_t share_of(int64_t setting, int64_t workers, int64_t part)
{
    return setting ? setting : workers / part ? workers / part : 1;
}

void store_set_requester(struct store *store, const struct store_requester *requester)
{
    const struct settings *settings = store_settings(store);
    *store_reading(store) =
        (struct store_reading){.is_limited = true,
                               .requester = *requester,
                               .left_ms = requester->has_time ? INT64_MAX : settings->limit_read_ms,
                               .trial_ms = settings->limit_read_ms / TRIAL_PART};
}

void store_clear_requester(struct store *store)
{
    if (store_reading(store)->state != READING_NOT)
        long_requests_leave(store_segment(store));
    *store_reading(store) = (struct store_reading){0};
}

const char *store_reading_refused(const struct store *store, enum fault fault, int64_t *value_r)
{
    *value_r = store_reading(store)->refused_value;
    return fault == store_reading(store)->refused_fault ? store_reading(store)->refused : NULL;
}

static enum fault store_long_refuse(struct store *store, enum fault fault, const char *limit, int64_t value)
{
    store_reading(store)->refused = limit;
    store_reading(store)->refused_fault = fault;
    store_reading(store)->refused_value = value;
    return fault;
}

/* --- shares --- */

static uint64_t account_hash(const struct store *store, int ns, struct bytes account)
{
    return slots_hash(store_segment(store), ns, BYTES("Account"), account) | 1;
}

static struct long_shares shares_of(const struct store *store, int ns)
{
    const struct settings *settings = store_settings(store);
    const struct store_requester *requester = &store_reading(store)->requester;
    return (struct long_shares){
        .ns = ns,
        .client = requester->client & INT64_MAX, /* as tasks keep it */
        .account = requester->account.size ? account_hash(store, ns, requester->account) : 0,
        .ns_most = share_of(settings->limit_namespace_long, settings->workers, 2),
        .client_most = share_of(settings->limit_client_long, settings->workers, 4),
    };
}

static enum fault take_entry(struct store *store, const struct long_shares *shares,
                             enum long_requests_entry entry)
{
    switch (entry) {
    case LONG_REQUESTS_ENTERED:
        store_reading(store)->state = READING_FULLY;
        return FAULT_NONE;
    case LONG_REQUESTS_ON_TRIAL:
        store_reading(store)->state = READING_ON_TRIAL;
        return FAULT_NONE;
    case LONG_REQUESTS_NAMESPACE_FULL:
        store_reading(store)->state = READING_NOT;
        return store_long_refuse(store, FAULT_XBUSY, "limit_namespace_long", shares->ns_most);
    case LONG_REQUESTS_CLIENT_FULL:
    default:
        store_reading(store)->state = READING_NOT;
        return store_long_refuse(store, FAULT_XBUSY, "limit_client_long", shares->client_most);
    }
}

static enum fault enter_store_long(struct store *store, int ns)
{
    const struct long_shares shares = shares_of(store, ns);
    if (store_reading(store)->state != READING_NOT || segment_index(store_segment(store)) == SEGMENT_NO_INDEX)
        return FAULT_NONE;
    return take_entry(store, &shares, long_requests_enter(store_segment(store), &shares));
}

static enum fault extend(struct store *store, int ns, bool is_slow)
{
    const struct long_shares shares = shares_of(store, ns);
    return take_entry(store, &shares, long_requests_extend(store_segment(store), &shares, is_slow));
}

enum fault store_long_enter(struct store *store, int ns)
{
    struct store_reading *reading = store_reading(store);
    enum fault fault = reading->is_limited ? enter_store_long(store, ns) : FAULT_NONE;
    return !fault && reading->state == READING_ON_TRIAL ? extend(store, ns, false) : fault;
}

enum fault store_long_enter_late(struct store *store, int ns)
{
    const struct store_reading *reading = store_reading(store);
    bool is_late = reading->is_limited && reading->state != READING_FULLY &&
                   clock_monotonic_ms() - reading->requester.since_ms > WORK_SHORT_MS;
    return is_late ? store_long_enter(store, ns) : FAULT_NONE;
}

/* --- commits --- */

enum fault store_long_begin_commit(struct store *store, int ns, size_t items, size_t bytes,
                                   int64_t *limit_ms_r)
{
    const struct store_reading *reading = store_reading(store);
    const struct settings *settings = store_settings(store);
    bool is_large = items > COMMIT_SHORT_ITEMS || bytes > COMMIT_SHORT_BYTES;
    *limit_ms_r = 0;
    if (!reading->is_limited || (!is_large && reading->state != READING_FULLY))
        return FAULT_NONE;
    if (!reading->requester.has_time && settings->limit_commit_ms < settings->statement_timeout_ms)
        *limit_ms_r = settings->limit_commit_ms;
    return store_long_enter(store, ns);
}

void store_long_note_slow_commit(struct store *store, int64_t limit_ms)
{
    (void)store_long_refuse(store, FAULT_XTIME, "limit_commit_ms", limit_ms);
}

/* --- time --- */

enum fault store_long_begin(struct store *store, int ns, int64_t most_ms, struct long_read *read_r)
{
    struct store_reading *reading = store_reading(store);
    *read_r = (struct long_read){.limit_ms = most_ms};
    if (!reading->is_limited)
        return FAULT_NONE;
    enum fault fault = enter_store_long(store, ns);
    bool is_tried = reading->trial_ms <= 0;
    /* In a snapshot no statement can be repeated. */
    if (!fault && reading->state == READING_ON_TRIAL && (is_tried || store_in_snapshot(store, ns)))
        fault = extend(store, ns, is_tried);
    if (!fault && reading->left_ms <= 0)
        fault = store_long_refuse(store, FAULT_XTIME, "limit_read_ms", store_settings(store)->limit_read_ms);
    int64_t left_ms = reading->state == READING_ON_TRIAL && reading->trial_ms < reading->left_ms
                          ? reading->trial_ms
                          : reading->left_ms;
    bool is_bounded = !reading->requester.has_time || reading->state == READING_ON_TRIAL;
    read_r->is_ours = is_bounded && (!most_ms || left_ms < most_ms);
    read_r->limit_ms = read_r->is_ours ? left_ms : most_ms;
    read_r->since_ms = clock_monotonic_ms();
    return fault;
}

bool store_long_end(struct store *store, int ns, const struct long_read *read, enum fault *fault)
{
    struct store_reading *reading = store_reading(store);
    if (!reading->is_limited || !read->since_ms)
        return false;
    int64_t taken_ms = clock_monotonic_ms() - read->since_ms;
    reading->left_ms -= taken_ms;
    reading->trial_ms -= taken_ms;
    if (*fault != FAULT_XTIME || !read->is_ours)
        return false;
    if (reading->state != READING_ON_TRIAL) {
        reading->left_ms = 0;
        *fault = store_long_refuse(store, FAULT_XTIME, "limit_read_ms", store_settings(store)->limit_read_ms);
        return false;
    }
    *fault = extend(store, ns, true);
    return !*fault;
}

bool store_long_count_loads(struct store *store, size_t count)
{
    store_reading(store)->loads += count;
    return store_reading(store)->is_limited && store_reading(store)->loads > LOADS_SHORT;
}

/* --- statements --- */

/* Adds to a pipeline the time limit of each of the statements that follow in it. */
static void store_long_add_limit(struct pg *pg, struct arena *arena, int64_t limit_ms)
{
    pg_pipeline_add(pg, &statements[STATEMENT_READ_LIMIT],
                    PG_PARAMS(arena, PG_TEXT(bytes_of(arena_printf(arena, "%" PRId64, limit_ms)))));
}

void store_long_add_limit_of_all(struct pg *pg, struct arena *arena, int64_t limit_ms)
{
    pg_pipeline_add(pg, &statements[STATEMENT_READ_UNTIL], PG_PARAMS(arena, PG_I64(limit_ms)));
}

void store_long_add_left(struct pg *pg, struct arena *arena)
{
    pg_pipeline_add(pg, &statements[STATEMENT_READ_LEFT], PG_NO_PARAMS(arena));
}

enum fault store_long_run_limited(struct pg *pg, int64_t limit_ms, int64_t answer_ms,
                                  const struct pg_statement *statement, const struct pg_params *params,
                                  struct pg_result **result_r)
{
    struct pg_verdict verdict;
    if (!limit_ms)
        return pg_run(pg, statement, params, result_r);
    if (!pg_params_fit(params))
        return FAULT_ALIMIT;
    enum fault fault = pg_pipeline_begin(pg, params->arena);
    if (fault)
        return fault;
    store_long_add_limit(pg, params->arena, limit_ms);
    pg_pipeline_add(pg, statement, params);
    pg_pipeline_run(pg, answer_ms, &verdict);
    if (verdict.outcome != PG_COMMITTED)
        return verdict.fault;
    *result_r = verdict.results[1];
    return verdict.fault;
}

enum fault store_long_run(struct store *store, int ns, int64_t most_ms, long_work *work, void *context)
{
    struct long_read read;
    enum fault fault;
    int attempt = 0;
    bool again;
    do {
        struct pg *pg;
        fault = FAULT_FIRST(store_long_begin(store, ns, most_ms, &read), store_use(store, ns, &pg),
                            work(store, ns, read.limit_ms, context));
        again = store_long_end(store, ns, &read, &fault);
    } while (again || store_run_again(store, ns, fault, attempt++));
    return fault;
}

static enum fault run_statement(struct store *store, int ns, int64_t limit_ms, void *context)
{
    const struct statement_run *run = context;
    return store_long_run_limited(store_pg(store, ns), limit_ms, store_pipeline_ms(store),
                                  &statements[run->statement], run->params, run->result_r);
}

enum fault store_long_run_statement(struct store *store, int ns, enum statement statement,
                                    const struct pg_params *params, struct pg_result **result_r)
{
    return store_long_run(store, ns, 0, run_statement, &(struct statement_run){statement, params, result_r});
}
