/* content_check: applies a compiled schema to the tree of a content. */
#include "model/content/content_check.h"

#include "model/content/content_place.h"

/* --- any value ----------------------------------------------------------------------------------- */

static unsigned types_of(const struct json *value)
{
    static const unsigned types[] = {
        [JSON_NULL] = TYPE_NULL,     [JSON_FALSE] = TYPE_BOOLEAN, [JSON_TRUE] = TYPE_BOOLEAN,
        [JSON_NUMBER] = TYPE_NUMBER, [JSON_STRING] = TYPE_STRING, [JSON_ARRAY] = TYPE_ARRAY,
        [JSON_OBJECT] = TYPE_OBJECT,
    };
    return types[value->kind];
}

static bool is_integer(const struct json *value)
{
    struct content_number number = content_number_read(value->value);
    return content_number_is_integer(&number);
}

static bool check_type(struct content_checking *checking, const struct content_node *node,
                       const struct json *value)
{
    unsigned types = types_of(value);
    if (node->types & types || ((node->types & TYPE_INTEGER) && types == TYPE_NUMBER && is_integer(value)))
        return true;
    const struct json *type = json_member(node->source, "type");
    return content_violate_with(checking, node, "type", value,
                                "A value of this type is expected: ", type->text, ".");
}

static bool check_choice(struct content_checking *checking, const struct content_node *node,
                         const struct content_choice *choice, const struct json *value)
{
    uint64_t hash = content_value_hash(value, &checking->budget);
    size_t low = 0, high = choice->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (choice->options[middle].hash < hash)
            low = middle + 1;
        else
            high = middle;
    }
    for (; low < choice->count && choice->options[low].hash == hash; low++)
        if (content_value_equals(choice->options[low].value, value, &checking->budget))
            return content_step(checking, node, value, 0);
    if (!content_step(checking, node, value, 0))
        return false;
    return content_violate_with(checking, node, choice->keyword, value,
                                choice->count > 1 ? "One of these values is expected: "
                                                  : "This value is expected: ",
                                choice->source->text, ".");
}

/* --- numbers ------------------------------------------------------------------------------------- */

/* `side`: -1 for a lower bound, 1 for an upper one; `is_out`: the bound itself is not allowed. */
static bool check_bound(struct content_checking *checking, const struct content_node *node,
                        const struct json *value, const struct content_bound *bound,
                        const struct content_number *number, int side, bool is_out)
{
    static const char *const keywords[2][2] = {{"minimum", "exclusiveMinimum"},
                                               {"maximum", "exclusiveMaximum"}};
    static const char *const words[2][2] = {
        {"A number that is not less than this is expected: ", "A number above this is expected: "},
        {"A number that is not greater than this is expected: ", "A number below this is expected: "}};
    if (!bound->source)
        return true;
    int order = content_number_compare(number, &bound->number);
    if (side * order < 0 || (order == 0 && !is_out))
        return true;
    return content_violate_with(checking, node, keywords[side > 0][is_out], value, words[side > 0][is_out],
                                bound->source->text, ".");
}

static bool check_number(struct content_checking *checking, const struct content_node *node,
                         const struct json *value)
{
    const struct content_number_rules *rules = node->number;
    const struct content_number number = content_number_read(value->value);
    if (!content_step(checking, node, value, value->value.size / 4) ||
        !check_bound(checking, node, value, &rules->minimum, &number, -1, false) ||
        !check_bound(checking, node, value, &rules->above, &number, -1, true) ||
        !check_bound(checking, node, value, &rules->maximum, &number, 1, false) ||
        !check_bound(checking, node, value, &rules->below, &number, 1, true))
        return false;
    if (!rules->multiple || content_number_is_multiple(&number, &rules->divisor))
        return true;
    return content_violate_with(checking, node, "multipleOf", value,
                                "A multiple of this is expected: ", rules->multiple->text, ".");
}

/* --- strings ------------------------------------------------------------------------------------- */

static int64_t count_characters(struct bytes text)
{
    int64_t count = 0;
    for (size_t i = 0; i < text.size; i++)
        count += ((unsigned char)text.data[i] & 0xc0) != 0x80;
    return count;
}

static bool check_length(struct content_checking *checking, const struct content_node *node,
                         const struct json *value)
{
    const struct content_string_rules *rules = node->string;
    if (rules->least == 0 && rules->most == NO_LIMIT)
        return true;
    int64_t count = count_characters(value->value);
    if (count < rules->least)
        return content_violate(checking, node, "minLength", value,
                               "At least %lld characters are expected, not %lld.", (long long)rules->least,
                               (long long)count);
    if (rules->most != NO_LIMIT && count > rules->most)
        return content_violate(checking, node, "maxLength", value,
                               "At most %lld characters are expected, not %lld.", (long long)rules->most,
                               (long long)count);
    return true;
}

