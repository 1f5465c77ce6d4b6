/* find_where: each group of conditions becomes a list of branches: of `or` those of its parts, of `and` one
 * for each combination.  `not` changes the one into the other, down to the conditions. */
#include "operation/documents/find_where.h"

#include <math.h>
#include <stdlib.h>

#include "model/document/value.h"
#include "operation/judge/sight.h"

enum {
    DEPTH_MOST = 4,
    NODES_MOST = 16384, /* 56 conditions with lists of 100 values */
    FOLDED_GROWTH = 11  /* U+FDFA: 3 bytes become 33 */
};

const char *const find_where_tests[SEARCH_TESTS] = {
    [SEARCH_EQ] = "eq",     [SEARCH_SW] = "sw",         [SEARCH_LT] = "lt",       [SEARCH_LE] = "le",
    [SEARCH_GE] = "ge",     [SEARCH_GT] = "gt",         [SEARCH_GELE] = "gele",   [SEARCH_GELT] = "gelt",
    [SEARCH_GTLE] = "gtle", [SEARCH_GTLT] = "gtlt",     [SEARCH_NE] = "ne",       [SEARCH_IN] = "in",
    [SEARCH_NIN] = "nin",   [SEARCH_EXISTS] = "exists", [SEARCH_MATCH] = "match", [SEARCH_LIKE] = "like"};

/* --- a condition --------------------------------------------------------------------------------- */

static bool is_likeable(const struct schema_field *field)
{
    return field && !field->is_list && (field->type == FIELD_STRING || field->type == FIELD_FOLDED);
}

static enum fault read_test(const struct reader *reader, const struct json *element,
                            struct search_condition *condition)
{
    const struct json *test = json_member(element, "t");
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    for (int i = 0; test && test->kind == JSON_STRING && i < SEARCH_TESTS; i++) {
        if (!bytes_equal(test->value, bytes_of(find_where_tests[i])))
            continue;
        condition->test = (enum search_test)i;
        if ((type == FIELD_TEXT) != (i == SEARCH_MATCH))
            return reader_wrong(reader, element, "t",
                                type == FIELD_TEXT
                                    ? "The test match is expected: this field has words."
                                    : "The test match is for fields that are declared with text.");
        if (i == SEARCH_LIKE && !is_likeable(condition->field))
            return reader_wrong(reader, element, "t",
                                "The test like is for fields of type string or folded that are no lists.");
        if (!search_is_whole(condition->test) && i != SEARCH_EXISTS && type == FIELD_HASH)
            return reader_wrong(reader, element, "t",
                                "One of eq, ne, in, nin, exists is expected: a hash has no order.");
        if (i == SEARCH_SW && type != FIELD_STRING && type != FIELD_FOLDED)
            return reader_wrong(reader, element, "t", "Only strings can start with something.");
        if (i == SEARCH_SW && condition->field && condition->field->collate.data)
            return reader_wrong(
                reader, element, "t",
                "In the order of a language what starts alike does not stand together: declare "
                "another field of the same member, without collate.");
        return FAULT_NONE;
    }
    return reader_wrong(
        reader, element, "t",
        "One of eq, ne, in, nin, exists, sw, lt, le, ge, gt, gele, gelt, gtle, gtlt, match, like is "
        "expected.");
}

/* A value of a condition: the member v1 or v2, or an element of it. */
struct search_place {
    const struct json *value; /* NULL: absent */
    const struct json *element;
    const char *member;
    bool is_element;
};

static enum fault refuse_value(const struct reader *reader, const struct search_place *at,
                               const char *expected)
{
    return at->is_element ? reader_wrong_value(reader, at->value, at->member, expected)
                          : reader_wrong(reader, at->element, at->member, expected);
}

static enum fault read_integer(const struct reader *reader, const struct search_place *at,
                               enum field_type type, int64_t *integer)
{
    bool is_int = type == FIELD_INT;
    if (json_is_i64(at->value, integer) && (!is_int || (*integer >= INT32_MIN && *integer <= INT32_MAX)))
        return FAULT_NONE;
    return refuse_value(reader, at,
                        is_int ? "An integer of 32 bits is expected." : "An integer of 64 bits is expected.");
}

