/* store_copies: deferred copies: which are due, their targets, and their part of a commit. */
#include "store/collections/store_copies.h"

#include "model/document/mutation.h"
#include "store/documents/commit_part.h"
#include "store/store_run.h"
#include "store/documents/store_commit.h"

/* --- due copies ---------------------------------------------------------------------------------- */

/* Columns of COPY_DUE. */
enum { ICLASS, KEY, NUMBER, DOCUMENT_VERSION, VERSION, CONTENT, RAW };

/* The source of a row, in the state that its copies must get. */
static struct copy_source read_source(struct arena *arena, const struct schema *schema,
                                      const struct copy_batch *batch, const struct pg_result *rows, int row)
{
    const struct schema_class *class = schema_find_class(schema, batch->class);
    struct copy_source source = {
        .iclass = pg_get_text(rows, row, ICLASS),
        .key = pg_get_text(rows, row, KEY),
        .due = pg_get_i64(rows, row, NUMBER),
        .vop = pg_get_i64(rows, row, VERSION),
        .content = pg_get_text(rows, row, CONTENT),
        .raw = pg_get_bool(rows, row, RAW),
    };
    /* The version of an item without a tombstone is unknown, but not above the document's. */
    source.guard = source.vop ? source.vop : pg_get_i64(rows, row, DOCUMENT_VERSION) + 1;
    if (!source.content.data)
        source.vop = 0;
    else if (class && mutation_applies(class) && !source.raw)
        source.content = mutation_apply(arena, class, source.iclass, source.content);
    source.copies = copies_find(schema, batch->class, source.iclass);
    if (source.copies)
        source.copy_key = copies_key(arena, source.copies, source.key, batch->id);
    return source;
}

enum fault store_copies_read(struct store *store, int ns, struct arena *arena, const struct schema *schema,
                             struct copy_batch *batch, size_t limit)
{
    struct pg_result *rows = NULL;
    enum fault fault = store_run_statement(
        store, ns, STATEMENT_COPY_DUE,
        PG_PARAMS(arena, PG_TEXT(batch->class), PG_TEXT(batch->id), PG_I64((int64_t)limit)), &rows);
    if (fault)
        return fault;
    batch->schema = schema->number;
    batch->source_count = (size_t)pg_rows(rows);
    batch->sources = ARENA_ROOM(arena, struct copy_source, batch->source_count);
    for (int row = 0; row < pg_rows(rows); row++)
        batch->sources[row] = read_source(arena, schema, batch, rows, row);
    return FAULT_NONE;
}

/* --- targets -------------------------------------------------------------------------------------- */

/* A source and a class of documents that may have copies of it. */
struct pair {
    size_t source;
    struct bytes class;
};

/* The position of `after` among the classes of this source; their number, if `after` is not of this source,
 * or its class is no longer a target. */
static size_t store_copies_find_place(const struct copy_source *source, const struct copy_position *after)
{
    size_t count = source->copies ? source->copies->count : 0;
    if (!after->class.data || source->due != after->due || !bytes_equal(source->iclass, after->iclass) ||
        !bytes_equal(source->key, after->key))
        return count;
    size_t place = 0;
    while (place < count && !bytes_equal(source->copies->classes[place], after->class))
        place++;
    return place;
}

/* The pairs to search, with the parameters of COPY_FIND. */
static size_t add_pairs(struct pg_params *params, const struct copy_batch *batch,
                        const struct copy_position *after, struct pair *pairs)
{
    size_t most = batch->source_count * SCHEMA_COPIES_MOST, count = 0;
    struct bytes *columns[4];
    int64_t *guards = ARENA_ROOM(params->arena, int64_t, most);
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        columns[i] = ARENA_ROOM(params->arena, struct bytes, most);
    for (size_t s = 0; s < batch->source_count; s++) {
        const struct copy_source *source = &batch->sources[s];
        size_t classes = source->copies ? source->copies->count : 0;
        size_t place = store_copies_find_place(source, after);
        for (size_t c = place < classes ? place : 0; c < classes; c++, count++) {
            columns[0][count] = source->iclass;
            columns[1][count] = source->copy_key;
            columns[2][count] = source->copies->classes[c];
            columns[3][count] = c == place ? after->id : BYTES("");
            guards[count] = source->guard;
            pairs[count] = (struct pair){s, source->copies->classes[c]};
        }
    }
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        pg_params_add_text_array(params, columns[i], count);
    pg_params_add_i64_array(params, guards, count);
    return count;
}

