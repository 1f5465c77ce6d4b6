/* collection: the documents of a class that share the value of a property, synchronised (collections.md).
 * param {"c","collection","value","token","cursor","limit","want":"docs"|"ids","stream"} → out
 * {"complete","first","docs":[document…]|"ids":[[id,version]…],"left":[[id,version]…],"cursor"|"token"}; with
 * `stream` see collection_stream.c.
 *
 * A token records up to which transactions its client knows the collection: all that had ended when the
 * first page was read.  The next synchronisation reads what was written by that transaction or later ones, so
 * a commit that becomes visible late is never missed; some changes come twice.  Answers carry the present
 * state of each row, so a client that applies them in their order needs no version. */
#include "operation/builtin/collection.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "model/value.h"
#include "operation/answer.h"
#include "operation/builtin/builtin.h"
#include "operation/classes.h"
#include "operation/seal.h"
#include "store/store_collection.h"
#include "operation/reply.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000, KEYS_MOST = 4 };

/* --- the question -------------------------------------------------------------------------------- */

static bool take_text(struct arena *arena, const struct json *json, struct bytes *text_r)
{
    bool is_value = json->kind == JSON_STRING || json->kind == JSON_NUMBER || json->kind == JSON_TRUE ||
                    json->kind == JSON_FALSE;
    if (is_value)
        *text_r = json->kind == JSON_TRUE    ? BYTES("true")
                  : json->kind == JSON_FALSE ? BYTES("false")
                                             : value_of_member(arena, json->value);
    return is_value;
}

/* The same as stampd.property_joined() of the database. */
static enum fault read_value(const struct reader *reader, const struct json *param, struct bytes *value_r)
{
    static const char expected[] =
        "A string, a number or a truth value is expected; of several properties, their array.";
    struct arena *arena = reader->call->arena;
    const struct json *value = json_member(param, "value");
    if (!value)
        return reader_wrong(reader, param, "value", expected);
    if (value->kind != JSON_ARRAY)
        return take_text(arena, value, value_r) ? FAULT_NONE : reader_wrong(reader, param, "value", expected);
    if (value->is_shallow || value->count < 1 || value->count > KEYS_MOST)
        return reader_wrong(reader, param, "value", expected);
    struct builder joined = {0};
    struct bytes text = NO_BYTES;
    for (const struct json *one = value->first; one; one = one->next) {
        if (!take_text(arena, one, &text)) {
            builder_free(&joined);
            return reader_wrong_value(reader, one, "value", expected);
        }
        value_join(&joined, text);
    }
    struct bytes whole = value->count == 1 ? text : builder_bytes(&joined);
    *value_r = (struct bytes){arena_copy(arena, whole.data, whole.size), whole.size};
    builder_free(&joined);
    return FAULT_NONE;
}

static struct bytes make_question(const struct call *call, const struct asked *asked)
{
    struct builder text = {0};
    seal_add_part(&text, call->ns);
    seal_add_part(&text, asked->class);
    seal_add_part(&text, asked->name);
    seal_add_part(&text, asked->value);
    struct bytes question = {arena_copy(call->arena, text.data, text.size), text.size};
    builder_free(&text);
    return question;
}

/* --- tokens and cursors -------------------------------------------------------------------------- */

/* Parses numbers of a payload, none below 0, separated by blanks; the rest is what follows them. */
static bool take_numbers(struct bytes payload, int64_t *numbers, size_t count, struct bytes *rest_r)
{
    for (size_t i = 0; i < count; i++) {
        const char *blank = memchr(payload.data, ' ', payload.size);
        if (!blank ||
            !bytes_to_i64((struct bytes){payload.data, (size_t)(blank - payload.data)}, &numbers[i]) ||
            numbers[i] < 0)
            return false;
        payload.size -= (size_t)(blank + 1 - payload.data);
        payload.data = blank + 1;
    }
    *rest_r = payload;
    return true;
}

