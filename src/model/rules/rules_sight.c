/* rules_sight: the lists of grants that must hold at once, without those that hold for the caller whatever a
 * document contains.  If one list is contained in all others, it decides alone. */
#include "model/rules/rules_sight.h"

#include "edge/json/json.h"
#include "edge/json/json_scan.h"
#include "model/rules/rules_private.h"

/* --- principals --- */

/* Of a list; the caller's own, and those in teams. */
struct principals {
    struct bytes *own, *teams;
    size_t own_count, team_count;
};

struct bytes rules_sight_team(struct arena *arena, struct bytes id)
{
    return bytes_of(arena_printf(arena, "t:%.*s", (int)id.size, id.data));
}

static struct bytes member(struct arena *arena, struct bytes account, struct bytes role)
{
    if (!role.data)
        return bytes_of(arena_printf(arena, "m:%.*s", (int)account.size, account.data));
    return bytes_of(arena_printf(arena, "r:%zu:%.*s:%.*s", account.size, (int)account.size, account.data,
                                 (int)role.size, role.data));
}

static void add_principal(struct principals *principals, struct arena *arena,
                          const struct rules_caller *caller, const struct rules_grant *grant)
{
    struct bytes account = caller->account;
    if (grant->to == RULES_TO_OWNER)
        principals->own[principals->own_count++] =
            bytes_of(arena_printf(arena, "o:%.*s", (int)account.size, account.data));
    else if (grant->to == RULES_TO_MEMBERS)
        principals->own[principals->own_count++] = member(arena, account, grant->role);
    else
        principals->teams[principals->team_count++] = member(arena, account, grant->role);
}

/* --- lists of grants --- */

/* The grants of a list that depend on the document. */
struct needed_list {
    const struct rules_grant *grants[RULES_GRANTS_MOST];
    size_t count;
};

static bool is_static_grantee(const struct rules_caller *caller, const struct rules_grant *grant)
{
    if (grant->to == RULES_TO_ANYBODY)
        return true;
    if (grant->to == RULES_TO_ACCOUNT)
        return caller->account.size > 0;
    for (size_t i = 0; grant->to == RULES_TO_ROLE && caller->account.size && i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], grant->role))
            return true;
    return false;
}

/* False: the list holds for every document. */
static bool need(const struct rules_list *list, const struct rules_caller *caller, struct needed_list *need_r)
{
    need_r->count = 0;
    for (size_t i = 0; i < list->count; i++) {
        const struct rules_grant *grant = &list->grants[i];
        if (is_static_grantee(caller, grant))
            return false;
        if (grant->to >= RULES_TO_OWNER && caller->account.size && need_r->count < RULES_GRANTS_MOST)
            need_r->grants[need_r->count++] = grant;
    }
    return true;
}

static bool covers(const struct needed_list *list, const struct rules_grant *grant)
{
    for (size_t i = 0; i < list->count; i++)
        if (list->grants[i]->to == grant->to &&
            (!list->grants[i]->role.data ||
             (grant->role.data && bytes_equal(list->grants[i]->role, grant->role))))
            return true;
    return false;
}

/* Does whoever the smaller list admits pass the larger one, too? */
static bool rules_sight_is_within(const struct needed_list *smaller, const struct needed_list *larger)
{
    for (size_t i = 0; i < smaller->count; i++)
        if (!covers(larger, smaller->grants[i]))
            return false;
    return true;
}

/* --- what they come to --- */

static struct principals rules_sight_make_room(struct arena *arena, size_t lists)
{
    size_t room = lists * RULES_GRANTS_MOST + 1;
    return (struct principals){.own = ARENA_ROOM(arena, struct bytes, room),
                               .teams = ARENA_ROOM(arena, struct bytes, room)};
}

static void add_principals(struct principals *principals, struct arena *arena,
                           const struct rules_caller *caller, const struct needed_list *list)
{
    for (size_t i = 0; i < list->count; i++)
        add_principal(principals, arena, caller, list->grants[i]);
}

/* The list that is contained in all others; NULL: there is none. */
static const struct needed_list *find_smallest(const struct needed_list *lists, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        size_t k = 0;
        while (k < count && rules_sight_is_within(&lists[i], &lists[k]))
            k++;
        if (k == count)
            return &lists[i];
    }
    return NULL;
}

static bool rules_sight_is_named(const struct bytes *items, size_t count, struct bytes name)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(items[i], name))
            return true;
    return !items;
}

/* The lists by which documents are seen, and, behind them, those of items that are not needed for it. */
static size_t need_all(const struct rules_class *class, const struct rules_caller *caller,
                       enum rules_right right, const struct bytes *items, size_t item_count,
                       struct needed_list *lists, size_t *all_r)
{
    size_t count = need(&class->lists[RULES_READ], caller, &lists[0]);
    if (right == RULES_LIST)
        count += need(&class->lists[RULES_LIST], caller, &lists[count]);
    for (size_t i = 0; i < class->item_count; i++)
        if (class->items[i].see.is_declared && rules_sight_is_named(items, item_count, class->items[i].name))
            count += need(&class->items[i].see, caller, &lists[count]);
    *all_r = count;
    for (size_t i = 0; i < class->item_count; i++)
        if (class->items[i].see.is_declared && !rules_sight_is_named(items, item_count, class->items[i].name))
            *all_r += need(&class->items[i].see, caller, &lists[*all_r]);
    return count;
}

