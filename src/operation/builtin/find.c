/* find: documents by what their items contain (schema.md).
 * param {"c","i","where":[{"f":field,"t":test,"v1","v2"}…],"id":{"t","v1","v2"},"want":"ids"|"items","limit",
 * "cursor"} → out {"ids":[id…],"cursor"} or {"items":[{"id","k","v","j"}…],"cursor"}.  One item satisfies all
 * conditions.  In the order of ids, then keys; each page is consistent at its own instant.  A cursor is
 * valid only for the search that returned it. */
#include "operation/builtin/builtin.h"

#include <math.h>
#include <stdlib.h>

#include "base/clock.h"
#include "model/value.h"
#include "operation/classes.h"
#include "operation/cursor.h"
#include "operation/judged_page.h"
#include "operation/reader.h"
#include "operation/signed_text.h"
#include "store/store_search.h"
#include "operation/reply.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000 };

static const char *const tests[SEARCH_TESTS] = {
    [SEARCH_EQ] = "eq",     [SEARCH_SW] = "sw",    [SEARCH_LT] = "lt",     [SEARCH_LE] = "le",
    [SEARCH_GE] = "ge",     [SEARCH_GT] = "gt",    [SEARCH_GELE] = "gele", [SEARCH_GELT] = "gelt",
    [SEARCH_GTLE] = "gtle", [SEARCH_GTLT] = "gtlt"};

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
        if (i != SEARCH_EQ && type == FIELD_HASH)
            return reader_wrong(reader, element, "t", "Only eq is expected: a hash has no order.");
        if (i == SEARCH_SW && type != FIELD_STRING)
            return reader_wrong(reader, element, "t", "Only strings can start with something.");
        return FAULT_NONE;
    }
    return reader_wrong(reader, element, "t",
                        "One of eq, sw, lt, le, ge, gt, gele, gelt, gtle, gtlt is expected.");
}

static enum fault read_integer(const struct reader *reader, const struct json *element, const char *member,
                               enum field_type type, int64_t *integer)
{
    const struct json *value = json_member(element, member);
    bool is_int = type == FIELD_INT;
    if (json_is_i64(value, integer) && (!is_int || (*integer >= INT32_MIN && *integer <= INT32_MAX)))
        return FAULT_NONE;
    return reader_wrong(reader, element, member,
                        is_int ? "An integer of 32 bits is expected." : "An integer of 64 bits is expected.");
}

/* Texts of any length can be compared for equality; a longer text is stored as a substitute, which has no
 * order. */
static enum fault read_text(const struct reader *reader, const struct json *element, const char *member,
                            const struct search_condition *condition, struct bytes *text_r)
{
    const struct json *json = json_member(element, member);
    bool is_equality = condition->field && condition->test == SEARCH_EQ;
    if (!json || json->kind != JSON_STRING)
        return reader_wrong(reader, element, member, "A string is expected.");
    if (!is_equality && json->value.size > VALUE_FIELD_MOST)
        return reader_wrong(
            reader, element, member,
            "A string of up to 1,024 bytes is expected: only eq, of a field, takes a longer one.");
    *text_r = is_equality ? value_of_field(reader->call->arena, json->value) : json->value;
    return FAULT_NONE;
}

