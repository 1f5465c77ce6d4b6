/* store_schema: the schema applied in a namespace, cached by a session, and the writes of a commit to side
 * tables.
 *
 * Commits and searches send the number of the schema under which they were prepared; if the database has
 * another one, it refuses them (ST004), and the schema is read again.  So an old schema is never used. */
#include "store/store_schema.h"

#include <stdlib.h>

#include "base/log.h"
#include "model/expiry.h"
#include "model/mutation.h"
#include "store/commit_part.h"
#include "store/refusal.h"
#include "edge/json.h"
#include "store/store_commit.h"

/* Columns of SCHEMA. */
enum { NUMBER, CONTENT, BUILDING, WAKES, SECRET };

/* A side table and the statements that keep it. */
struct side {
    const struct schema_class *class;
    const struct schema_item *item;
    struct pg_statement write, wipe;
    bool is_prepared;
};

struct known_schema {
    int references;
    uint64_t turn; /* number of schemas the session has read */
    struct arena *arena;
    struct schema *schema;
    struct side *sides;
    size_t side_count;
};

static void release(void *pointer)
{
    struct known_schema *known = pointer;
    if (known && --known->references == 0)
        arena_destroy(known->arena);
}

/* Statements of a discarded schema stay in the session, so their names must not be reused. */
static void leave_statements(struct store_session *session, struct side *side)
{
    if (side->is_prepared)
        builder_printf(&session->left, "%s %s ", side->write.name, side->wipe.name);
    side->is_prepared = false;
}

void store_forget_schema(struct store_session *session)
{
    for (size_t i = 0; session->schema && session->pg && i < session->schema->side_count; i++)
        leave_statements(session, &session->schema->sides[i]);
    release(session->schema);
    session->schema = NULL;
}

void store_forget_statements(struct store_session *session)
{
    builder_free(&session->left);
    session->left = (struct builder){0};
}

/* One by one: if the first of the two of a side was refused, the second may not have been prepared. */
static void deallocate_left(struct store_session *session, struct arena *arena)
{
    const char *name = session->left.data;
    while (name && name < session->left.data + session->left.size) {
        size_t size = strcspn(name, " ");
        const char *sql = arena_printf(
            arena,
            "do $$ begin deallocate \"%.*s\"; exception when invalid_sql_statement_name then null; end $$",
            (int)size, name);
        if (pg_execute(session->pg, sql))
            log_warning("a statement of a former schema is still prepared");
        name += size + 1;
    }
    store_forget_statements(session);
}

/* --- reading ------------------------------------------------------------------------------------- */

/* Classes not rewritten yet: words "~Class". */
static bool is_rewriting(struct bytes building, struct bytes class)
{
    for (const char *at = building.data; at && building.size;) {
        const char *blank = memchr(at, ' ', building.size);
        struct bytes word = {at, blank ? (size_t)(blank - at) : building.size};
        if (word.size == class.size + 1 && *at == '~' && memcmp(at + 1, class.data, class.size) == 0)
            return true;
        building.size -= word.size + (blank != NULL);
        at += word.size + (blank != NULL);
    }
    return false;
}

/* Fields still being built: words "Class.Item.field". */
static bool is_building(struct bytes building, struct bytes class, struct bytes item, struct bytes field)
{
    while (building.size) {
        const char *blank = memchr(building.data, ' ', building.size);
        size_t size = blank ? (size_t)(blank - building.data) : building.size;
        const char *at = building.data;
        if (size == class.size + item.size + field.size + 2 && memcmp(at, class.data, class.size) == 0 &&
            at[class.size] == '.' && memcmp(at + class.size + 1, item.data, item.size) == 0 &&
            at[class.size + 1 + item.size] == '.' &&
            memcmp(at + class.size + 2 + item.size, field.data, field.size) == 0)
            return true;
        size += blank != NULL;
        building.data += size;
        building.size -= size;
    }
    return false;
}

