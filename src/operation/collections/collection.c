/* collection: the documents of a class that share the value of a property, synchronised (collections.md).
 * param {"c","collection","value","token","cursor","limit","want":"docs"|"ids","stream"} → out
 * {"complete","first","docs":[document…]|"ids":[[id,version]…],"left":[[id,version]…],"cursor"|"token"}; with
 * `stream` the documents come one by one.
 *
 * A token records up to which transactions its client knows the collection: all that had ended when the
 * first page was read.  The next synchronisation reads what was written by that transaction or later ones, so
 * a commit that becomes visible late is never missed; some changes come twice.  Answers carry the present
 * state of each row, so a client that applies them in their order needs no version. */
#include "operation/collections/collection.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "operation/answer.h"
#include "operation/attempt.h"
#include "operation/builtin.h"
#include "operation/collections/collection_judged.h"
#include "operation/collections/collection_kept.h"
#include "operation/quota.h"
#include "operation/reply.h"
#include "store/collections/store_collection.h"
#include "store/collections/store_stream.h"

/* --- streams --- */

/* With "stream": the whole of a large collection in one answer, a line of JSON for each member, as
 * the database sends them: `get`'s documents, or pairs of id and version.  The last line has the token,
 * {"members":number,"token":text}; without it the answer is incomplete.
 *
 * Where rules decide, it is made of judged pages (collection_judged.h).  Elsewhere
 * documents go from the database to the client: no cache stores them, and a worker holds at most one piece
 * and one item of them.  All are of one snapshot, whose horizon is in the token.  What is sent may be kept
 * for other callers (collection_kept.h). */

enum { PIECE_BYTES = 128 * 1024 };

static void begin_document(struct builder *lines, struct bytes class, const struct store_stream_row *row)
{
    json_add_text(lines, "{\"c\":", class);
    json_add_text(lines, ",\"id\":", row->id);
    builder_add_text(lines, ",\"v\":");
    builder_add_i64(lines, row->version);
    builder_add_text(lines, ",\"ct\":");
    builder_add_i64(lines, row->ctime);
    builder_add_text(lines, ",\"dt\":");
    builder_add_i64(lines, row->dtime);
    builder_add_text(lines, ",\"items\":[");
}

static void collection_stream_add_item(struct builder *lines, const struct item *item)
{
    json_add_text(lines, "{\"c\":", item->iclass);
    if (item->key.size)
        json_add_text(lines, ",\"k\":", item->key);
    builder_add_text(lines, ",\"v\":");
    builder_add_i64(lines, item->version);
    if (item->raw) {
        json_add_text(lines, ",\"s\":", item->content);
    } else {
        builder_add_text(lines, ",\"j\":");
        builder_add_bytes(lines, item->content);
    }
    builder_add_text(lines, "}");
}

static void add_pair(struct builder *lines, const struct store_stream_row *row)
{
    builder_add_text(lines, "[");
    json_add_string(lines, row->id);
    builder_add_text(lines, ",");
    builder_add_i64(lines, row->version);
    builder_add_text(lines, "]");
}

/* How the rows are processed. */
struct writing {
    struct attempt *attempt;
    const struct collection_request *request;
    struct builder *lines;
    struct kept_stream *kept; /* NULL: it is not kept, and sent as it is */
    struct builder packed;    /* of what is kept */
    int64_t members;
};

static enum fault collection_stream_send(struct writing *writing)
{
    struct reply *reply = writing->attempt->reply;
    struct builder *text = reply->is_gzip ? &writing->packed : writing->lines;
    if (clock_monotonic_ms() > writing->attempt->call->deadline_ms ||
        !reply->outlet->send(reply->outlet, reply, builder_bytes(text)))
        return FAULT_XTIME;
    text->size = 0;
    return FAULT_NONE;
}

/* Sends the lines so far. */
static enum fault send_lines(struct writing *writing, bool is_last)
{
    struct reply *reply = writing->attempt->reply;
    if (writing->kept && is_last && !reply->outlet->is_open) {
        collection_kept_decline(writing->kept);
        writing->kept = NULL;
    }
    if (!writing->kept)
        return collection_stream_send(writing);
    reply->is_gzip = true;
    collection_kept_add(writing->kept, builder_bytes(writing->lines), is_last, &writing->packed);
    writing->lines->size = 0;
    return collection_stream_send(writing);
}

static void end_line(struct writing *writing)
{
    if (!writing->members)
        return;
    if (!writing->request->wants_ids)
        builder_add_text(writing->lines, "]}");
    builder_add_text(writing->lines, "\n");
}

