/* store_commit: the commit of an operation, one pipeline of the statements that it needs (commit.md section
 * 3), and the verification of versions alone. */
#include "store/store.h"

#include "base/crash.h"
#include "store/statements.h"
#include "store/store_private.h"
#include "edge/json.h"

/* Parameters of CORE from 0: those shared with other statements are encoded once. */
enum { CORE_VERSION, CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT, CORE_CTIME, CORE_DTIME, CORE_V1, CORE_V2 };

/* The parts of the commit besides CORE. */
struct plan {
    size_t item_count, purge_count;
    bool has_absent, has_births, has_wipes;
    bool is_lone; /* one document that has a row, and no statement that needs CORE's arrays: CORE_ONE */
};

static struct plan plan_commit(const struct commit *commit)
{
    struct plan plan = {0};
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        bool is_absent = document->base->header.version == 0;
        plan.has_absent |= is_absent;
        if (document->act == DRAFT_READ)
            continue;
        assert(document->base->header.version < commit->version);
        assert(!is_absent || document->act == DRAFT_WRITE);
        plan.has_births |= is_absent;
        plan.has_wipes |= document->act == DRAFT_DELETE || document->act == DRAFT_RENEW;
        plan.item_count += document->rows.item_count;
        plan.purge_count += document->rows.purge_count;
    }
    plan.is_lone = commit->count == 1 && commit->documents->act != DRAFT_READ && !plan.has_absent &&
                   !plan.has_wipes && !plan.purge_count;
    return plan;
}

/* --- parameters ---------------------------------------------------------------------------------- */

static void add_names(struct pg_params *params, const struct commit *commit)
{
    struct bytes *classes = ARENA_ARRAY(params->arena, struct bytes, commit->count);
    struct bytes *ids = ARENA_ARRAY(params->arena, struct bytes, commit->count);
    int64_t *seen = ARENA_ARRAY(params->arena, int64_t, commit->count);
    for (size_t i = 0; i < commit->count; i++) {
        const struct header *header = &commit->documents[i].base->header;
        classes[i] = header->class;
        ids[i] = header->id;
        seen[i] = header->version;
    }
    pg_add_text_array(params, classes, commit->count);
    pg_add_text_array(params, ids, commit->count);
    pg_add_i64_array(params, seen, commit->count);
}

static void add_headers(struct pg_params *params, const struct commit *commit)
{
    int32_t *acts = ARENA_ARRAY(params->arena, int32_t, commit->count);
    int64_t *columns[4];
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        columns[i] = ARENA_ARRAY(params->arena, int64_t, commit->count);
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        acts[i] = (int32_t)document->act;
        if (document->act == DRAFT_READ)
            continue;
        columns[0][i] = document->rows.header.ctime;
        columns[1][i] = document->rows.header.dtime;
        columns[2][i] = document->rows.header.v1;
        columns[3][i] = document->rows.header.v2;
    }
    pg_add_i32_array(params, acts, commit->count);
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        pg_add_i64_array(params, columns[i], commit->count);
}

/* `with_places`: the document of each row. */
static void add_items(struct pg_params *params, const struct commit *commit, size_t count, bool with_places)
{
    struct arena *arena = params->arena;
    int32_t *places = ARENA_ARRAY(arena, int32_t, count);
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *keys = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *contents = ARENA_ARRAY(arena, struct bytes, count);
    int64_t *vops = ARENA_ARRAY(arena, int64_t, count);
    bool *raws = ARENA_ARRAY(arena, bool, count);
    size_t at = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        for (size_t k = 0; document->act != DRAFT_READ && k < document->rows.item_count; k++, at++) {
            const struct item *item = document->rows.items[k];
            places[at] = (int32_t)i + 1;
            classes[at] = item->iclass;
            keys[at] = item->key.data ? item->key : BYTES("");
            contents[at] = item->content;
            vops[at] = item->vop;
            raws[at] = item->raw;
        }
    }
    assert(at == count);
    if (with_places)
        pg_add_i32_array(params, places, count);
    pg_add_text_array(params, classes, count);
    pg_add_text_array(params, keys, count);
    pg_add_i64_array(params, vops, count);
    pg_add_text_array(params, contents, count);
    pg_add_bool_array(params, raws, count);
}