/* Texts of any length can be compared for equality; a longer text is stored as a substitute, which has no
 * order. */
static enum fault find_where_read_text(const struct reader *reader, const struct search_place *at,
                                       const struct search_condition *condition, struct bytes *text_r)
{
    const struct json *json = at->value;
    bool is_equality = condition->field && search_is_whole(condition->test);
    if (!json || json->kind != JSON_STRING)
        return refuse_value(reader, at, "A string is expected.");
    if (!is_equality && json->value.size > VALUE_FIELD_MOST)
        return refuse_value(reader, at,
                            "A string of up to 1,024 bytes is expected: only eq, ne, in and nin, of a field, "
                            "take a longer one.");
    *text_r = is_equality ? value_of_field(reader->call->arena, json->value) : json->value;
    return FAULT_NONE;
}

/* The database folds the text, to at most eleven bytes for each that is not ASCII; the same limit holds for
 * the result. */
static enum fault read_folded(const struct reader *reader, const struct search_place *at,
                              const struct search_condition *condition, struct bytes *text_r)
{
    const struct json *json = at->value;
    size_t size = 0;
    if (!json || json->kind != JSON_STRING)
        return refuse_value(reader, at, "A string is expected.");
    for (size_t i = 0; i < json->value.size; i++)
        size += (unsigned char)json->value.data[i] < 0x80 ? 1 : FOLDED_GROWTH;
    if (!search_is_whole(condition->test) && size > VALUE_FIELD_MOST)
        return refuse_value(
            reader, at,
            "A string of up to 1,024 bytes is expected, of which one that is not ASCII counts "
            "eleven: only eq, ne, in and nin take a longer one.");
    *text_r = json->value;
    return FAULT_NONE;
}

static enum fault find_where_read_value(const struct reader *reader, const struct search_place *at,
                                        const struct search_condition *condition, struct search_value *value)
{
    const struct json *json = at->value;
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    switch (type) {
    case FIELD_STRING:
    case FIELD_TEXT:
        return find_where_read_text(reader, at, condition, &value->text);
    case FIELD_FOLDED:
        return read_folded(reader, at, condition, &value->text);
    case FIELD_HASH:
        if (json && value_of_json(reader->call->arena, json, &value->text))
            return FAULT_NONE;
        return refuse_value(reader, at, "A string, a number or a truth value is expected.");
    case FIELD_LONG:
    case FIELD_INT:
        if (!json)
            return refuse_value(reader, at, "A number is expected.");
        return read_integer(reader, at, type, &value->integer);
    case FIELD_DOUBLE:
    default:
        if (json && json->kind == JSON_NUMBER) {
            value->number = strtod(arena_copy(reader->call->arena, json->value.data, json->value.size), NULL);
            if (isfinite(value->number))
                return FAULT_NONE;
        }
        return refuse_value(reader, at, "A number within the range of a double is expected.");
    }
}

/* A list of values, or of NE one of one. */
static enum fault find_where_read_list(const struct reader *reader, const struct json *element,
                                       struct search_condition *condition)
{
    struct search_place at = {json_member(element, "v1"), element, "v1", condition->test != SEARCH_NE};
    const struct json *list = at.value;
    struct search_value *values = ARENA_ARRAY(reader->call->arena, struct search_value, SEARCH_LIST_MOST);
    enum fault fault = FAULT_NONE;
    condition->list = values;
    if (condition->test == SEARCH_NE) {
        condition->list_count = 1;
        return find_where_read_value(reader, &at, condition, values);
    }
    if (!list || list->kind != JSON_ARRAY || list->is_shallow || !list->count ||
        list->count > SEARCH_LIST_MOST)
        return reader_wrong(reader, element, "v1", "A list of 1 to 100 values is expected.");
    for (at.value = list->first; at.value && !fault; at.value = at.value->next)
        fault = find_where_read_value(reader, &at, condition, &values[condition->list_count++]);
    return fault;
}

