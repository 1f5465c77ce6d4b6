/* find_search: conditions, order, wishes, in this order; then the cursor, which depends on them. */
#include "operation/documents/find_search.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/schema/schema_index.h"
#include "model/schema/search_plan.h"
#include "model/document/value.h"
#include "operation/access/access.h"
#include "operation/classes.h"
#include "operation/signed_text.h"

enum {
    LIMIT_STANDARD = 100,
    LIMIT_MOST = 1000,
    COUNT_MOST = 100000,
    NUMBER_SIZE = 24, /* bytes of a number in a cursor: -2.2250738585072014e-308 */
    VALUE_FIELD_SIZE =
        VALUE_FIELD_MOST + 4 + 64 /* of a string: a long one has a character and a digest behind it */
};

static const char *const tests[SEARCH_TESTS] = {
    [SEARCH_EQ] = "eq",     [SEARCH_SW] = "sw",        [SEARCH_LT] = "lt",     [SEARCH_LE] = "le",
    [SEARCH_GE] = "ge",     [SEARCH_GT] = "gt",        [SEARCH_GELE] = "gele", [SEARCH_GELT] = "gelt",
    [SEARCH_GTLE] = "gtle", [SEARCH_GTLT] = "gtlt",    [SEARCH_NE] = "ne",     [SEARCH_IN] = "in",
    [SEARCH_NIN] = "nin",   [SEARCH_EXISTS] = "exists"};

static enum fault refuse_name(const struct reader *reader, struct bytes class, struct bytes item,
                              struct bytes field)
{
    struct arena *arena = reader->call->arena;
    return reply_fault(reader->call, reader->reply, FAULT_NFIELD, NULL,
                       arena_copy(arena, class.data, class.size), arena_copy(arena, item.data, item.size),
                       field.data ? arena_copy(arena, field.data, field.size) : NULL, NULL);
}

/* --- conditions ---------------------------------------------------------------------------------- */