static void add_purges(struct pg_params *params, const struct commit *commit, size_t count)
{
    int32_t *places = ARENA_ARRAY(params->arena, int32_t, count);
    struct bytes *classes = ARENA_ARRAY(params->arena, struct bytes, count);
    struct bytes *keys = ARENA_ARRAY(params->arena, struct bytes, count);
    size_t at = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        for (size_t k = 0; document->act != DRAFT_READ && k < document->rows.purge_count; k++, at++) {
            places[at] = (int32_t)i + 1;
            classes[at] = document->rows.purges[k]->iclass;
            keys[at] = document->rows.purges[k]->key.data ? document->rows.purges[k]->key : BYTES("");
        }
    }
    assert(at == count);
    pg_add_i32_array(params, places, count);
    pg_add_text_array(params, classes, count);
    pg_add_text_array(params, keys, count);
}

static void add_core(struct pg_params *params, const struct commit *commit, const struct plan *plan)
{
    pg_add_i64(params, commit->version);
    if (plan->is_lone) {
        const struct commit_document *document = commit->documents;
        const struct header *header = &document->rows.header;
        pg_add_text(params, document->base->header.class);
        pg_add_text(params, document->base->header.id);
        pg_add_i64(params, document->base->header.version);
        pg_add_i64(params, header->ctime);
        pg_add_i64(params, header->dtime);
        pg_add_i64(params, header->v1);
        pg_add_i64(params, header->v2);
    } else {
        add_names(params, commit);
        add_headers(params, commit);
    }
    add_items(params, commit, plan->item_count, !plan->is_lone);
}

/* --- the pipeline -------------------------------------------------------------------------------- */

static void add_sharing(struct pg *pg, enum statement statement, const struct pg_params *core,
                        const int *shared, size_t count)
{
    struct pg_params params;
    pg_params_start(&params, core->arena);
    for (size_t i = 0; i < count; i++)
        pg_add_same(&params, core, shared[i]);
    pg_pipeline_add(pg, &statements[statement], &params);
}

/* Builds the parameters of all statements before the first byte is sent: locks are held from the first
 * statement to the sync. */
struct parts {
    struct pg_params core, purge, match;
    struct idempotency_params idempotency;
    struct task_params tasks;
    struct copy_params copies;
    struct store_sides *sides;
    const struct schema *schema; /* NULL: no document is written */
    bool matches;                /* subscriptions are matched */
};

static void build_parts(struct parts *parts, const struct store *store, struct arena *arena,
                        const struct commit *commit, const struct plan *plan)
{
    pg_params_start(&parts->core, arena);
    if (commit->count)
        add_core(&parts->core, commit, plan);
    pg_params_start(&parts->purge, arena);
    if (plan->purge_count) {
        pg_add_same(&parts->purge, &parts->core, CORE_CLASS);
        pg_add_same(&parts->purge, &parts->core, CORE_ID);
        pg_add_same(&parts->purge, &parts->core, CORE_DTIME);
        add_purges(&parts->purge, commit, plan->purge_count);
    }
    if (commit->idempotency)
        store_idempotency_add(&parts->idempotency, store, arena, commit->idempotency);
    store_add_tasks(&parts->tasks, arena, commit);
    store_add_copies(&parts->copies, arena, commit);
    parts->sides = NULL;
    parts->schema = NULL;
    parts->matches = false;
}

/* The parts of a commit of documents that depend on the applied schema. */
static enum fault add_schema(const struct store *store, struct store_session *session, struct arena *arena,
                             const struct commit *commit, struct parts *parts)
{
    enum fault fault = store_read_schema(session);
    if (!fault)
        fault = store_collect_sides(session, arena, commit, &parts->sides);
    if (fault)
        return fault;
    parts->schema = store_present_schema(session);
    if (commit->count)
        pg_add_i64(&parts->core, parts->schema->number);
    parts->matches = store_add_match(&parts->match, store, arena, commit, parts->schema);
    return FAULT_NONE;
}

static bool fit(const struct parts *parts, const struct commit *commit)
{
    return pg_params_fit(&parts->core) && pg_params_fit(&parts->purge) && store_tasks_fit(&parts->tasks) &&
           store_copies_fit(&parts->copies) &&
           (!commit->idempotency || pg_params_fit(&parts->idempotency.keep));
}