/* The text, and how much alike is enough. */
static enum fault read_likeness(const struct reader *reader, const struct json *element,
                                struct search_condition *condition)
{
    const struct json *text = json_member(element, "v1"), *least = json_member(element, "v2");
    double number = SEARCH_LIKE_LEAST;
    if (!text || text->kind != JSON_STRING || !text->value.size || text->value.size > SEARCH_LIKE_MOST)
        return reader_wrong(reader, element, "v1", "A string of 1 to 128 bytes is expected.");
    if (least && least->kind == JSON_NUMBER)
        number = strtod(arena_copy(reader->call->arena, least->value.data, least->value.size), NULL);
    if ((least && least->kind != JSON_NUMBER) || number < SEARCH_LIKE_LEAST || number > 1)
        return reader_wrong(reader, element, "v2", "A number from 0.3 to 1 is expected.");
    condition->values[0].text = text->value;
    condition->values[1].number = number;
    return FAULT_NONE;
}

/* The values of the test. */
static enum fault read_values(const struct reader *reader, const struct json *element,
                              struct search_condition *condition)
{
    const struct json *v1 = json_member(element, "v1");
    if (search_has_list(condition->test))
        return find_where_read_list(reader, element, condition);
    if (condition->test == SEARCH_LIKE)
        return read_likeness(reader, element, condition);
    if (condition->test != SEARCH_EXISTS)
        return find_where_read_value(reader, &(struct search_place){v1, element, "v1", false}, condition,
                                     &condition->values[0]);
    if (!condition->field || condition->header || !v1 || (v1->kind != JSON_TRUE && v1->kind != JSON_FALSE))
        return reader_wrong(reader, element, "v1", "True or false is expected, of a field.");
    condition->values[0].integer = v1->kind == JSON_TRUE || condition->item;
    if (condition->item && v1->kind == JSON_FALSE) /* no item has it, even if there is none */
        condition->is_negated = !condition->is_negated;
    return FAULT_NONE;
}

/* In the order of a language, and of folded values, the database knows it. */
static bool is_reversed(const struct schema_field *field, const struct search_value *values)
{
    enum field_type type = field ? field->type : FIELD_STRING;
    if (field && field->collate.data)
        return false;
    switch (type) {
    case FIELD_STRING:
        return bytes_compare(values[0].text, values[1].text) > 0;
    case FIELD_DOUBLE:
        return values[0].number > values[1].number;
    case FIELD_FOLDED: /* what is below what is known when both are folded */
        return false;
    case FIELD_LONG:
    case FIELD_INT:
    default:
        return values[0].integer > values[1].integer;
    }
}

static enum fault read_condition(const struct reader *reader, const struct json *element,
                                 struct search_condition *condition)
{
    enum fault fault =
        FAULT_FIRST(read_test(reader, element, condition), read_values(reader, element, condition));
    if (fault || condition->test == SEARCH_LIKE)
        return fault;
    if (!search_has_two(condition->test))
        return json_member(element, "v2")
                   ? reader_wrong(reader, element, "v2", "This test has one value, v1.")
                   : FAULT_NONE;
    fault = find_where_read_value(reader,
                                  &(struct search_place){json_member(element, "v2"), element, "v2", false},
                                  condition, &condition->values[1]);
    if (!fault && is_reversed(condition->field, condition->values))
        fault = reader_wrong(reader, element, "v2", "A value that is not below v1 is expected.");
    return fault;
}

enum fault find_where_refuse_name(const struct reader *reader, struct bytes class, struct bytes item,
                                  struct bytes field)
{
    struct arena *arena = reader->call->arena;
    return reply_fault(reader->call, reader->reply, FAULT_NFIELD, NULL,
                       arena_copy(arena, class.data, class.size), arena_copy(arena, item.data, item.size),
                       field.data ? arena_copy(arena, field.data, field.size) : NULL, NULL);
}

static enum fault find_field(const struct reader *reader, const struct schema_class *class,
                             const struct schema_item *item, struct bytes name,
                             const struct schema_field **field_r)
{
    *field_r = schema_find_field(item, name);
    if (!*field_r)
        return find_where_refuse_name(reader, class->name, item->name, name);
    if (!(*field_r)->is_ready)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL,
                           arena_copy(reader->call->arena, name.data, name.size), NULL);
    return FAULT_NONE;
}

enum fault find_where_field(const struct reader *reader, const struct search *search, struct bytes name,
                            const struct schema_field **field_r)
{
    return find_field(reader, search->class, search->item, name, field_r);
}

