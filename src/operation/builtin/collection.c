/* collection: the documents of a class that share the value of a property, synchronised (collections.md).
 * param {"c","collection","value","token","cursor","limit","want":"docs"|"ids","stream"} → out
 * {"complete","first","docs":[document…]|"ids":[[id,version]…],"left":[[id,version]…],"cursor"|"token"}; with
 * `stream` see collection_stream.c.
 *
 * A token records up to which transactions its client knows the collection: all that had ended when the
 * first page was read.  The next synchronisation reads what was written by that transaction or later ones, so
 * a commit that becomes visible late is never missed; some changes come twice.  Answers carry the present
 * state of each row, so a client that applies them in their order needs no version. */
#include "operation/builtin/collection_request.h"

#include <inttypes.h>
#include <stdio.h>

#include "base/clock.h"
#include "operation/answer.h"
#include "operation/judged_page.h"
#include "operation/builtin/builtin.h"
#include "operation/builtin/collection_stream.h"
#include "store/store_collection.h"
#include "operation/reply.h"

/* --- the page ------------------------------------------------------------------------------------ */

static void add_token(const struct call *call, const struct collection_request *request, struct builder *body)
{
    builder_add_text(body, ",");
    collection_request_write_token(call, request, body);
}

/* Is the client's state recent enough to send only the changes since? */
static bool is_known(const struct collection_position *position, const struct collection_page *page)
{
    bool is_same = position->life == page->life && position->number == page->number;
    return is_same && (position->is_complete || (page->floor < position->from && !page->has_ended_more));
}