/* Returns the position in the pipeline of the statements of new tasks. */
static int send_commit(struct pg *pg, const struct plan *plan, const struct parts *parts,
                       const struct commit *commit)
{
    static const int absent[] = {CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT};
    static const int born[] = {CORE_VERSION, CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT,
                               CORE_CTIME,   CORE_DTIME, CORE_V1, CORE_V2};
    static const int wipe[] = {CORE_VERSION, CORE_CLASS, CORE_ID, CORE_ACT};
    const struct pg_params *core = &parts->core;
    if (commit->idempotency)
        pg_pipeline_add(pg, &statements[STATEMENT_IDEMPOTENCY], &parts->idempotency.keep);
    store_send_ends(pg, &parts->tasks, commit);
    if (plan->has_absent)
        add_sharing(pg, STATEMENT_ABSENT, core, absent, COUNT_OF(absent));
    if (commit->count)
        pg_pipeline_add(pg, &statements[plan->is_lone ? STATEMENT_CORE_ONE : STATEMENT_CORE], core);
    if (plan->has_births)
        add_sharing(pg, STATEMENT_BORN, core, born, COUNT_OF(born));
    if (plan->has_wipes)
        add_sharing(pg, STATEMENT_WIPE, core, wipe, COUNT_OF(wipe));
    if (plan->purge_count)
        pg_pipeline_add(pg, &statements[STATEMENT_PURGE], &parts->purge);
    store_send_copies(pg, &parts->copies, commit);
    if (parts->schema) {
        store_send_sides(pg, parts->sides);
        store_send_members(pg, core->arena, parts->schema, commit);
    }
    store_send_notes(pg, &parts->copies, commit);
    if (parts->matches)
        pg_pipeline_add(pg, &statements[STATEMENT_SUBSCRIPTIONS_MATCH], &parts->match);
    int place = pg_pipeline_count(pg);
    store_send_tasks(pg, &parts->tasks, commit);
    if (commit->idempotency)
        pg_pipeline_add(pg, &statements[STATEMENT_IDEMPOTENCY_PURGE], &parts->idempotency.purge);
    return place;
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

/* The detail of ST005, ST009 and ST025: a JSON list that begins with these parts. */
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
    if (strcmp(verdict->sqlstate, "ST001") == 0) {
        if (store_flag_listed(commit, arena, verdict->detail) == 0)
            flag_all(commit);
        return FAULT_STALE;
    }
    if (strcmp(verdict->sqlstate, "ST002") == 0) {
        store_flag_fences(commit, arena, verdict->detail);
        return FAULT_FENCED;
    }
    if (strcmp(verdict->sqlstate, "ST003") == 0)
        return FAULT_STALE; /* already done: possibly no document has moved */
    if (strcmp(verdict->sqlstate, "ST005") == 0)
        return note_refused(commit, arena, verdict->detail, FAULT_AUNIQUE);
    if (strcmp(verdict->sqlstate, "ST009") == 0)
        return note_refused(commit, arena, verdict->detail, FAULT_AFIXED);
    if (strcmp(verdict->sqlstate, "ST025") == 0)
        return note_refused(commit, arena, verdict->detail, FAULT_ALIMIT);
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
    struct plan plan = plan_commit(commit);
    struct parts parts;
    build_parts(&parts, store, arena, commit, &plan);
    *fault_r = !fit(&parts, commit) ? FAULT_ALIMIT : !session->pg ? FAULT_XAWAY : FAULT_NONE;
    if (!*fault_r && (commit->count || commit->copies))
        *fault_r = add_schema(store, session, arena, commit, &parts);
    bool has_reservations = !*fault_r && parts.schema && store_has_reservations(parts.schema, commit);
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
    int place = send_commit(session->pg, &plan, &parts, commit);
    crash_at(CRASH_COMMIT_QUEUED);
    struct pg_verdict verdict;
    pg_pipeline_run(session->pg, store_pipeline_ms(store), &verdict);
    if (has_reservations)
        store_end_reservations(store, ns, arena, &verdict, commit);
    switch (verdict.outcome) {
    case PG_COMMITTED:
        store_take_tasks(verdict.results + place, commit);
        if (parts.matches) /* right before them */
            store_take_match(verdict.results[place - 1], store, arena, &commit->match);
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

/* --- verification alone -------------------------------------------------------------------------- */

enum fault store_verify(struct store *store, int ns, struct arena *arena, struct commit *commit)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    add_names(&params, commit);
    struct pg_result *moved = NULL;
    enum fault fault;
    int attempt = 0;
    do {
        struct pg *pg;
        fault = store_use(store, ns, &pg);
        if (!fault)
            fault = pg_run(pg, &statements[STATEMENT_VERIFY], &params, &moved);
    } while (store_reads_again(store, ns, fault, attempt++));
    if (fault)
        return fault;
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = false;
    for (int row = 0; row < pg_rows(moved); row++)
        commit->documents[pg_get_i64(moved, row, 0) - 1].moved = true;
    return pg_rows(moved) ? FAULT_STALE : FAULT_NONE;
}