static enum fault read_token(const struct reader *reader, const struct json *param, struct asked *asked)
{
    struct bytes token, payload;
    int64_t numbers[4];
    enum fault fault = reader_text(reader, param, "token", &token);
    if (fault || !token.data)
        return fault;
    if (!seal_open(reader->call->arena, asked->secret, asked->question, token, &payload) ||
        !take_numbers(payload, numbers, COUNT_OF(numbers), &payload) || payload.size)
        return reader_wrong(reader, param, "token",
                            "The token of an earlier answer about the same collection is expected.");
    asked->place = (struct collection_position){.is_first = true,
                                                .life = numbers[0],
                                                .number = numbers[1],
                                                .from = numbers[2],
                                                .transaction = numbers[2],
                                                .since = numbers[3]};
    return FAULT_NONE;
}

static enum fault read_cursor(const struct reader *reader, const struct json *param, struct asked *asked)
{
    struct bytes cursor, payload;
    int64_t numbers[7];
    enum fault fault = reader_text(reader, param, "cursor", &cursor);
    if (fault || !cursor.data)
        return fault;
    if (!seal_open(reader->call->arena, asked->secret, asked->question, cursor, &payload) ||
        !take_numbers(payload, numbers, COUNT_OF(numbers), &payload))
        return reader_wrong(reader, param, "cursor",
                            "The cursor of an earlier page of the same collection is expected.");
    asked->place = (struct collection_position){.is_complete = numbers[0] != 0,
                                                .life = numbers[1],
                                                .number = numbers[2],
                                                .from = numbers[3],
                                                .horizon = numbers[4],
                                                .minute = numbers[5],
                                                .since = INT64_MAX,
                                                .transaction = numbers[6],
                                                .id = payload};
    return FAULT_NONE;
}

void collection_write_token(const struct call *call, const struct asked *asked, struct builder *body)
{
    const struct collection_position *place = &asked->place;
    const char *payload = arena_printf(call->arena, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ",
                                       place->life, place->number, place->horizon, place->minute);
    builder_add_text(body, "\"token\":");
    json_add_string(body, seal_close(call->arena, asked->secret, asked->question, bytes_of(payload)));
}

static void add_token(const struct call *call, const struct asked *asked, struct builder *body)
{
    builder_add_text(body, ",");
    collection_write_token(call, asked, body);
}

static void write_cursor(const struct call *call, const struct asked *asked,
                         const struct collection_member *last, struct builder *body)
{
    const struct collection_position *place = &asked->place;
    const char *payload = arena_printf(
        call->arena, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %.*s",
        place->is_complete, place->life, place->number, place->from, place->horizon, place->minute,
        last->transaction, (int)last->id.size, last->id.data);
    builder_add_text(body, ",\"cursor\":");
    json_add_string(body, seal_close(call->arena, asked->secret, asked->question, bytes_of(payload)));
}

/* --- the page ------------------------------------------------------------------------------------ */

enum fault collection_judge(const struct reader *reader, const struct asked *asked,
                            const struct collection_page *page)
{
    struct arena *arena = reader->call->arena;
    if (page->number && page->is_ready)
        return FAULT_NONE;
    const char *name = arena_copy(arena, asked->name.data, asked->name.size);
    if (page->number)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL, name, NULL);
    return reply_fault(reader->call, reader->reply, FAULT_NCOLLECTION, NULL,
                       arena_copy(arena, asked->class.data, asked->class.size), name, NULL);
}

/* Is the client's state recent enough to send only the changes since? */
static bool is_known(const struct collection_position *place, const struct collection_page *page)
{
    bool is_same = place->life == page->life && place->number == page->number;
    return is_same && (place->is_complete || (page->floor < place->from && !page->has_ended_more));
}

void collection_begin(struct collection_position *place, const struct collection_page *page, int64_t minute)
{
    place->life = page->life;
    place->number = page->number;
    place->horizon = page->horizon;
    place->minute = minute;
}

