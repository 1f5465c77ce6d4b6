/* store_commit: the commit of an operation: one pipeline of the statements that its parts need
 * (commit_table.h, commit.md section 3). */
#include "store/documents/store_commit.h"

#include "base/clock.h"
#include "base/crash.h"
#include "edge/pg/pg.h"
#include "edge/pg/pg_pipeline.h"
#include "segment/counts/waits.h"
#include "segment/namespaces.h"
#include "store/documents/commit_part.h"
#include "store/documents/commit_verdict.h"
#include "store/documents/reservations.h"
#include "store/documents/schema_cache.h"
#include "store/store_long.h"
#include "store/store_private.h"

/* --- reservations --- */

/* A commit that takes or gives up values that are unique in all namespaces.  It is a
 * transaction of its own, begun before the pipeline and ended after it.  The end of a commit that takes or
 * gives up values that are unique in all namespaces. */

static bool is_claiming(const struct schema *schema, struct bytes name)
{
    const struct schema_class *class = schema_find_class(schema, name);
    for (size_t i = 0; class && i < class->unique_count; i++)
        if (class->uniques[i].is_global)
            return true;
    return false;
}

/* Whether the commit may take or give up such values.  Copies have keys, and properties belong to singletons:
 * copies change no property. */
static bool store_reservations_has(const struct schema *schema, const struct commit *commit)
{
    for (size_t i = 0; schema->has_global && i < commit->count; i++)
        if (commit->documents[i].act != DRAFT_READ &&
            is_claiming(schema, commit->documents[i].base->header.class))
            return true;
    return false;
}

static enum fault store_reservations_begin(struct store *store, int ns)
{
    store_set_held(store, ns, true);
    enum fault fault = pg_execute(store_pg(store, ns), "begin; " RESERVATIONS_BEGIN);
    store_set_held(store, ns, !fault);
    return fault;
}

static enum fault use(void *whose, struct bytes database, struct pg **pg_r)
{
    struct store *store = whose;
    int ns = namespaces_find(store_segment(store), database);
    *pg_r = NULL;
    if (ns < 0)
        return FAULT_BINTERNAL;
    /* The session of the commit is never reopened: its transaction would have ended with it. */
    return FAULT_FIRST(store_is_held(store, ns) ? FAULT_NONE : store_connect(store, ns),
                       store_use(store, ns, pg_r));
}

static void failed(void *whose, struct bytes database)
{
    struct store *store = whose;
    int ns = namespaces_find(store_segment(store), database);
    const struct pg *pg = store_pg(store, ns);
    if (!store_is_held(store, ns) && pg && !pg_is_usable(pg))
        store_close(store, ns);
}

/* Nothing was committed. */
static void undo(struct pg *pg, struct pg_verdict *verdict, enum fault fault)
{
    verdict->outcome = PG_REFUSED;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
    (void)!pg_execute(pg, "rollback"); /* or the connection is lost, which also rolls back */
}

/* The commit itself: its outcome is unknown if no answer arrives. */
static void commit_now(struct pg *pg, struct pg_verdict *verdict)
{
    enum fault fault = pg_execute(pg, "commit");
    if (!fault)
        return;
    verdict->outcome = pg_is_usable(pg) ? PG_REFUSED : PG_UNKNOWN;
    verdict->fault = fault;
    verdict->sqlstate[0] = '\0';
}

/* `verdict` is that of the pipeline, and becomes that of the whole. */
static void store_reservations_end(struct store *store, int ns, struct arena *arena,
                                   struct pg_verdict *verdict, struct commit *commit)
{
    struct pg *pg = store_pg(store, ns);
    const struct reservation_sessions sessions = {
        .use = use,
        .failed = failed,
        .whose = store,
        .z = bytes_of(store_settings(store)->z_database),
        .database = bytes_of(namespaces_database(store_segment(store), ns)),
    };
    struct reservations *reservations = NULL;
    assert(store_is_held(store, ns));
    if (verdict->outcome == PG_COMMITTED) { /* so far: no statement has failed */
        enum fault fault = reservations_collect(arena, pg, &reservations);
        crash_at(CRASH_RESERVATIONS_COLLECTED);
        if (!fault && reservations)
            fault = reservations_take(reservations, &sessions);
        crash_at(CRASH_RESERVATIONS_TAKEN);
        if (fault == FAULT_AUNIQUE)
            reservations_refused_parts(reservations, commit->refused);
        if (fault)
            undo(pg, verdict, fault);
        else
            commit_now(pg, verdict);
        crash_at(CRASH_RESERVATIONS_COMMITTED);
    } else if (verdict->outcome == PG_REFUSED) {
        (void)!pg_execute(pg, "rollback");
    }
    if (reservations && verdict->outcome != PG_UNKNOWN)
        reservations_settle(reservations, &sessions,
                            verdict->outcome == PG_COMMITTED ? RESERVATIONS_COMMITTED : RESERVATIONS_UNDONE);
    store_set_held(store, ns, false); /* not before: sessions opened meanwhile replace others */
}

