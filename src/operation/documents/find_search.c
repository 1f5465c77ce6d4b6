/* find_search: conditions, order, wishes, in this order; then the cursor, which depends on them. */
#include "operation/documents/find_search.h"

#include <string.h>

#include "base/clock.h"
#include "model/schema/schema.h"
#include "model/schema/search_plan.h"
#include "model/schema/search_test.h"
#include "model/document/value.h"
#include "operation/access/access.h"
#include "operation/classes.h"
#include "operation/documents/find_marks.h"
#include "operation/documents/find_where.h"
#include "operation/judge/sight.h"
#include "operation/signed_text.h"

enum {
    LIMIT_STANDARD = 100,
    LIMIT_MOST = 1000,
    COUNT_MOST = 100000,
    NUMBER_SIZE = 24, /* bytes of a number in a cursor: -2.2250738585072014e-308 */
    VALUE_FIELD_SIZE =
        VALUE_FIELD_MOST + 4 + 64 /* of a string: a long one has a character and a digest behind it */
};

bool find_search_is_free(const struct call *call)
{
    return call->task ? !call->task->is_of_client : access_is_administrator(call);
}

/* --- the order ----------------------------------------------------------------------------------- */

static bool is_fixed(const struct search *search, const struct schema_field *field)
{
    const struct search_branch *branch = &search->branches[0];
    for (size_t i = 0; i < branch->count && search->branch_count == 1; i++)
        if (branch->conditions[i].field == field && !branch->conditions[i].item &&
            branch->conditions[i].test == SEARCH_EQ && !branch->conditions[i].is_negated)
            return true;
    return false;
}

/* The rank of the words that the only match on the field asks for, or of the likeness that the only `like`
 * does. */
static enum fault read_rank(const struct reader *reader, const struct json *element, struct search *search,
                            const struct schema_field *field, bool is_descending)
{
    const struct search_condition *match = NULL;
    const struct search_branch *branch = &search->branches[0];
    for (size_t i = 0; i < branch->count && search->branch_count == 1; i++)
        if (branch->conditions[i].field == field && search_is_match(&branch->conditions[i]))
            match = &branch->conditions[i];
    if (!field->text && !match)
        return reader_wrong_value(
            reader, element, "order",
            "A field after ~ orders by likeness: alone, with one like on it that is in no alternative.");
    if (!match || search->order_count || element != json_member(reader->call->param, "order"))
        return reader_wrong_value(reader, element, "order",
                                  "A text orders by its rank, a field after ~ by likeness: alone, with one "
                                  "match or like on it that is "
                                  "in no alternative.");
    search->orders[search->order_count++] = (struct search_order){field, match, is_descending, NO_BYTES};
    return FAULT_NONE;
}

/* A field whose value a condition fixes orders nothing. */
static enum fault read_order_field(const struct reader *reader, const struct json *element,
                                   struct search *search)
{
    static const char expected[] = "The name of a field is expected, with a - before it if it descends.";
    const struct schema_field *field;
    if (element->kind != JSON_STRING || !element->value.size)
        return reader_wrong_value(reader, element, "order", expected);
    bool is_descending = *element->value.data == '-', is_likeness = *element->value.data == '~';
    size_t sign = is_descending || is_likeness;
    struct bytes name = {element->value.data + sign, element->value.size - sign};
    enum fault fault = find_where_field(reader, search, name, &field);
    if (fault)
        return fault;
    if (field->is_list || field->type == FIELD_HASH)
        return reader_wrong_value(reader, element, "order", "A list and a hash have no order.");
    if (field->text && is_likeness)
        return reader_wrong_value(reader, element, "order", "A text has no likeness.");
    if (field->text || is_likeness)
        return read_rank(reader, element, search, field, is_descending || is_likeness);
    for (size_t i = 0; i < search->order_count; i++)
        if (search->orders[i].field == field)
            return reader_wrong_value(reader, element, "order", "Each field is named once.");
    if (!is_fixed(search, field))
        search->orders[search->order_count++] = (struct search_order){field, NULL, is_descending, NO_BYTES};
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

/* The index that the search needs, of an item of the class, is missing or not complete. */
static enum fault refuse_plan(const struct reader *reader, const struct json *param, const char *member,
                              const struct search *search, enum search_plan plan,
                              const struct search_need *need)
{
    struct arena *arena = reader->call->arena;
    struct builder text = {0};
    schema_index_write(&text, &need->index);
    const char *words = builder_take(&text, arena).data;
    if (plan == SEARCH_PLAN_BUILDING)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL, words, NULL);
    enum fault fault =
        reply_fault(reader->call, reader->reply, FAULT_AINDEX,
                    arena_printf(arena, "It needs the index %s of %.*s.%.*s: declare it in the schema.",
                                 words, (int)search->class->name.size, search->class->name.data,
                                 (int)need->item->name.size, need->item->name.data),
                    arena_copy(arena, search->class->name.data, search->class->name.size),
                    arena_copy(arena, need->item->name.data, need->item->name.size), words, NULL);
    reader_place(reader, param, member);
    return fault;
}

