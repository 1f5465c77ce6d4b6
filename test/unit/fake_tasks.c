/* fake_tasks: see the header. */
#include "fake_tasks.h"
#include "store/documents/store_commit.h"
#include "store/tasks/store_take.h"

struct fake_queue queue;
static struct arena *texts;

void fake_forget_tasks(void)
{
    if (texts)
        arena_destroy(texts);
    texts = NULL;
    queue = (struct fake_queue){0};
}

static struct bytes keep(struct bytes text)
{
    if (!texts)
        texts = arena_create("fake tasks");
    return text.data ? (struct bytes){arena_copy(texts, text.data, text.size), text.size} : NO_BYTES;
}

static struct fake_task *add(const struct task *task)
{
    assert(queue.count < COUNT_OF(queue.tasks));
    struct fake_task *place = &queue.tasks[queue.count++];
    *place = (struct fake_task){.task = *task};
    struct bytes *const kept[] = {&place->task.id,   &place->task.operation, &place->task.param,
                                  &place->task.info, &place->task.resource,  &place->task.domain};
    for (size_t i = 0; i < COUNT_OF(kept); i++)
        *kept[i] = keep(*kept[i]);
    return place;
}

struct fake_task *fake_add_task(const char *id, const char *operation, const char *param)
{
    const struct task task = {.id = bytes_of(id),
                              .operation = bytes_of(operation),
                              .param = bytes_of(param),
                              .info = BYTES(""),
                              .start = STAMP_MIN,
                              .priority = TASK_PRIORITY,
                              .batch = 1};
    return add(&task);
}

static struct fake_task *find(struct bytes id)
{
    for (size_t i = 0; i < queue.count; i++)
        if (bytes_equal(queue.tasks[i].task.id, id))
            return &queue.tasks[i];
    return NULL;
}

struct fake_task *fake_find_task(const char *id)
{
    return find(bytes_of(id));
}

static struct fake_task *find_held(const struct task_fence *fence)
{
    struct fake_task *place = find(fence->id);
    return place && !place->is_gone && place->task.claim == fence->claim &&
                   place->task.attempt == fence->attempt
               ? place
               : NULL;
}

static void note_end(const struct fake_task *place, struct bytes code)
{
    assert(queue.end_count < COUNT_OF(queue.ends));
    queue.ends[queue.end_count++] = (struct fake_end){.id = place->task.id.data,
                                                      .code = keep(code).data,
                                                      .claim = place->task.claim,
                                                      .attempt = place->task.attempt,
                                                      .step = place->task.step};
}

/* --- what the commit does --- */

enum fault fake_commit_tasks(struct commit *commit)
{
    bool is_fenced = false;
    for (size_t i = 0; i < commit->fence_count; i++)
        is_fenced |= commit->fences[i].is_lost = !find_held(&commit->fences[i]);
    if (is_fenced)
        return FAULT_FENCED;
    for (size_t i = 0; i < commit->fence_count; i++) {
        struct fake_task *place = find_held(&commit->fences[i]);
        place->task.step++;
        if (commit->checkpoint.data) {
            place->task.checkpoint = keep(commit->checkpoint);
            continue;
        }
        place->is_gone = true;
        note_end(place, NO_BYTES);
    }
    for (size_t i = 0; i < commit->task_count; i++)
        add(&commit->tasks[i]);
    return FAULT_NONE;
}

/* --- claims and ends --- */

static enum claim_result judge(const struct fake_task *place)
{
    if (!place || place->is_gone)
        return CLAIM_GONE;
    if (place->task.claim)
        return CLAIM_RUNNING;
    return place->task.start > stamp_now() ? CLAIM_WAITING : CLAIM_DONE;
}

