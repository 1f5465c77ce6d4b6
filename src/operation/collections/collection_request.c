/* collection_request: reads a request and writes where it may continue: tokens and cursors, signed for this
 * collection. */
#include "operation/collections/collection.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/clock.h"
#include "base/memory.h"
#include "model/document/value.h"
#include "operation/classes.h"
#include "operation/reply.h"
#include "operation/signed_text.h"
#include "segment/slots.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000, KEYS_MOST = 4 };

/* --- the collection ------------------------------------------------------------------------------ */

/* The same as stampd.property_joined() of the database. */
static enum fault collection_request_read_value(const struct reader *reader, const struct json *param,
                                                struct bytes *value_r, size_t *count_r)
{
    static const char expected[] =
        "A string, a number or a truth value is expected; of several properties, their array.";
    struct arena *arena = reader->call->arena;
    const struct json *value = json_member(param, "value");
    if (!value)
        return reader_wrong(reader, param, "value", expected);
    *count_r = 1;
    if (value->kind != JSON_ARRAY)
        return value_of_json(arena, value, value_r) ? FAULT_NONE
                                                    : reader_wrong(reader, param, "value", expected);
    if (value->is_shallow || value->count < 1 || value->count > KEYS_MOST)
        return reader_wrong(reader, param, "value", expected);
    *count_r = value->count;
    struct builder joined = {0};
    struct bytes text = NO_BYTES;
    for (const struct json *one = value->first; one; one = one->next) {
        if (!value_of_json(arena, one, &text)) {
            builder_free(&joined);
            return reader_wrong_value(reader, one, "value", expected);
        }
        value_join(&joined, text);
    }
    struct bytes whole = value->count == 1 ? text : builder_bytes(&joined);
    *value_r = arena_keep(arena, whole);
    builder_free(&joined);
    return FAULT_NONE;
}