/* --- groups -------------------------------------------------------------------------------------- */

static enum fault read_branches(const struct reader *reader, const struct json *element,
                                struct search *search, bool is_negated, int depth,
                                struct search_branch *branches, size_t *count_r);

/* Of a condition on other items: their class.  NULL without a fault: the caller may know of no
 * such class, and the search finds nothing. */
static enum fault read_other(const struct reader *reader, const struct json *element, struct search *search,
                             const struct schema_item **item_r)
{
    struct bytes name;
    enum fault fault = reader_class(reader, element, "i", &name);
    if (fault)
        return fault;
    *item_r = schema_find_item(search->class, name);
    if (*item_r && !(*item_r)->field_count)
        *item_r = NULL;
    bool is_told =
        sight_discloses(reader->call, search->class->name, *item_r ? &name : NULL, *item_r != NULL);
    search->is_undisclosed |= !is_told;
    if (is_told && !*item_r)
        return find_where_refuse_name(reader, search->class->name, name, NO_BYTES);
    if (!is_told)
        *item_r = NULL;
    return FAULT_NONE;
}

static enum fault read_leaf(const struct reader *reader, const struct json *element, struct search *search,
                            struct search_condition *condition)
{
    const struct json *name = json_member(element, "f");
    enum fault fault = reader_members(reader, element, "i f t v1 v2 or and not");
    if (fault)
        return fault;
    if (element->kind != JSON_OBJECT || !name || name->kind != JSON_STRING)
        return reader_wrong_value(reader, element, "where",
                                  "Objects with f, t, v1 and v2, or with one of or, and, not, are expected.");
    if (json_member(element, "i")) {
        fault = read_other(reader, element, search, &condition->item);
        if (fault || !condition->item)
            return fault;
    }
    return FAULT_FIRST(find_field(reader, search->class, condition->item ? condition->item : search->item,
                                  name->value, &condition->field),
                       read_condition(reader, element, condition));
}

static enum fault find_where_refuse_number(const struct reader *reader, const struct json *at)
{
    return reader_wrong_value(
        reader, at, "where",
        "At most 7 conditions are expected, in each of up to 8 alternatives that these multiply out to.");
}

/* Each of `left` with each of `right`. */
static enum fault multiply(const struct reader *reader, const struct json *at, struct search_branch *left,
                           size_t *left_count, const struct search_branch *right, size_t right_count)
{
    struct search_branch *all = ARENA_ARRAY(reader->call->arena, struct search_branch, SEARCH_BRANCHES_MOST);
    size_t count = 0;
    for (size_t l = 0; l < *left_count; l++)
        for (size_t r = 0; r < right_count; r++) {
            if (count == SEARCH_BRANCHES_MOST || left[l].count + right[r].count > SEARCH_FIELDS_MOST)
                return find_where_refuse_number(reader, at);
            all[count] = left[l];
            for (size_t i = 0; i < right[r].count; i++)
                all[count].conditions[all[count].count++] = right[r].conditions[i];
            count++;
        }
    for (size_t i = 0; i < count; i++)
        left[i] = all[i];
    *left_count = count;
    return FAULT_NONE;
}

/* Sets branches_r and count_r, room for SEARCH_BRANCHES_MOST, of elements that all hold, or one of which
 * does.
 */
static enum fault read_group(const struct reader *reader, const struct json *list, struct search *search,
                             bool are_all, bool is_negated, int depth, struct search_branch *branches_r,
                             size_t *count_r)
{
    struct search_branch *part = ARENA_ARRAY(reader->call->arena, struct search_branch, SEARCH_BRANCHES_MOST);
    enum fault fault = FAULT_NONE;
    size_t part_count;
    *count_r = are_all;
    branches_r[0].count = 0;
    for (const struct json *one = list ? list->first : NULL; one && !fault; one = one->next) {
        fault = read_branches(reader, one, search, is_negated, depth, part, &part_count);
        if (!fault && are_all)
            fault = multiply(reader, one, branches_r, count_r, part, part_count);
        for (size_t i = 0; i < part_count && !fault && !are_all; i++) {
            if (*count_r == SEARCH_BRANCHES_MOST)
                return find_where_refuse_number(reader, one);
            branches_r[(*count_r)++] = part[i];
        }
    }
    return fault;
}

