/* rules_left: see the header. */
#include "model/rules/rules_left.h"

#include "edge/json/json_scan.h"
#include "model/rules/rules_private.h"

/* --- classes --- */

static void take_lower(struct bytes *lowest, struct bytes after, struct bytes name)
{
    if (bytes_compare(name, after) > 0 && (!lowest->data || bytes_compare(name, *lowest) < 0))
        *lowest = name;
}

struct bytes rules_left_next_class(const struct rules *rules, struct bytes after)
{
    struct bytes lowest = NO_BYTES;
    for (size_t i = 0; i < rules->class_count; i++) {
        const struct rules_class *class = &rules->classes[i];
        if (class->ends_with_owner || class->members.data)
            take_lower(&lowest, after, class->name);
        if (class->team.class.data)
            take_lower(&lowest, after, class->team.class);
    }
    return lowest;
}

bool rules_left_ends_class(const struct rules *rules, struct bytes class)
{
    const struct rules_class *found = rules_find_class(rules, class);
    return found && found->ends_with_owner;
}

/* --- a document --- */

static bool has_lost_owner(const struct rules_left *left, struct arena *arena,
                           const struct document *document)
{
    const struct rules_class *class = rules_find_class(left->rules, document->header.class);
    struct json owner;
    if (!class || !class->ends_with_owner)
        return false;
    const struct item *item = document_find_item(document, class->owner.item, BYTES(""));
    return item && !item_is_tombstone(item) && !item->raw &&
           json_scan_member(arena, item->content, class->owner.member, &owner) && owner.kind == JSON_STRING &&
           left->is_gone(left->context, owner.value);
}

/* Are keys of these items ids of accounts, by the rules of the document's class or of one that has it as its
 * team? */
static bool are_members(const struct rules *rules, struct bytes document_class, struct bytes item_class)
{
    for (size_t i = 0; i < rules->class_count; i++) {
        const struct rules_class *class = &rules->classes[i];
        if (class->members.data && bytes_equal(class->name, document_class) &&
            bytes_equal(class->members, item_class))
            return true;
        if (class->team.class.data && bytes_equal(class->team.class, document_class) &&
            bytes_equal(class->team.members, item_class))
            return true;
    }
    return false;
}

/* The next item after the first `start`, by which a deleted account is a member; item_count: none. */
static uint32_t find_membership(const struct rules_left *left, const struct document *document,
                                uint32_t start)
{
    struct bytes item_class = NO_BYTES;
    bool is_of_members = false;
    for (uint32_t i = start; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        if (!item_class.data || !bytes_equal(item->iclass, item_class)) {
            item_class = item->iclass;
            is_of_members = are_members(left->rules, document->header.class, item_class);
        }
        if (is_of_members && item->key.size && !item_is_tombstone(item) &&
            left->is_gone(left->context, item->key))
            return i;
    }
    return document->item_count;
}

enum rules_left_act rules_left_find(const struct rules_left *left, struct arena *arena,
                                    const struct document *document)
{
    if (!document_exists(document))
        return RULES_LEFT_NOTHING;
    if (has_lost_owner(left, arena, document))
        return RULES_LEFT_DOCUMENT;
    return find_membership(left, document, 0) < document->item_count ? RULES_LEFT_MEMBERS
                                                                     : RULES_LEFT_NOTHING;
}

enum rules_left_act rules_left_apply(const struct rules_left *left, struct arena *arena, struct draft *draft)
{
    const struct document *document = draft_base(draft);
    enum rules_left_act act = rules_left_find(left, arena, document);
    if (act == RULES_LEFT_DOCUMENT)
        draft_delete(draft);
    for (uint32_t i = 0; act == RULES_LEFT_MEMBERS; i++) {
        i = find_membership(left, document, i);
        if (i >= document->item_count)
            break;
        draft_remove_item(draft, document->items[i].iclass, document->items[i].key);
    }
    return act;
}
