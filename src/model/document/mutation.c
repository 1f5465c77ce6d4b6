/* mutation: reads an object's members into a list, applies the rules in order, and writes it again. */
#include "model/document/mutation.h"

#include <stdlib.h>
#include <string.h>

#include "base/memory.h"
#include "edge/json/json.h"

struct member {
    struct bytes name, text;
};

struct members {
    struct member *list;
    size_t count;
    bool is_changed;
};

static struct member *mutation_find_member(const struct members *members, struct bytes name)
{
    for (size_t i = 0; i < members->count; i++)
        if (bytes_equal(members->list[i].name, name))
            return &members->list[i];
    return NULL;
}

static void remove_member(struct members *members, struct member *member)
{
    size_t behind = (size_t)(members->list + members->count - member - 1);
    memmove(member, member + 1, behind * sizeof *member);
    members->count--;
    members->is_changed = true;
}

static void apply_change(struct members *members, const struct schema_change *change)
{
    struct member *member = mutation_find_member(members, change->member);
    switch (change->kind) {
    case CHANGE_RENAME:
        if (!member)
            return;
        if (mutation_find_member(members, change->value)) {
            remove_member(members, member); /* of two, the newer one stays */
            return;
        }
        member->name = change->value;
        members->is_changed = true;
        return;
    case CHANGE_DEFAULT:
        if (member)
            return;
        members->list[members->count++] = (struct member){change->member, change->value};
        members->is_changed = true;
        return;
    case CHANGE_DROP:
    default:
        if (member)
            remove_member(members, member);
    }
}

static struct bytes write_members(struct arena *arena, const struct members *members)
{
    struct builder text = {0};
    builder_add_text(&text, "{");
    for (size_t i = 0; i < members->count; i++) {
        if (i)
            builder_add_text(&text, ",");
        json_add_string(&text, members->list[i].name);
        builder_add_text(&text, ":");
        builder_add_bytes(&text, members->list[i].text);
    }
    builder_add_text(&text, "}");
    return builder_take(&text, arena);
}

/* --- functions of applications ------------------------------------------------------------------- */

static struct declared_mutation {
    struct bytes class;
    mutation_function *function;
    void *whose;
} * declared;
static size_t declared_count;

void mutation_declare(struct bytes document_class, mutation_function *function, void *whose)
{
    declared = memory_grown(declared, declared_count + 1, sizeof *declared, "declaring a mutation");
    declared[declared_count++] = (struct declared_mutation){document_class, function, whose};
}

static const struct declared_mutation *find_declared(struct bytes class)
{
    for (size_t i = 0; i < declared_count; i++)
        if (bytes_equal(declared[i].class, class))
            return &declared[i];
    return NULL;
}

bool mutation_has_function(const struct schema_class *class)
{
    return find_declared(class->name) != NULL;
}

bool mutation_applies(const struct schema_class *class)
{
    return class->mutation_count || find_declared(class->name);
}

/* --- rules and functions together --------------------------------------------------------------- */

/* May a rule change the text?  A name that does not occur in the text literally is not a member of it, unless
 * it is written with escapes, which a backslash reveals. */
static bool may_change(const struct schema_class *class, struct bytes item_class, struct bytes content)
{
    if (memchr(content.data, '\\', content.size))
        return true;
    for (size_t i = 0; i < class->mutation_count; i++)
        for (size_t c = 0; c < class->mutations[i].change_count; c++) {
            const struct schema_change *change = &class->mutations[i].changes[c];
            if (!bytes_equal(class->mutations[i].item->name, item_class))
                continue;
            if (change->kind == CHANGE_DEFAULT ||
                memmem(content.data, content.size, change->member.data, change->member.size))
                return true;
        }
    return false;
}

static struct bytes apply_rules(struct arena *arena, const struct schema_class *class,
                                struct bytes item_class, struct bytes content)
{
    struct json *root;
    size_t more = 0;
    for (size_t i = 0; i < class->mutation_count; i++)
        if (bytes_equal(class->mutations[i].item->name, item_class))
            more += class->mutations[i].change_count;
    if (!more || !may_change(class, item_class, content) || !json_is_tree(arena, content, 128, 1, &root) ||
        root->kind != JSON_OBJECT)
        return content;
    struct members members = {.list = ARENA_ARRAY(arena, struct member, root->count + more)};
    for (const struct json *one = root->first; one; one = one->next)
        members.list[members.count++] = (struct member){one->name, one->text};
    for (size_t i = 0; i < class->mutation_count; i++) {
        const struct schema_mutation *mutation = &class->mutations[i];
        if (!bytes_equal(mutation->item->name, item_class))
            continue;
        for (size_t c = 0; c < mutation->change_count; c++)
            apply_change(&members, &mutation->changes[c]);
    }
    return members.is_changed ? write_members(arena, &members) : content;
}

/* A member that a rule of an item removes or adds. */
struct trace {
    const struct schema_item *item;
    struct bytes member;
    size_t position; /* in the order of application */
    bool is_removed;
};

static int compare_traces(const void *a, const void *b)
{
    const struct trace *one = a, *other = b;
    if (one->item != other->item)
        return one->item < other->item ? -1 : 1;
    int order = bytes_compare(one->member, other->member);
    return order ? order : one->position < other->position ? -1 : one->position > other->position;
}

struct bytes mutation_find_return(struct arena *arena, const struct schema_mutation *list, size_t count)
{
    size_t changes = 0, used = 0;
    for (size_t i = 0; i < count; i++)
        changes += list[i].change_count;
    struct trace *traces = ARENA_ARRAY(arena, struct trace, 2 * changes + 1);
    for (size_t i = 0; i < count; i++)
        for (size_t k = 0; k < list[i].change_count; k++) {
            const struct schema_change *change = &list[i].changes[k];
            traces[used] = (struct trace){list[i].item, change->member, used, change->kind != CHANGE_DEFAULT};
            used++;
            if (change->kind == CHANGE_RENAME) {
                traces[used] = (struct trace){list[i].item, change->value, used, false};
                used++;
            }
        }
    qsort(traces, used, sizeof *traces, compare_traces);
    for (size_t i = 1; i < used; i++)
        if (traces[i - 1].is_removed && !traces[i].is_removed && traces[i - 1].item == traces[i].item &&
            bytes_equal(traces[i - 1].member, traces[i].member))
            return traces[i].member;
    return NO_BYTES;
}

struct bytes mutation_apply(struct arena *arena, const struct schema_class *class, struct bytes item_class,
                            struct bytes content)
{
    content = apply_rules(arena, class, item_class, content);
    const struct declared_mutation *own = declared_count ? find_declared(class->name) : NULL;
    return own ? own->function(own->whose, arena, item_class, content) : content;
}