/* Rows of COPY_FIND; one row beyond the limit means that there are more. */
static void read_targets(struct copy_batch *batch, const struct pair *pairs, const struct pg_result *rows,
                         size_t limit, struct copy_position *last_r)
{
    for (int row = 0; row < pg_rows(rows) && batch->target_count < limit; row++) {
        const struct pair *pair = &pairs[pg_get_i64(rows, row, 0) - 1];
        batch->targets[batch->target_count++] =
            (struct copy_target){pair->class, pg_get_text(rows, row, 1), pair->source};
    }
    size_t done = batch->source_count;
    *last_r = (struct copy_position){0};
    if ((size_t)pg_rows(rows) > limit) {
        const struct copy_target *last = &batch->targets[limit - 1];
        const struct copy_source *source = &batch->sources[last->source];
        *last_r = (struct copy_position){source->iclass, source->key, source->due, last->class, last->id};
        done = last->source;
    }
    for (size_t i = 0; i < batch->source_count; i++)
        batch->sources[i].is_done = i < done;
    copies_sort(batch);
}

enum fault store_copies_find(struct store *store, int ns, struct arena *arena, struct copy_batch *batch,
                             const struct copy_position *after, size_t limit, struct copy_position *last_r)
{
    struct pg_params params;
    struct pg_result *rows = NULL;
    struct pair *pairs = ARENA_ROOM(arena, struct pair, batch->source_count * SCHEMA_COPIES_MOST);
    pg_params_start(&params, arena);
    size_t count = add_pairs(&params, batch, after, pairs);
    pg_params_add_i64(&params, (int64_t)limit + 1);
    batch->targets = ARENA_ROOM(arena, struct copy_target, limit);
    batch->target_count = 0;
    if (!count) {
        read_targets(batch, pairs, NULL, limit, last_r);
        return FAULT_NONE;
    }
    enum fault fault = store_run_statement(store, ns, STATEMENT_COPY_FIND, &params, &rows);
    if (!fault)
        read_targets(batch, pairs, rows, limit, last_r);
    return fault;
}

/* --- parameters ----------------------------------------------------------------------------------- */

static void add_notes(struct pg_params *params, const struct copy_notes *notes, int64_t version)
{
    struct bytes *columns[4];
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        columns[i] = ARENA_ARRAY(params->arena, struct bytes, notes->count);
    for (size_t i = 0; i < notes->count; i++) {
        const struct copy_note *note = &notes->list[i];
        columns[0][i] = note->class;
        columns[1][i] = note->id;
        columns[2][i] = note->iclass;
        columns[3][i] = note->key.data ? note->key : BYTES("");
    }
    for (size_t i = 0; i < COUNT_OF(columns); i++)
        pg_params_add_text_array(params, columns[i], notes->count);
    pg_params_add_i64(params, version);
}

static void add_lock(struct pg_params *params, const struct copy_batch *batch, int64_t now)
{
    struct bytes *classes = ARENA_ROOM(params->arena, struct bytes, batch->target_count);
    struct bytes *ids = ARENA_ROOM(params->arena, struct bytes, batch->target_count);
    size_t count = 0;
    for (size_t i = 0; i < batch->target_count; i++) {
        if (!copies_is_first(batch, i))
            continue;
        classes[count] = batch->targets[i].class;
        ids[count++] = batch->targets[i].id;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(ids, count), PG_I64(batch->schema), PG_I64(now));
}