static bool check_string(struct content_checking *checking, const struct content_node *node,
                         const struct json *value)
{
    const struct content_string_rules *rules = node->string;
    if (!content_step(checking, node, value, value->value.size / 16) || !check_length(checking, node, value))
        return false;
    if (rules->pattern &&
        !content_check_pattern(checking, node, "pattern", rules->pattern, value, value->value))
        return content_violate_with(checking, node, "pattern", value,
                                    "A text that matches this is expected: ", rules->pattern_text, "");
    if (rules->format && !rules->format(value->value))
        return content_violate_with(checking, node, "format", value,
                                    "A text of this format is expected: ", rules->format_name, ".");
    return true;
}

/* --- a subschema --------------------------------------------------------------------------------- */

static bool check_rules(struct content_checking *checking, const struct content_node *node,
                        const struct json *value, struct content_seen *seen)
{
    if ((node->types && !check_type(checking, node, value)) ||
        (node->constant && !check_choice(checking, node, node->constant, value)) ||
        (node->choice && !check_choice(checking, node, node->choice, value)))
        return false;
    if (value->kind == JSON_NUMBER && node->number && !check_number(checking, node, value))
        return false;
    if (value->kind == JSON_STRING && node->string && !check_string(checking, node, value))
        return false;
    if (value->kind == JSON_ARRAY && node->array && !content_check_array(checking, node, value, seen))
        return false;
    if (value->kind == JSON_OBJECT && node->object && !content_check_object(checking, node, value, seen))
        return false;
    return !node->logic || content_check_logic(checking, node, value, seen);
}

/* Runs the rules; unevaluated children come last, when all others have been seen. */
static bool check_inside(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, struct content_seen *seen)
{
    const struct content_node *rest = value->kind == JSON_ARRAY && node->array     ? node->array->unevaluated
                                      : value->kind == JSON_OBJECT && node->object ? node->object->unevaluated
                                                                                   : NULL;
    if (!rest)
        return check_rules(checking, node, value, seen);
    struct content_seen own = {.words = value->count / 64 + 1};
    own.bits = ARENA_ARRAY(checking->arena, uint64_t, own.words);
    if (!content_step(checking, node, value, own.words) || !check_rules(checking, node, value, &own))
        return false;
    size_t place = 0;
    for (const struct json *child = value->first; child; child = child->next, place++)
        if (!(own.bits[place / 64] >> place % 64 & 1) && !checking->check(checking, rest, child, NULL))
            return false;
    if (seen)
        memset(seen->bits, 0xff, seen->words * sizeof *seen->bits);
    return true;
}

static bool check_kind(struct content_checking *checking, const struct content_node *node,
                       const struct json *value, struct content_seen *seen)
{
    if (node->kind == NODE_ANY)
        return true;
    if (node->kind == NODE_NONE)
        return content_violate(checking, node, NULL, value,
                               node->outer && value->name.data ? "No such member is expected."
                               : node->outer                   ? "No such value is expected."
                                                               : "No content is expected.");
    return check_inside(checking, node, value, seen);
}

static bool check_node(struct content_checking *checking, const struct content_node *node,
                       const struct json *value, struct content_seen *seen)
{
    if (!content_step(checking, node, value, 0))
        return false;
    if (checking->depth == CONTENT_DEPTH_MOST) {
        content_report(checking, node, NULL, value, "A content that is nested less deep is expected.");
        return content_stop(checking, false);
    }
    checking->depth++;
    bool conforms = check_kind(checking, node, value, seen);
    checking->depth--;
    return conforms && !checking->is_stopped;
}

/* --- the whole ----------------------------------------------------------------------------------- */

enum content_verdict content_check(const struct content_schema *schema, struct arena *arena,
                                   struct bytes content, int64_t *steps,
                                   struct content_violation *violation_r)
{
    static const struct json_limits limits = {.depth = 256, .tree_depth = 256, .nodes = CONTENT_VALUES_MOST};
    struct json text = {.kind = JSON_STRING, .text = content, .value = content};
    struct json *root = &text;
    struct json_problem problem;
    struct content_checking checking = {
        .arena = arena, .budget = {*steps}, .violation = violation_r, .check = check_node};
    *violation_r = (struct content_violation){"", "", "", ""};
    enum fault fault = schema->is_raw ? FAULT_NONE : json_read(arena, content, &limits, &root, &problem);
    if (fault) {
        const char *expected =
            arena_printf(arena, "A content that can be checked is expected: %s.", problem.what);
        *violation_r = (struct content_violation){"", "type", "", expected};
        return CONTENT_VIOLATES;
    }
    checking.root = root;
    bool conforms = check_node(&checking, schema->root, root, NULL);
    *steps = checking.budget.steps > 0 ? checking.budget.steps : 0;
    return conforms ? CONTENT_CONFORMS : checking.is_costly ? CONTENT_COSTLY : CONTENT_VIOLATES;
}
