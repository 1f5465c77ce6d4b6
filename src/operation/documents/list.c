/* list: headers of the living documents of a class, by pages in the order of their ids.
 * param {"c","prefix","after":version,"limit","cursor"} → out
 * {"docs":[{"c","id","v","ct","dt"}…],"cursor":id}. A page may hold fewer than `limit`, even none: only an
 * absent cursor is the end.  Each page is consistent at its own instant.
 * Without "c" the classes themselves: {"limit","cursor"} → {"classes":[…],"cursor":class}. */
#include "operation/builtin.h"

#include "base/clock.h"
#include "model/document/stamp.h"
#include "operation/cursor.h"
#include "operation/judge/judged_page.h"
#include "operation/reader.h"
#include "operation/signed_text.h"
#include "store/collections/store_list.h"
#include "operation/reply.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000 };

static enum fault read_query(const struct reader *reader, const struct json *param, struct list_query *query)
{
    int64_t limit = LIMIT_STANDARD;
    enum fault fault = FAULT_FIRST(reader_class(reader, param, "c", &query->class),
                                   reader_text(reader, param, "prefix", &query->prefix));
    if (!fault && query->prefix.size)
        fault = reader_check_length(reader, param, "prefix", query->prefix);
    if (!fault)
        fault = reader_text(reader, param, "cursor", &query->cursor);
    if (!fault && query->cursor.size && !call_is_judged(reader->call))
        fault = reader_check_length(reader, param, "cursor", query->cursor);
    if (!fault)
        fault = FAULT_FIRST(reader_integer(reader, param, "after", 0, STAMP_MAX, 0, &query->after),
                            reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit));
    query->limit = (int32_t)limit;
    query->minute = clock_present_minute();
    return fault;
}

static void write_header(struct builder *body, const struct header *header, int64_t version, int64_t dtime)
{
    json_add_text(body, "{\"c\":", header->class);
    json_add_text(body, ",\"id\":", header->id);
    builder_printf(body, ",\"v\":%lld,\"ct\":%lld,\"dt\":%lld}", (long long)version, (long long)header->ctime,
                   (long long)dtime);
}

/* `more`: where the next page begins; NO_BYTES: this is the last. */
static void write_end(struct builder *body, struct bytes more)
{
    builder_add_text(body, "]");
    if (more.data)
        json_add_text(body, ",\"cursor\":", more);
    builder_add_text(body, "}");
}

static enum fault list_documents(struct attempt *attempt, const struct reader *reader)
{
    struct list_query query = {0};
    struct header *headers;
    size_t count;
    struct bytes more;
    enum fault fault =
        FAULT_FIRST(read_query(reader, attempt->call->param, &query),
                    store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                               attempt->call->arena, &query, &headers, &count, &more));
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"docs\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(body, ",");
        write_header(body, &headers[i], headers[i].version, headers[i].dtime);
    }
    write_end(body, more);
    return FAULT_NONE;
}

/* --- where rules decide --- */

/* The list that a cursor belongs to. */
static struct bytes make_question(const struct call *call, const struct list_query *query)
{
    struct builder text = {0};
    signed_text_add_part(&text, BYTES("list"));
    signed_text_add_part(&text, query->class);
    signed_text_add_part(&text, query->prefix);
    builder_printf(&text, "%lld", (long long)query->after);
    return builder_take(&text, call->arena);
}

/* A page under way. */
struct judged_list {
    struct list_query query;
    struct judged_page page;
    size_t limit, count; /* documents to be listed, listed */
    bool is_full;        /* there is another one */
};

static bool list_is_listed(const struct judged_list *list, const struct document *document,
                           const struct view *view)
{
    return document_exists(document) && view_version(view, document) > list->query.after;
}

