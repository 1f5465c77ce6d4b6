/* store_commit_documents: the parts of a commit that lock, verify and write its documents; and their
 * verification alone. */
#include "store/documents/commit_part.h"

#include "segment/lineage.h"
#include "store/store_run.h"
#include "store/store_sealing.h"
#include "store/documents/store_shown.h"

/* Parameters of CORE from 0: those shared with other statements are encoded once. */
enum { CORE_VERSION, CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT, CORE_CTIME, CORE_DTIME, CORE_V1, CORE_V2 };
enum { CORE_SHARED = CORE_V2 + 1 };

struct commit_documents {
    size_t item_count, purge_count;
    bool has_absent, has_births, has_wipes;
    bool is_lone; /* one document that has a row, and no statement that needs CORE's arrays: CORE_ONE */
    struct pg_params *shared; /* NULL: it is lone */
};

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
    PG_PARAMS_ADD(params, PG_TEXTS(classes, commit->count), PG_TEXTS(ids, commit->count),
                  PG_I64S(seen, commit->count));
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
    pg_params_add_i32_array(params, acts, commit->count);
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        pg_params_add_i64_array(params, columns[i], commit->count);
}

/* What the documents need; read once, by the first part that asks. */
static const struct commit_documents *store_commit_documents_read_documents(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    if (run->documents)
        return run->documents;
    struct commit_documents *documents = ARENA_NEW(run->arena, struct commit_documents);
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        bool is_absent = document->base->header.version == 0;
        documents->has_absent |= is_absent;
        if (document->act == DRAFT_READ)
            continue;
        assert(document->base->header.version < commit->version);
        assert(!is_absent || document->act == DRAFT_WRITE);
        documents->has_births |= is_absent;
        documents->has_wipes |= document->act == DRAFT_DELETE || document->act == DRAFT_RENEW;
        documents->item_count += document->rows.item_count;
        documents->purge_count += document->rows.purge_count;
    }
    documents->is_lone = commit->count == 1 && commit->documents->act != DRAFT_READ &&
                         !documents->has_absent && !documents->has_wipes && !documents->purge_count;
    if (commit->count && !documents->is_lone) {
        documents->shared = ARENA_ROOM(run->arena, struct pg_params, 1);
        pg_params_start(documents->shared, run->arena);
        pg_params_add_i64(documents->shared, commit->version);
        add_names(documents->shared, commit);
        add_headers(documents->shared, commit);
        assert(documents->shared->count == CORE_SHARED);
    }
    return run->documents = documents;
}

static struct pg_params *add_sharing(struct commit_run *run, enum statement statement, const int *shared,
                                     size_t count)
{
    struct pg_params *params = commit_part_add(run, &statements[statement]);
    for (size_t i = 0; i < count; i++)
        pg_params_add_same(params, run->documents->shared, shared[i]);
    return params;
}

/* --- absences ------------------------------------------------------------------------------------ */

static enum fault plan_absences(struct commit_run *run)
{
    static const int absent[] = {CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT};
    const struct commit_documents *documents = store_commit_documents_read_documents(run);
    if (documents->has_absent)
        add_sharing(run, STATEMENT_ABSENT, absent, COUNT_OF(absent));
    return FAULT_NONE;
}

const struct commit_part commit_part_absences = {.plan = plan_absences};

/* --- core ---------------------------------------------------------------------------------------- */

static void add_lone(struct pg_params *params, int64_t version, const struct commit_document *document)
{
    const struct header *header = &document->rows.header;
    PG_PARAMS_ADD(params, PG_I64(version), PG_TEXT(document->base->header.class),
                  PG_TEXT(document->base->header.id), PG_I64(document->base->header.version),
                  PG_I64(header->ctime), PG_I64(header->dtime), PG_I64(header->v1), PG_I64(header->v2));
}

static struct item_place store_commit_documents_place_of(const struct commit_document *document,
                                                         const struct item *item)
{
    const struct header *header = &document->base->header;
    return (struct item_place){header->class, header->id,
                               item->iclass,  item->key.data ? item->key : BYTES(""),
                               item->raw,     BYTES("")};
}

/* `with_places`: the document of each row. */
static void store_commit_documents_add_items(const struct commit_run *run, struct pg_params *params,
                                             size_t count, bool with_places)
{
    const struct commit *commit = run->commit;
    const struct data_keys *sealing = store_sealing_keys(run->store, run->ns);
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
            struct item_place place = store_commit_documents_place_of(document, item);
            store_shown_add(sealing, arena, run->schema, &place, item->content);
            keys[at] = data_keys_seal_key(sealing, arena, &place);
            contents[at] = data_keys_seal_content(sealing, arena, &place, item->content);
            vops[at] = item->vop;
            raws[at] = item->raw;
        }
    }
    assert(at == count);
    if (with_places)
        pg_params_add_i32_array(params, places, count);
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(keys, count), PG_I64S(vops, count),
                  PG_TEXTS(contents, count));
    pg_params_add_bool_array(params, raws, count);
}