/* Its statements get names that no earlier schema of the session has used: the same number may be read
 * again, after an error that discarded the schema. */
static void add_side(struct known_schema *known, const struct schema_class *class,
                     const struct schema_item *item)
{
    struct arena *arena = known->arena;
    unsigned long long number = known->turn;
    int class_size = (int)class->name.size, item_size = (int)item->name.size;
    const char *class_name = class->name.data, *item_name = item->name.data;
    known->sides[known->side_count++] = (struct side){
        .class = class,
        .item = item,
        .write = {arena_printf(arena, "write_%llu_%.*s_%.*s", number, class_size, class_name, item_size,
                               item_name),
                  arena_printf(arena, "select stampd.\"x_%.*s_%.*s_write\"($1::text[], $2::text[])",
                               class_size, class_name, item_size, item_name),
                  2},
        .wipe = {arena_printf(arena, "wipe_%llu_%.*s_%.*s", number, class_size, class_name, item_size,
                              item_name),
                 arena_printf(arena, "select stampd.\"x_%.*s_%.*s_wipe\"($1::text[])", class_size, class_name,
                              item_size, item_name),
                 1},
    };
}

/* Whether a mutation changes the member.  If so, its column differs from what is read until all is
 * rewritten. */
static bool is_mutated(const struct schema_class *class, const struct schema_item *item, struct bytes member)
{
    for (size_t m = 0; m < class->mutation_count; m++)
        for (size_t c = 0; class->mutations[m].item == item && c < class->mutations[m].change_count; c++) {
            const struct schema_change *change = &class->mutations[m].changes[c];
            if (bytes_equal(change->member, member) ||
                (change->kind == CHANGE_RENAME && bytes_equal(change->value, member)))
                return true;
        }
    return false;
}

/* Marks the fields that are ready, and lists the side tables. */
static void complete(struct known_schema *known, struct bytes building)
{
    struct schema *schema = known->schema;
    size_t count = 0;
    for (size_t c = 0; c < schema->class_count; c++)
        count += schema->classes[c].item_count;
    known->sides = ARENA_ARRAY(known->arena, struct side, count);
    for (size_t c = 0; c < schema->class_count; c++) {
        struct schema_class *class = (struct schema_class *)&schema->classes[c];
        class->is_old = is_rewriting(building, class->name);
        schema->has_old |= class->is_old || mutation_applies(class);
        for (size_t i = 0; i < class->item_count; i++) {
            const struct schema_item *item = &class->items[i];
            for (size_t f = 0; f < item->field_count; f++) {
                struct schema_field *field = (struct schema_field *)&item->fields[f];
                field->is_ready = !is_building(building, class->name, item->name, field->name) &&
                                  !(class->is_old &&
                                    (mutation_has_function(class) || is_mutated(class, item, field->name)));
            }
            if (item->field_count)
                add_side(known, class, item);
        }
    }
}

static enum fault read_row(const struct pg_result *row, struct known_schema *known)
{
    struct schema_problem problem;
    struct bytes content = pg_rows(row) ? pg_get_text(row, 0, CONTENT) : NO_BYTES;
    const char *text = arena_copy(known->arena, content.data ? content.data : "", content.size);
    if (schema_read(known->arena, (struct bytes){text, content.size}, &known->schema, &problem)) {
        log_error("table schema has an unknown member at %s: %s", problem.path, problem.expected);
        return FAULT_ODATABASE;
    }
    known->schema->number = pg_get_i64(row, 0, NUMBER);
    known->schema->wakes = pg_get_bool(row, 0, WAKES);
    struct bytes secret = pg_get_text(row, 0, SECRET);
    known->schema->secret = (struct bytes){arena_copy(known->arena, secret.data, secret.size), secret.size};
    complete(known, pg_get_text(row, 0, BUILDING));
    return FAULT_NONE;
}

