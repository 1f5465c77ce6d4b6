/* get: documents by name.  param {"docs":[{"c","id","age":seconds,"ns":code}]} → out {"docs":[document…]}.
 * sync: no work; the cycle does the synchronisation. */
#include "operation/builtin.h"

#include <stdio.h>
#include <string.h>

#include "operation/answer.h"
#include "operation/judge/judge.h"
#include "operation/access/other_namespace.h"
#include "operation/reply.h"
#include "document/transaction.h"

struct document_request {
    struct document_name name;
    int64_t age_s;
    size_t draft;                  /* age 0: index among the drafts */
    const struct document *newest; /* with an age, where rules decide */
    struct bytes other;            /* the other namespace that it is of; NO_BYTES: none */
    const struct json *at;
};

/* The caller may read all of its own namespace: rules of that one do not say who may read another. */
static enum fault read_other(const struct reader *reader, struct document_request *request)
{
    enum fault fault = reader_text(reader, request->at, "ns", &request->other);
    if (fault || !request->other.data)
        return fault;
    if (reader->call->level < LEVEL_READ)
        return reply_fault(reader->call, reader->reply, FAULT_SCLOSED,
                           "The caller may not read the namespace.", "ns", NULL);
    return request->age_s
               ? FAULT_NONE
               : reader_wrong(reader, request->at, "age",
                              "A document of another namespace is read with an age of at least 1.");
}

static enum fault read_requests(const struct reader *reader, const struct json *docs,
                                struct document_request *requests)
{
    size_t i = 0;
    for (const struct json *element = docs->first; element; element = element->next, i++) {
        if (element->kind != JSON_OBJECT)
            return reader_wrong_value(reader, element, "docs", "Objects with c, id and age are expected.");
        requests[i].at = element;
        enum fault fault = FAULT_FIRST(
            reader_members(reader, element, "c id age ns"), reader_name(reader, element, &requests[i].name),
            reader_integer(reader, element, "age", 0, AGE_MOST, 0, &requests[i].age_s),
            read_other(reader, &requests[i]));
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* What is hidden takes no room in the answer: it may not lead to another one. */
enum { LOADS_OF_RULED = 8 };

/* Those at tolerance 0 come in one round trip; a request for too many is refused with the limit. */
static enum fault fetch_newest(struct attempt *attempt, const struct reader *reader,
                               struct document_request *requests, size_t count, struct draft **drafts)
{
    struct document_name *names = ARENA_ARRAY(attempt->call->arena, struct document_name, count);
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (requests[i].age_s)
            continue;
        requests[i].draft = wanted;
        names[wanted++] = requests[i].name;
    }
    if (!wanted)
        return FAULT_NONE;
    const struct settings *settings = attempt->worker_context->settings;
    transaction_limit_bytes(attempt->transaction, (size_t)settings->limit_answer_bytes *
                                                      (call_is_judged(attempt->call) ? LOADS_OF_RULED : 1));
    enum fault fault = transaction_fetch_many(attempt->transaction, names, wanted, drafts);
    if (fault != FAULT_ALIMIT)
        return fault;
    const struct json *docs = json_member(attempt->call->param, "docs");
    return (int64_t)wanted > settings->limit_documents
               ? reader_over(reader, docs, "limit_documents", settings->limit_documents, (int64_t)wanted)
               : reader_over(reader, docs, "limit_answer_bytes", settings->limit_answer_bytes, 0);
}

/* Where rules decide, an older copy could show what may no longer be read: the newest is within every
 * tolerance.  Only while PostgreSQL cannot be reached an older one is taken (operation/old_reads.h). */
static enum fault load_newest(struct attempt *attempt, const struct reader *reader,
                              struct document_request *requests, size_t count)
{
    struct arena *arena = attempt->call->arena;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, count);
    const struct document **documents = ARENA_ARRAY(arena, const struct document *, count);
    const int64_t most = reader->settings->limit_answer_bytes;
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++)
        if (requests[i].age_s && !requests[i].other.data)
            names[wanted++] = requests[i].name;
    enum fault fault = FAULT_NONE;
    if (wanted)
        fault = judge_newest(attempt, names, wanted, (size_t)most * LOADS_OF_RULED, documents);
    for (size_t i = 0, k = 0; !fault && i < count; i++) {
        if (!requests[i].age_s || requests[i].other.data)
            continue;
        requests[i].newest = documents[k++];
        if (!requests[i].newest)
            return reader_over(reader, requests[i].at, "limit_answer_bytes", most, 0);
    }
    return fault;
}