/* Lists those of the rows that the caller may learn of; all up to query.cursor are done. */
static enum fault list_rows(struct attempt *attempt, struct judged_list *list, const struct header *headers,
                            size_t count, bool *is_cut_r)
{
    struct arena *arena = attempt->call->arena;
    struct builder *body = attempt->reply->body;
    struct document_name *names = ARENA_ROOM(arena, struct document_name, count);
    const struct document **documents = ARENA_ROOM(arena, const struct document *, count);
    struct view *views = ARENA_ROOM(arena, struct view, count);
    size_t judged;
    for (size_t i = 0; i < count; i++)
        names[i] = (struct document_name){list->query.class, headers[i].id};
    enum fault fault = judged_page_load(&list->page, attempt, names, count, documents, views, &judged);
    for (size_t i = 0; !fault && i < judged; i++) {
        bool is_wanted = list_is_listed(list, documents[i], &views[i]);
        list->is_full = is_wanted && list->count == list->limit;
        if (list->is_full)
            break;
        list->query.cursor = names[i].id;
        if (!is_wanted)
            continue;
        if (list->count++)
            builder_add_text(body, ",");
        const struct header *header = &documents[i]->header;
        const int64_t version = view_version(&views[i], documents[i]);
        write_header(body, header, version, view_is_whole(&views[i]) ? header->dtime : version);
    }
    *is_cut_r = judged < count;
    return fault;
}

static enum fault list_judged(struct attempt *attempt, const struct reader *reader)
{
    struct judged_list list = {0};
    struct bytes question, more = NO_BYTES;
    struct cursor_row row = {.count = 1, .bytes_most = CURSOR_NAME_MOST};
    bool is_cut = false, is_ours = true;
    enum fault fault = read_query(reader, attempt->call->param, &list.query);
    if (fault)
        return fault;
    question = make_question(attempt->call, &list.query);
    if (list.query.cursor.data)
        fault = cursor_read(attempt, question, list.query.cursor, &row, &is_ours);
    if (!fault && is_ours && list.query.cursor.data)
        list.query.cursor = row.texts[0];
    if (!is_ours && !fault)
        fault = reader_wrong(reader, attempt->call->param, "cursor",
                             "The cursor of an earlier page of the same list is expected.");
    list.limit = (size_t)list.query.limit;
    if (list.query.limit < JUDGED_PAGE_LEAST)
        list.query.limit = JUDGED_PAGE_LEAST;
    builder_add_text(attempt->reply->body, "{\"docs\":[");
    while (!fault) {
        struct header *headers;
        size_t count;
        fault = FAULT_FIRST(store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                                       attempt->call->arena, &list.query, &headers, &count, &more),
                            list_rows(attempt, &list, headers, count, &is_cut));
        if (fault || list.is_full || is_cut || !more.data)
            break;
        list.query.cursor = more;
        if (!judged_page_goes_on(&list.page))
            break;
    }
    struct bytes cursor = NO_BYTES;
    row.texts[0] = list.query.cursor;
    if (!fault && (list.is_full || is_cut || more.data))
        fault = cursor_make(attempt, question, &row, &cursor);
    write_end(attempt->reply->body, cursor);
    return fault;
}

static enum fault list_classes(struct attempt *attempt, const struct reader *reader)
{
    const struct json *param = attempt->call->param;
    if (json_member(param, "prefix") || json_member(param, "after"))
        return reader_wrong(reader, param, "c", "With prefix or after, a class name is expected.");
    struct bytes cursor, *classes;
    int64_t limit;
    size_t count;
    enum fault fault = reader_text(reader, param, "cursor", &cursor);
    if (!fault && cursor.size)
        fault = reader_class(reader, param, "cursor", &cursor);
    if (!fault)
        fault = reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    if (!fault) /* one more is requested only to detect that there is one */
        fault = store_list_classes(documents_store(attempt->worker_context->documents), attempt->ns,
                                   attempt->call->arena, cursor, (int32_t)limit + 1, &classes, &count);
    if (fault)
        return fault;
    bool has_more = count > (size_t)limit;
    count -= has_more;
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"classes\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(body, ",");
        json_add_string(body, classes[i]);
    }
    write_end(body, has_more ? classes[count - 1] : NO_BYTES);
    return FAULT_NONE;
}

static enum fault list_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    enum fault fault = reader_members(&reader, attempt->call->param, "c prefix after limit cursor");
    if (fault)
        return fault;
    if (call_is_judged(attempt->call) && json_member(attempt->call->param, "c"))
        return list_judged(attempt, &reader);
    if (call_is_judged(attempt->call)) /* there may be classes that the caller may not know of */
        return reply_fault(attempt->call, attempt->reply, FAULT_SCLOSED,
                           "Without the administrator's key, c is expected.", "list", NULL);
    return json_member(attempt->call->param, "c") ? list_documents(attempt, &reader)
                                                  : list_classes(attempt, &reader);
}

const struct operation builtin_list = {
    .name = "list", .right = RIGHT_READ, .is_safe = true, .obeys_rules = true, .work = list_work};