static enum fault read_test(const struct reader *reader, const struct json *element,
                            struct search_condition *condition)
{
    const struct json *test = json_member(element, "t");
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    for (int i = 0; test && test->kind == JSON_STRING && i < SEARCH_TESTS; i++) {
        if (!bytes_equal(test->value, bytes_of(tests[i])))
            continue;
        condition->test = (enum search_test)i;
        if (!search_is_whole(condition->test) && i != SEARCH_EXISTS && type == FIELD_HASH)
            return reader_wrong(reader, element, "t",
                                "One of eq, ne, in, nin, exists is expected: a hash has no order.");
        if (i == SEARCH_SW && type != FIELD_STRING)
            return reader_wrong(reader, element, "t", "Only strings can start with something.");
        return FAULT_NONE;
    }
    return reader_wrong(
        reader, element, "t",
        "One of eq, ne, in, nin, exists, sw, lt, le, ge, gt, gele, gelt, gtle, gtlt is expected.");
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
static enum fault find_search_read_text(const struct reader *reader, const struct search_place *at,
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

static enum fault find_search_read_value(const struct reader *reader, const struct search_place *at,
                                         const struct search_condition *condition, struct search_value *value)
{
    const struct json *json = at->value;
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    switch (type) {
    case FIELD_STRING:
        return find_search_read_text(reader, at, condition, &value->text);
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
static enum fault find_search_read_list(const struct reader *reader, const struct json *element,
                                        struct search_condition *condition)
{
    struct search_place at = {json_member(element, "v1"), element, "v1", condition->test != SEARCH_NE};
    const struct json *list = at.value;
    struct search_value *values = ARENA_ARRAY(reader->call->arena, struct search_value, SEARCH_LIST_MOST);
    enum fault fault = FAULT_NONE;
    condition->list = values;
    if (condition->test == SEARCH_NE) {
        condition->list_count = 1;
        return find_search_read_value(reader, &at, condition, values);
    }
    if (!list || list->kind != JSON_ARRAY || list->is_shallow || !list->count ||
        list->count > SEARCH_LIST_MOST)
        return reader_wrong(reader, element, "v1", "A list of 1 to 100 values is expected.");
    for (at.value = list->first; at.value && !fault; at.value = at.value->next)
        fault = find_search_read_value(reader, &at, condition, &values[condition->list_count++]);
    return fault;
}

/* The values of the test. */
static enum fault read_values(const struct reader *reader, const struct json *element,
                              struct search_condition *condition)
{
    const struct json *v1 = json_member(element, "v1");
    if (search_has_list(condition->test))
        return find_search_read_list(reader, element, condition);
    if (condition->test != SEARCH_EXISTS)
        return find_search_read_value(reader, &(struct search_place){v1, element, "v1", false}, condition,
                                      &condition->values[0]);
    if (!condition->field || !v1 || (v1->kind != JSON_TRUE && v1->kind != JSON_FALSE))
        return reader_wrong(reader, element, "v1", "True or false is expected, of a field.");
    condition->values[0].integer = v1->kind == JSON_TRUE;
    return FAULT_NONE;
}

static bool is_reversed(enum field_type type, const struct search_value *values)
{
    switch (type) {
    case FIELD_STRING:
        return bytes_compare(values[0].text, values[1].text) > 0;
    case FIELD_DOUBLE:
        return values[0].number > values[1].number;
    case FIELD_LONG:
    case FIELD_INT:
    default:
        return values[0].integer > values[1].integer;
    }
}

static enum fault read_condition(const struct reader *reader, const struct json *element,
                                 struct search_condition *condition)
{
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    enum fault fault = read_test(reader, element, condition);
    if (!fault)
        fault = read_values(reader, element, condition);
    if (fault)
        return fault;
    if (!search_has_two(condition->test))
        return json_member(element, "v2")
                   ? reader_wrong(reader, element, "v2", "This test has one value, v1.")
                   : FAULT_NONE;
    fault = find_search_read_value(reader,
                                   &(struct search_place){json_member(element, "v2"), element, "v2", false},
                                   condition, &condition->values[1]);
    if (!fault && is_reversed(type, condition->values))
        fault = reader_wrong(reader, element, "v2", "A value that is not below v1 is expected.");
    return fault;
}

/* The field of this name, which is ready. */
static enum fault find_field(const struct reader *reader, const struct search *search, struct bytes name,
                             const struct schema_field **field_r)
{
    *field_r = schema_find_field(search->item, name);
    if (!*field_r)
        return refuse_name(reader, search->class->name, search->item->name, name);
    if (!(*field_r)->is_ready)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL,
                           arena_copy(reader->call->arena, name.data, name.size), NULL);
    return FAULT_NONE;
}

static enum fault find_search_read_field(const struct reader *reader, const struct json *element,
                                         struct search *search, struct search_condition *condition)
{
    const struct json *name = json_member(element, "f");
    enum fault fault = reader_members(reader, element, "f t v1 v2");
    if (fault)
        return fault;
    if (element->kind != JSON_OBJECT || !name || name->kind != JSON_STRING)
        return reader_wrong_value(reader, element, "where", "Objects with f, t, v1 and v2 are expected.");
    return find_field(reader, search, name->value, &condition->field);
}

static enum fault read_conditions(const struct reader *reader, const struct json *param,
                                  struct search *search)
{
    const struct json *where = json_member(param, "where"), *id = json_member(param, "id");
    enum fault fault = FAULT_NONE;
    if (where && (where->kind != JSON_ARRAY || where->is_shallow))
        return reader_wrong_value(reader, where, "where", "An array is expected.");
    if (where && where->count > SEARCH_CONDITIONS_MOST - 1)
        return reader_wrong_value(reader, where, "where", "At most 7 conditions are expected.");
    for (const struct json *one = where ? where->first : NULL; one && !fault; one = one->next) {
        struct search_condition *condition = &search->conditions[search->count++];
        fault = find_search_read_field(reader, one, search, condition);
        if (!fault)
            fault = read_condition(reader, one, condition);
    }
    if (fault || !id)
        return fault;
    if (id->kind != JSON_OBJECT || id->is_shallow)
        return reader_wrong_value(reader, id, "id", "An object with t, v1 and v2 is expected.");
    fault = reader_members(reader, id, "t v1 v2");
    return fault ? fault : read_condition(reader, id, &search->conditions[search->count++]);
}

/* --- the order ----------------------------------------------------------------------------------- */

static bool is_fixed(const struct search *search, const struct schema_field *field)
{
    for (size_t i = 0; i < search->count; i++)
        if (search->conditions[i].field == field && search->conditions[i].test == SEARCH_EQ)
            return true;
    return false;
}

/* A field whose value a condition fixes orders nothing. */
static enum fault read_order_field(const struct reader *reader, const struct json *element,
                                   struct search *search)
{
    static const char expected[] = "The name of a field is expected, with a - before it if it descends.";
    const struct schema_field *field;
    if (element->kind != JSON_STRING || !element->value.size)
        return reader_wrong_value(reader, element, "order", expected);
    bool is_descending = *element->value.data == '-';
    struct bytes name = {element->value.data + is_descending, element->value.size - is_descending};
    enum fault fault = find_field(reader, search, name, &field);
    if (fault)
        return fault;
    if (field->is_list || field->type == FIELD_HASH)
        return reader_wrong_value(reader, element, "order", "A list and a hash have no order.");
    for (size_t i = 0; i < search->order_count; i++)
        if (search->orders[i].field == field)
            return reader_wrong_value(reader, element, "order", "Each field is named once.");
    if (!is_fixed(search, field))
        search->orders[search->order_count++] = (struct search_order){field, is_descending, NO_BYTES};
    return FAULT_NONE;
}

static enum fault read_order(const struct reader *reader, const struct json *param, struct search *search)
{
    const struct json *order = json_member(param, "order");
    enum fault fault = FAULT_NONE;
    if (!order)
        return FAULT_NONE;
    if (!search->wants_items && !search->item->is_singleton)
        return reader_wrong(reader, param, "order",
                            "Ids have an order if the item is a singleton; of others want items.");
    if (order->kind == JSON_STRING)
        return read_order_field(reader, order, search);
    if (order->kind != JSON_ARRAY || order->is_shallow || !order->count || order->count > SEARCH_ORDERS_MOST)
        return reader_wrong(reader, param, "order", "A field, or a list of 1 to 4, is expected.");
    for (const struct json *one = order->first; one && !fault; one = one->next)
        fault = read_order_field(reader, one, search);
    return fault;
}

/* Of a stranger a page costs what it holds. */
static enum fault judge_plan(const struct reader *reader, const struct json *param,
                             const struct search *search)
{
    struct arena *arena = reader->call->arena;
    struct schema_index index;
    const struct search_condition *condition;
    enum search_plan plan = search_plan_judge(search, &index, &condition);
    if (plan == SEARCH_PLAN_SERVED || access_is_administrator(reader->call))
        return FAULT_NONE;
    if (plan == SEARCH_PLAN_NONE)
        return reader_wrong(reader, param, "order",
                            "No index serves this order with these conditions: beside up to three of eq, one "
                            "is expected to be on the first field of the order.");
    struct builder text = {0};
    schema_index_write(&text, &index);
    const char *words = arena_copy(arena, text.data, text.size);
    builder_free(&text);
    if (plan == SEARCH_PLAN_BUILDING)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL, words, NULL);
    enum fault fault =
        reply_fault(reader->call, reader->reply, FAULT_AINDEX,
                    arena_printf(arena, "It needs the index %s of %.*s.%.*s: declare it in the schema.",
                                 words, (int)search->class->name.size, search->class->name.data,
                                 (int)search->item->name.size, search->item->name.data),
                    arena_copy(arena, search->class->name.data, search->class->name.size),
                    arena_copy(arena, search->item->name.data, search->item->name.size), words, NULL);
    reader_place(reader, param, "order");
    return fault;
}

/* --- cursors ------------------------------------------------------------------------------------- */

static void find_search_add_value(struct builder *text, const struct search_value *value)
{
    builder_printf(text, ",%lld,%a,", (long long)value->integer, value->number);
    signed_text_add_part(text, value->text);
}

struct bytes find_search_question(const struct call *call, const struct search *search)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("find"));
    signed_text_add_part(&text, search->class->name);
    signed_text_add_part(&text, search->item->name);
    for (size_t i = 0; i < search->count; i++) {
        const struct search_condition *condition = &search->conditions[i];
        signed_text_add_part(&text, condition->field ? condition->field->name : NO_BYTES);
        builder_printf(&text, "%s", tests[condition->test]);
        for (size_t v = 0; v < COUNT_OF(condition->values); v++)
            find_search_add_value(&text, &condition->values[v]);
        builder_printf(&text, "%zu", condition->list_count);
        for (size_t v = 0; v < condition->list_count; v++)
            find_search_add_value(&text, &condition->list[v]);
    }
    builder_printf(&text, "%d", search->wants_items);
    for (size_t i = 0; i < search->order_count; i++) {
        builder_printf(&text, ",%d%d", search->orders[i].is_descending, search->orders[i].field->type);
        signed_text_add_part(&text, search->orders[i].field->name);
    }
    struct bytes question = {arena_copy(call->arena, text.data, text.size), text.size};
    builder_free(&text);
    return question;
}