enum fault store_read_schema(struct store_session *session)
{
    if (session->schema)
        return FAULT_NONE;
    struct known_schema *known = calloc(1, sizeof *known);
    if (!known)
        log_fatal("out of memory schema");
    known->references = 1;
    known->turn = ++session->schemas;
    known->arena = arena_create("schema");
    arena_defer(known->arena, free, known);
    struct pg_params params;
    struct pg_result *row;
    struct arena *arena = arena_create("schema row");
    pg_params_start(&params, arena);
    enum fault fault = pg_run(session->pg, &statements[STATEMENT_SCHEMA], &params, &row);
    if (!fault)
        fault = read_row(row, known);
    arena_destroy(arena);
    if (fault)
        release(known);
    else
        session->schema = known;
    return fault;
}

const struct schema *store_present_schema(const struct store_session *session)
{
    return session->schema->schema;
}

static enum fault read_schema(struct store *store, int ns, void *context UNUSED)
{
    return store_read_schema(&store->sessions[ns]);
}

enum fault store_schema(struct store *store, int ns, struct arena *arena, const struct schema **schema_r)
{
    struct store_session *session = &store->sessions[ns];
    enum fault fault = store_run(store, ns, read_schema, NULL);
    if (fault)
        return fault;
    session->schema->references++;
    arena_defer(arena, release, session->schema);
    *schema_r = session->schema->schema;
    return FAULT_NONE;
}

bool store_schema_judge_expiry(struct store *store, int ns, struct document *document)
{
    const struct known_schema *known = store->sessions[ns].schema;
    if (!known)
        return false;
    document->until = expiry_of(known->schema, document);
    return true;
}

enum fault store_schema_confirm(struct store *store, int ns, struct arena *arena, const struct schema *schema)
{
    struct pg_params params;
    struct pg_result *row;
    pg_params_start(&params, arena);
    enum fault fault = store_run_statement(store, ns, STATEMENT_SCHEMA_NUMBER, &params, &row);
    if (fault || (pg_rows(row) && pg_get_i64(row, 0, 0) == schema->number))
        return fault;
    store_forget_schema(&store->sessions[ns]);
    return FAULT_STALE;
}

/* --- a part of a commit --------------------------------------------------------------------------- */

/* Names of items in one side table. */
struct matched {
    struct side *side;
    struct bytes *ids, *keys; /* of items to write */
    size_t count, capacity;
    struct bytes *wiped; /* documents whose incarnation has ended */
    size_t wiped_count;
};

struct sides {
    struct arena *arena;
    const struct commit *commit;
    struct matched *list;
    size_t count;
};

static struct matched *match(struct sides *sides, struct side *side)
{
    for (size_t i = 0; i < sides->count; i++)
        if (sides->list[i].side == side)
            return &sides->list[i];
    struct matched *matched = &sides->list[sides->count++];
    *matched = (struct matched){.side = side};
    return matched;
}

static void add_item(struct sides *sides, struct side *side, struct bytes id, struct bytes key)
{
    struct matched *matched = match(sides, side);
    size_t capacity = matched->capacity;
    ARENA_GROW(sides->arena, matched->ids, matched->count, capacity);
    ARENA_GROW(sides->arena, matched->keys, matched->count, matched->capacity);
    matched->ids[matched->count] = id;
    matched->keys[matched->count++] = key.data ? key : BYTES("");
}

static void add_wiped(struct sides *sides, struct side *side, struct bytes id)
{
    struct matched *matched = match(sides, side);
    if (!matched->wiped)
        matched->wiped = ARENA_ARRAY(sides->arena, struct bytes, sides->commit->count);
    matched->wiped[matched->wiped_count++] = id;
}

static const struct json *read_members(struct arena *arena, struct bytes content)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 1};
    struct json *root;
    struct json_problem problem;
    return json_read(arena, content, &limits, &root, &problem) ? NULL : root;
}

