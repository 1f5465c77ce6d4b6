/* rules_schema: every name in the rules is looked up in the schema. */
#include "model/rules/rules_schema.h"

#include "model/rules/rules_private.h"
#include "model/schema/schema_class.h"

struct comparison {
    struct arena *arena;
    const struct schema *schema;
    rules_schema_report *report;
    void *context;
    size_t count;
};

static void rules_schema_add(struct comparison *comparison, const char *path, const char *sentence)
{
    comparison->report(comparison->context, arena_printf(comparison->arena, "%s: %s", path, sentence));
    comparison->count++;
}

static const char *member_path(struct comparison *comparison, const struct rules_class *class,
                               const char *member)
{
    return arena_printf(comparison->arena, "%.*s.%s", (int)class->name.size, class->name.data, member);
}

/* Items of a class of documents, as the rules need them. */
enum need { NEED_ANY, NEED_SINGLETON, NEED_LIST };

static void compare_items(struct comparison *comparison, const char *path, struct bytes class_name,
                          struct bytes item_name, enum need need)
{
    const struct schema_class *class = schema_find_class(comparison->schema, class_name);
    if (!class || item_is_reserved(item_name))
        return; /* the class is reported once; attachments are not declared */
    const struct schema_item *item = schema_find_item(class, item_name);
    const char *items = arena_printf(comparison->arena, "items %.*s of documents %.*s", (int)item_name.size,
                                     item_name.data, (int)class_name.size, class_name.data);
    if (!item && !class->is_open)
        rules_schema_add(comparison, path,
                         arena_printf(comparison->arena, "The schema does not declare %s.", items));
    if (!item || need == NEED_ANY)
        return;
    if (item->is_singleton != (need == NEED_SINGLETON))
        rules_schema_add(comparison, path,
                         arena_printf(comparison->arena, "The schema declares %s as %s; %s is expected.",
                                      items, item->is_singleton ? "a singleton" : "a list",
                                      need == NEED_SINGLETON ? "a singleton" : "a list"));
    if (item->is_raw)
        rules_schema_add(
            comparison, path,
            arena_printf(comparison->arena, "The schema declares %s as raw; JSON is expected.", items));
}

static void compare_class(struct comparison *comparison, const char *path, struct bytes name)
{
    if (!schema_find_class(comparison->schema, name))
        rules_schema_add(comparison, path,
                         arena_printf(comparison->arena, "The schema does not declare documents %.*s.",
                                      (int)name.size, name.data));
}

/* --- conditions --- */

static void compare_operand(struct comparison *comparison, const char *path, const struct rules_class *class,
                            const struct rules_operand *operand)
{
    if (operand->place.item.data)
        compare_items(comparison, path, class->name, operand->place.item, NEED_SINGLETON);
    for (size_t i = 0; i < operand->count; i++)
        compare_operand(comparison, path, class, &operand->elements[i]);
}

static void compare_condition(struct comparison *comparison, const char *path,
                              const struct rules_class *class, const struct rules_condition *condition)
{
    for (size_t i = 0; i < condition->part_count; i++)
        compare_condition(comparison, path, class, &condition->parts[i]);
    for (size_t i = 0; i < COUNT_OF(condition->operands); i++)
        compare_operand(comparison, path, class, &condition->operands[i]);
}

static void compare_list(struct comparison *comparison, const struct rules_class *class,
                         const struct rules_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->grants[i].condition)
            compare_condition(comparison, list->grants[i].path, class, list->grants[i].condition);
}

/* --- a class --- */

static void compare_team(struct comparison *comparison, const struct rules_class *class)
{
    if (!class->team.class.data)
        return;
    compare_items(comparison, member_path(comparison, class, "team.id"), class->name, class->team.id.item,
                  NEED_SINGLETON);
    compare_class(comparison, member_path(comparison, class, "team.class"), class->team.class);
    compare_items(comparison, member_path(comparison, class, "team.members"), class->team.class,
                  class->team.members, NEED_LIST);
}

static void compare_rules_schema(struct comparison *comparison, const struct rules_class *class)
{
    compare_class(comparison,
                  arena_printf(comparison->arena, "%.*s", (int)class->name.size, class->name.data),
                  class->name);
    if (class->owner.item.data)
        compare_items(comparison, member_path(comparison, class, "owner"), class->name, class->owner.item,
                      NEED_SINGLETON);
    if (class->members.data)
        compare_items(comparison, member_path(comparison, class, "members"), class->name, class->members,
                      NEED_LIST);
    compare_team(comparison, class);
    for (size_t i = 0; i < RULES_RIGHTS; i++)
        compare_list(comparison, class, &class->lists[i]);
    for (size_t i = 0; i < class->item_count; i++) {
        const struct rules_item *item = &class->items[i];
        const char *path =
            arena_printf(comparison->arena, "items.%.*s", (int)item->name.size, item->name.data);
        compare_items(comparison, member_path(comparison, class, path), class->name, item->name, NEED_ANY);
        compare_list(comparison, class, &item->see);
        compare_list(comparison, class, &item->write);
    }
}

size_t rules_schema_compare(struct arena *arena, const struct rules *rules, const struct schema *schema,
                            rules_schema_report *report, void *context)
{
    struct comparison comparison = {arena, schema, report, context, 0};
    for (size_t i = 0; i < rules->class_count; i++)
        compare_rules_schema(&comparison, &rules->classes[i]);
    return comparison.count;
}

/* --- rules outline --- */

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

bool rules_outline_shows(const struct rules *rules, const struct rules_caller *caller, struct bytes class)
{
    bool shows = false;
    for (int right = RULES_READ; right <= RULES_DELETE; right++)
        shows |= rules_outline_class(rules, caller, class, (enum rules_right)right) != RULES_NEVER;
    return shows;
}

bool rules_outline_discloses(const struct rules *rules, const struct rules_caller *caller, struct bytes class,
                             const struct bytes *items, size_t count)
{
    const struct rules_class *found = rules_find_class(rules, class);
    bool tells = found && rules_outline_shows(rules, caller, class);
    for (size_t i = 0; tells && i < count; i++)
        tells = rules_outline_see(rules, caller, class, items[i]) != RULES_NEVER;
    for (size_t i = 0; tells && !items && i < found->item_count; i++)
        tells = rules_outline_see(rules, caller, class, found->items[i].name) != RULES_NEVER;
    return tells;
}

bool rules_outline_discloses_writer(const struct rules *rules, const struct rules_caller *caller,
                                    struct bytes class, struct bytes item_class)
{
    return (rules_outline_class(rules, caller, class, RULES_CREATE) != RULES_NEVER ||
            rules_outline_class(rules, caller, class, RULES_UPDATE) != RULES_NEVER) &&
           rules_outline_write(rules, caller, class, item_class) != RULES_NEVER;
}

bool rules_outline_whole(const struct rules *rules, const struct rules_caller *caller, struct bytes class)
{
    const struct rules_class *found = rules_find_class(rules, class);
    bool is_whole = found && outline_list(&found->lists[RULES_READ], caller) == RULES_ALWAYS &&
                    outline_list(&found->lists[RULES_LIST], caller) == RULES_ALWAYS;
    for (size_t i = 0; is_whole && i < found->item_count; i++)
        is_whole =
            !found->items[i].see.is_declared || outline_list(&found->items[i].see, caller) == RULES_ALWAYS;
    return is_whole;
}