static enum fault read_value(const struct reader *reader, const struct json *element, const char *member,
                             const struct search_condition *condition, struct search_value *value)
{
    const struct json *json = json_member(element, member);
    enum field_type type = condition->field ? condition->field->type : FIELD_STRING;
    switch (type) {
    case FIELD_STRING:
        return read_text(reader, element, member, condition, &value->text);
    case FIELD_HASH:
        if (json && value_of_json(reader->call->arena, json, &value->text))
            return FAULT_NONE;
        return reader_wrong(reader, element, member, "A string, a number or a truth value is expected.");
    case FIELD_LONG:
    case FIELD_INT:
        if (!json)
            return reader_wrong(reader, element, member, "A number is expected.");
        return read_integer(reader, element, member, type, &value->integer);
    case FIELD_DOUBLE:
    default:
        if (json && json->kind == JSON_NUMBER) {
            value->number = strtod(arena_copy(reader->call->arena, json->value.data, json->value.size), NULL);
            if (isfinite(value->number))
                return FAULT_NONE;
        }
        return reader_wrong(reader, element, member, "A number within the range of a double is expected.");
    }
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
        fault = read_value(reader, element, "v1", condition, &condition->values[0]);
    if (fault)
        return fault;
    if (!search_has_two(condition->test))
        return json_member(element, "v2")
                   ? reader_wrong(reader, element, "v2", "This test has one value, v1.")
                   : FAULT_NONE;
    fault = read_value(reader, element, "v2", condition, &condition->values[1]);
    if (!fault && is_reversed(type, condition->values))
        fault = reader_wrong(reader, element, "v2", "A value that is not below v1 is expected.");
    return fault;
}

static enum fault read_field(const struct reader *reader, const struct json *element, struct search *search,
                             struct search_condition *condition)
{
    const struct json *name = json_member(element, "f");
    enum fault fault = reader_members(reader, element, "f t v1 v2");
    if (fault)
        return fault;
    if (element->kind != JSON_OBJECT || !name || name->kind != JSON_STRING)
        return reader_wrong_value(reader, element, "where", "Objects with f, t, v1 and v2 are expected.");
    condition->field = schema_find_field(search->item, name->value);
    if (!condition->field)
        return refuse_name(reader, search->class->name, search->item->name, name->value);
    if (!condition->field->is_ready)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL,
                           arena_copy(reader->call->arena, name->value.data, name->value.size), NULL);
    return FAULT_NONE;
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
        fault = read_field(reader, one, search, condition);
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

/* --- cursors ------------------------------------------------------------------------------------- */

/* The search that a cursor belongs to. */
static struct bytes make_question(const struct attempt *attempt, const struct search *search)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("find"));
    signed_text_add_part(&text, attempt->call->ns);
    signed_text_add_part(&text, search->class->name);
    signed_text_add_part(&text, search->item->name);
    for (size_t i = 0; i < search->count; i++) {
        const struct search_condition *condition = &search->conditions[i];
        signed_text_add_part(&text, condition->field ? condition->field->name : NO_BYTES);
        builder_printf(&text, "%s", tests[condition->test]);
        for (size_t v = 0; v < COUNT_OF(condition->values); v++) {
            builder_printf(&text, ",%lld,%a,", (long long)condition->values[v].integer,
                           condition->values[v].number);
            signed_text_add_part(&text, condition->values[v].text);
        }
    }
    builder_printf(&text, "%d", search->wants_items);
    struct bytes question = {arena_copy(attempt->call->arena, text.data, text.size), text.size};
    builder_free(&text);
    return question;
}

/* Sealed: size of the id.id and key */
static void write_cursor(const struct attempt *attempt, const struct search *search,
                         const struct search_found *last, struct builder *body)
{
    struct bytes key = search->wants_items ? last->item.key : BYTES("");
    struct builder text = {0};
    builder_printf(&text, "%zu.", last->id.size);
    builder_add_bytes(&text, last->id);
    builder_add_bytes(&text, key);
    builder_add_text(body, ",\"cursor\":");
    json_add_string(body, signed_text_make(attempt->call->arena, attempt->schema->secret,
                                           make_question(attempt, search), builder_bytes(&text)));
    builder_free(&text);
}

static bool split_place(struct bytes place, struct search *search)
{
    const char *dot = memchr(place.data, '.', place.size);
    int64_t size;
    if (!dot || !bytes_to_i64((struct bytes){place.data, (size_t)(dot - place.data)}, &size))
        return false;
    place.size -= (size_t)(dot + 1 - place.data);
    place.data = dot + 1;
    if (size < 1 || (uint64_t)size > place.size)
        return false;
    search->after_id = (struct bytes){place.data, (size_t)size};
    search->after_key = (struct bytes){place.data + size, place.size - (size_t)size};
    return bytes_is_utf8(search->after_id) && bytes_is_utf8(search->after_key);
}

