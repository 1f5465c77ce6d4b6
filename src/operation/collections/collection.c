/* collection: the documents of a class that share the value of a property, synchronised (collections.md).
 * param {"c","collection","value","token","cursor","limit","want":"docs"|"ids","stream"} → out
 * {"complete","first","docs":[document…]|"ids":[[id,version]…],"left":[[id,version]…],"cursor"|"token"}; with
 * `stream` see collection_stream.c.
 *
 * A token records up to which transactions its client knows the collection: all that had ended when the
 * first page was read.  The next synchronisation reads what was written by that transaction or later ones, so
 * a commit that becomes visible late is never missed; some changes come twice.  Answers carry the present
 * state of each row, so a client that applies them in their order needs no version. */
#include "operation/collections/collection_request.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "operation/answer.h"
#include "operation/builtin.h"
#include "operation/collections/collection_judged.h"
#include "operation/collections/collection_page.h"
#include "operation/collections/collection_stream.h"
#include "operation/collections/collection_unchanged.h"
#include "store/collections/store_collection.h"
#include "operation/reply.h"

/* --- the page ------------------------------------------------------------------------------------ */

static void add_token(const struct call *call, const struct collection_request *request, struct builder *body)
{
    builder_add_text(body, ",");
    collection_request_write_token(call, request, body);
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
static enum fault write_documents(struct attempt *attempt, const struct collection_request *request,
                                  struct collection_page *page, struct builder *body)
{
    struct arena *arena = attempt->call->arena;
    struct document_name *names = ARENA_ARRAY(arena, struct document_name, page->count);
    const struct document **documents = ARENA_ARRAY(arena, const struct document *, page->count);
    struct answer answer = answer_begin(attempt->worker_context->settings, arena, page->count);
    size_t count = 0;
    for (size_t i = 0; i < page->count; i++)
        if (!page->members[i].has_left)
            names[count++] = (struct document_name){request->class, page->members[i].id};
    enum fault fault = documents_newest_part(attempt->worker_context->documents, attempt->ns, arena, names,
                                             count, answer.most, documents);
    const char *comma = "";
    builder_add_text(body, "[");
    for (size_t position = 0, i = 0; position < page->count && !fault; position++) {
        struct collection_member *member = &page->members[position];
        if (member->has_left)
            continue;
        const struct document *document = documents[i++];
        if (!document || !answer_has_room(&answer, body->size, document->json.size)) {
            page->count = position;
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

/* Without a query where it is known that nothing has changed. */
static enum fault collection_read_page(struct attempt *attempt, const struct reader *reader,
                                       struct collection_request *request, struct collection_page *page)
{
    struct newest_proof proof;
    *page = (struct collection_page){0};
    if (collection_unchanged_find(attempt, request, &proof))
        return FAULT_NONE;
    enum fault fault = collection_page_read(attempt, reader, request, page);
    if (!fault)
        collection_unchanged_note(attempt, request, &proof, page);
    return fault;
}

/* --- the operation ------------------------------------------------------------------------------- */

static enum fault collection_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct collection_request request;
    struct collection_page page;
    enum fault fault = collection_request_read(attempt, &reader, &request);
    if (!fault && request.is_stream)
        return FAULT_NONE; /* in afterwork, which runs once */
    if (!fault && request.is_judged)
        return collection_judged_answer(attempt, &reader, &request);
    if (!fault)
        fault = collection_read_page(attempt, &reader, &request, &page);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_printf(body, "{\"complete\":%s,\"first\":%s,", request.position.is_complete ? "true" : "false",
                   request.position.is_first ? "true" : "false");
    if (request.wants_ids) {
        builder_add_text(body, "\"ids\":");
        write_pairs(body, &page, false);
    } else {
        builder_add_text(body, "\"docs\":");
        fault = write_documents(attempt, &request, &page, body);
    }
    builder_add_text(body, ",\"left\":");
    write_pairs(body, &page, true);
    if (page.has_more)
        collection_request_write_cursor(attempt->call, &request, &page.members[page.count - 1], body);
    else
        add_token(attempt->call, &request, body);
    builder_add_text(body, "}");
    return fault;
}

static int collection_quota(const struct call *call)
{
    const struct json *stream = json_member(call->param, "stream");
    return stream && stream->kind == JSON_TRUE ? QUOTA_STREAMS : -1;
}

const struct operation builtin_collection = {.name = "collection",
                                             .right = RIGHT_READ,
                                             .is_safe = true,
                                             .quota = collection_quota,
                                             .obeys_rules = true,
                                             .work = collection_work,
                                             .afterwork = collection_stream};
