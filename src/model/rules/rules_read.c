/* rules_read: reads rules from their JSON text.  The first error ends the reading and is reported with its
 * path. */
#include "model/rules/rules.h"

#include <stdlib.h>

#include "model/document/item.h"
#include "model/rules/rules_reader.h"

enum { TEXT_DEPTH = 64, TEXT_NODES = 65536, ROLE_MOST = 64 };

#define CLASS_MEMBERS "owner on_owner_deleted members team read list create update delete items"
#define GRANTS        "anybody account role:NAME owner members members:ROLE team team:ROLE"
#define A_ROLE                                                                                               \
    "A name of a role is a letter or digit, then up to 63 letters, digits and the signs _ - . : and /."

/* --- names --- */

bool rules_is_role(struct bytes name)
{
    return rules_reader_is_name(name, ROLE_MOST, "_-.:/") && !strchr("_-.:/", *name.data);
}

static bool read_document_class(struct rules_reader *reader, struct rules_node node, struct bytes name)
{
    if (!item_is_class_name(name))
        return rules_reader_refuse(
            reader, node,
            "A name of a class of documents is a capital letter, then up to 15 letters and digits.");
    return !rules_is_reserved(name) ||
           rules_reader_refuse(
               reader, node,
               "Another class is expected: Account, Issuer, Login and Ticket belong to the server.");
}

static bool read_name_of_items(struct rules_reader *reader, struct rules_node node, struct bytes *name_r)
{
    if (node.value->kind != JSON_STRING)
        return rules_reader_refuse(reader, node, "The name of a class of items is expected.");
    *name_r = node.value->value;
    return rules_reader_is_item_class(reader, node, *name_r);
}

/* --- grants --- */

/* The word before a colon, and the name of a role after it. */
static bool read_word(struct rules_reader *reader, struct rules_node node, struct rules_grant *grant)
{
    static const struct {
        const char *word;
        enum rules_grantee to;
        bool may_have_role, needs_role;
    } words[] = {{"anybody", RULES_TO_ANYBODY, false, false}, {"account", RULES_TO_ACCOUNT, false, false},
                 {"role", RULES_TO_ROLE, true, true},         {"owner", RULES_TO_OWNER, false, false},
                 {"members", RULES_TO_MEMBERS, true, false},  {"team", RULES_TO_TEAM, true, false}};
    if (node.value->kind != JSON_STRING)
        return rules_reader_refuse(reader, node, "A grant is expected, a text: " GRANTS ".");
    struct bytes rest = node.value->value;
    const char *colon = rest.size ? memchr(rest.data, ':', rest.size) : NULL;
    struct bytes word = {rest.data, colon ? (size_t)(colon - rest.data) : rest.size};
    for (size_t i = 0; i < COUNT_OF(words); i++) {
        if (!bytes_equal(word, bytes_of(words[i].word)) ||
            (colon ? !words[i].may_have_role : words[i].needs_role))
            continue;
        grant->to = words[i].to;
        grant->role = colon ? (struct bytes){colon + 1, rest.size - word.size - 1} : NO_BYTES;
        return !colon || rules_is_role(grant->role) || rules_reader_refuse(reader, node, A_ROLE);
    }
    return rules_reader_refuse_name(reader, node, GRANTS, "grant", rest);
}

static bool check_declared(struct rules_reader *reader, struct rules_node node,
                           const struct rules_class *class, const struct rules_grant *grant)
{
    if (grant->to == RULES_TO_OWNER && !class->owner.item.data)
        return rules_reader_refuse(reader, node,
                                   "The grant owner needs the class's member owner: \"Item.member\".");
    if (grant->to == RULES_TO_MEMBERS && !class->members.data)
        return rules_reader_refuse(reader, node,
                                   "The grant members needs the class's member members: a class of items.");
    if (grant->to == RULES_TO_TEAM && !class->team.class.data)
        return rules_reader_refuse(reader, node,
                                   "The grant team needs the class's member team: class, id and members.");
    return true;
}

static bool read_grant(struct rules_reader *reader, struct rules_node node, const struct rules_class *class,
                       bool may_have_condition, struct rules_grant *grant)
{
    grant->path = node.path;
    if (node.value->kind != JSON_OBJECT)
        return read_word(reader, node, grant) && check_declared(reader, node, class, grant);
    if (!may_have_condition)
        return rules_reader_refuse(
            reader, node, "A text is expected: conditions are allowed in create, update, delete and write.");
    const struct json *to = json_member(node.value, "to"), *condition = json_member(node.value, "if");
    if (!rules_reader_is_object_of(reader, node, "to if", "A grant is expected."))
        return false;
    if (!to || !condition)
        return rules_reader_refuse(reader, node,
                                   "The members to (a grant) and if (a condition) are expected.");
    struct rules_node to_node = rules_reader_member(reader, node, to);
    reader->condition_nodes = 0;
    return read_word(reader, to_node, grant) && check_declared(reader, to_node, class, grant) &&
           rules_read_condition(reader, rules_reader_member(reader, node, condition), &grant->condition);
}

