/* commit_side_tables: the part of a commit that keeps side tables in step with the items that it writes. */
#include "store/documents/commit_part.h"

#include "edge/json/json.h"
#include "model/document/mutation.h"
#include "store/documents/schema_cache.h"
#include "store/store_sealing.h"

/* Names of items in one side table. */
struct matched {
    struct side_table *side;
    struct bytes *ids, *keys; /* of items to write */
    size_t count, capacity;
    struct bytes *wiped; /* documents whose incarnation has ended */
    size_t wiped_count;
};

struct sides {
    const struct commit_run *run;
    struct arena *arena;
    const struct commit *commit;
    struct matched *list;
    size_t count;
};

static struct matched *match(struct sides *sides, struct side_table *side)
{
    for (size_t i = 0; i < sides->count; i++)
        if (sides->list[i].side == side)
            return &sides->list[i];
    struct matched *matched = &sides->list[sides->count++];
    *matched = (struct matched){.side = side};
    return matched;
}

/* The statements of side tables are those of the schema: no table has the places of their ids. */
static struct bytes stored_id(const struct sides *sides, const struct side_table *side, struct bytes id)
{
    return store_sealing_id(sides->run->store, sides->run->ns, sides->arena, side->class->name, id);
}

static void commit_side_tables_add_item(struct sides *sides, struct side_table *side, struct bytes id,
                                        struct bytes key)
{
    struct matched *matched = match(sides, side);
    size_t capacity = matched->capacity;
    ARENA_GROW(sides->arena, matched->ids, matched->count, capacity);
    ARENA_GROW(sides->arena, matched->keys, matched->count, matched->capacity);
    matched->ids[matched->count] = stored_id(sides, side, id);
    matched->keys[matched->count++] = key.data ? key : BYTES("");
}

static void add_wiped(struct sides *sides, struct side_table *side, struct bytes id)
{
    struct matched *matched = match(sides, side);
    if (!matched->wiped)
        matched->wiped = ARENA_ARRAY(sides->arena, struct bytes, sides->commit->count);
    matched->wiped[matched->wiped_count++] = stored_id(sides, side, id);
}

static const struct json *read_members(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    return json_read(arena, content, &limits, &root, &problem) ? NULL : root;
}

static bool is_same_member(struct arena *arena, const struct json *old, const struct json *new,
                           struct bytes member)
{
    const char *name = arena_copy(arena, member.data, member.size);
    const struct json *one = json_member(old, name), *other = json_member(new, name);
    return one ? other && bytes_equal(one->text, other->text) : !other;
}

/* Whether the exported members are written the same in both contents. */
static bool is_same_export(struct arena *arena, const struct schema_item *item, const struct item *before,
                           const struct item *after)
{
    if (!before || item_is_tombstone(before) || item_is_tombstone(after) || before->raw || after->raw)
        return false;
    const struct json *old = read_members(arena, before->content), *new = read_members(arena, after->content);
    for (size_t i = 0; old && new &&i < item->field_count; i++) {
        size_t count;
        const struct bytes *members = schema_field_members(&item->fields[i], &count);
        for (size_t m = 0; m < count; m++)
            if (!is_same_member(arena, old, new, members[m]))
                return false;
    }
    return old && new;
}

static void collect_document(struct sides *sides, struct side_table *side,
                             const struct commit_document *document)
{
    struct bytes id = document->base->header.id;
    bool goes_on = document->act == DRAFT_WRITE && document_exists(document->base);
    if (document->act == DRAFT_DELETE || document->act == DRAFT_RENEW)
        add_wiped(sides, side, id);
    for (size_t i = 0; i < document->rows.item_count; i++) {
        const struct item *item = document->rows.items[i];
        struct bytes key = item->key.data ? item->key : BYTES("");
        if (!bytes_equal(item->iclass, side->item->name))
            continue;
        const struct item *before = goes_on ? document_find_item(document->base, item->iclass, key) : NULL;
        /* side tables reflect what is stored, not what is read */
        if (mutation_applies(side->class) || !is_same_export(sides->arena, side->item, before, item))
            commit_side_tables_add_item(sides, side, id, key);
    }
}

/* Items that may be written as copies: for those that are not, the side table gets their present state. */
static void collect_copies(struct sides *sides, struct side_table *side, const struct copy_batch *batch)
{
    for (size_t i = 0; i < batch->target_count; i++) {
        const struct copy_target *target = &batch->targets[i];
        const struct copy_source *source = &batch->sources[target->source];
        if (bytes_equal(source->iclass, side->item->name) && bytes_equal(target->class, side->class->name))
            commit_side_tables_add_item(sides, side, target->id, source->copy_key);
    }
}

static void collect_sides(struct sides *sides, struct side_table *tables, size_t count)
{
    const struct commit *commit = sides->commit;
    for (size_t s = 0; s < count; s++) {
        struct side_table *side = &tables[s];
        if (commit->copies)
            collect_copies(sides, side, commit->copies);
        for (size_t i = 0; i < commit->count; i++) {
            const struct commit_document *document = &commit->documents[i];
            if (document->act == DRAFT_READ || !bytes_equal(document->base->header.class, side->class->name))
                continue;
            collect_document(sides, side, document);
        }
    }
}

/* Prepares the statements of side tables; after all statements that write items. */
static enum fault plan_sides(struct commit_run *run)
{
    if (!run->schema)
        return FAULT_NONE;
    size_t count;
    struct side_table *tables = schema_cache_side_tables(run->store, run->ns, &count);
    if (!count)
        return FAULT_NONE;
    struct sides sides = {.run = run, .arena = run->arena, .commit = run->commit};
    sides.list = ARENA_ARRAY(run->arena, struct matched, count);
    collect_sides(&sides, tables, count);
    for (size_t i = 0; i < sides.count; i++) {
        enum fault fault = schema_cache_prepare(run->store, run->ns, run->arena, sides.list[i].side);
        if (fault)
            return fault;
    }
    for (size_t i = 0; i < sides.count; i++) {
        const struct matched *matched = &sides.list[i];
        if (matched->wiped_count)
            pg_params_add_text_array(commit_part_add(run, &matched->side->wipe), matched->wiped,
                                     matched->wiped_count);
        if (matched->count) {
            struct pg_params *params = commit_part_add(run, &matched->side->write);
            PG_PARAMS_ADD(params, PG_TEXTS(matched->ids, matched->count),
                          PG_TEXTS(matched->keys, matched->count));
        }
    }
    return FAULT_NONE;
}

const struct commit_part commit_part_side_tables = {.plan = plan_sides};
