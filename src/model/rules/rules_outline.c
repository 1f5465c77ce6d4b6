/* rules_outline: the widest of the grants of a list that the caller can have. */
#include "model/rules/rules_outline.h"

#include "model/rules/rules_private.h"

static enum rules_extent outline_grant(const struct rules_grant *grant, const struct rules_caller *caller)
{
    const enum rules_extent extent = grant->condition ? RULES_SOME : RULES_ALWAYS;
    switch (grant->to) {
    case RULES_TO_ANYBODY:
        return extent;
    case RULES_TO_ACCOUNT:
        return caller->account.data ? extent : RULES_NEVER;
    case RULES_TO_ROLE:
        return rules_caller_has_role(caller, grant->role) ? extent : RULES_NEVER;
    case RULES_TO_OWNER:
    case RULES_TO_MEMBERS:
    case RULES_TO_TEAM:
    default:
        return caller->account.data ? RULES_SOME : RULES_NEVER;
    }
}

static enum rules_extent outline_list(const struct rules_list *list, const struct rules_caller *caller)
{
    enum rules_extent widest = RULES_NEVER;
    for (size_t i = 0; i < list->count; i++) {
        const enum rules_extent extent = outline_grant(&list->grants[i], caller);
        widest = extent > widest ? extent : widest;
    }
    return widest;
}

enum rules_extent rules_outline_class(const struct rules *rules, const struct rules_caller *caller,
                                      struct bytes class, enum rules_right right)
{
    const struct rules_class *found = rules_find_class(rules, class);
    return found ? outline_list(&found->lists[right], caller) : RULES_NEVER;
}

static const struct rules_item *find_item(const struct rules *rules, struct bytes class,
                                          struct bytes item_class)
{
    const struct rules_class *found = rules_find_class(rules, class);
    return found ? rules_find_item(found, item_class) : NULL;
}

enum rules_extent rules_outline_see(const struct rules *rules, const struct rules_caller *caller,
                                    struct bytes class, struct bytes item_class)
{
    const struct rules_item *item = find_item(rules, class, item_class);
    return item && item->see.is_declared ? outline_list(&item->see, caller) : RULES_ALWAYS;
}

enum rules_extent rules_outline_write(const struct rules *rules, const struct rules_caller *caller,
                                      struct bytes class, struct bytes item_class)
{
    const struct rules_item *item = find_item(rules, class, item_class);
    return item && item->write.is_declared ? outline_list(&item->write, caller) : RULES_ALWAYS;
}