/* The id, the key, the values of the order; without the latter at the start of the search. */
struct cursor_row find_search_row(const struct search *search)
{
    struct cursor_row row = {.texts = {search->after_id, search->after_key},
                             .count = 2 + search->order_count,
                             .bytes_most = 2 * CURSOR_NAME_MOST};
    for (size_t i = 0; i < search->order_count; i++) {
        row.texts[2 + i] = search->orders[i].after;
        row.bytes_most += search->orders[i].field->type == FIELD_STRING ? VALUE_FIELD_SIZE : NUMBER_SIZE;
    }
    return row;
}

static enum fault read_cursor(struct attempt *attempt, const struct reader *reader, const struct json *param,
                              struct search *search)
{
    struct bytes cursor;
    struct cursor_row row = find_search_row(search);
    bool is_ours;
    enum fault fault = reader_text(reader, param, "cursor", &cursor);
    if (fault || !cursor.data)
        return fault;
    fault = cursor_read(attempt, find_search_question(attempt->call, search), cursor, &row, &is_ours);
    if (!fault && !is_ours)
        return reader_wrong(reader, param, "cursor",
                            "The cursor of an earlier page of the same search is expected.");
    if (fault || !row.texts[0].size) /* nothing was read yet */
        return fault;
    search->after_id = row.texts[0];
    search->after_key = row.texts[1];
    for (size_t i = 0; i < search->order_count; i++)
        search->orders[i].after = row.texts[2 + i];
    return FAULT_NONE;
}

