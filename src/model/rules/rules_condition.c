/* rules_condition: evaluates conditions.  A value that is missing makes a comparison false.  Long contents
 * are read and compared within the budget of the decision, and a decision that spends it grants nothing. */
#include "model/rules/rules_private.h"

#include "edge/json/json_scan.h"
#include "model/content/content_value.h"

enum {
    BYTES_A_STEP = 64,     /* of a content that is scanned for a member */
    TREE_BYTES_A_STEP = 8, /* of a list or an object that is read */
    TREE_DEPTH = 64,
    TREE_NODES = 100000
};

/* --- values --- */

static bool spend(struct rules_decision *decision, size_t steps)
{
    if (!content_spend(&decision->budget, steps))
        decision->is_broken = true;
    return !decision->is_broken;
}

const struct item *rules_item_of(const struct rules_facts *facts, struct bytes item_class, struct bytes key)
{
    if (!facts->exists)
        return NULL;
    if (facts->draft)
        return draft_find_item(facts->draft, item_class, key);
    const struct item *item = document_find_item(facts->document, item_class, key);
    return item && !item_is_tombstone(item) ? item : NULL;
}

bool rules_member_of(struct rules_decision *decision, const struct item *item, struct bytes member,
                     struct json *value_r)
{
    return item && !item->raw && spend(decision, item->content.size / BYTES_A_STEP) &&
           json_scan_member(decision->question->arena, item->content, member, value_r);
}

static bool value_at(struct rules_decision *decision, const struct rules_facts *facts,
                     const struct rules_place *place, struct json *value_r)
{
    return rules_member_of(decision, rules_item_of(facts, place->item, BYTES("")), place->member, value_r);
}

/* False: it is missing. */
static bool evaluate(struct rules_decision *decision, const struct rules_operand *operand,
                     struct json *value_r)
{
    struct bytes account = decision->question->caller->account;
    switch (operand->source) {
    case RULES_OF_LITERAL:
        *value_r = *operand->literal;
        return true;
    case RULES_OF_BEFORE:
        return value_at(decision, &decision->before, &operand->place, value_r);
    case RULES_OF_AFTER:
        return value_at(decision, &decision->after, &operand->place, value_r);
    case RULES_OF_ACCOUNT:
        *value_r = (struct json){.kind = JSON_STRING, .value = account};
        return account.data != NULL;
    case RULES_OF_ROLES:
    case RULES_OF_LIST:
        break; /* never a single value */
    }
    return false;
}

/* A list or an object, as a tree; NULL: it is too large, or malformed, and the decision is broken. */
static const struct json *read_tree(struct rules_decision *decision, const struct json *value)
{
    static const struct json_limits limits = {
        .depth = TREE_DEPTH, .tree_depth = TREE_DEPTH, .nodes = TREE_NODES};
    struct json *root = NULL;
    struct json_problem problem;
    if (!value->is_shallow)
        return value;
    if (!spend(decision, value->text.size / TREE_BYTES_A_STEP))
        return NULL;
    if (json_read(decision->question->arena, value->text, &limits, &root, &problem))
        decision->is_broken = true;
    return root;
}

/* --- comparisons --- */

static bool equals(struct rules_decision *decision, const struct json *a, const struct json *b)
{
    if (a->kind != b->kind || !spend(decision, a->value.size / BYTES_A_STEP))
        return false;
    if (a->kind == JSON_STRING)
        return bytes_equal(a->value, b->value);
    if (a->kind != JSON_ARRAY && a->kind != JSON_OBJECT)
        return content_value_equals(a, b, &decision->budget);
    if (a->text.data && bytes_equal(a->text, b->text))
        return true;
    const struct json *one = read_tree(decision, a), *other = read_tree(decision, b);
    bool is_equal = one && other && content_value_equals(one, other, &decision->budget);
    return spend(decision, 0) && is_equal;
}

/* Numbers with numbers, texts with texts; false: they have no order. */
static bool order(const struct json *a, const struct json *b, int *order_r)
{
    if (a->kind != b->kind || (a->kind != JSON_NUMBER && a->kind != JSON_STRING))
        return false;
    if (a->kind == JSON_STRING) {
        *order_r = bytes_compare(a->value, b->value);
    } else {
        struct content_number one = content_number_read(a->value), other = content_number_read(b->value);
        *order_r = content_number_compare(&one, &other);
    }
    return true;
}