/* Of a stranger a page costs what it holds.  Likeness needs its index of everybody: without one the database
 * may not know what it is. */
static enum fault judge_plan(const struct reader *reader, const struct json *param,
                             const struct search *search)
{
    struct search_need need;
    enum search_plan plan = search_plan_judge_likeness(search, &need);
    if (plan != SEARCH_PLAN_SERVED)
        return refuse_plan(reader, param, "where", search, plan, &need);
    plan = search_plan_judge(search, &need);
    if (plan == SEARCH_PLAN_SERVED || find_search_is_free(reader->call))
        return FAULT_NONE;
    if (plan == SEARCH_PLAN_NONE)
        return reader_wrong(reader, param, "order",
                            "No index serves this order with these conditions: beside up to three of eq, one "
                            "is expected to be on the first field of the order.");
    return refuse_plan(reader, param, "order", search, plan, &need);
}

/* --- cursors ------------------------------------------------------------------------------------- */

static void find_search_add_value(struct builder *text, const struct search_value *value)
{
    builder_printf(text, ",%lld,%a,", (long long)value->integer, value->number);
    signed_text_add_part(text, value->text);
}

static void add_condition(struct builder *text, const struct search_condition *condition)
{
    bool has_name = condition->field && !condition->header;
    signed_text_add_part(text, condition->item ? condition->item->name : NO_BYTES);
    signed_text_add_part(text, has_name ? condition->field->name : NO_BYTES);
    builder_printf(text, "%s%s%d", condition->header ? condition->header : "",
                   find_where_tests[condition->test], condition->is_negated);
    for (size_t v = 0; v < COUNT_OF(condition->values); v++)
        find_search_add_value(text, &condition->values[v]);
    builder_printf(text, "%zu", condition->list_count);
    for (size_t v = 0; v < condition->list_count; v++)
        find_search_add_value(text, &condition->list[v]);
}

struct bytes find_search_question(const struct call *call, const struct search *search)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("find"));
    signed_text_add_part(&text, search->class->name);
    signed_text_add_part(&text, search->item->name);
    for (size_t b = 0; b < search->branch_count; b++) {
        builder_printf(&text, "%zu", search->branches[b].count);
        for (size_t i = 0; i < search->branches[b].count; i++)
            add_condition(&text, &search->branches[b].conditions[i]);
    }
    if (search->seen_version.header)
        add_condition(&text, &search->seen_version);
    builder_printf(&text, "%d", search->wants_items);
    for (size_t i = 0; i < search->order_count; i++) {
        builder_printf(&text, ",%d%d%s", search->orders[i].is_descending, search->orders[i].field->type,
                       search->orders[i].match ? "~" : "");
        signed_text_add_part(&text, search->orders[i].field->name);
    }
    return builder_take(&text, call->arena);
}