static enum fault write_rows(struct writing *writing, struct store_stream *stream)
{
    const struct store_stream_row *row;
    struct builder *lines = writing->lines;
    bool has_items = false;
    enum fault fault;
    while (!(fault = store_stream_next(stream, &row)) && row) {
        if (lines->size >= PIECE_BYTES && (fault = send_lines(writing, false)))
            return fault;
        if (row->is_first) {
            end_line(writing);
            writing->members++;
            has_items = false;
            if (writing->request->wants_ids)
                add_pair(lines, row);
            else
                begin_document(lines, writing->request->class, row);
        }
        if (!row->item.iclass.size)
            continue;
        if (has_items)
            builder_add_text(lines, ",");
        has_items = true;
        collection_stream_add_item(lines, &row->item);
    }
    end_line(writing);
    return fault;
}

static enum fault write_stream(struct writing *writing, struct store_stream *stream)
{
    /* The head, which cannot be taken back.  Of what is kept it depends on the size of the first piece. */
    enum fault fault = FAULT_FIRST(writing->kept ? FAULT_NONE : collection_stream_send(writing),
                                   write_rows(writing, stream));
    store_stream_end(stream);
    if (fault)
        return fault;
    builder_printf(writing->lines, "{\"members\":%" PRId64 ",", writing->members);
    collection_request_write_token(writing->attempt->call, writing->request, writing->lines);
    builder_add_text(writing->lines, "}\n");
    return send_lines(writing, true);
}

/* Callers other than administrators get less time of a worker than an operation may take. */
static void limit_time(struct attempt *attempt)
{
    struct call *call = attempt->call;
    int64_t until_ms = clock_monotonic_ms() + attempt->worker_context->settings->limit_stream_ms;
    if (call->level < LEVEL_EVERYTHING && !call->task && until_ms < call->deadline_ms)
        call->deadline_ms = until_ms;
}

/* Once a piece has been sent it is only for the log and the metrics. */
static enum fault explain_time(const struct attempt *attempt, enum fault fault)
{
    if (fault != FAULT_XTIME || clock_monotonic_ms() < attempt->call->deadline_ms)
        return fault;
    return reply_fault(
        attempt->call, attempt->reply, fault, NULL, "limit_stream_ms",
        arena_printf(attempt->call->arena, "%" PRId64, attempt->worker_context->settings->limit_stream_ms),
        NULL);
}

static enum fault query_stream(struct attempt *attempt, const struct collection_request *request,
                               struct kept_stream *kept)
{
    struct reply *reply = attempt->reply;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, reply};
    const struct collection_query query = {.arena = attempt->call->arena,
                                           .class = request->class,
                                           .name = request->name,
                                           .value = request->value,
                                           .value_count = request->value_count,
                                           .minute = clock_present_minute()};
    struct collection_page page;
    struct store_stream *stream;
    enum fault fault =
        store_stream_begin(documents_store(attempt->worker_context->documents), attempt->ns, &query,
                           !request->wants_ids, attempt->call->deadline_ms, &page, &stream);
    if (!fault)
        fault = collection_request_judge(&reader, request, &page);
    if (fault)
        return fault;
    struct collection_request begun = *request;
    collection_request_begin(&begun.position, &page, query.minute);
    reply->mime = MIME_LINES;
    struct builder lines = {0};
    struct writing writing = {.attempt = attempt, .request = &begun, .lines = &lines, .kept = kept};
    if (reply->outlet->is_head) {
        fault = collection_stream_send(&writing);
        store_stream_end(stream);
    } else {
        fault = write_stream(&writing, stream);
    }
    builder_free(&lines);
    builder_free(&writing.packed);
    return fault;
}

static enum fault send_kept(struct attempt *attempt, struct kept_stream *kept)
{
    struct reply *reply = attempt->reply;
    struct writing writing = {.attempt = attempt};
    enum fault fault = FAULT_NONE;
    reply->mime = MIME_LINES;
    reply->is_gzip = true;
    do {
        fault = collection_kept_read(kept, &writing.packed) ? FAULT_NONE : FAULT_BINTERNAL;
    } while (!fault && writing.packed.size && !(fault = collection_stream_send(&writing)));
    builder_free(&writing.packed);
    return fault;
}

static enum fault answer_stream(struct attempt *attempt, const struct collection_request *request)
{
    enum collection_kept_state state;
    struct kept_stream *kept;
    return FAULT_FIRST(collection_kept_find(attempt, request, &state, &kept),
                       state == COLLECTION_KEPT_WHOLE ? send_kept(attempt, kept)
                                                      : query_stream(attempt, request, kept));
}

/* Afterwork: sends the whole collection when a stream was requested. */
static enum fault collection_stream(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct reply *reply = attempt->reply;
    bool is_stream;
    struct collection_request request;
    enum fault fault = reader_boolean(&reader, attempt->call->param, "stream", &is_stream);
    if (fault || !is_stream)
        return fault;
    fault = FAULT_FIRST(collection_request_read(attempt, &reader, &request), quota_begin_stream(attempt));
    if (fault)
        return fault;
    reply->outlet->prepare(reply->outlet);
    limit_time(attempt);
    fault = explain_time(attempt, request.is_judged ? collection_judged_stream(attempt, &request)
                                                    : answer_stream(attempt, &request));
    quota_end_stream(attempt);
    return fault;
}

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