static void add_targets(struct pg_params *params, const struct copy_batch *batch)
{
    struct arena *arena = params->arena;
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, batch->target_count);
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, batch->target_count);
    int32_t *places = ARENA_ARRAY(arena, int32_t, batch->target_count);
    for (size_t i = 0; i < batch->target_count; i++) {
        classes[i] = batch->targets[i].class;
        ids[i] = batch->targets[i].id;
        places[i] = (int32_t)batch->targets[i].source + 1;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, batch->target_count), PG_TEXTS(ids, batch->target_count),
                  PG_I32S(places, batch->target_count));
}

static void add_sources(struct pg_params *params, const struct copy_batch *batch)
{
    struct arena *arena = params->arena;
    size_t count = batch->source_count;
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *keys = ARENA_ARRAY(arena, struct bytes, count);
    struct bytes *contents = ARENA_ARRAY(arena, struct bytes, count);
    int64_t *guards = ARENA_ARRAY(arena, int64_t, count);
    int64_t *vops = ARENA_ARRAY(arena, int64_t, count);
    bool *raws = ARENA_ARRAY(arena, bool, count);
    for (size_t i = 0; i < count; i++) {
        const struct copy_source *source = &batch->sources[i];
        classes[i] = source->iclass;
        keys[i] = source->copy_key;
        guards[i] = source->guard;
        vops[i] = source->vop;
        contents[i] = source->content;
        raws[i] = source->raw;
    }
    PG_PARAMS_ADD(params, PG_TEXTS(classes, count), PG_TEXTS(keys, count), PG_I64S(guards, count),
                  PG_I64S(vops, count), PG_TEXTS(contents, count));
    pg_params_add_bool_array(params, raws, count);
}

static void add_done(struct pg_params *params, const struct copy_batch *batch)
{
    struct arena *arena = params->arena;
    struct bytes *classes = ARENA_ARRAY(arena, struct bytes, batch->source_count);
    struct bytes *keys = ARENA_ARRAY(arena, struct bytes, batch->source_count);
    int64_t *numbers = ARENA_ARRAY(arena, int64_t, batch->source_count);
    size_t count = 0;
    for (size_t i = 0; i < batch->source_count; i++) {
        const struct copy_source *source = &batch->sources[i];
        if (!source->is_done)
            continue;
        classes[count] = source->iclass;
        keys[count] = source->key;
        numbers[count++] = source->due;
    }
    PG_PARAMS_ADD(params, PG_TEXT(batch->class), PG_TEXT(batch->id), PG_TEXTS(classes, count),
                  PG_TEXTS(keys, count), PG_I64S(numbers, count));
}

/* --- parts of a commit ---------------------------------------------------------------------------- */

/* Locks the documents and writes their items; side tables and collections follow. */
static enum fault plan_copies(struct commit_run *run)
{
    const struct copy_batch *batch = run->commit->copies;
    if (!batch)
        return FAULT_NONE;
    assert(!run->commit->count && batch->source_count);
    add_lock(commit_part_add(run, &statements[STATEMENT_COPY_LOCK]), batch, run->commit->stop);
    if (batch->target_count) {
        struct pg_params *params = commit_part_add(run, &statements[STATEMENT_COPY_WRITE]);
        add_targets(params, batch);
        add_sources(params, batch);
    }
    return FAULT_NONE;
}

const struct commit_part commit_part_copies = {.plan = plan_copies};

/* Removes the notes that are done, adds those due; after all statements that write documents. */
static enum fault plan_notes(struct commit_run *run)
{
    const struct commit *commit = run->commit;
    if (commit->copies)
        add_done(commit_part_add(run, &statements[STATEMENT_COPY_DONE]), commit->copies);
    if (commit->notes.count)
        add_notes(commit_part_add(run, &statements[STATEMENT_COPY_NOTE]), &commit->notes, commit->version);
    return FAULT_NONE;
}

const struct commit_part commit_part_copy_notes = {.plan = plan_notes};