static enum fault read_page(struct attempt *attempt, const struct reader *reader, struct asked *asked,
                            struct collection_page *page)
{
    struct collection_position *place = &asked->place;
    const int64_t minute = clock_present_minute();
    for (;;) {
        const struct collection_query query = {
            .arena = attempt->call->arena,
            .class = asked->class,
            .name = asked->name,
            .value = asked->value,
            .transaction = place->transaction,
            .id = place->id,
            .with_departures = !place->is_complete,
            .since = place->is_complete ? INT64_MAX : place->since,
            .minute = minute,
            .limit = (int32_t)asked->limit,
        };
        enum fault fault =
            store_collection(documents_store(attempt->worker_context->documents), attempt->ns, &query, page);
        if (!fault)
            fault = collection_judge(reader, asked, page);
        if (fault)
            return fault;
        bool is_start = place->is_complete && place->is_first;
        if (is_start || is_known(place, page))
            break;
        *place = (struct collection_position){.is_complete = true, .is_first = true}; /* starts over */
    }
    if (place->from > page->next)
        return reader_wrong(reader, NULL, "token", "A token of an earlier answer is expected.");
    if (place->is_first)
        collection_begin(place, page, minute);
    return FAULT_NONE;
}

static void write_some(struct builder *body, const struct collection_member *members, size_t count,
                       bool has_left, const char **comma)
{
    for (size_t i = 0; i < count; i++) {
        if (members[i].has_left != has_left)
            continue;
        builder_printf(body, "%s[", *comma);
        json_add_string(body, members[i].id);
        builder_printf(body, ",%" PRId64 "]", members[i].version);
        *comma = ",";
    }
}

static void write_pairs(struct builder *body, const struct collection_page *page, bool has_left)
{
    const char *comma = "";
    builder_add_text(body, "[");
    write_some(body, page->members, page->count, has_left, &comma);
    write_some(body, page->ended, page->ended_count, has_left, &comma);
    builder_add_text(body, "]");
}

/* Reads the newest contents: they may be newer than the page; the next synchronisation sends what has left
 * since.  A member of this page that no longer exists has left: nothing of it can be sent.  When the answer
 * is full, the page ends before the document that does not fit. */
static enum fault write_documents(struct attempt *attempt, const struct asked *asked,
                                  struct collection_page *page, struct builder *body)
{
    struct arena *arena = attempt->call->arena;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, page->count);
    const struct document **documents = ARENA_ARRAY(arena, const struct document *, page->count);
    struct answer answer = answer_begin(attempt->worker_context->settings, arena, page->count);
    size_t count = 0;
    for (size_t i = 0; i < page->count; i++)
        if (!page->members[i].has_left)
            names[count++] = (struct document_name){asked->class, page->members[i].id};
    enum fault fault = documents_newest_part(attempt->worker_context->documents, attempt->ns, arena, names,
                                             count, answer.most, documents);
    const char *comma = "";
    builder_add_text(body, "[");
    for (size_t place = 0, i = 0; place < page->count && !fault; place++) {
        struct collection_member *member = &page->members[place];
        if (member->has_left)
            continue;
        const struct document *document = documents[i++];
        if (!document || !answer_has_room(&answer, body->size, document->json.size)) {
            page->count = place;
            page->has_more = true;
            break;
        }
        if (!document_exists(document)) {
            member->has_left = true;
            if (document->header.version > member->version)
                member->version = document->header.version;
            continue;
        }
        answer_carry(&answer, document);
        builder_printf(body, "%s", comma);
        builder_add_bytes(body, document->json);
        comma = ",";
    }
    builder_add_text(body, "]");
    return fault;
}

/* --- the operation ------------------------------------------------------------------------------- */

