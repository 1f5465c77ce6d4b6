/* store_commit: the commit of an operation: one pipeline of the statements that its parts need
 * (commit_table.h, commit.md section 3). */
#include "store/store_commit.h"

#include "base/crash.h"
#include "store/commit_part.h"
#include "store/refusal.h"
#include "edge/json.h"

static const struct commit_part *const parts[] = {
#define PART(name, statements) &commit_part_##name,
#include "store/commit_table.h"
#undef PART
};
enum { PARTS = COUNT_OF(parts) };

/* --- plan, send, take ---------------------------------------------------------------------------- */

static bool fit(const struct planned *planned)
{
    while (planned && pg_params_fit(&planned->params))
        planned = planned->next;
    return !planned;
}

static enum fault plan_parts(struct commit_run *run, struct planned *planned[PARTS])
{
    if (!run->session->pg)
        return FAULT_XAWAY;
    if (run->commit->count || run->commit->copies) {
        enum fault fault = store_read_schema(run->session);
        if (fault)
            return fault;
        run->schema = store_present_schema(run->session);
    }
    for (size_t i = 0; i < PARTS; i++) {
        planned[i] = NULL;
        run->end = &planned[i];
        enum fault fault = parts[i]->plan(run);
        if (!fault && !fit(planned[i]))
            fault = FAULT_ALIMIT;
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* `first_r`: the index in the pipeline of the first statement of each part. */
static void send_parts(struct pg *pg, struct planned *const planned[PARTS], int first_r[PARTS])
{
    for (size_t i = 0; i < PARTS; i++) {
        first_r[i] = pg_pipeline_count(pg);
        for (const struct planned *one = planned[i]; one; one = one->next)
            pg_pipeline_add(pg, one->statement, &one->params);
    }
}

static void take_parts(struct commit_run *run, struct planned *const planned[PARTS], const int first[PARTS],
                       struct pg_result *const *results)
{
    for (size_t i = 0; i < PARTS; i++)
        if (planned[i] && parts[i]->take)
            parts[i]->take(run, results + first[i]);
}

/* --- the verdict --------------------------------------------------------------------------------- */

static void flag_all(struct commit *commit)
{
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = true;
}

size_t store_flag_listed(struct commit *commit, struct arena *arena, const char *detail)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2};
    struct json *list;
    struct json_problem problem;
    if (!detail || json_read(arena, bytes_of(detail), &limits, &list, &problem) != FAULT_NONE)
        return 0;
    size_t flagged = 0;
    for (const struct json *entry = list->first; entry; entry = entry->next) {
        const struct json *class = entry->first, *id = class ? class->next : NULL;
        for (size_t i = 0; id && i < commit->count; i++) {
            const struct header *header = &commit->documents[i].base->header;
            if (bytes_equal(header->class, class->value) && bytes_equal(header->id, id->value)) {
                commit->documents[i].moved = true;
                flagged++;
            }
        }
    }
    return flagged;
}

/* The detail of UNIQUE, FIXED, MANY_VALUES and MANY_TASKS: a JSON list that begins with these parts. */
static enum fault note_refused(struct commit *commit, struct arena *arena, const char *detail,
                               enum fault fault)
{
    static const struct json_limits limits = {.depth = 2, .tree_depth = 2};
    struct json *list;
    struct json_problem problem;
    if (!detail || json_read(arena, bytes_of(detail), &limits, &list, &problem) != FAULT_NONE)
        return fault;
    size_t part = 0;
    for (const struct json *one = list->first; one && part < COMMIT_REFUSED_PARTS; one = one->next)
        commit->refused[part++] = one->value;
    return fault;
}

static enum fault judge_refusal(struct store_session *session, const struct pg_verdict *verdict,
                                struct arena *arena, struct commit *commit)
{
    switch (refusal_of(verdict->sqlstate)) {
    case REFUSAL_MOVED:
        if (store_flag_listed(commit, arena, verdict->detail) == 0)
            flag_all(commit);
        return FAULT_STALE;
    case REFUSAL_FENCED:
        store_flag_fences(commit, arena, verdict->detail);
        return FAULT_FENCED;
    case REFUSAL_ANSWERED:
        return FAULT_STALE; /* already done: possibly no document has moved */
    case REFUSAL_UNIQUE:
        return note_refused(commit, arena, verdict->detail, FAULT_AUNIQUE);
    case REFUSAL_FIXED:
        return note_refused(commit, arena, verdict->detail, FAULT_AFIXED);
    case REFUSAL_MANY_VALUES:
        return note_refused(commit, arena, verdict->detail, FAULT_ALIMIT);
    case REFUSAL_MANY_TASKS:
        return note_refused(commit, arena, verdict->detail, FAULT_XBUSY);
    default:
        break;
    }
    if (store_judge_schema(session, verdict->sqlstate, FAULT_NONE))
        return FAULT_STALE; /* the same */
    /* The document was created without the lock on its absence. */
    bool is_born_twice = strcmp(verdict->sqlstate, "23505") == 0 && verdict->constraint &&
                         strcmp(verdict->constraint, "doc_pkey") == 0;
    enum fault fault = is_born_twice ? FAULT_STALE : verdict->fault;
    if (fault == FAULT_STALE)
        flag_all(commit);
    return fault;
}

enum commit_outcome store_commit(struct store *store, int ns, struct arena *arena, struct commit *commit,
                                 enum fault *fault_r)
{
    struct store_session *session = &store->sessions[ns];
    assert(!session->in_snapshot);
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = false;
    commit->next = (struct task){0};
    struct commit_run run = {.store = store, .session = session, .arena = arena, .commit = commit};
    struct planned *planned[PARTS];
    int first[PARTS];
    *fault_r = plan_parts(&run, planned);
    bool has_reservations = !*fault_r && run.schema && store_has_reservations(run.schema, commit);
    if (has_reservations)
        *fault_r = store_begin_reservations(session);
    if (!*fault_r)
        *fault_r = pg_pipeline_begin(session->pg, arena);
    if (*fault_r) {
        if (has_reservations)
            store_close(store, ns);
        return COMMIT_REFUSED; /* nothing was sent */
    }
    session->used = ++store->turn;
    send_parts(session->pg, planned, first);
    crash_at(CRASH_COMMIT_QUEUED);
    struct pg_verdict verdict;
    pg_pipeline_run(session->pg, store_pipeline_ms(store), &verdict);
    if (has_reservations)
        store_end_reservations(store, ns, arena, &verdict, commit);
    switch (verdict.outcome) {
    case PG_COMMITTED:
        take_parts(&run, planned, first, verdict.results);
        return COMMIT_DONE;
    case PG_REFUSED:
        *fault_r = judge_refusal(session, &verdict, arena, commit);
        if (session->pg && !pg_is_usable(session->pg))
            store_close(store, ns);
        return COMMIT_REFUSED;
    case PG_UNKNOWN:
    default:
        *fault_r = FAULT_XUNKNOWN;
        store_close(store, ns);
        return COMMIT_UNKNOWN;
    }
}
