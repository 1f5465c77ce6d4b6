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

/* The rules of arrays, objects, and of subschemas that are combined. */

static void note_seen(struct content_seen *seen, size_t place)
{
    if (seen)
        seen->bits[place / 64] |= UINT64_C(1) << place % 64;
}

/* An alternative, whose violations are not those of the content. */
static bool check_trial(struct content_checking *checking, const struct content_node *node,
                        const struct json *value, struct content_seen *seen)
{
    checking->trials++;
    bool conforms = checking->check(checking, node, value, seen);
    checking->trials--;
    return conforms;
}

/* An alternative's own record; merged when it conforms. */
static bool check_alternative(struct content_checking *checking, const struct content_node *node,
                              const struct json *value, struct content_seen *seen)
{
    struct content_seen own = {0};
    if (seen) {
        own.words = seen->words;
        own.bits = ARENA_ARRAY(checking->arena, uint64_t, own.words);
        if (!content_step(checking, node, value, own.words))
            return false;
    }
    bool conforms = check_trial(checking, node, value, seen ? &own : NULL);
    for (size_t i = 0; conforms && i < own.words; i++)
        seen->bits[i] |= own.bits[i];
    return conforms;
}

/* --- arrays -------------------------------------------------------------------------------------- */

static bool check_contained(struct content_checking *checking, const struct content_node *node,
                            const struct json *value, struct content_seen *seen)
{
    const struct content_array_rules *rules = node->array;
    int64_t count = 0;
    size_t place = 0;
    for (const struct json *one = value->first; one; one = one->next, place++)
        if (check_trial(checking, rules->contains, one, NULL)) {
            note_seen(seen, place);
            count++;
        }
    if (checking->is_stopped)
        return false;
    if (count < rules->least_contained)
        return content_violate(checking, node, rules->least_contained == 1 ? "contains" : "minContains",
                               value, "At least %lld elements of a kind are expected, not %lld.",
                               (long long)rules->least_contained, (long long)count);
    if (rules->most_contained != NO_LIMIT && count > rules->most_contained)
        return content_violate(checking, node, "maxContains", value,
                               "At most %lld elements of a kind are expected, not %lld.",
                               (long long)rules->most_contained, (long long)count);
    return true;
}

static bool check_elements(struct content_checking *checking, const struct content_node *node,
                           const struct json *value, struct content_seen *seen)
{
    const struct content_array_rules *rules = node->array;
    size_t place = 0;
    for (const struct json *one = value->first; one; one = one->next, place++) {
        const struct content_node *schema =
            place < rules->prefix.count ? rules->prefix.list[place] : rules->items;
        if (!schema)
            return true;
        if (!checking->check(checking, schema, one, NULL))
            return false;
        note_seen(seen, place);
    }
    return true;
}

bool content_check_array(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, struct content_seen *seen)
{
    const struct content_array_rules *rules = node->array;
    const struct json *twin;
    if ((int64_t)value->count < rules->least)
        return content_violate(checking, node, "minItems", value,
                               "At least %lld elements are expected, not %u.", (long long)rules->least,
                               value->count);
    if (rules->most != NO_LIMIT && (int64_t)value->count > rules->most)
        return content_violate(checking, node, "maxItems", value,
                               "At most %lld elements are expected, not %u.", (long long)rules->most,
                               value->count);
    if (!check_elements(checking, node, value, seen))
        return false;
    if (rules->is_unique && content_value_find_twin(checking->arena, value, &checking->budget, &twin))
        return content_violate(checking, node, "uniqueItems", twin,
                               "An element that differs from all others is expected.");
    if (rules->is_unique && !content_step(checking, node, value, 0))
        return false;
    return !rules->contains || check_contained(checking, node, value, seen);
}

/* --- objects ------------------------------------------------------------------------------------- */

static const struct content_name *find_name(const struct content_object_rules *rules, struct bytes name)
{
    size_t low = 0, high = rules->name_count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = bytes_compare(rules->names[middle].name, name);
        if (order == 0)
            return &rules->names[middle];
        if (order < 0)
            low = middle + 1;
        else
            high = middle;
    }
    return NULL;
}

static bool has_member(struct content_checking *checking, const struct content_node *node,
                       const struct json *object, struct bytes name)
{
    for (const struct json *member = object->first; member; member = member->next) {
        if (bytes_equal(member->name, name))
            return true;
        if (!content_step(checking, node, object, 0))
            return false;
    }
    return false;
}

static bool violate_missing(struct content_checking *checking, const struct content_node *node,
                            const char *keyword, const struct json *value, struct bytes name)
{
    return content_violate_with(checking, node, keyword, value, "The member \"", name, "\" is expected.");
}

/* The name itself, as a string. */
static bool check_name(struct content_checking *checking, const struct content_node *schema,
                       const struct json *member)
{
    const struct json *outer = checking->named;
    const struct json name = {.kind = JSON_STRING, .text = member->name, .value = member->name};
    checking->named = member;
    bool conforms = checking->check(checking, schema, &name, NULL);
    checking->named = outer;
    return conforms;
}

