/* collection with "stream": the whole of a large collection in one answer, a line of JSON for each member, as
 * the database sends them: `get`'s documents, or pairs of id and version.  The last line has the token,
 * {"members":number,"token":text}; without it the answer is incomplete.
 *
 * Where rules decide, it is made of judged pages (collection_judged.h).  Elsewhere
 * documents go from the database to the client: no cache stores them, and a worker holds at most one piece
 * and one item of them.  All are of one snapshot, whose horizon is in the token. */
#include "operation/collections/collection_stream.h"

#include <inttypes.h>

#include "base/clock.h"
#include "operation/collections/collection_judged.h"
#include "operation/collections/collection_request.h"
#include "operation/quota.h"
#include "store/collections/store_stream.h"
#include "operation/reply.h"

enum { PIECE_BYTES = 128 * 1024 };

static void begin_document(struct builder *lines, struct bytes class, const struct store_stream_row *row)
{
    builder_add_text(lines, "{\"c\":");
    json_add_string(lines, class);
    builder_add_text(lines, ",\"id\":");
    json_add_string(lines, row->id);
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
    builder_add_text(lines, "{\"c\":");
    json_add_string(lines, item->iclass);
    if (item->key.size) {
        builder_add_text(lines, ",\"k\":");
        json_add_string(lines, item->key);
    }
    builder_add_text(lines, ",\"v\":");
    builder_add_i64(lines, item->version);
    if (item->raw) {
        builder_add_text(lines, ",\"s\":");
        json_add_string(lines, item->content);
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
    int64_t members;
};

static enum fault collection_stream_send(struct writing *writing)
{
    struct reply *reply = writing->attempt->reply;
    if (clock_monotonic_ms() > writing->attempt->call->deadline_ms ||
        !reply->outlet->send(reply->outlet, reply, builder_bytes(writing->lines)))
        return FAULT_XTIME;
    writing->lines->size = 0;
    return FAULT_NONE;
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
        if (lines->size >= PIECE_BYTES && (fault = collection_stream_send(writing)))
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
    enum fault fault = collection_stream_send(writing); /* the head, which cannot be taken back */
    if (!fault)
        fault = write_rows(writing, stream);
    store_stream_end(stream);
    if (fault)
        return fault;
    builder_printf(writing->lines, "{\"members\":%" PRId64 ",", writing->members);
    collection_request_write_token(writing->attempt->call, writing->request, writing->lines);
    builder_add_text(writing->lines, "}\n");
    return collection_stream_send(writing);
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

static enum fault answer_stream(struct attempt *attempt, const struct collection_request *request)
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
    struct writing writing = {.attempt = attempt, .request = &begun, .lines = &lines};
    if (reply->outlet->is_head) {
        fault = collection_stream_send(&writing);
        store_stream_end(stream);
    } else {
        fault = write_stream(&writing, stream);
    }
    builder_free(&lines);
    return fault;
}

enum fault collection_stream(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct reply *reply = attempt->reply;
    bool is_stream;
    struct collection_request request;
    enum fault fault = reader_boolean(&reader, attempt->call->param, "stream", &is_stream);
    if (fault || !is_stream)
        return fault;
    fault = collection_request_read(attempt, &reader, &request);
    if (!fault)
        fault = quota_begin_stream(attempt);
    if (fault)
        return fault;
    reply->outlet->prepare(reply->outlet);
    limit_time(attempt);
    fault = explain_time(attempt, request.is_judged ? collection_judged_stream(attempt, &request)
                                                    : answer_stream(attempt, &request));
    quota_end_stream(attempt);
    return fault;
}
