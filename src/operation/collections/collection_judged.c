/* collection_judged: pages are judged on the newest documents.  A member that was read and may not be seen,
 * or has gone since, is left out: what the caller has lost is found by its principals, and what changes later
 * is found by the next synchronisation.  A document that has expired leaves when it is deleted. */
#include "operation/collections/collection_judged.h"

#include <inttypes.h>

#include "base/clock.h"
#include "operation/collections/collection.h"
#include "operation/judge/judged_page.h"

enum { STREAM_ROWS = 250 }; /* judged before their lines are sent */

/* A page under way. */
struct judged_members {
    struct judged_page page;
    size_t limit, count;            /* members to be written, written */
    struct collection_member last;  /* the last one that was judged */
    bool is_full;                   /* there is another one */
    const char *between, *behind;   /* each, in the text */
    struct collection_member *left; /* those that have left, in the order in which they were read */
    size_t left_count, left_room;
    struct bytes *written; /* ids of those that were written */
    size_t written_room;
};

/* A stream under way. */
struct streamed_page {
    struct builder lines; /* not sent yet */
    int64_t members;      /* of all pages so far */
    bool is_end;
};

/* Some rows of the database that are judged together. */
struct judged_rows {
    struct bytes *ids;
    struct document_name *names;
    const struct document **documents;
    struct view *views;
    bool *are_new;
    size_t count; /* of those that are there; of them, judged */
    size_t judged;
};

/* --- members --- */