/* Cheap ones first, those without condition first, else as they were written. */
static int compare_grants(const void *a, const void *b)
{
    const struct rules_grant *one = a, *other = b;
    if (!one->condition != !other->condition)
        return one->condition ? 1 : -1;
    return one->to != other->to ? (one->to < other->to ? -1 : 1) : 0;
}

/* A stable sort of a short list. */
static void sort_grants(struct rules_grant *grants, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        struct rules_grant grant = grants[i];
        size_t place = i;
        for (; place && compare_grants(&grant, &grants[place - 1]) < 0; place--)
            grants[place] = grants[place - 1];
        grants[place] = grant;
    }
}

/* The member `name` of the object; absent: nothing is declared. */
static bool rules_read_read_list(struct rules_reader *reader, struct rules_node object, const char *name,
                                 const struct rules_class *class, bool may_have_condition,
                                 struct rules_list *list)
{
    const struct json *member = json_member(object.value, name);
    list->path = arena_printf(reader->arena, "%s.%s", object.path, name);
    if (!member)
        return true;
    struct rules_node node = {list->path, member};
    if (member->kind != JSON_ARRAY || member->is_shallow || member->count > RULES_GRANTS_MOST)
        return rules_reader_refuse(
            reader, node,
            arena_printf(reader->arena, "A list of at most %d grants is expected.", RULES_GRANTS_MOST));
    struct rules_grant *grants = ARENA_ARRAY(reader->arena, struct rules_grant, member->count);
    for (const struct json *one = member->first; one; one = one->next, list->count++)
        if (!read_grant(reader, rules_reader_element(reader, node, list->count, one), class,
                        may_have_condition, &grants[list->count]))
            return false;
    sort_grants(grants, list->count);
    list->grants = grants;
    list->is_declared = true;
    return true;
}

/* --- classes --- */

static bool read_team(struct rules_reader *reader, struct rules_node node, struct rules_class *class)
{
    static const char expected[] = "An object with class, id and members is expected.";
    if (!rules_reader_is_object_of(reader, node, "class id members", expected))
        return false;
    const struct json *name = json_member(node.value, "class"), *id = json_member(node.value, "id"),
                      *members = json_member(node.value, "members");
    if (!name || !id || !members)
        return rules_reader_refuse(reader, node, expected);
    struct rules_node name_node = rules_reader_member(reader, node, name);
    if (name->kind != JSON_STRING)
        return rules_reader_refuse(reader, name_node, "The name of a class of documents is expected.");
    class->team.class = name->value;
    return read_document_class(reader, name_node, name->value) &&
           rules_reader_read_place(reader, rules_reader_member(reader, node, id), &class->team.id) &&
           read_name_of_items(reader, rules_reader_member(reader, node, members), &class->team.members);
}

/* What becomes of the documents when the account of their owner is deleted; absent: they are kept. */
static bool read_end(struct rules_reader *reader, struct rules_node object, struct rules_class *class)
{
    const struct json *member = json_member(object.value, "on_owner_deleted");
    if (!member)
        return true;
    struct rules_node node = rules_reader_member(reader, object, member);
    bool is_text = member->kind == JSON_STRING;
    class->ends_with_owner = is_text && bytes_equal(member->value, BYTES("delete"));
    if (!class->ends_with_owner && !(is_text && bytes_equal(member->value, BYTES("keep"))))
        return rules_reader_refuse(reader, node, "One of delete, keep is expected.");
    return class->owner.item.data ||
           rules_reader_refuse(reader, node, "It needs the class's member owner: \"Item.member\".");
}

/* What grants refer to. */
static bool read_relations(struct rules_reader *reader, struct rules_node node, struct rules_class *class)
{
    const struct json *owner = json_member(node.value, "owner"),
                      *members = json_member(node.value, "members"), *team = json_member(node.value, "team");
    return (!owner ||
            rules_reader_read_place(reader, rules_reader_member(reader, node, owner), &class->owner)) &&
           read_end(reader, node, class) &&
           (!members ||
            read_name_of_items(reader, rules_reader_member(reader, node, members), &class->members)) &&
           (!team || read_team(reader, rules_reader_member(reader, node, team), class));
}

/* Lists of structs that begin with their name are sorted by it. */
static int rules_read_compare_names(const void *a, const void *b)
{
    return bytes_compare(*(const struct bytes *)a, *(const struct bytes *)b);
}

