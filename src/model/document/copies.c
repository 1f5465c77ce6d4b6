/* copies: the declarations of applications, the notes of a commit, the order of a batch. */
#include "model/document/copies.h"

#include <stdlib.h>

#include "base/memory.h"
#include "edge/json/json.h"

struct declared_copies {
    struct bytes class, iclass;
    const struct schema_copies *copies;
};

static struct declared_copies *declared;
static size_t declared_count;

void copies_declare(struct bytes class, struct bytes iclass, const struct schema_copies *copies)
{
    struct declared_copies *more =
        memory_grown(declared, declared_count + 1, sizeof *more, "adding a copied item");
    declared = more;
    declared[declared_count++] = (struct declared_copies){class, iclass, copies};
}

bool copies_exist(const struct schema *schema)
{
    return declared_count || schema->has_copies;
}

const struct schema_copies *copies_find(const struct schema *schema, struct bytes class, struct bytes iclass)
{
    for (size_t i = 0; i < declared_count; i++)
        if (bytes_equal(declared[i].iclass, iclass) && bytes_equal(declared[i].class, class))
            return declared[i].copies;
    const struct schema_item *item =
        schema->has_copies ? schema_find_item(schema_find_class(schema, class), iclass) : NULL;
    return item ? item->copies : NULL;
}

struct bytes copies_key(struct arena *arena, const struct schema_copies *copies, struct bytes key,
                        struct bytes id)
{
    if (!key.size)
        return id;
    size_t size = key.size + copies->separator.size + id.size;
    char *text = arena_alloc(arena, size + 1);
    memcpy(text, key.data, key.size);
    memcpy(text + key.size, copies->separator.data, copies->separator.size);
    memcpy(text + key.size + copies->separator.size, id.data, id.size);
    text[size] = '\0';
    return (struct bytes){text, size};
}

/* --- notes --------------------------------------------------------------------------------------- */

static void add_note(struct copy_notes *notes, struct arena *arena, struct copy_note note)
{
    ARENA_GROW(arena, notes->list, notes->count, notes->capacity);
    notes->list[notes->count++] = note;
}

/* Notes items of the ended incarnation that the new one lacks; both lists are sorted by name. */
static void note_ended(struct copy_notes *notes, struct arena *arena, const struct schema *schema,
                       const struct document *base, const struct draft_rows *rows)
{
    size_t next = 0;
    for (const struct item *item = base->items; item < base->items + base->item_count; item++) {
        int order = 1;
        while (next < rows->item_count) {
            const struct item *newer = rows->items[next];
            order = item_compare(item->iclass, item->key, newer->iclass, newer->key);
            if (order <= 0)
                break;
            next++;
        }
        bool comes_again = next < rows->item_count && order == 0;
        if (!comes_again && !item_is_tombstone(item) && copies_find(schema, base->header.class, item->iclass))
            add_note(notes, arena,
                     (struct copy_note){base->header.class, base->header.id, item->iclass, item->key});
    }
}

void copies_note(struct copy_notes *notes, struct arena *arena, const struct schema *schema,
                 const struct document *base, enum draft_act act, const struct draft_rows *rows)
{
    for (size_t i = 0; i < rows->item_count; i++) {
        const struct item *item = rows->items[i];
        if (copies_find(schema, base->header.class, item->iclass))
            add_note(notes, arena,
                     (struct copy_note){base->header.class, base->header.id, item->iclass, item->key});
    }
    if (act == DRAFT_DELETE || act == DRAFT_RENEW)
        note_ended(notes, arena, schema, base, rows);
}

struct task copies_task(struct arena *arena, const struct copy_note *note, const struct settings *settings)
{
    return task_of_document(arena, settings, BYTES(COPIES_OPERATION), 0, note->class, note->id,
                            note->id); /* there are no copies where ids are encrypted */
}

/* --- a batch ------------------------------------------------------------------------------------- */

static int compare_documents(const struct copy_target *one, const struct copy_target *other)
{
    return item_compare(one->class, one->id, other->class, other->id);
}

static int compare_targets(const void *a, const void *b)
{
    const struct copy_target *one = a, *other = b;
    int order = compare_documents(one, other);
    return order ? order : (one->source > other->source) - (one->source < other->source);
}

bool copies_is_first(const struct copy_batch *batch, size_t target)
{
    return target == 0 || compare_documents(&batch->targets[target - 1], &batch->targets[target]) != 0;
}

void copies_sort(struct copy_batch *batch)
{
    if (batch->target_count)
        qsort(batch->targets, batch->target_count, sizeof *batch->targets, compare_targets);
}

struct bytes copies_write_position(struct arena *arena, const struct copy_position *position)
{
    struct builder text = {0};
    json_add_text(&text, "{\"i\":", position->iclass);
    json_add_text(&text, ",\"k\":", position->key);
    builder_printf(&text, ",\"due\":%lld,\"c\":", (long long)position->due);
    json_add_string(&text, position->class);
    json_add_text(&text, ",\"id\":", position->id);
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

static bool copies_read_text(const struct json *object, const char *name, struct bytes *text_r)
{
    *text_r = json_text_of(object, name, NO_BYTES);
    return text_r->data != NULL;
}

struct copy_position copies_read_position(struct arena *arena, struct bytes text)
{
    struct copy_position position;
    struct json *root;
    if (text.data && json_is_tree(arena, text, 1, 1, &root) &&
        copies_read_text(root, "i", &position.iclass) && copies_read_text(root, "k", &position.key) &&
        json_is_i64(json_member(root, "due"), &position.due) &&
        copies_read_text(root, "c", &position.class) && copies_read_text(root, "id", &position.id))
        return position;
    return (struct copy_position){0};
}