/* --- the whole ----------------------------------------------------------------------------------- */

static enum fault read_wanted(const struct reader *reader, const struct json *param, struct search *search)
{
    struct bytes want;
    int64_t limit;
    enum fault fault = reader_text(reader, param, "want", &want);
    if (fault)
        return fault;
    search->wants_count = want.data && bytes_equal(want, BYTES("count"));
    fault = search->wants_count
                ? reader_integer(reader, param, "limit", 1, COUNT_MOST, COUNT_MOST, &limit)
                : reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    if (fault)
        return fault;
    search->limit = (int32_t)limit;
    search->minute = clock_present_minute();
    search->bytes_most = reader->settings->limit_document_bytes;
    search->wants_items = want.data && bytes_equal(want, BYTES("items"));
    if (want.data && !search->wants_items && !search->wants_count && !bytes_equal(want, BYTES("ids")))
        return reader_wrong(reader, param, "want", "\"ids\", \"items\" or \"count\" is expected.");
    return FAULT_NONE;
}

enum fault find_search_read(struct attempt *attempt, const struct reader *reader, struct search *search)
{
    const struct json *param = attempt->call->param;
    static const char *const of_pages[] = {"order", "cursor"};
    struct bytes class, item;
    enum fault fault = reader_members(reader, param, "c i where id order want limit cursor");
    if (!fault)
        fault = reader_class(reader, param, "c", &class);
    if (!fault)
        fault = reader_class(reader, param, "i", &item);
    if (!fault)
        fault = read_wanted(reader, param, search);
    if (!fault)
        fault = classes_schema(attempt, &search->schema);
    if (fault)
        return fault;
    search->class = schema_find_class(search->schema, class);
    search->item = schema_find_item(search->class, item);
    if (!search->item || !search->item->field_count)
        return refuse_name(reader, class, item, NO_BYTES);
    for (size_t i = 0; i < COUNT_OF(of_pages) && search->wants_count; i++)
        if (json_member(param, of_pages[i]))
            return reader_wrong(reader, param, of_pages[i], "A count has no pages and no order.");
    fault = read_conditions(reader, param, search);
    if (!fault)
        fault = read_order(reader, param, search);
    if (!fault)
        fault = judge_plan(reader, param, search);
    return fault ? fault : read_cursor(attempt, reader, param, search);
}