static enum fault read_cursor(const struct attempt *attempt, const struct reader *reader,
                              const struct json *param, struct search *search)
{
    struct bytes cursor, place;
    enum fault fault = reader_text(reader, param, "cursor", &cursor);
    if (fault || !cursor.data)
        return fault;
    if (!signed_text_read(attempt->call->arena, attempt->schema->secret, make_question(attempt, search),
                          cursor, &place) ||
        !split_place(place, search))
        return reader_wrong(reader, param, "cursor",
                            "The cursor of an earlier page of the same search is expected.");
    return FAULT_NONE;
}

static enum fault read_judged_cursor(struct attempt *attempt, const struct reader *reader,
                                     const struct json *param, struct search *search)
{
    struct bytes cursor;
    bool is_ours;
    enum fault fault = reader_text(reader, param, "cursor", &cursor);
    if (!fault && cursor.data)
        fault = cursor_read(attempt, make_question(attempt, search), cursor, &search->after_id,
                            &search->after_key, &is_ours);
    if (fault || !cursor.data || is_ours)
        return fault;
    return reader_wrong(reader, param, "cursor",
                        "The cursor of an earlier page of the same search is expected.");
}

/* --- the operation ------------------------------------------------------------------------------- */

static enum fault read_wanted(const struct reader *reader, const struct json *param, struct search *search)
{
    struct bytes want;
    int64_t limit;
    enum fault fault = reader_text(reader, param, "want", &want);
    if (!fault)
        fault = reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    if (fault)
        return fault;
    search->limit = (int32_t)limit;
    search->minute = clock_present_minute();
    search->bytes_most = reader->settings->limit_document_bytes;
    search->wants_items = want.data && bytes_equal(want, BYTES("items"));
    if (want.data && !search->wants_items && !bytes_equal(want, BYTES("ids")))
        return reader_wrong(reader, param, "want", "\"ids\" or \"items\" is expected.");
    return FAULT_NONE;
}

static enum fault read_search(struct attempt *attempt, const struct reader *reader, struct search *search)
{
    const struct json *param = attempt->call->param;
    struct bytes class, item;
    enum fault fault = reader_members(reader, param, "c i where id want limit cursor");
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
    fault = read_conditions(reader, param, search);
    if (fault)
        return fault;
    return call_is_judged(attempt->call) ? read_judged_cursor(attempt, reader, param, search)
                                         : read_cursor(attempt, reader, param, search);
}

static void write_item(struct builder *body, const struct search_found *found)
{
    builder_add_text(body, "{\"id\":");
    json_add_string(body, found->id);
    if (found->item.key.size) {
        builder_add_text(body, ",\"k\":");
        json_add_string(body, found->item.key);
    }
    builder_printf(body, ",\"v\":%lld,\"j\":", (long long)found->item.version);
    builder_add_bytes(body, found->item.content);
    builder_add_text(body, "}");
}

static void write_found(const struct search *search, const struct search_found *found, bool is_first,
                        struct builder *body)
{
    if (!is_first)
        builder_add_text(body, ",");
    if (search->wants_items)
        write_item(body, found);
    else
        json_add_string(body, found->id);
}

/* --- where rules decide --- */

/* A page under way. */
struct judged_search {
    struct search search;
    struct judged_page page;
    size_t limit, count; /* wanted, and written */
    size_t bytes_most;   /* of the body */
    bool is_full;        /* there is another one */
    bool is_outdated; /* an item has changed since it was found: the search is to be made again from there */
};

/* What was found may be older than the document that is judged: an item that is gone is left out, one that
 * has changed since may still be what is searched for. */
static bool is_found(struct judged_search *judged, const struct search_found *found,
                     const struct document *document, const struct view *view)
{
    const struct search *search = &judged->search;
    if (!document_exists(document) || !view_shows_plainly(view, search->item->name))
        return false;
    if (!search->wants_items)
        return true;
    const struct item *item = document_find_item(document, search->item->name, found->item.key);
    bool is_there = item && !item_is_tombstone(item);
    judged->is_outdated = is_there && item->version != found->item.version;
    return is_there;
}