/* Is a part of the element deeper than the tree of the request goes? */
static bool is_deep(const struct json *element)
{
    bool is_shallow = element->is_shallow;
    for (const struct json *member = element->first; member; member = member->next)
        is_shallow |= member->is_shallow;
    return is_shallow;
}

/* The same of such an element.  An error is placed at it, not within. */
static enum fault read_deep(const struct reader *reader, const struct json *element, struct search *search,
                            bool is_negated, int depth, struct search_branch *branches, size_t *count_r)
{
    static const struct json_limits limits = {.depth = 128, .tree_depth = 128, .nodes = NODES_MOST};
    struct json *root;
    struct json_problem problem;
    if (json_read(reader->call->arena, element->text, &limits, &root, &problem))
        return find_where_refuse_number(reader, element);
    enum fault fault = read_branches(reader, root, search, is_negated, depth, branches, count_r);
    if (fault)
        reader_place(reader, element, NULL);
    return fault;
}

/* Of a condition or a group. */
static enum fault read_branches(const struct reader *reader, const struct json *element,
                                struct search *search, bool is_negated, int depth,
                                struct search_branch *branches, size_t *count_r)
{
    static const char *const groups[] = {"or", "and", "not"};
    if (is_deep(element))
        return read_deep(reader, element, search, is_negated, depth, branches, count_r);
    for (size_t i = 0; i < COUNT_OF(groups) && element->kind == JSON_OBJECT && !element->is_shallow; i++) {
        const struct json *group = json_member(element, groups[i]);
        if (!group)
            continue;
        enum fault fault = reader_members(reader, element, groups[i]);
        if (fault)
            return fault;
        if (depth == DEPTH_MOST)
            return reader_wrong_value(reader, element, "where", "Groups nested up to 4 deep are expected.");
        if (i == 2)
            return read_branches(reader, group, search, !is_negated, depth + 1, branches, count_r);
        if (group->kind != JSON_ARRAY || group->is_shallow || !group->count)
            return reader_wrong(reader, element, groups[i], "A list of conditions is expected.");
        return read_group(reader, group, search, (i == 1) != is_negated, is_negated, depth + 1, branches,
                          count_r);
    }
    *count_r = 1;
    branches[0] = (struct search_branch){.count = 1};
    branches[0].conditions[0].is_negated = is_negated;
    return read_leaf(reader, element, search, &branches[0].conditions[0]);
}

/* --- the document -------------------------------------------------------------------------------- */

/* A condition on the document, which holds beside those of each branch. */
static enum fault read_header(const struct reader *reader, const struct json *param, const char *member,
                              struct search_condition condition, struct search *search)
{
    const struct json *element = json_member(param, member);
    if (!element)
        return FAULT_NONE;
    if (element->kind != JSON_OBJECT || element->is_shallow)
        return reader_wrong_value(reader, element, member, "An object with t, v1 and v2 is expected.");
    enum fault fault =
        FAULT_FIRST(reader_members(reader, element, "t v1 v2"), read_condition(reader, element, &condition));
    for (size_t i = 0; i < search->branch_count && !fault; i++)
        search->branches[i].conditions[search->branches[i].count++] = condition;
    return fault;
}

enum fault find_where_read(const struct reader *reader, const struct json *param, struct search *search)
{
    static const struct schema_field stamp = {.type = FIELD_LONG};
    const struct json *where = json_member(param, "where");
    if (where && (where->kind != JSON_ARRAY || where->is_shallow))
        return reader_wrong_value(reader, where, "where", "An array is expected.");
    enum fault fault =
        read_group(reader, where, search, true, false, 0, search->branches, &search->branch_count);
    if (!fault)
        fault =
            FAULT_FIRST(read_header(reader, param, "id", (struct search_condition){.field = NULL}, search),
                        read_header(reader, param, "v",
                                    (struct search_condition){.field = &stamp, .header = "version"}, search));
    return fault ? fault
                 : read_header(reader, param, "ct",
                               (struct search_condition){.field = &stamp, .header = "ctime"}, search);
}