static enum fault read_page(struct attempt *attempt, const struct reader *reader,
                            struct collection_request *request, struct collection_page *page)
{
    struct collection_position *position = &request->position;
    const int64_t minute = clock_present_minute();
    for (;;) {
        const struct collection_query query = {
            .arena = attempt->call->arena,
            .class = request->class,
            .name = request->name,
            .value = request->value,
            .transaction = position->transaction,
            .id = position->id,
            .with_departures = !position->is_complete,
            .since = position->is_complete ? INT64_MAX : position->since,
            .minute = minute,
            .limit = (int32_t)request->limit,
        };
        enum fault fault =
            store_collection(documents_store(attempt->worker_context->documents), attempt->ns, &query, page);
        if (!fault)
            fault = collection_request_judge(reader, request, page);
        if (fault)
            return fault;
        bool is_start = position->is_complete && position->is_first;
        if (is_start || is_known(position, page))
            break;
        *position = (struct collection_position){.is_complete = true, .is_first = true}; /* starts over */
    }
    if (position->from > page->next)
        return reader_wrong(reader, NULL, "token", "A token of an earlier answer is expected.");
    if (position->is_first)
        collection_request_begin(position, page, minute);
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

/* --- where rules decide --- */

enum { STREAM_ROWS = 250 }; /* judged before their lines are sent */

static void destroy(void *arena)
{
    arena_destroy(arena);
}

/* A page under way. */
struct judged_members {
    struct judged_page page;
    size_t limit, count;           /* members to be written, written */
    struct collection_member last; /* the last one that was judged */
    bool is_full;                  /* there is another one */
    const char *between, *behind;  /* each, in the text */
};

/* Whoever does not see the properties may not learn from the collection what they are. */
static bool is_shown(const struct collection_request *request, const struct document *document,
                     const struct view *view)
{
    bool is_there = document_exists(document) && (request->collection || view_is_whole(view));
    for (size_t i = 0; is_there && request->collection && i < request->collection->key_count; i++)
        is_there = view_shows(view, request->collection->keys[i].item->name);
    return is_there;
}

static void write_member(const struct collection_request *request, const struct document *document,
                         const struct view *view, struct builder *body)
{
    if (!request->wants_ids) {
        view_write_json(view, document, body);
        return;
    }
    builder_add_text(body, "[");
    json_add_string(body, document->header.id);
    builder_printf(body, ",%" PRId64 "]", view_version(view, document));
}

static enum fault write_judged(struct attempt *attempt, const struct collection_request *request,
                               struct judged_members *judged, const struct collection_page *page,
                               struct builder *body, bool *is_cut_r)
{
    struct arena *arena = attempt->call->arena;
    struct document_name *names = ARENA_ROOM(arena, struct document_name, page->count);
    const struct document **documents = ARENA_ROOM(arena, const struct document *, page->count);
    struct view *views = ARENA_ROOM(arena, struct view, page->count);
    const size_t most = (size_t)attempt->worker_context->settings->limit_answer_bytes;
    size_t count;
    for (size_t i = 0; i < page->count; i++)
        names[i] = (struct document_name){request->class, page->members[i].id};
    enum fault fault = judged_page_load(&judged->page, attempt, names, page->count, documents, views, &count);
    for (size_t i = 0; !fault && i < count; i++) {
        bool is_wanted = is_shown(request, documents[i], &views[i]);
        bool has_room = !judged->count || body->size + view_size(&views[i], documents[i]) <= most;
        judged->is_full = is_wanted && (judged->count == judged->limit || !has_room);
        if (judged->is_full)
            break;
        judged->last = page->members[i];
        if (!is_wanted)
            continue;
        if (judged->count++)
            builder_add_bytes(body, bytes_of(judged->between));
        write_member(request, documents[i], &views[i], body);
        builder_add_bytes(body, bytes_of(judged->behind));
    }
    *is_cut_r = count < page->count;
    return fault;
}

/* The whole collection, by pages: no token says later what has changed since, as the rights of the caller may
 * have changed too. */
static enum fault answer_judged(struct attempt *attempt, const struct reader *reader,
                                struct collection_request *request)
{
    struct builder *body = attempt->reply->body;
    struct judged_members judged = {.limit = (size_t)request->limit, .between = ",", .behind = ""};
    struct collection_page page = {0};
    bool is_cut = false;
    if (request->limit < JUDGED_PAGE_LEAST)
        request->limit = JUDGED_PAGE_LEAST;
    enum fault fault = read_page(attempt, reader, request, &page);
    builder_printf(body, "{\"complete\":true,\"first\":%s,\"%s\":[",
                   request->position.is_first ? "true" : "false", request->wants_ids ? "ids" : "docs");
    while (!fault) {
        fault = write_judged(attempt, request, &judged, &page, body, &is_cut);
        if (fault || judged.is_full || is_cut || !page.has_more || !judged_page_goes_on(&judged.page))
            break;
        request->position.is_first = false;
        request->position.transaction = judged.last.transaction;
        request->position.id = judged.last.id;
        fault = read_page(attempt, reader, request, &page);
    }
    if (fault)
        return fault;
    builder_add_text(body, "],\"left\":[]");
    if (judged.is_full || is_cut || page.has_more)
        collection_request_write_cursor(attempt->call, request, &judged.last, body);
    builder_add_text(body, "}");
    return fault;
}

/* Judges a page and adds its lines.  What it reads is in the arena of the page, which is destroyed with it,
 * but for the arguments of a fault. */
static enum fault stream_page(struct attempt *attempt, const struct reader *reader,
                              struct collection_request *request, struct builder *lines, int64_t *members,
                              bool *is_end_r)
{
    struct arena *arena = attempt->call->arena, *own = arena_create("page");
    struct judged_members judged = {.limit = SIZE_MAX, .between = "", .behind = "\n"};
    struct collection_page page = {0};
    bool is_cut = false;
    attempt->call->arena = own;
    enum fault fault = read_page(attempt, reader, request, &page);
    if (!fault)
        fault = write_judged(attempt, request, &judged, &page, lines, &is_cut);
    attempt->call->arena = arena;
    *members += (int64_t)judged.count;
    *is_end_r = !page.has_more && !is_cut && !judged.is_full;
    if (!fault && !*is_end_r) {
        request->position.is_first = false;
        request->position.transaction = judged.last.transaction;
        request->position.id =
            (struct bytes){arena_copy(arena, judged.last.id.data, judged.last.id.size), judged.last.id.size};
    }
    if (fault)
        arena_defer(arena, destroy, own);
    else
        arena_destroy(own);
    return fault;
}

enum fault collection_stream_judged(struct attempt *attempt, struct collection_request *request)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct reply *reply = attempt->reply;
    struct builder lines = {0};
    int64_t members = 0;
    bool is_end = false;
    enum fault fault = FAULT_NONE;
    request->limit = STREAM_ROWS;
    while (!fault && !is_end) {
        fault = stream_page(attempt, &reader, request, &lines, &members, &is_end);
        reply->mime = MIME_LINES;
        if (fault || reply->outlet->is_head)
            break;
        if (is_end)
            builder_printf(&lines, "{\"members\":%" PRId64 "}\n", members);
        if (clock_monotonic_ms() > attempt->call->deadline_ms ||
            !reply->outlet->send(reply->outlet, reply, builder_bytes(&lines)))
            fault = FAULT_XTIME;
        lines.size = 0;
    }
    if (!fault && reply->outlet->is_head && !reply->outlet->send(reply->outlet, reply, BYTES("")))
        fault = FAULT_XTIME;
    builder_free(&lines);
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
        return answer_judged(attempt, &reader, &request);
    if (!fault)
        fault = read_page(attempt, &reader, &request, &page);
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

static int quota(const struct call *call)
{
    const struct json *stream = json_member(call->param, "stream");
    return stream && stream->kind == JSON_TRUE ? QUOTA_STREAMS : -1;
}

const struct operation builtin_collection = {.name = "collection",
                                             .right = RIGHT_READ,
                                             .is_safe = true,
                                             .quota = quota,
                                             .obeys_rules = true,
                                             .work = collection_work,
                                             .afterwork = collection_stream};
