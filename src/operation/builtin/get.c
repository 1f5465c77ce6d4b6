/* get: documents by name.  param {"docs":[{"c","id","age":seconds}]} → out {"docs":[document…]}.
 * sync: no work; the cycle does the synchronisation. */
#include "operation/builtin/builtin.h"

#include "operation/answer.h"
#include "operation/reply.h"
#include "document/transaction.h"

struct document_request {
    struct document_name name;
    int64_t age_s;
    size_t draft; /* age 0: index among the drafts */
    const struct json *at;
};

static enum fault read_requests(const struct reader *reader, const struct json *docs,
                                struct document_request *requests)
{
    size_t i = 0;
    for (const struct json *element = docs->first; element; element = element->next, i++) {
        if (element->kind != JSON_OBJECT)
            return reader_wrong_value(reader, element, "docs", "Objects with c, id and age are expected.");
        requests[i].at = element;
        enum fault fault = reader_members(reader, element, "c id age");
        if (!fault)
            fault = reader_name(reader, element, &requests[i].name);
        if (!fault)
            fault = reader_integer(reader, element, "age", 0, AGE_MOST, 0, &requests[i].age_s);
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

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
    transaction_limit_bytes(attempt->transaction, (size_t)settings->limit_answer_bytes);
    enum fault fault = transaction_fetch_many(attempt->transaction, names, wanted, drafts);
    if (fault != FAULT_ALIMIT)
        return fault;
    const struct json *docs = json_member(attempt->call->param, "docs");
    return (int64_t)wanted > settings->limit_documents
               ? reader_over(reader, docs, "limit_documents", settings->limit_documents, (int64_t)wanted)
               : reader_over(reader, docs, "limit_answer_bytes", settings->limit_answer_bytes, 0);
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
    for (size_t i = 0; i < count; i++) {
        const struct document *document;
        enum fault fault = FAULT_NONE;
        if (requests[i].age_s)
            fault = transaction_read(attempt->transaction, requests[i].name, requests[i].age_s, &document);
        else
            document = draft_base(drafts[requests[i].draft]);
        if (fault)
            return fault;
        held += document->block_bytes;
        if (!answer_has_room(&answer, body->size, document->json.size) ||
            (answer.count && held > answer.most * HELD_MOST))
            return reader_over(reader, requests[i].at, "limit_answer_bytes",
                               reader->settings->limit_answer_bytes,
                               (int64_t)(body->size + document->json.size));
        if (!answer_carry(&answer, document))
            return reader_wrong_value(reader, requests[i].at, "docs", "Each document is expected once.");
        if (i)
            builder_add_text(body, ",");
        builder_add_bytes(body, document->json);
    }
    return FAULT_NONE;
}

static enum fault get_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct arena *arena = attempt->call->arena;
    const struct json *docs;
    enum fault fault = reader_members(&reader, attempt->call->param, "docs");
    if (!fault)
        fault = reader_array(&reader, attempt->call->param, "docs", "limit_syncs",
                             attempt->worker_context->settings->limit_syncs, &docs);
    if (fault)
        return fault;
    struct document_request *requests = ARENA_ARRAY(arena, struct document_request, docs->count);
    struct draft **drafts = ARENA_ARRAY(arena, struct draft *, docs->count);
    fault = read_requests(&reader, docs, requests);
    if (!fault)
        fault = fetch_newest(attempt, &reader, requests, docs->count, drafts);
    if (fault)
        return fault;
    builder_add_text(attempt->reply->body, "{\"docs\":[");
    fault = write_documents(attempt, &reader, requests, docs->count, drafts);
    builder_add_text(attempt->reply->body, "]}");
    return fault;
}

const struct operation builtin_get = {.name = "get", .right = RIGHT_READ, .is_safe = true, .work = get_work};
/* No work, and no members of param. */
static enum fault sync_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    return reader_members(&reader, attempt->call->param, "");
}

const struct operation builtin_sync = {
    .name = "sync", .right = RIGHT_READ, .is_safe = true, .work = sync_work};