/* Whether the exported members are written the same in both contents. */
static bool is_same_export(struct arena *arena, const struct schema_item *item, const struct item *before,
                           const struct item *after)
{
    if (!before || item_is_tombstone(before) || item_is_tombstone(after) || before->raw || after->raw)
        return false;
    const struct json *old = read_members(arena, before->content), *new = read_members(arena, after->content);
    for (size_t i = 0; old && new &&i < item->field_count; i++) {
        const char *name = arena_copy(arena, item->fields[i].name.data, item->fields[i].name.size);
        const struct json *one = json_member(old, name), *other = json_member(new, name);
        if (one ? !other || !bytes_equal(one->text, other->text) : other != NULL)
            return false;
    }
    return old && new;
}

static void collect_document(struct sides *sides, struct side *side, const struct commit_document *document)
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
            add_item(sides, side, id, key);
    }
}

/* Items that may be written as copies: for those that are not, the side table gets their present state. */
static void collect_copies(struct sides *sides, struct side *side, const struct copy_batch *batch)
{
    for (size_t i = 0; i < batch->target_count; i++) {
        const struct copy_target *target = &batch->targets[i];
        const struct copy_source *source = &batch->sources[target->source];
        if (bytes_equal(source->iclass, side->item->name) && bytes_equal(target->class, side->class->name))
            add_item(sides, side, target->id, source->copy_key);
    }
}

/* Not prepared: if the error is not a changed schema, both are prepared anew. */
static enum fault refuse_side(struct store_session *session, struct side *side, enum fault fault)
{
    fault = store_judge_schema(session, pg_sqlstate(session->pg), fault);
    if (session->schema)
        leave_statements(session, side);
    return fault;
}

static enum fault prepare_side(struct store_session *session, struct arena *arena, struct side *side)
{
    const struct pg_statement both[] = {side->write, side->wipe};
    if (side->is_prepared)
        return FAULT_NONE;
    if (session->left.size)
        deallocate_left(session, arena);
    side->is_prepared = true; /* the first of them, even if the second is refused */
    enum fault fault = pg_prepare(session->pg, both, COUNT_OF(both));
    return fault ? refuse_side(session, side, fault) : FAULT_NONE;
}

static void collect_sides(struct sides *sides, struct known_schema *known)
{
    const struct commit *commit = sides->commit;
    for (size_t s = 0; s < known->side_count; s++) {
        struct side *side = &known->sides[s];
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
    struct known_schema *known = run->session->schema;
    if (!run->schema || !known->side_count)
        return FAULT_NONE;
    struct sides sides = {.arena = run->arena, .commit = run->commit};
    sides.list = ARENA_ARRAY(run->arena, struct matched, known->side_count);
    collect_sides(&sides, known);
    for (size_t i = 0; i < sides.count; i++) {
        enum fault fault = prepare_side(run->session, run->arena, sides.list[i].side);
        if (fault)
            return fault;
    }
    for (size_t i = 0; i < sides.count; i++) {
        const struct matched *matched = &sides.list[i];
        if (matched->wiped_count)
            pg_add_text_array(commit_part_add(run, &matched->side->wipe), matched->wiped,
                              matched->wiped_count);
        if (matched->count) {
            struct pg_params *params = commit_part_add(run, &matched->side->write);
            pg_add_text_array(params, matched->ids, matched->count);
            pg_add_text_array(params, matched->keys, matched->count);
        }
    }
    return FAULT_NONE;
}

const struct commit_part commit_part_side_tables = {.plan = plan_sides};

enum fault store_judge_schema(struct store_session *session, const char *sqlstate, enum fault fault)
{
    static const char *const moved[] = {"42P01", "42703", "42883"};
    bool has_moved = refusal_of(sqlstate) == REFUSAL_SCHEMA;
    for (size_t i = 0; i < COUNT_OF(moved); i++)
        has_moved = has_moved || strcmp(sqlstate, moved[i]) == 0;
    if (!has_moved)
        return fault;
    store_forget_schema(session);
    return FAULT_STALE;
}