enum fault store_tasks_claim(struct store *store, int ns, struct arena *arena, struct task_claim *claims,
                             size_t count, int64_t claim, struct bytes holder, struct bytes elsewhere)
{
    (void)store, (void)ns, (void)arena, (void)elsewhere;
    for (size_t i = 0; i < count && !queue.claim_fault; i++) {
        struct fake_task *place = find(claims[i].id);
        claims[i].result = judge(place);
        if (claims[i].result == CLAIM_DONE) {
            place->task.claim = claim;
            place->holder = keep(holder);
        }
        if (place)
            claims[i].task = place->task;
    }
    if (queue.after_claim)
        queue.after_claim();
    return queue.claim_fault;
}

enum fault store_tasks_put_back(struct store *store, int ns, struct arena *arena,
                                const struct task_fence *fence, const struct task_end *end, int64_t *start_r)
{
    (void)store, (void)ns, (void)arena;
    struct fake_task *place = find_held(fence);
    *start_r = 0;
    if (queue.back_fault || !place)
        return queue.back_fault;
    note_end(place, end->code);
    place->task.claim = 0;
    place->task.start = *start_r = end->start;
    place->task.attempt += end->is_failure;
    place->code = end->is_failure ? keep(end->code).data : NULL;
    place->report = end->is_failure ? keep(end->report).data : NULL;
    return FAULT_NONE;
}

enum fault store_tasks_state(struct store *store, int ns, struct arena *arena, const struct task_fence *fence,
                             struct task_state *state_r)
{
    (void)store, (void)ns, (void)arena;
    const struct fake_task *place = find_held(fence);
    *state_r = (struct task_state){.is_held = place != NULL, .step = place ? place->task.step : 0};
    for (size_t i = 0; i < queue.end_count; i++)
        state_r->is_done |= bytes_equal(bytes_of(queue.ends[i].id), fence->id) && !queue.ends[i].code &&
                            queue.ends[i].claim == fence->claim;
    return FAULT_NONE;
}

enum fault store_tasks_next(struct store *store, int ns, struct arena *arena, struct bytes domain,
                            struct task *task_r)
{
    (void)store, (void)ns, (void)arena;
    *task_r = (struct task){0};
    for (size_t i = 0; i < queue.count && !task_r->id.data; i++)
        if (judge(&queue.tasks[i]) == CLAIM_DONE && bytes_equal(queue.tasks[i].task.domain, domain))
            *task_r = queue.tasks[i].task;
    return FAULT_NONE;
}

/* --- scans --- */

enum fault store_tasks_due(struct store *store, int ns, struct arena *arena, int64_t limit, int64_t before,
                           const struct backlog_scan *scan, struct task **tasks_r, size_t *count_r)
{
    (void)store, (void)ns, (void)limit, (void)before, (void)scan;
    *tasks_r = ARENA_ARRAY(arena, struct task, queue.count);
    *count_r = 0;
    for (size_t i = 0; i < queue.count; i++)
        if (judge(&queue.tasks[i]) == CLAIM_DONE)
            (*tasks_r)[(*count_r)++] = queue.tasks[i].task;
    return FAULT_NONE;
}

enum fault store_tasks_running(struct store *store, int ns, struct arena *arena, struct held_task **tasks_r,
                               size_t *count_r)
{
    (void)store, (void)ns;
    *tasks_r = ARENA_ARRAY(arena, struct held_task, queue.count);
    *count_r = 0;
    for (size_t i = 0; i < queue.count; i++)
        if (judge(&queue.tasks[i]) == CLAIM_RUNNING)
            (*tasks_r)[(*count_r)++] =
                (struct held_task){.task = queue.tasks[i].task, .holder = queue.tasks[i].holder};
    return FAULT_NONE;
}