static bool rules_read_read_item(struct rules_reader *reader, struct rules_node node,
                                 const struct rules_class *class, struct rules_item *item)
{
    item->name = node.value->name;
    bool is_of_attachments = item_is_reserved(item->name);
    return (is_of_attachments || rules_reader_is_item_class(reader, node, item->name)) &&
           rules_reader_is_object_of(reader, node, "see write",
                                     "An object with see and write is expected.") &&
           rules_read_read_list(reader, node, "see", class, false, &item->see) &&
           rules_read_read_list(reader, node, "write", class, true, &item->write);
}

static bool read_items(struct rules_reader *reader, struct rules_node class_node, struct rules_class *class)
{
    const struct json *member = json_member(class_node.value, "items");
    if (!member)
        return true;
    struct rules_node node = rules_reader_member(reader, class_node, member);
    if (!rules_reader_is_object(reader, node, RULES_ITEMS_MOST,
                                "An object of classes of items, each with see and write, is expected."))
        return false;
    struct rules_item *items = ARENA_ARRAY(reader->arena, struct rules_item, member->count);
    for (const struct json *one = member->first; one; one = one->next)
        if (!rules_read_read_item(reader, rules_reader_member(reader, node, one), class,
                                  &items[class->item_count++]))
            return false;
    qsort(items, class->item_count, sizeof *items, rules_read_compare_names);
    class->items = items;
    return true;
}

static bool read_class(struct rules_reader *reader, struct rules_node node, struct rules_class *class)
{
    class->name = node.value->name;
    if (!read_document_class(reader, node, class->name) ||
        !rules_reader_is_object_of(reader, node, CLASS_MEMBERS,
                                   "An object is expected, with the members " CLASS_MEMBERS ".") ||
        !read_relations(reader, node, class))
        return false;
    for (int right = 0; right < RULES_RIGHTS; right++)
        if (!rules_read_read_list(reader, node, rules_right_word((enum rules_right)right), class,
                                  right >= (int)RULES_CREATE, &class->lists[right]))
            return false;
    return read_items(reader, node, class);
}

/* --- the whole text --- */

static bool read_tree(struct rules_reader *reader, struct bytes text, struct json **root_r)
{
    static const struct json_limits limits = {
        .depth = TEXT_DEPTH, .tree_depth = TEXT_DEPTH, .nodes = TEXT_NODES};
    struct json_problem problem;
    if (text.size > RULES_TEXT_MOST)
        return rules_reader_refuse(
            reader, (struct rules_node){.path = ""},
            arena_printf(reader->arena, "A text of at most %d bytes is expected.", RULES_TEXT_MOST));
    if (json_read(reader->arena, text, &limits, root_r, &problem))
        return rules_reader_refuse(reader, (struct rules_node){.path = ""},
                                   arena_printf(reader->arena, "A JSON object is expected: %s, at byte %zu.",
                                                problem.what, problem.offset));
    return true;
}

static struct bytes list_owners(struct arena *arena, const struct rules *rules)
{
    struct builder text = {0};
    for (size_t i = 0; i < rules->class_count; i++) {
        const struct rules_place *owner = &rules->classes[i].owner;
        if (!owner->item.data)
            continue;
        builder_add_bytes(&text, text.size ? BYTES(",") : BYTES("{"));
        json_add_string(&text, rules->classes[i].name);
        builder_add_text(&text, ":");
        json_add_string(&text,
                        bytes_of(arena_printf(arena, "%.*s.%.*s", (int)owner->item.size, owner->item.data,
                                              (int)owner->member.size, owner->member.data)));
    }
    builder_add_bytes(&text, text.size ? BYTES("}") : BYTES("{}"));
    return builder_take(&text, arena);
}

struct bytes rules_owners(const struct rules *rules)
{
    return rules->owners;
}

enum fault rules_read(struct arena *arena, struct bytes text, struct rules **rules_r,
                      struct rules_problem *problem_r)
{
    struct rules_reader reader = {.arena = arena, .problem = problem_r};
    struct rules_node root = {.path = ""};
    struct json *tree;
    *problem_r = (struct rules_problem){0};
    *rules_r = NULL;
    if (!read_tree(&reader, text, &tree))
        return FAULT_AARG;
    root.value = reader.root = tree;
    if (!rules_reader_is_object(&reader, root, RULES_CLASSES_MOST,
                                "An object of classes and their rules is expected."))
        return FAULT_AARG;
    struct rules *rules = ARENA_NEW(arena, struct rules);
    struct rules_class *classes = ARENA_ARRAY(arena, struct rules_class, tree->count);
    for (const struct json *one = tree->first; one; one = one->next)
        if (!read_class(&reader, rules_reader_member(&reader, root, one), &classes[rules->class_count++]))
            return FAULT_AARG;
    qsort(classes, rules->class_count, sizeof *classes, rules_read_compare_names);
    rules->classes = classes;
    rules->owners = list_owners(arena, rules);
    *rules_r = rules;
    return FAULT_NONE;
}