static enum fault plan_core(struct commit_run *run)
{
    static const int core[CORE_SHARED] = {CORE_VERSION, CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT,
                                          CORE_CTIME,   CORE_DTIME, CORE_V1, CORE_V2};
    const struct commit *commit = run->commit;
    const struct commit_documents *documents = store_commit_documents_read_documents(run);
    if (!commit->count)
        return FAULT_NONE;
    struct pg_params *params;
    if (documents->is_lone) {
        params = commit_part_add(run, &statements[STATEMENT_CORE_ONE]);
        add_lone(params, commit->version, commit->documents);
    } else {
        params = add_sharing(run, STATEMENT_CORE, core, COUNT_OF(core));
    }
    store_commit_documents_add_items(run, params, documents->item_count, !documents->is_lone);
    pg_params_add_i64(params, run->schema->number);
    return FAULT_NONE;
}

static void take_core(struct commit_run *run, struct pg_result *const *results)
{
    int column = store_commit_documents_read_documents(run)->is_lone ? 1 : 0;
    if (pg_rows(results[0]))
        lineage_note(store_segment(run->store), run->ns, store_timeline(run->store, run->ns),
                     (uint64_t)pg_get_i64(results[0], 0, column));
}

const struct commit_part commit_part_core = {.plan = plan_core, .take = take_core};

/* --- births -------------------------------------------------------------------------------------- */

static enum fault plan_births(struct commit_run *run)
{
    static const int born[] = {CORE_VERSION, CORE_CLASS, CORE_ID, CORE_SEEN, CORE_ACT,
                               CORE_CTIME,   CORE_DTIME, CORE_V1, CORE_V2};
    const struct commit_documents *documents = store_commit_documents_read_documents(run);
    if (documents->has_births)
        add_sharing(run, STATEMENT_BORN, born, COUNT_OF(born));
    return FAULT_NONE;
}

const struct commit_part commit_part_births = {.plan = plan_births};

/* --- wipe ---------------------------------------------------------------------------------------- */

static enum fault plan_wipe(struct commit_run *run)
{
    static const int wipe[] = {CORE_VERSION, CORE_CLASS, CORE_ID, CORE_ACT};
    const struct commit_documents *documents = store_commit_documents_read_documents(run);
    if (documents->has_wipes)
        add_sharing(run, STATEMENT_WIPE, wipe, COUNT_OF(wipe));
    return FAULT_NONE;
}

const struct commit_part commit_part_wipe = {.plan = plan_wipe};

/* --- purge --------------------------------------------------------------------------------------- */

static void add_purges(const struct commit_run *run, struct pg_params *params, size_t count)
{
    const struct commit *commit = run->commit;
    int32_t *places = ARENA_ARRAY(params->arena, int32_t, count);
    struct bytes *classes = ARENA_ARRAY(params->arena, struct bytes, count);
    struct bytes *keys = ARENA_ARRAY(params->arena, struct bytes, count);
    size_t at = 0;
    for (size_t i = 0; i < commit->count; i++) {
        const struct commit_document *document = &commit->documents[i];
        for (size_t k = 0; document->act != DRAFT_READ && k < document->rows.purge_count; k++, at++) {
            places[at] = (int32_t)i + 1;
            classes[at] = document->rows.purges[k]->iclass;
            const struct item_place place =
                store_commit_documents_place_of(document, document->rows.purges[k]);
            keys[at] = data_keys_seal_key(store_sealing_keys(run->store, run->ns), params->arena, &place);
        }
    }
    assert(at == count);
    PG_PARAMS_ADD(params, PG_I32S(places, count), PG_TEXTS(classes, count), PG_TEXTS(keys, count));
}

static enum fault plan_purge(struct commit_run *run)
{
    static const int purge[] = {CORE_CLASS, CORE_ID, CORE_DTIME};
    const struct commit_documents *documents = store_commit_documents_read_documents(run);
    if (documents->purge_count)
        add_purges(run, add_sharing(run, STATEMENT_PURGE, purge, COUNT_OF(purge)), documents->purge_count);
    return FAULT_NONE;
}

const struct commit_part commit_part_purge = {.plan = plan_purge};

/* --- verification alone -------------------------------------------------------------------------- */

enum fault store_commit_verify(struct store *store, int ns, struct arena *arena, struct commit *commit)
{
    struct pg_params params;
    pg_params_start(&params, arena);
    add_names(&params, commit);
    struct pg_result *moved = NULL;
    enum fault fault = store_run_statement(store, ns, STATEMENT_VERIFY, &params, &moved);
    if (fault)
        return fault;
    for (size_t i = 0; i < commit->count; i++)
        commit->documents[i].moved = false;
    for (int row = 0; row < pg_rows(moved); row++)
        commit->documents[pg_get_i64(moved, row, 0) - 1].moved = true;
    return pg_rows(moved) ? FAULT_STALE : FAULT_NONE;
}