/* A token is bound to its caller by the digest in it: with another one it is answered completely. */
static struct bytes make_question(const struct call *call, const struct collection_request *request,
                                  bool is_judged)
{
    struct builder text = {0};
    if (is_judged) {
        signed_text_add_part(&text, BYTES("judged"));
        signed_text_add_part(&text, call->caller.account);
    }
    signed_text_add_part(&text, call->ns);
    signed_text_add_part(&text, request->class);
    signed_text_add_part(&text, request->name);
    signed_text_add_part(&text, request->value);
    return builder_take(&text, call->arena);
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

/* Removes the digest and the blanks behind it; false: it is none. */
static bool take_digest(struct bytes *payload, struct bytes *digest_r)
{
    *digest_r = bytes_cut(payload, ' ');
    return digest_r->size == SIGHT_DIGEST || !digest_r->size;
}

static enum fault read_token(const struct reader *reader, const struct json *param,
                             struct collection_request *request)
{
    struct bytes token, payload, digest;
    int64_t numbers[4];
    enum fault fault = reader_text(reader, param, "token", &token);
    if (fault || !token.data)
        return fault;
    if (!signed_text_read(reader->call->arena, request->secret, request->question, token, &payload) ||
        !take_numbers(payload, numbers, COUNT_OF(numbers), &payload) || !take_digest(&payload, &digest))
        return reader_wrong(reader, param, "token",
                            "The token of an earlier answer about the same collection is expected.");
    if (!bytes_equal(digest, request->sight.digest))
        return FAULT_NONE; /* what its holder could see is not what the caller sees */
    request->position = (struct collection_position){.is_first = true,
                                                     .life = numbers[0],
                                                     .number = numbers[1],
                                                     .from = numbers[2],
                                                     .transaction = numbers[2],
                                                     .since = numbers[3]};
    return FAULT_NONE;
}

/* Those of judged callers have one length, whatever they contain: padded with blanks. */
enum { JUDGED_TOKEN_SIZE = 4 * 20 + SIGHT_DIGEST + 1, JUDGED_CURSOR_SIZE = 8 * 20 + SIGHT_DIGEST + 1 + 255 };

static bool take_padded(struct bytes *id)
{
    int64_t size;
    if (!take_numbers(*id, &size, 1, id) || size > (int64_t)id->size)
        return false;
    id->size = (size_t)size;
    return true;
}

static enum fault read_cursor(const struct reader *reader, const struct json *param,
                              struct collection_request *request)
{
    struct bytes token, cursor, payload, digest = request->sight.digest;
    int64_t numbers[7];
    enum fault fault = FAULT_FIRST(reader_text(reader, param, "token", &token),
                                   reader_text(reader, param, "cursor", &cursor));
    if (fault || !cursor.data)
        return fault;
    if (token.data)
        return reader_wrong(reader, param, "cursor",
                            "A cursor is sent without a token: it continues the answer that it came from.");
    if (!signed_text_read(reader->call->arena, request->secret, request->cursor_question, cursor, &payload) ||
        !take_numbers(payload, numbers, COUNT_OF(numbers), &payload) ||
        (request->is_judged && (!take_digest(&payload, &digest) || !take_padded(&payload))))
        return reader_wrong(reader, param, "cursor",
                            "The cursor of an earlier page of the same collection is expected.");
    if (!bytes_equal(digest, request->sight.digest)) {
        collection_request_start_over(request);
        return FAULT_NONE;
    }
    request->position = (struct collection_position){.is_complete = numbers[0] != 0,
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

static void pad(struct builder *text, size_t size)
{
    while (text->size < size)
        builder_add_text(text, " ");
}

void collection_request_write_token(const struct call *call, const struct collection_request *request,
                                    struct builder *body)
{
    const struct collection_position *position = &request->position;
    struct builder text = {0};
    builder_printf(&text, "%" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ", position->life,
                   position->number, position->horizon, position->minute);
    builder_add_bytes(&text, request->sight.digest);
    if (request->is_judged)
        pad(&text, JUDGED_TOKEN_SIZE);
    builder_add_text(body, "\"token\":");
    json_add_string(body,
                    signed_text_make(call->arena, request->secret, request->question, builder_bytes(&text)));
    builder_free(&text);
}

void collection_request_write_cursor(const struct call *call, const struct collection_request *request,
                                     const struct collection_member *last, struct builder *body)
{
    const struct collection_position *position = &request->position;
    struct builder text = {0};
    builder_printf(&text, "%d %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " %" PRId64 " ",
                   position->is_complete, position->life, position->number, position->from, position->horizon,
                   position->minute, last->transaction);
    if (request->is_judged)
        builder_printf(&text, "%.*s %zu ", (int)request->sight.digest.size, request->sight.digest.data,
                       last->id.size);
    builder_add_bytes(&text, last->id);
    if (request->is_judged)
        pad(&text, JUDGED_CURSOR_SIZE);
    builder_add_text(body, ",\"cursor\":");
    json_add_string(
        body, signed_text_make(call->arena, request->secret, request->cursor_question, builder_bytes(&text)));
    builder_free(&text);
}

void collection_request_start_over(struct collection_request *request)
{
    request->position = (struct collection_position){.is_complete = true, .is_first = true};
}

/* --- the whole ---------------------------------------------------------------------------------- */

/* A stream has no pages and always starts over. */
static enum fault check_stream(const struct reader *reader, const struct json *param)
{
    static const char *const others[] = {"token", "cursor", "limit"};
    for (size_t i = 0; i < COUNT_OF(others); i++)
        if (json_member(param, others[i]))
            return reader_wrong(reader, param, others[i],
                                "A stream returns the whole collection: omit this member.");
    if (!reader->reply->outlet)
        return reader_wrong(reader, param, "stream", "A task cannot stream.");
    return FAULT_NONE;
}

/* Requires a value for each property of the collection: a shorter or longer list would be the value of
 * nothing. */
static enum fault check_count(const struct attempt *attempt, const struct reader *reader,
                              const struct schema *schema, struct collection_request *request)
{
    const struct schema_class *class = schema_find_class(schema, request->class);
    const struct schema_collection *collection = schema_find_collection(class, request->name);
    const struct json *value = json_member(reader->call->param, "value");
    size_t count = value->kind == JSON_ARRAY ? value->count : 1;
    request->collection = collection;
    request->expires = class && class->max_life.item;
    request->is_undisclosed = !sight_discloses_collection(attempt, request->class, collection);
    if (request->is_undisclosed || !collection || collection->key_count == count)
        return FAULT_NONE;
    return reader_wrong(
        reader, reader->call->param, "value",
        arena_printf(reader->call->arena, "Number of values expected: %zu.", collection->key_count));
}

/* Of the documents whose properties the caller sees. */
static struct caller_sight find_sight(const struct attempt *attempt, const struct collection_request *request)
{
    const struct schema_collection *collection = request->collection;
    struct bytes keys[SCHEMA_KEYS_MOST];
    size_t count = 0;
    for (; collection && count < collection->key_count; count++)
        keys[count] = collection->keys[count].item->name;
    struct caller_sight sight =
        sight_find(attempt, request->class, RULES_LIST, collection ? keys : NULL, count);
    if (request->is_undisclosed)
        sight.rules = (struct rules_sight){.reach = RULES_REACH_NONE};
    return sight;
}

enum fault collection_request_read(struct attempt *attempt, const struct reader *reader,
                                   struct collection_request *request)
{
    const struct json *param = attempt->call->param;
    struct bytes want;
    *request = (struct collection_request){.position = {.is_complete = true, .is_first = true},
                                           .is_judged = call_is_judged(attempt->call)};
    enum fault fault =
        FAULT_FIRST(reader_members(reader, param, "c collection value token cursor limit want stream"),
                    reader_class(reader, param, "c", &request->class),
                    reader_text(reader, param, "collection", &request->name),
                    reader_check_length(reader, param, "collection", request->name),
                    collection_request_read_value(reader, param, &request->value, &request->value_count),
                    reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &request->limit),
                    reader_text(reader, param, "want", &want),
                    reader_boolean(reader, param, "stream", &request->is_stream));
    if (!fault && request->is_stream)
        fault = check_stream(reader, param);
    if (fault)
        return fault;
    request->wants_ids = want.data && bytes_equal(want, BYTES("ids"));
    if (want.data && !request->wants_ids && !bytes_equal(want, BYTES("docs")))
        return reader_wrong(reader, param, "want", "\"docs\" or \"ids\" is expected.");
    const struct schema *schema;
    fault = FAULT_FIRST(classes_schema(attempt, &schema), check_count(attempt, reader, schema, request));
    if (fault == FAULT_AARG)
        fault = classes_confirm(attempt, fault);
    if (fault)
        return fault;
    request->secret = schema->secret;
    request->sight = find_sight(attempt, request);
    request->question = make_question(attempt->call, request, false);
    request->cursor_question = make_question(attempt->call, request, request->is_judged);
    return FAULT_FIRST(read_token(reader, param, request), read_cursor(reader, param, request));
}

/* --- against a page ------------------------------------------------------------------------------ */

enum fault collection_request_judge(const struct reader *reader, const struct collection_request *request,
                                    const struct collection_page *page)
{
    struct arena *arena = reader->call->arena;
    if (page->number && page->is_ready)
        return FAULT_NONE;
    const char *name = arena_copy(arena, request->name.data, request->name.size);
    if (page->number)
        return reply_fault(reader->call, reader->reply, FAULT_OBUILDING, NULL, name, NULL);
    return reply_fault(reader->call, reader->reply, FAULT_NCOLLECTION, NULL,
                       arena_copy(arena, request->class.data, request->class.size), name, NULL);
}

void collection_request_begin(struct collection_position *position, const struct collection_page *page,
                              int64_t minute)
{
    position->life = page->life;
    position->number = page->number;
    position->horizon = page->horizon;
    position->minute = minute;
}

/* --- collection page --- */

/* Is the client's state recent enough to send only the changes since? */
static bool collection_page_is_known(const struct collection_position *position,
                                     const struct collection_page *page)
{
    bool is_same = position->life == page->life && position->number == page->number;
    return is_same && (position->is_complete || (page->floor < position->from && !page->has_ended_more));
}

/* Of a collection that is empty to the caller, declared or not: its tokens stay valid. */
static const struct collection_page nothing_told = {
    .life = 1, .number = 1, .is_ready = true, .horizon = 1, .next = INT64_MAX};

enum fault collection_page_read(struct attempt *attempt, const struct reader *reader,
                                struct collection_request *request, struct collection_page *page)
{
    struct collection_position *position = &request->position;
    /* Where rules decide, a document that has expired leaves when it is deleted, a moment later. */
    const int64_t minute = request->is_judged ? 0 : clock_present_minute();
    for (;;) {
        const struct collection_query query = {
            .arena = attempt->call->arena,
            .class = request->class,
            .name = request->name,
            .value = request->value,
            .value_count = request->value_count,
            .transaction = position->transaction,
            .id = position->id,
            .with_departures = !position->is_complete,
            .since = position->is_complete || request->is_judged ? INT64_MAX : position->since,
            .minute = minute,
            .limit = (int32_t)request->limit,
        };
        *page = nothing_told;
        enum fault fault = FAULT_FIRST(
            request->is_undisclosed ? FAULT_NONE
                                    : store_collection(documents_store(attempt->worker_context->documents),
                                                       attempt->ns, &query, page),
            collection_request_judge(reader, request, page));
        if (fault)
            return fault;
        bool is_start = position->is_complete && position->is_first;
        if (is_start || collection_page_is_known(position, page))
            break;
        collection_request_start_over(request);
    }
    if (position->from > page->next)
        return reader_wrong(reader, NULL, "token", "A token of an earlier answer is expected.");
    if (position->is_first)
        collection_request_begin(position, page, minute);
    return FAULT_NONE;
}

/* --- collection unchanged --- */

enum { PLACES = 512, QUESTION_MOST = 256 };

struct unchanged_since {
    struct newest_proof proof; /* of the class */
    int ns;
    int64_t life, number; /* of the collection */
    int64_t from;         /* nothing is of this transaction or a later one */
    int64_t horizon;      /* of the answer: where the next synchronisation begins */
    size_t size;          /* 0: the place is free */
    char question[QUESTION_MOST];
};

struct collection_unchanged {
    struct unchanged_since places[PLACES];
};

struct collection_unchanged *collection_unchanged_create(void)
{
    struct collection_unchanged *unchanged = memory_zeroed(1, sizeof *unchanged, "collection request");
    return unchanged;
}

void collection_unchanged_destroy(struct collection_unchanged *unchanged)
{
    free(unchanged);
}

/* NULL: the answer may change without a commit, or depends on more than documents of the class. */
static struct unchanged_since *collection_unchanged_find_place(const struct attempt *attempt,
                                                               const struct collection_request *request)
{
    const struct collection_position *position = &request->position;
    if (!attempt->worker_context->unchanged || request->is_judged || request->expires ||
        position->is_complete || !position->is_first || request->question.size > QUESTION_MOST)
        return NULL;
    uint64_t hash =
        slots_hash(attempt->worker_context->segment, attempt->ns, request->question, BYTES("unchanged"));
    return &attempt->worker_context->unchanged->places[hash % PLACES];
}

bool collection_unchanged_find(const struct attempt *attempt, struct collection_request *request,
                               struct newest_proof *proof_r)
{
    const struct documents *documents = attempt->worker_context->documents;
    struct collection_position *position = &request->position;
    const struct unchanged_since *place = collection_unchanged_find_place(attempt, request);
    *proof_r = (struct newest_proof){0};
    if (!place)
        return false;
    const struct bytes question = {place->question, place->size};
    if (place->ns == attempt->ns && bytes_equal(question, request->question) &&
        place->life == position->life && place->number == position->number && place->from <= position->from &&
        documents_is_still_newest(documents, &place->proof)) {
        position->horizon = place->horizon > position->from ? place->horizon : position->from;
        position->minute = position->since;
        return true;
    }
    *proof_r = documents_prove_class(documents, attempt->ns, request->class);
    return false;
}

void collection_unchanged_note(const struct attempt *attempt, const struct collection_request *request,
                               const struct newest_proof *proof, const struct collection_page *page)
{
    const struct collection_position *position = &request->position;
    struct unchanged_since *place =
        collection_unchanged_find_place(attempt, request); /* none: it has started over */
    if (!place || !proof->is_valid || page->count || page->ended_count || page->has_more ||
        transaction_is_in_snapshot(attempt->transaction))
        return;
    *place = (struct unchanged_since){.proof = *proof,
                                      .ns = attempt->ns,
                                      .life = position->life,
                                      .number = position->number,
                                      .from = position->from,
                                      .horizon = position->horizon,
                                      .size = request->question.size};
    memcpy(place->question, request->question.data, request->question.size);
}