/* --- the commit --- */

static const struct commit_part *const parts[] = {
#define PART(name, statements) &commit_part_##name,
#include "store/commit_table.h"
#include "edge/pg/pg_pipeline.h"
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
    if (!store_pg(run->store, run->ns))
        return FAULT_XAWAY;
    if (run->commit->count || run->commit->copies) {
        enum fault fault = schema_cache_read(run->store, run->ns);
        if (fault)
            return fault;
        run->schema = schema_cache_get(run->store, run->ns);
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

/* `first_r`: the index in the pipeline of the first statement of each part.  limit_ms 0: none of its own. */
static void send_parts(const struct commit_run *run, int64_t limit_ms, struct planned *const planned[PARTS],
                       int first_r[PARTS])
{
    struct pg *pg = store_pg(run->store, run->ns);
    if (limit_ms)
        store_long_add_limit_of_all(pg, run->arena, limit_ms);
    for (size_t i = 0; i < PARTS; i++) {
        if (limit_ms && planned[i])
            store_long_add_left(pg, run->arena);
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

/* Items that the database writes or removes, and their bytes. */
static void store_commit_measure(const struct commit *commit, size_t *items_r, size_t *bytes_r)
{
    *items_r = *bytes_r = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        if (document->act == DRAFT_READ)
            continue;
        *items_r += document->rows.item_count + document->rows.purge_count;
        if (document->act == DRAFT_DELETE || document->act == DRAFT_RENEW)
            *items_r += document->base->item_count;
        for (size_t k = 0; k < document->rows.item_count; k++)
            *bytes_r += document->rows.items[k]->content.size;
    }
}

/* --- the whole ---------------------------------------------------------------------------------- */

enum commit_outcome store_commit(struct store *store, int ns, struct arena *arena, struct commit *commit,
                                 enum fault *fault_r)
{
    struct pg *pg = store_pg(store, ns);
    assert(!store_in_snapshot(store, ns));
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = false;
    commit->next = (struct task){0};
    struct commit_run run = {.store = store, .ns = ns, .arena = arena, .commit = commit};
    struct planned *planned[PARTS];
    int first[PARTS];
    size_t items, bytes;
    int64_t limit_ms;
    store_commit_measure(commit, &items, &bytes);
    *fault_r = store_long_begin_commit(store, ns, items, bytes, &limit_ms);
    if (!*fault_r)
        *fault_r = plan_parts(&run, planned);
    bool has_reservations = !*fault_r && run.schema && store_reservations_has(run.schema, commit);
    if (has_reservations)
        *fault_r = store_reservations_begin(store, ns);
    if (!*fault_r)
        *fault_r = pg_pipeline_begin(pg, arena);
    if (*fault_r) {
        if (has_reservations)
            store_close(store, ns);
        return COMMIT_REFUSED; /* nothing was sent */
    }
    store_renew(store, ns);
    send_parts(&run, limit_ms, planned, first);
    crash_at(CRASH_COMMIT_QUEUED);
    struct pg_verdict verdict;
    /* A long commit waits for nobody until its limit. */
    waits_begin(store_segment(store), clock_monotonic_ms() + limit_ms);
    pg_pipeline_run_patiently(pg, store_settings(store)->commit_timeout_ms, store_gives_up, store, &verdict);
    waits_end(store_segment(store));
    if (has_reservations)
        store_reservations_end(store, ns, arena, &verdict, commit);
    if (verdict.outcome == PG_COMMITTED && store_is_former(store, ns))
        verdict.outcome = PG_UNKNOWN; /* acknowledged by a server that is no primary any more */
    switch (verdict.outcome) {
    case PG_COMMITTED:
        take_parts(&run, planned, first, verdict.results);
        return COMMIT_DONE;
    case PG_REFUSED:
        *fault_r = commit_verdict_judge(store, ns, &verdict, arena, commit);
        if (limit_ms && *fault_r == FAULT_XTIME)
            store_long_note_slow_commit(store, limit_ms);
        if (pg && !pg_is_usable(pg))
            store_close(store, ns);
        return COMMIT_REFUSED;
    case PG_UNKNOWN:
    default:
        *fault_r = FAULT_XUNKNOWN;
        store_close(store, ns);
        return COMMIT_UNKNOWN;
    }
}