/* A stream has no pages and always starts over. */
static enum fault check_stream(const struct reader *reader, const struct json *param)
{
    static const char *const others[] = {"token", "cursor", "limit"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (json_member(param, others[i]))
            return reader_wrong(reader, param, others[i],
                                "A stream is of the whole collection: it goes without this.");
    if (!reader->reply->outlet)
        return reader_wrong(reader, param, "stream", "A task cannot stream.");
    return FAULT_NONE;
}

/* Requires a value for each property of the collection: a shorter or longer list would be the value of
 * nothing. */
static enum fault check_count(const struct reader *reader, const struct schema *schema,
                              const struct asked *asked)
{
    const struct schema_class *class = schema_find_class(schema, asked->class);
    const struct json *value = json_member(reader->call->param, "value");
    size_t count = value->kind == JSON_ARRAY ? value->count : 1;
    for (size_t i = 0; class && i < class->collection_count; i++) {
        const struct schema_collection *collection = &class->collections[i];
        if (bytes_equal(collection->name, asked->name) && collection->key_count != count)
            return reader_wrong(reader, reader->call->param, "value",
                                arena_printf(reader->call->arena,
                                             "Of this collection %zu values are expected.",
                                             collection->key_count));
    }
    return FAULT_NONE;
}

enum fault collection_read(struct attempt *attempt, const struct reader *reader, struct asked *asked)
{
    const struct json *param = attempt->call->param;
    struct bytes want;
    *asked = (struct asked){.place = {.is_complete = true, .is_first = true}};
    enum fault fault = reader_members(reader, param, "c collection value token cursor limit want stream");
    if (!fault)
        fault = reader_class(reader, param, "c", &asked->class);
    if (!fault)
        fault = reader_text(reader, param, "collection", &asked->name);
    if (!fault)
        fault = reader_check_length(reader, param, "collection", asked->name);
    if (!fault)
        fault = read_value(reader, param, &asked->value);
    if (!fault)
        fault = reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &asked->limit);
    if (!fault)
        fault = reader_text(reader, param, "want", &want);
    if (!fault)
        fault = reader_boolean(reader, param, "stream", &asked->is_stream);
    if (!fault && asked->is_stream)
        fault = check_stream(reader, param);
    if (fault)
        return fault;
    asked->wants_ids = want.data && bytes_equal(want, BYTES("ids"));
    if (want.data && !asked->wants_ids && !bytes_equal(want, BYTES("docs")))
        return reader_wrong(reader, param, "want", "\"docs\" or \"ids\" is expected.");
    const struct schema *schema;
    fault = classes_schema(attempt, &schema);
    if (!fault)
        fault = check_count(reader, schema, asked);
    if (fault == FAULT_AARG)
        fault = classes_confirm(attempt, fault);
    if (fault)
        return fault;
    asked->secret = schema->secret;
    asked->question = make_question(attempt->call, asked);
    fault = read_token(reader, param, asked);
    return fault ? fault : read_cursor(reader, param, asked);
}

static enum fault collection_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct asked asked;
    struct collection_page page;
    enum fault fault = collection_read(attempt, &reader, &asked);
    if (!fault && asked.is_stream)
        return FAULT_NONE; /* in afterwork, which runs once */
    if (!fault)
        fault = read_page(attempt, &reader, &asked, &page);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_printf(body, "{\"complete\":%s,\"first\":%s,", asked.place.is_complete ? "true" : "false",
                   asked.place.is_first ? "true" : "false");
    if (asked.wants_ids) {
        builder_add_text(body, "\"ids\":");
        write_pairs(body, &page, false);
    } else {
        builder_add_text(body, "\"docs\":");
        fault = write_documents(attempt, &asked, &page, body);
    }
    builder_add_text(body, ",\"left\":");
    write_pairs(body, &page, true);
    if (page.has_more)
        write_cursor(attempt->call, &asked, &page.members[page.count - 1], body);
    else
        add_token(attempt->call, &asked, body);
    builder_add_text(body, "}");
    return fault;
}

const struct operation builtin_collection = {.name = "collection",
                                             .right = RIGHT_READ,
                                             .is_safe = true,
                                             .work = collection_work,
                                             .afterwork = collection_stream};