/* The value of a member: by its name, by the expressions that its name matches, else as an additional one. */
static bool check_member(struct content_checking *checking, const struct content_node *node,
                         const struct json *member, const struct content_name *entry, bool *is_seen_r)
{
    const struct content_object_rules *rules = node->object;
    *is_seen_r = entry && entry->schema;
    if (*is_seen_r && !checking->check(checking, entry->schema, member, NULL))
        return false;
    for (size_t i = 0; i < rules->matching_count; i++) {
        const struct content_matching *matching = &rules->matching[i];
        if (!content_check_pattern(checking, node, "patternProperties", matching->pattern, member,
                                   member->name)) {
            if (checking->is_stopped)
                return false;
            continue;
        }
        *is_seen_r = true;
        if (!checking->check(checking, matching->schema, member, NULL))
            return false;
    }
    if (*is_seen_r || !rules->additional)
        return true;
    *is_seen_r = true;
    return checking->check(checking, rules->additional, member, NULL);
}

static bool check_needed(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, const struct json *needed)
{
    for (const struct json *one = needed->first; one; one = one->next)
        if (!has_member(checking, node, value, one->value))
            return violate_missing(checking, node, "dependentRequired", value, one->value);
    return true;
}

static bool check_members(struct content_checking *checking, const struct content_node *node,
                          const struct json *value, struct content_seen *seen, size_t *required_r)
{
    const struct content_object_rules *rules = node->object;
    size_t place = 0;
    *required_r = 0;
    for (const struct json *member = value->first; member; member = member->next, place++) {
        const struct content_name *entry = find_name(rules, member->name);
        bool is_seen;
        if (!content_step(checking, node, member, member->name.size / 16) ||
            (rules->property_names && !check_name(checking, rules->property_names, member)) ||
            !check_member(checking, node, member, entry, &is_seen))
            return false;
        if (is_seen)
            note_seen(seen, place);
        if (!entry)
            continue;
        *required_r += entry->is_required;
        if (entry->needed && !check_needed(checking, node, value, entry->needed))
            return false;
        if (entry->dependent && !checking->check(checking, entry->dependent, value, seen))
            return false;
    }
    return true;
}

static bool violate_required(struct content_checking *checking, const struct content_node *node,
                             const struct json *value)
{
    const struct content_object_rules *rules = node->object;
    for (size_t i = 0; i < rules->name_count && !checking->trials; i++)
        if (rules->names[i].is_required && !has_member(checking, node, value, rules->names[i].name))
            return violate_missing(checking, node, "required", value, rules->names[i].name);
    return false;
}

bool content_check_object(struct content_checking *checking, const struct content_node *node,
                          const struct json *value, struct content_seen *seen)
{
    const struct content_object_rules *rules = node->object;
    size_t required;
    if ((int64_t)value->count < rules->least)
        return content_violate(checking, node, "minProperties", value,
                               "At least %lld members are expected, not %u.", (long long)rules->least,
                               value->count);
    if (rules->most != NO_LIMIT && (int64_t)value->count > rules->most)
        return content_violate(checking, node, "maxProperties", value,
                               "At most %lld members are expected, not %u.", (long long)rules->most,
                               value->count);
    if (!check_members(checking, node, value, seen, &required))
        return false;
    return required == rules->required_count || violate_required(checking, node, value);
}

/* --- combined subschemas ------------------------------------------------------------------------- */

/* Counts the alternatives that conform, up to `most`; all of them when children are recorded. */
static size_t count_conforming(struct content_checking *checking, const struct content_nodes *nodes,
                               const struct json *value, struct content_seen *seen, size_t most)
{
    size_t count = 0;
    for (size_t i = 0; i < nodes->count && (count < most || seen) && !checking->is_stopped; i++)
        count += check_alternative(checking, nodes->list[i], value, seen);
    return count;
}

static bool check_alternatives(struct content_checking *checking, const struct content_node *node,
                               const struct json *value, struct content_seen *seen)
{
    const struct content_logic *logic = node->logic;
    if (logic->any.count && !count_conforming(checking, &logic->any, value, seen, 1))
        return content_violate(checking, node, "anyOf", value,
                               "A value that conforms to one of %zu schemas or more is expected.",
                               logic->any.count);
    size_t count = logic->one.count ? count_conforming(checking, &logic->one, value, seen, 2) : 1;
    if (count != 1)
        return content_violate(checking, node, "oneOf", value,
                               "A value that conforms to exactly one of %zu schemas is expected; it conforms "
                               "to %s.",
                               logic->one.count, count ? "more" : "none");
    if (logic->not &&check_trial(checking, logic->not, value, NULL))
        return content_violate(checking, node, "not", value,
                               "A value that does not conform to this schema is expected.");
    return !checking->is_stopped;
}

bool content_check_logic(struct content_checking *checking, const struct content_node *node,
                         const struct json *value, struct content_seen *seen)
{
    const struct content_logic *logic = node->logic;
    if (logic->target && !checking->check(checking, logic->target, value, seen))
        return false;
    for (size_t i = 0; i < logic->all.count; i++)
        if (!checking->check(checking, logic->all.list[i], value, seen))
            return false;
    if (!check_alternatives(checking, node, value, seen))
        return false;
    if (!logic->condition)
        return true;
    bool holds = check_alternative(checking, logic->condition, value, seen);
    const struct content_node *next = holds ? logic->then : logic->otherwise;
    return !checking->is_stopped && (!next || checking->check(checking, next, value, seen));
}