static inline enum fault find_document(struct attempt *attempt, const struct document_request *request,
                                       struct draft **drafts, const struct document **document_r)
{
    *document_r = request->newest;
    if (request->newest)
        return FAULT_NONE;
    if (request->other.data)
        return other_namespace_read(attempt, request->other, request->name, request->age_s, document_r);
    if (request->age_s)
        return transaction_read(attempt->transaction, request->name, request->age_s, document_r);
    *document_r = draft_base(drafts[request->draft]);
    return FAULT_NONE;
}

/* The first member of the object that begins there. */
static void name_namespace(struct builder *body, size_t start, struct bytes code)
{
    char member[32];
    size_t size = (size_t)snprintf(member, sizeof member, "\"ns\":\"%.*s\",", (int)code.size, code.data);
    builder_add(body, member, size);
    memmove(body->data + start + 1 + size, body->data + start + 1, body->size - size - start - 1);
    memcpy(body->data + start + 1, member, size);
}

/* Documents held for the answer count too: a document of removals is large in memory and small as JSON. */
enum { HELD_MOST = 2 }; /* times limit_answer_bytes */

static enum fault write_documents(struct attempt *attempt, const struct reader *reader,
                                  const struct document_request *requests, size_t count,
                                  struct draft **drafts)
{
    struct builder *body = attempt->reply->body;
    struct answer answer = answer_begin(reader->settings, attempt->call->arena, count);
    size_t held = 0;
    bool is_lasting = true;
    for (size_t i = 0; i < count; i++) {
        const struct document *document, *shown;
        struct view view = {0};
        enum fault fault = find_document(attempt, &requests[i], drafts, &document);
        shown = document;
        if (!fault && !requests[i].other.data)
            fault = judge_show(attempt, &shown, &view);
        if (fault)
            return fault;
        is_lasting = is_lasting && document_exists(document) && document->until == DOCUMENT_FOREVER;
        size_t size = view_size(&view, shown);
        held += view_is_whole(&view) ? shown->block_bytes : size;
        if (!answer_has_room(&answer, body->size, size) || (answer.count && held > answer.most * HELD_MOST))
            return reader_over(reader, requests[i].at, "limit_answer_bytes",
                               reader->settings->limit_answer_bytes, (int64_t)(body->size + size));
        if (!answer_carry(&answer, document))
            return reader_wrong_value(reader, requests[i].at, "docs", "Each document is expected once.");
        if (i)
            builder_add_text(body, ",");
        size_t start = body->size;
        view_write_json(&view, shown, body);
        if (requests[i].other.data)
            name_namespace(body, start, requests[i].other);
    }
    attempt->reply->is_lasting = is_lasting;
    return FAULT_NONE;
}

static enum fault get_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct arena *arena = attempt->call->arena;
    const struct json *docs;
    enum fault fault = FAULT_FIRST(reader_members(&reader, attempt->call->param, "docs"),
                                   reader_array(&reader, attempt->call->param, "docs", "limit_syncs",
                                                attempt->worker_context->settings->limit_syncs, &docs));
    if (fault)
        return fault;
    struct document_request *requests = ARENA_ARRAY(arena, struct document_request, docs->count);
    struct draft **drafts = ARENA_ARRAY(arena, struct draft *, docs->count);
    fault = FAULT_FIRST(read_requests(&reader, docs, requests),
                        fetch_newest(attempt, &reader, requests, docs->count, drafts));
    if (!fault && call_is_judged(attempt->call))
        fault = load_newest(attempt, &reader, requests, docs->count);
    if (fault)
        return fault;
    builder_add_text(attempt->reply->body, "{\"docs\":[");
    fault = write_documents(attempt, &reader, requests, docs->count, drafts);
    builder_add_text(attempt->reply->body, "]}");
    return fault;
}

/* The least of its documents; 0 also where one is malformed. */
static int64_t find_age(const struct call *call)
{
    const struct json *docs = json_member(call->param, "docs");
    int64_t least = docs && docs->kind == JSON_ARRAY && docs->first && !call->client_copies ? AGE_MOST : 0;
    for (const struct json *element = least ? docs->first : NULL; element; element = element->next) {
        const struct json *age = element->kind == JSON_OBJECT ? json_member(element, "age") : NULL;
        int64_t seconds = 0;
        if (!age || !json_is_i64(age, &seconds) || seconds < 0)
            seconds = 0;
        least = seconds < least ? seconds : least;
    }
    return least;
}

const struct operation builtin_get = {.name = "get",
                                      .right = RIGHT_READ,
                                      .find_age = find_age,
                                      .is_safe = true,
                                      .obeys_rules = true,
                                      .work = get_work};

/* No work, and no members of param. */
static enum fault sync_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    return reader_members(&reader, attempt->call->param, "");
}

const struct operation builtin_sync = {
    .name = "sync", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = sync_work};