static bool rules_condition_compare(struct rules_decision *decision, const struct rules_condition *condition)
{
    struct json a, b;
    int direction;
    if (!evaluate(decision, &condition->operands[0], &a) || !evaluate(decision, &condition->operands[1], &b))
        return false;
    if (condition->test == RULES_IF_EQ || condition->test == RULES_IF_NE)
        return equals(decision, &a, &b) == (condition->test == RULES_IF_EQ);
    if (!order(&a, &b, &direction))
        return false;
    return condition->test == RULES_IF_LT   ? direction < 0
           : condition->test == RULES_IF_LE ? direction <= 0
           : condition->test == RULES_IF_GT ? direction > 0
                                            : direction >= 0;
}

/* --- in, unchanged --- */

static bool is_in_roles(const struct rules_caller *caller, const struct json *value)
{
    for (size_t i = 0; value->kind == JSON_STRING && i < caller->role_count; i++)
        if (bytes_equal(caller->roles[i], value->value))
            return true;
    return false;
}

static bool is_in_operands(struct rules_decision *decision, const struct rules_operand *list,
                           const struct json *value)
{
    struct json element;
    for (size_t i = 0; i < list->count; i++)
        if (evaluate(decision, &list->elements[i], &element) && equals(decision, value, &element))
            return true;
    return false;
}

static bool is_in_array(struct rules_decision *decision, const struct rules_operand *list,
                        const struct json *value)
{
    struct json array;
    if (!evaluate(decision, list, &array) || array.kind != JSON_ARRAY)
        return false;
    const struct json *tree = read_tree(decision, &array);
    for (const struct json *one = tree ? tree->first : NULL; one; one = one->next)
        if (equals(decision, value, one))
            return true;
    return false;
}

static bool is_in(struct rules_decision *decision, const struct rules_condition *condition)
{
    const struct rules_operand *list = &condition->operands[1];
    struct json value;
    if (!evaluate(decision, &condition->operands[0], &value))
        return false;
    if (list->source == RULES_OF_ROLES)
        return is_in_roles(decision->question->caller, &value);
    return list->source == RULES_OF_LIST ? is_in_operands(decision, list, &value)
                                         : is_in_array(decision, list, &value);
}

/* The same value before and after, or none. */
static bool is_unchanged(struct rules_decision *decision, const struct rules_place *place)
{
    const struct item *before = rules_item_of(&decision->before, place->item, BYTES(""));
    const struct item *after = rules_item_of(&decision->after, place->item, BYTES(""));
    struct json old, new;
    if (before == after)
        return true;
    bool was = rules_member_of(decision, before, place->member, &old);
    bool is = rules_member_of(decision, after, place->member, &new);
    return was == is && (!was || equals(decision, &old, &new));
}

/* --- conditions --- */

static bool holds(struct rules_decision *decision, const struct rules_condition *condition);

/* Do all parts hold, or any? */
static bool parts_hold(struct rules_decision *decision, const struct rules_condition *condition)
{
    bool is_all = condition->test == RULES_IF_ALL;
    for (size_t i = 0; i < condition->part_count; i++)
        if (holds(decision, &condition->parts[i]) != is_all)
            return !is_all;
    return is_all;
}

/* Recursion is bounded by the reader. */
static bool holds(struct rules_decision *decision, const struct rules_condition *condition)
{
    struct json value;
    switch (condition->test) {
    case RULES_IF_ALL:
    case RULES_IF_ANY:
        return parts_hold(decision, condition);
    case RULES_IF_NOT:
        return !holds(decision, condition->parts);
    case RULES_IF_IN:
        return is_in(decision, condition);
    case RULES_IF_EXISTS:
        return evaluate(decision, &condition->operands[0], &value);
    case RULES_IF_UNCHANGED:
        return is_unchanged(decision, &condition->operands[0].place);
    case RULES_IF_EQ:
    case RULES_IF_NE:
    case RULES_IF_LT:
    case RULES_IF_LE:
    case RULES_IF_GT:
    case RULES_IF_GE:
        break;
    }
    return rules_condition_compare(decision, condition);
}

bool rules_condition_holds(struct rules_decision *decision, const struct rules_condition *condition)
{
    bool is_held = holds(decision, condition);
    return is_held && !decision->is_broken;
}