static enum fault write_judged(struct attempt *attempt, struct judged_search *judged,
                               const struct search_page *page, bool *is_cut_r)
{
    struct arena *arena = attempt->call->arena;
    struct builder *body = attempt->reply->body;
    struct search *search = &judged->search;
    struct document_name *names = ARENA_ROOM(arena, struct document_name, page->count);
    const struct document **documents = ARENA_ROOM(arena, const struct document *, page->count);
    struct view *views = ARENA_ROOM(arena, struct view, page->count);
    size_t count;
    judged->is_outdated = false;
    for (size_t i = 0; i < page->count; i++)
        names[i] = (struct document_name){search->class->name, page->found[i].id};
    enum fault fault = judged_page_load(&judged->page, attempt, names, page->count, documents, views, &count);
    for (size_t i = 0; !fault && i < count; i++) {
        const struct search_found *found = &page->found[i];
        bool is_wanted = is_found(judged, found, documents[i], &views[i]);
        judged->is_full = is_wanted && (judged->count == judged->limit || body->size > judged->bytes_most);
        if (judged->is_full || judged->is_outdated)
            break;
        search->after_id = found->id;
        search->after_key = search->wants_items ? found->item.key : BYTES("");
        if (is_wanted)
            write_found(search, found, !judged->count++, body);
    }
    *is_cut_r = count < page->count;
    return fault;
}

static enum fault find_judged(struct attempt *attempt, const struct search *search)
{
    struct builder *body = attempt->reply->body;
    struct judged_search judged = {.search = *search, .limit = (size_t)search->limit};
    struct search_page page;
    struct bytes cursor;
    bool is_cut = false;
    const struct bytes question = make_question(attempt, search);
    judged.bytes_most = body->size + (size_t)search->bytes_most;
    if (judged.search.limit < JUDGED_PAGE_LEAST)
        judged.search.limit = JUDGED_PAGE_LEAST;
    builder_printf(body, "{\"%s\":[", search->wants_items ? "items" : "ids");
    enum fault fault;
    do {
        fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                             attempt->call->arena, &judged.search, &page);
        if (!fault)
            fault = write_judged(attempt, &judged, &page, &is_cut);
    } while (!fault && !judged.is_full && !is_cut && (page.has_more || judged.is_outdated) &&
             judged_page_goes_on(&judged.page));
    if (fault)
        return fault;
    builder_add_text(body, "]");
    if (judged.is_full || is_cut || page.has_more || judged.is_outdated) {
        bool is_at_start = !judged.search.after_id.data;
        fault = cursor_make(attempt, question, is_at_start ? BYTES("") : judged.search.after_id,
                            is_at_start ? BYTES("") : judged.search.after_key, &cursor);
        if (fault)
            return fault;
        builder_add_text(body, ",\"cursor\":");
        json_add_string(body, cursor);
    }
    builder_add_text(body, "}");
    return FAULT_NONE;
}

static enum fault find_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct search search = {0};
    struct search_page page;
    enum fault fault = read_search(attempt, &reader, &search);
    if (fault)
        return classes_confirm(attempt, fault);
    if (call_is_judged(attempt->call))
        return find_judged(attempt, &search);
    fault = store_search(documents_store(attempt->worker_context->documents), attempt->ns,
                         attempt->call->arena, &search, &page);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_printf(body, "{\"%s\":[", search.wants_items ? "items" : "ids");
    for (size_t i = 0; i < page.count; i++)
        write_found(&search, &page.found[i], !i, body);
    builder_add_text(body, "]");
    if (page.has_more)
        write_cursor(attempt, &search, &page.found[page.count - 1], body);
    builder_add_text(body, "}");
    return FAULT_NONE;
}

const struct operation builtin_find = {
    .name = "find", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = find_work};