struct rules_sight rules_sight_find(const struct rules *rules, const struct rules_caller *caller,
                                    struct arena *arena, struct bytes class_name, enum rules_right right,
                                    const struct bytes *items, size_t item_count)
{
    const struct rules_class *class = rules_find_class(rules, class_name);
    if (!class)
        return (struct rules_sight){.reach = RULES_REACH_NONE};
    struct needed_list *lists = ARENA_ARRAY(arena, struct needed_list, class->item_count + 2);
    size_t all, count = need_all(class, caller, right, items, item_count, lists, &all);
    const struct needed_list *smallest = find_smallest(lists, count);
    struct principals own = rules_sight_make_room(arena, 1), watched = rules_sight_make_room(arena, all);
    if (smallest)
        add_principals(&own, arena, caller, smallest);
    for (size_t i = 0; i < all; i++)
        add_principals(&watched, arena, caller, &lists[i]);
    struct rules_sight sight = {.reach = !count            ? RULES_REACH_ALL
                                         : !smallest       ? RULES_REACH_MIXED
                                         : smallest->count ? RULES_REACH_SOME
                                                           : RULES_REACH_NONE,
                                .principals = own.own,
                                .principal_count = own.own_count,
                                .watched = watched.own,
                                .watched_count = watched.own_count,
                                .team_principals = own.teams,
                                .team_principal_count = own.team_count,
                                .team_watched = watched.teams,
                                .team_watched_count = watched.team_count};
    if (watched.team_count) {
        sight.team_class = class->team.class;
        sight.team_members = class->team.members;
    }
    return sight;
}

/* --- teams --- */

bool rules_sight_contains(const struct bytes *principals, size_t count, struct bytes principal)
{
    for (size_t i = 0; i < count; i++)
        if (bytes_equal(principals[i], principal))
            return true;
    return false;
}

bool rules_sight_is_in_team(const struct rules_sight *sight, struct arena *arena,
                            const struct rules_caller *caller, const struct document *team,
                            const struct bytes *principals, size_t count)
{
    const struct rules_facts facts = {.document = team, .exists = document_exists(team)};
    const struct item *item = rules_item_of(&facts, sight->team_members, caller->account);
    struct json role;
    if (!item || !caller->account.size)
        return false;
    if (rules_sight_contains(principals, count, member(arena, caller->account, NO_BYTES)))
        return true;
    return !item->raw && json_scan_member(arena, item->content, BYTES("role"), &role) &&
           role.kind == JSON_STRING &&
           rules_sight_contains(principals, count, member(arena, caller->account, role.value));
}

struct bytes rules_sight_next(const struct rules *rules, size_t *position)
{
    while (*position < rules->class_count) {
        const struct rules_class *class = &rules->classes[(*position)++];
        if (class->team.class.data)
            return class->name;
    }
    return NO_BYTES;
}

bool rules_sight_is_team(const struct rules *rules, struct bytes class)
{
    for (size_t i = 0; i < rules->class_count; i++)
        if (rules->classes[i].team.class.data && bytes_equal(rules->classes[i].team.class, class))
            return true;
    return false;
}

bool rules_sight_has_places(const struct rules *rules)
{
    for (size_t i = 0; i < rules->class_count; i++) {
        const struct rules_class *class = &rules->classes[i];
        if (class->owner.item.data || class->members.data || class->team.class.data)
            return true;
    }
    return false;
}

/* --- places --- */

static void add_roles_of(const struct rules_list *list, enum rules_grantee to, struct builder *text,
                         const char **comma)
{
    for (size_t i = 0; i < list->count; i++) {
        if (list->grants[i].to != to || !list->grants[i].role.data)
            continue;
        builder_printf(text, "%s", *comma);
        json_add_string(text, list->grants[i].role);
        *comma = ",";
    }
}

/* Of the rights by which documents are seen. */
static void add_roles(const struct rules_class *class, enum rules_grantee to, struct builder *text)
{
    const char *comma = "";
    builder_add_text(text, "[");
    add_roles_of(&class->lists[RULES_READ], to, text, &comma);
    add_roles_of(&class->lists[RULES_LIST], to, text, &comma);
    for (size_t i = 0; i < class->item_count; i++)
        add_roles_of(&class->items[i].see, to, text, &comma);
    builder_add_text(text, "]");
}

static void begin_place(struct builder *text, struct bytes class, struct bytes item, const char *kind,
                        struct bytes member)
{
    builder_printf(text, text->size > 1 ? ",[" : "[");
    json_add_string(text, class);
    builder_add_text(text, ",");
    json_add_string(text, item);
    builder_printf(text, ",\"%s\",", kind);
    json_add_string(text, member);
    builder_add_text(text, ",");
}

void rules_sight_write_places(const struct rules *rules, struct builder *text)
{
    builder_add_text(text, "[");
    for (size_t i = 0; i < rules->class_count; i++) {
        const struct rules_class *class = &rules->classes[i];
        if (class->owner.item.data) {
            begin_place(text, class->name, class->owner.item, "owner", class->owner.member);
            builder_add_text(text, "[],false]");
        }
        if (class->members.data) {
            begin_place(text, class->name, class->members, "members", BYTES(""));
            add_roles(class, RULES_TO_MEMBERS, text);
            builder_add_text(text, ",false]");
        }
        if (!class->team.class.data)
            continue;
        begin_place(text, class->name, class->team.id.item, "team", class->team.id.member);
        builder_add_text(text, "[],false]");
        begin_place(text, class->team.class, class->team.members, "members", BYTES(""));
        add_roles(class, RULES_TO_TEAM, text);
        builder_add_text(text, ",true]");
    }
    builder_add_text(text, "]");
}

/* See the header. */

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