/* The id, the key, the values of the order; without the latter at the start of the search. */
struct cursor_row find_search_row(const struct search *search)
{
    struct cursor_row row = {.texts = {search->after_id, search->after_key},
                             .count = 2 + search->order_count,
                             .bytes_most = 2 * CURSOR_NAME_MOST};
    for (size_t i = 0; i < search->order_count; i++) {
        row.texts[2 + i] = search->orders[i].after;
        row.bytes_most += field_type_is_text(search->orders[i].field->type) ? VALUE_FIELD_SIZE : NUMBER_SIZE;
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

static bool is_path(const struct json *list)
{
    if (list->kind != JSON_ARRAY || list->is_shallow || !list->count || list->count > SCHEMA_PATH_MOST)
        return false;
    for (const struct json *one = list->first; one; one = one->next)
        if (one->kind != JSON_STRING)
            return false;
    return true;
}

static enum fault read_members(const struct reader *reader, const struct json *want, struct search *search)
{
    if (want->is_shallow || !want->count || want->count > FIND_MEMBERS_MOST)
        return reader_wrong_value(reader, want, "want", "A list of 1 to 32 names of members is expected.");
    for (const struct json *one = want->first; one; one = one->next)
        if (one->kind != JSON_STRING && !is_path(one))
            return reader_wrong_value(reader, one, "want",
                                      "The name of a member of the content is expected, or a list of 1 to 8 "
                                      "names that lead to one.");
    search->wants_items = true;
    search->members = want;
    return FAULT_NONE;
}

static enum fault read_wanted(const struct reader *reader, const struct json *param, struct search *search)
{
    const struct json *want = json_member(param, "want");
    bool is_list = want && want->kind == JSON_ARRAY;
    search->wants_totals = want && want->kind == JSON_OBJECT;
    struct bytes word = NO_BYTES;
    int64_t limit;
    enum fault fault = is_list                ? read_members(reader, want, search)
                       : search->wants_totals ? FAULT_NONE
                                              : reader_text(reader, param, "want", &word);
    if (fault)
        return fault;
    search->wants_count = word.data && bytes_equal(word, BYTES("count"));
    search->wants_docs = word.data && bytes_equal(word, BYTES("docs"));
    search->wants_items |= word.data && bytes_equal(word, BYTES("items"));
    if (word.data && !search->wants_items && !search->wants_docs && !search->wants_count &&
        !bytes_equal(word, BYTES("ids")))
        return reader_wrong(
            reader, param, "want",
            "\"ids\", \"items\", \"docs\", \"count\", a list of members, or an object of totals is "
            "expected.");
    fault = search->wants_count || search->wants_totals
                ? reader_integer(reader, param, "limit", 1, COUNT_MOST, COUNT_MOST, &limit)
            : json_member(param, "marks")
                ? reader_integer(reader, param, "limit", 1, FIND_MARKS_LIMIT_MOST, FIND_MARKS_LIMIT_STANDARD,
                                 &limit)
                : reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    search->limit = (int32_t)limit;
    search->minute = clock_present_minute();
    search->bytes_most = reader->settings->limit_document_bytes;
    return fault;
}

/* Where rules decide, changes of what is hidden may not show: the database only leaves out documents that are
 * too old, whatever the caller sees of them (view.h). */
static void leave_version(struct search *search)
{
    for (size_t b = 0; b < search->branch_count; b++) {
        struct search_branch *branch = &search->branches[b];
        size_t kept = 0;
        for (size_t i = 0; i < branch->count; i++) {
            struct search_condition *one = &branch->conditions[i];
            bool is_version = one->header && strcmp(one->header, "version") == 0;
            if (is_version)
                search->seen_version = *one;
            if (is_version && search_test_has_least(one))
                one->test = SEARCH_GE;
            if (!is_version || search_test_has_least(one))
                branch->conditions[kept++] = *one;
        }
        branch->count = kept;
    }
}

/* The class, the item and the schema that has them. */
static enum fault find_search_read_subject(struct attempt *attempt, const struct reader *reader,
                                           struct search *search)
{
    const struct json *param = attempt->call->param;
    struct bytes class, item;
    enum fault fault =
        FAULT_FIRST(reader_class(reader, param, "c", &class), reader_class(reader, param, "i", &item),
                    classes_schema(attempt, &search->schema));
    if (fault)
        return fault;
    search->class = schema_find_class(search->schema, class);
    search->item = schema_find_item(search->class, item);
    if (search->item && !search->item->field_count)
        search->item = NULL;
    search->is_undisclosed =
        !sight_discloses(attempt->call, class, search->item ? &item : NULL, search->item != NULL);
    if (search->is_undisclosed)
        return FAULT_NONE;
    if (!search->item)
        return find_where_refuse_name(reader, class, item, NO_BYTES);
    if (!find_search_is_free(reader->call))
        search->looked_most = reader->settings->limit_find_items;
    return FAULT_NONE;
}

enum fault find_search_read_items(struct attempt *attempt, const struct reader *reader, int32_t limit,
                                  struct search *search)
{
    const struct json *param = attempt->call->param;
    search->wants_items = true;
    search->limit = limit;
    search->minute = clock_present_minute();
    search->bytes_most = reader->settings->limit_document_bytes;
    enum fault fault = find_search_read_subject(attempt, reader, search);
    if (fault || search->is_undisclosed)
        return fault;
    fault = find_where_read(reader, param, search);
    if (fault || search->is_undisclosed)
        return fault;
    fault = judge_plan(reader, param, search);
    if (!fault && call_is_judged(attempt->call))
        leave_version(search);
    return fault;
}

enum fault find_search_read(struct attempt *attempt, const struct reader *reader, struct search *search)
{
    const struct json *param = attempt->call->param;
    static const char *const of_pages[] = {"order", "cursor"};
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "c i where id v ct order want marks limit cursor"),
                    read_wanted(reader, param, search), find_search_read_subject(attempt, reader, search));
    if (fault || search->is_undisclosed)
        return fault;
    for (size_t i = 0; i < COUNT_OF(of_pages) && (search->wants_count || search->wants_totals); i++)
        if (json_member(param, of_pages[i]))
            return reader_wrong(reader, param, of_pages[i], "A count and totals have no pages and no order.");
    fault = find_where_read(reader, param, search);
    if (fault || search->is_undisclosed)
        return fault;
    fault = FAULT_FIRST(find_marks_read(reader, search), read_order(reader, param, search),
                        judge_plan(reader, param, search));
    if (!fault && call_is_judged(attempt->call))
        leave_version(search);
    return fault ? fault : read_cursor(attempt, reader, param, search);
}