enum fault store_tasks_purge_history(struct store *store, int ns, struct arena *arena, int64_t before,
                                     int64_t batch, int64_t *count_r)
{
    (void)store, (void)ns, (void)arena, (void)before, (void)batch;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_tasks_oldest(struct store *store, int ns, struct arena *arena,
                              const struct backlog_scan *scan, struct backlog_bound *bound_r)
{
    (void)store, (void)ns, (void)arena, (void)scan;
    *bound_r = (struct backlog_bound){.oldest = STAMP_MAX};
    return FAULT_NONE;
}

enum fault store_tasks_unreported(struct store *store, int ns, struct arena *arena, int64_t failures,
                                  int64_t limit, struct failed_task **tasks_r, size_t *count_r)
{
    (void)store, (void)ns, (void)arena, (void)failures, (void)limit;
    *tasks_r = NULL;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_tasks_reported(struct store *store, int ns, struct arena *arena, struct bytes id,
                                int64_t failures)
{
    (void)store, (void)ns, (void)arena, (void)id, (void)failures;
    return FAULT_NONE;
}

enum fault store_tasks_expire(struct store *store, int ns, struct arena *arena, int64_t before, int64_t batch,
                              int64_t *count_r)
{
    (void)store, (void)ns, (void)arena, (void)before, (void)batch;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_tasks_declare(struct store *store, int ns, struct arena *arena,
                               const struct task_declaration *operations, size_t count, int64_t param_bytes)
{
    (void)store, (void)ns, (void)arena, (void)operations, (void)count, (void)param_bytes;
    return FAULT_NONE;
}

/* Without a database nobody administers. */
enum fault store_tasks_administer(struct store *store, int ns, enum statement statement,
                                  const struct pg_params *params, struct pg_result **rows_r)
{
    (void)store, (void)ns, (void)statement, (void)params;
    *rows_r = NULL;
    return FAULT_XAWAY;
}

enum fault store_tasks_count(struct store *store, int ns, enum statement statement,
                             const struct pg_params *params, struct pg_result **rows_r)
{
    (void)store, (void)ns, (void)statement, (void)params;
    *rows_r = NULL;
    return FAULT_XAWAY;
}

enum fault store_tasks_change(struct store *store, int ns, enum statement statement,
                              const struct pg_params *params, struct pg_result **rows_r)
{
    (void)store, (void)ns, (void)statement, (void)params;
    *rows_r = NULL;
    return FAULT_XAWAY;
}

/* No rules of periodic tasks. */
enum fault store_cron_scan(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                           const struct cron_declaration *declarations UNUSED, size_t count UNUSED,
                           struct cron_rule **rules_r, size_t *count_r)
{
    *rules_r = NULL;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_cron_plan(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                           const struct cron_rule *rule UNUSED, int64_t next UNUSED, int number UNUSED,
                           bool *is_made_r)
{
    *is_made_r = false;
    return FAULT_NONE;
}

/* --- subscriptions: one, whatever the session --- */

struct fake_subs subs;

enum fault store_subscriptions_read(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                    struct bytes session UNUSED,
                                    const struct subscription_caller *caller UNUSED, bool by_session UNUSED,
                                    struct subscription *subscription_r, bool *is_there_r)
{
    subs.reads++;
    *subscription_r = subs.subscription;
    *is_there_r = subs.is_there;
    return subs.fault;
}

enum fault store_subscriptions_change(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                      struct bytes session UNUSED, const struct subscription_change *change,
                                      struct subscription *subscription_r, bool *is_there_r,
                                      const char **limit_r)
{
    *limit_r = subs.limit;
    subs.changes++;
    subs.change = *change;
    subs.push = change->push ? *change->push : (struct push_address){NO_BYTES, NO_BYTES, NO_BYTES};
    subs.context = change->context ? *change->context : NO_BYTES;
    *subscription_r = subs.subscription;
    *is_there_r = subs.is_there;
    if (subs.then)
        subs.then();
    return subs.fault;
}

enum fault store_subscriptions_drop(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                    struct bytes session UNUSED,
                                    const struct subscription_caller *caller UNUSED)
{
    subs.drops++;
    if (subs.then)
        subs.then();
    return subs.fault;
}

enum fault store_subscriptions_written(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                       struct bytes class UNUSED, struct bytes after UNUSED,
                                       int64_t version UNUSED, size_t most UNUSED, struct bytes **ids_r,
                                       size_t *count_r)
{
    *ids_r = NULL;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_subscriptions_members(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                       const struct member_search *searches UNUSED, size_t count,
                                       bool *are_members_r)
{
    memset(are_members_r, 0, count * sizeof *are_members_r);
    return FAULT_NONE;
}

enum fault store_subscriptions_changed(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                       const struct member_search *searches UNUSED, size_t count UNUSED,
                                       size_t most UNUSED, struct changed_member **changed_r,
                                       size_t *changed_count_r)
{
    *changed_r = NULL;
    *changed_count_r = 0;
    return FAULT_NONE;
}

enum fault store_subscriptions_left(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                    const struct member_search *search UNUSED, int64_t from UNUSED,
                                    size_t most UNUSED, struct left_member **left_r, size_t *count_r)
{
    *left_r = NULL;
    *count_r = 0;
    return FAULT_NONE;
}

/* Nothing is ever told. */
enum fault store_subscriptions_take_matched(struct store *store UNUSED, int ns UNUSED,
                                            struct arena *arena UNUSED, struct bytes session UNUSED,
                                            struct matched_list *list_r)
{
    *list_r = (struct matched_list){0};
    return FAULT_NONE;
}

enum fault store_subscriptions_forget_matched(struct store *store UNUSED, int ns UNUSED,
                                              struct arena *arena UNUSED, struct bytes session UNUSED,
                                              int64_t taking UNUSED)
{
    return FAULT_NONE;
}

enum fault store_subscriptions_forget_push(struct store *store UNUSED, int ns UNUSED,
                                           struct arena *arena UNUSED, struct bytes session UNUSED,
                                           struct bytes endpoint UNUSED, bool *is_gone_r)
{
    *is_gone_r = true;
    return FAULT_NONE;
}

/* External workers and owners of tasks are tested with the real store. */

enum fault store_take(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                      const struct task_take *take UNUSED, struct task_taken *taken_r)
{
    *taken_r = (struct task_taken){0};
    return FAULT_NONE;
}

enum fault store_take_open(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                           struct task_taken *taken UNUSED)
{
    return FAULT_NONE;
}

enum fault store_take_following(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                                int number UNUSED, const struct task_fence *fence UNUSED,
                                struct task_taken *taken_r)
{
    *taken_r = (struct task_taken){0};
    return FAULT_NONE;
}

enum fault store_tasks_overdue(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                               int number UNUSED, int64_t most UNUSED, struct held_task **tasks_r,
                               size_t *count_r)
{
    *tasks_r = NULL;
    *count_r = 0;
    return FAULT_NONE;
}

enum fault store_tasks_hold(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                            const struct task_fence *fence UNUSED, struct task_hold *hold_r)
{
    *hold_r = (struct task_hold){.queue = -1};
    return FAULT_NONE;
}

enum fault store_tasks_keep(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                            const struct task_fence *fence UNUSED, int64_t until UNUSED,
                            struct bytes progress UNUSED, bool *is_kept_r)
{
    *is_kept_r = false;
    return FAULT_NONE;
}

enum fault store_tasks_own(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                           struct bytes id UNUSED, struct bytes owner UNUSED, struct task_own *own_r)
{
    *own_r = (struct task_own){0};
    return FAULT_NONE;
}

enum fault store_tasks_cancel(struct store *store UNUSED, int ns UNUSED, struct arena *arena UNUSED,
                              struct bytes id UNUSED, struct bytes owner UNUSED, bool *is_cancelled_r)
{
    *is_cancelled_r = false;
    return FAULT_NONE;
}

/* --- standbys: there are none --- */

struct store *store_create_replica(const struct settings *settings, struct segment *segment)
{
    (void)settings, (void)segment;
    return NULL;
}

void store_note_failure(struct store *store, int ns, int64_t since_ms)
{
    (void)store, (void)ns, (void)since_ms;
}

bool store_stands(const struct store *store, int ns)
{
    (void)store, (void)ns;
    return false;
}

bool store_is_young(struct store *store, int ns, struct arena *arena, int64_t tolerance_ms,
                    int64_t *as_of_ms_r)
{
    (void)store, (void)ns, (void)arena, (void)tolerance_ms, (void)as_of_ms_r;
    return false;
}