/* Whoever does not see the properties may not learn from the collection what they are. */
static bool collection_judged_is_shown(const struct collection_request *request,
                                       const struct document *document, const struct view *view)
{
    bool is_there = document_exists(document) && (request->collection || view_is_whole(view));
    for (size_t i = 0; is_there && request->collection && i < request->collection->key_count; i++)
        is_there = view_shows_plainly(view, request->collection->keys[i].item->name);
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

static enum fault judge_rows(struct attempt *attempt, const struct collection_request *request,
                             struct judged_members *judged, const struct collection_page *page,
                             struct judged_rows *rows)
{
    struct arena *arena = attempt->call->arena;
    *rows = (struct judged_rows){.names = ARENA_ROOM(arena, struct document_name, page->count + 1),
                                 .documents = ARENA_ROOM(arena, const struct document *, page->count + 1),
                                 .views = ARENA_ROOM(arena, struct view, page->count + 1),
                                 .are_new = ARENA_ROOM(arena, bool, page->count + 1)};
    int64_t *versions = ARENA_ROOM(arena, int64_t, page->count + 1);
    for (size_t i = 0; i < page->count; i++) {
        if (page->members[i].has_left)
            continue;
        versions[rows->count] = page->members[i].version;
        rows->names[rows->count++] = (struct document_name){request->class, page->members[i].id};
    }
    judged->page.versions = versions;
    enum fault fault = judged_page_load(&judged->page, attempt, rows->names, rows->count, rows->documents,
                                        rows->views, &rows->judged);
    if (!fault && !request->position.is_complete)
        fault = sight_was_written(attempt, &request->sight, rows->documents, rows->views, rows->judged,
                                  rows->are_new);
    return fault;
}

static void collection_judged_write_one(struct attempt *attempt, const struct collection_request *request,
                                        struct judged_members *judged, const struct document *document,
                                        const struct view *view, struct builder *body)
{
    if (judged->count)
        builder_add_bytes(body, bytes_of(judged->between));
    if (!request->position.is_complete) {
        ARENA_GROW(attempt->call->arena, judged->written, judged->count, judged->written_room);
        judged->written[judged->count] = document->header.id;
    }
    judged->count++;
    write_member(request, document, view, body);
    builder_add_bytes(body, bytes_of(judged->behind));
}

/* Writes what is to be sent of the rows.  is_cut_r: not all of them were judged. */
static enum fault write_judged(struct attempt *attempt, const struct collection_request *request,
                               struct judged_members *judged, const struct collection_page *page,
                               struct builder *body, bool *is_cut_r)
{
    const size_t most = (size_t)attempt->worker_context->settings->limit_answer_bytes;
    struct judged_rows rows;
    enum fault fault = judge_rows(attempt, request, judged, page, &rows);
    *is_cut_r = false;
    for (size_t i = 0, k = 0; !fault && i < page->count; i++) {
        const struct collection_member *member = &page->members[i];
        if (member->has_left) {
            ARENA_GROW(attempt->call->arena, judged->left, judged->left_count, judged->left_room);
            judged->left[judged->left_count++] = *member;
            judged->last = *member;
            continue;
        }
        if (k == rows.judged) {
            *is_cut_r = true;
            break;
        }
        const struct document *document = rows.documents[k];
        const struct view *view = &rows.views[k];
        bool is_wanted = collection_judged_is_shown(request, document, view) &&
                         (request->position.is_complete || rows.are_new[k]);
        bool has_room = !judged->count || body->size + view_size(view, document) <= most;
        k++;
        judged->is_full = is_wanted && (judged->count == judged->limit || !has_room);
        if (judged->is_full)
            break;
        judged->last = *member;
        if (is_wanted)
            collection_judged_write_one(attempt, request, judged, document, view, body);
    }
    return fault;
}

/* --- departures --- */

static void write_departure(struct bytes id, int64_t version, struct builder *body, const char **comma)
{
    builder_printf(body, "%s[", *comma);
    json_add_string(body, id);
    builder_printf(body, ",%" PRId64 "]", version);
    *comma = ",";
}

static bool is_lost(const struct store_sight_changes *changes, struct bytes id)
{
    for (size_t i = 0; i < changes->lost_count; i++)
        if (bytes_equal(changes->lost[i].id, id))
            return true;
    return false;
}

static bool is_written(const struct judged_members *judged, struct bytes id)
{
    for (size_t i = 0; i < judged->count; i++)
        if (bytes_equal(judged->written[i], id))
            return true;
    return false;
}

/* The first page has all that the caller has lost, whether it was in this collection or not: in which one it
 * is now is nothing that it may learn.  What it has gained again is in this page, or in a later one. */
static enum fault write_departures(struct attempt *attempt, const struct collection_request *request,
                                   const struct judged_members *judged, bool is_first, struct builder *body)
{
    struct arena *arena = attempt->call->arena;
    const struct store_sight_changes *changes = &request->sight.changes;
    struct bytes *ids = ARENA_ARRAY(arena, struct bytes, judged->left_count + 1);
    int64_t *versions = ARENA_ARRAY(arena, int64_t, judged->left_count + 1);
    bool *are_known = ARENA_ARRAY(arena, bool, judged->left_count + 1);
    const char *comma = "";
    for (size_t i = 0; i < judged->left_count; i++) {
        ids[i] = judged->left[i].id;
        versions[i] = judged->left[i].version;
    }
    enum fault fault =
        sight_was_before(attempt, &request->sight, ids, versions, judged->left_count, are_known);
    for (size_t i = 0; !fault && is_first && i < changes->lost_count; i++)
        if (!is_written(judged, changes->lost[i].id))
            write_departure(changes->lost[i].id, changes->lost[i].version, body, &comma);
    for (size_t i = 0; !fault && i < judged->left_count; i++)
        if (are_known[i] && !(is_first && is_lost(changes, ids[i])))
            write_departure(ids[i], versions[i], body, &comma);
    return fault;
}

/* --- a page --- */

/* Reads the first rows, of what has changed if that is known, else of the whole collection. */
static enum fault collection_judged_begin(struct attempt *attempt, const struct reader *reader,
                                          struct collection_request *request, struct collection_page *page)
{
    bool is_known = false;
    transaction_require_database(attempt->transaction); /* teams */
    if (!request->position.is_complete) {
        enum fault fault = collection_page_read(attempt, reader, request, page);
        if (!fault && !request->position.is_complete)
            fault = sight_changes(attempt, &request->sight, request->position.from, &is_known);
        if (fault || is_known)
            return fault;
        collection_request_start_over(request);
    }
    return FAULT_FIRST(request->position.is_first ? sight_follow(attempt, &request->sight) : FAULT_NONE,
                       collection_page_read(attempt, reader, request, page));
}

static enum fault go_on(struct attempt *attempt, const struct reader *reader,
                        struct collection_request *request, const struct judged_members *judged,
                        struct collection_page *page)
{
    request->position.is_first = false;
    request->position.transaction = judged->last.transaction;
    request->position.id = judged->last.id;
    return collection_page_read(attempt, reader, request, page);
}

enum fault collection_judged_answer(struct attempt *attempt, const struct reader *reader,
                                    struct collection_request *request)
{
    struct builder *body = attempt->reply->body;
    struct judged_members judged = {.limit = (size_t)request->limit, .between = ",", .behind = ""};
    struct collection_page page = {0};
    bool is_cut = false;
    if (request->limit < JUDGED_PAGE_LEAST)
        request->limit = JUDGED_PAGE_LEAST;
    enum fault fault = collection_judged_begin(attempt, reader, request, &page);
    if (fault)
        return fault;
    const bool is_first = request->position.is_first, is_complete = request->position.is_complete;
    builder_printf(body, "{\"complete\":%s,\"first\":%s,\"%s\":[", is_complete ? "true" : "false",
                   is_first ? "true" : "false", request->wants_ids ? "ids" : "docs");
    while (!fault) {
        fault = write_judged(attempt, request, &judged, &page, body, &is_cut);
        if (fault || judged.is_full || is_cut || !page.has_more || !judged_page_goes_on(&judged.page))
            break;
        fault = go_on(attempt, reader, request, &judged, &page);
    }
    if (fault)
        return fault;
    builder_add_text(body, "],\"left\":[");
    if (!is_complete)
        fault = write_departures(attempt, request, &judged, is_first, body);
    builder_add_text(body, "]");
    if (judged.is_full || is_cut || page.has_more) {
        collection_request_write_cursor(attempt->call, request, &judged.last, body);
    } else {
        builder_add_text(body, ",");
        collection_request_write_token(attempt->call, request, body);
    }
    builder_add_text(body, "}");
    return fault;
}

/* --- a stream --- */

static void collection_judged_destroy(void *arena)
{
    arena_destroy(arena);
}

/* Judges a page and adds its lines, in a transaction of its own.  What it reads is in the arena of the page,
 * which is destroyed with it, but for the arguments of a fault. */
static enum fault try_page(struct attempt *attempt, const struct reader *reader,
                           struct collection_request *request, bool in_snapshot,
                           struct streamed_page *streamed)
{
    struct arena *arena = attempt->call->arena, *own = arena_create("page");
    struct transaction *ended = attempt->transaction;
    struct judged_members judged = {.limit = SIZE_MAX, .between = "", .behind = "\n"};
    struct collection_page page = {0};
    bool is_cut = false;
    int64_t version;
    attempt->call->arena = own;
    enum fault fault = transaction_begin(attempt->worker_context->documents, attempt->ns, own, in_snapshot,
                                         &attempt->transaction);
    if (!fault) {
        attempt->is_open = true;
        fault = FAULT_FIRST(collection_judged_begin(attempt, reader, request, &page),
                            write_judged(attempt, request, &judged, &page, &streamed->lines, &is_cut),
                            transaction_validate(attempt->transaction, &version));
        transaction_end(attempt->transaction);
        attempt->is_open = false;
    }
    attempt->transaction = ended;
    attempt->call->arena = arena;
    streamed->members += (int64_t)judged.count;
    streamed->is_end = !page.has_more && !is_cut && !judged.is_full;
    if (!fault && !streamed->is_end) {
        request->position.is_first = false;
        request->position.transaction = judged.last.transaction;
        request->position.id = arena_keep(arena, judged.last.id);
    }
    if (fault && fault != FAULT_STALE)
        arena_defer(arena, collection_judged_destroy, own);
    else
        arena_destroy(own);
    return fault;
}

/* Tries as attempt_run does: nothing of the page was sent. */
static enum fault stream_page(struct attempt *attempt, const struct reader *reader,
                              struct collection_request *request, struct streamed_page *streamed)
{
    const struct collection_request before = *request;
    const int64_t members = streamed->members;
    enum fault fault = FAULT_STALE;
    for (int try = 0; fault == FAULT_STALE && try < ATTEMPT_TRIES; try++) {
        *request = before;
        streamed->members = members;
        streamed->lines.size = 0;
        fault = try_page(attempt, reader, request, try == ATTEMPT_TRIES - 1, streamed);
    }
    return fault;
}

enum fault collection_judged_stream(struct attempt *attempt, struct collection_request *request)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct reply *reply = attempt->reply;
    struct streamed_page streamed = {0};
    struct builder *lines = &streamed.lines;
    enum fault fault = FAULT_NONE;
    request->limit = STREAM_ROWS;
    while (!fault && !streamed.is_end) {
        fault = stream_page(attempt, &reader, request, &streamed);
        reply->mime = MIME_LINES;
        if (fault || reply->outlet->is_head)
            break;
        if (streamed.is_end) {
            builder_printf(lines, "{\"members\":%" PRId64 ",", streamed.members);
            collection_request_write_token(attempt->call, request, lines);
            builder_add_text(lines, "}\n");
        }
        if (clock_monotonic_ms() > attempt->call->deadline_ms ||
            !reply->outlet->send(reply->outlet, reply, builder_bytes(lines)))
            fault = FAULT_XTIME;
        lines->size = 0;
    }
    if (!fault && reply->outlet->is_head && !reply->outlet->send(reply->outlet, reply, BYTES("")))
        fault = FAULT_XTIME;
    builder_free(lines);
    return attempt_answer(fault);
}
