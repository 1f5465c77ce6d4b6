/* list: headers of the living documents of a class, by pages in the order of their ids.
 * param {"c","prefix","after":version,"limit","cursor"} → out
 * {"docs":[{"c","id","v","ct","dt"}…],"cursor":id}. A page may hold fewer than `limit`, even none: only an
 * absent cursor is the end.  Each page is consistent at its own instant.
 * Without "c" the classes themselves: {"limit","cursor"} → {"classes":[…],"cursor":class}. */
#include "operation/builtin/builtin.h"

#include "base/clock.h"
#include "model/stamp.h"
#include "operation/reader.h"
#include "store/store_list.h"
#include "operation/reply.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000 };

static enum fault read_query(const struct reader *reader, const struct json *param, struct list_query *query)
{
    int64_t limit = LIMIT_STANDARD;
    enum fault fault = reader_class(reader, param, "c", &query->class);
    if (!fault)
        fault = reader_text(reader, param, "prefix", &query->prefix);
    if (!fault && query->prefix.size)
        fault = reader_check_length(reader, param, "prefix", query->prefix);
    if (!fault)
        fault = reader_text(reader, param, "cursor", &query->cursor);
    if (!fault && query->cursor.size)
        fault = reader_check_length(reader, param, "cursor", query->cursor);
    if (!fault)
        fault = reader_integer(reader, param, "after", 0, STAMP_MAX, 0, &query->after);
    if (!fault)
        fault = reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    query->limit = (int32_t)limit;
    query->minute = clock_present_minute();
    return fault;
}

static void write_header(struct builder *body, const struct header *header)
{
    builder_add_text(body, "{\"c\":");
    json_add_string(body, header->class);
    builder_add_text(body, ",\"id\":");
    json_add_string(body, header->id);
    builder_printf(body, ",\"v\":%lld,\"ct\":%lld,\"dt\":%lld}", (long long)header->version,
                   (long long)header->ctime, (long long)header->dtime);
}

/* `more`: where the next page begins; NO_BYTES: this is the last. */
static void write_end(struct builder *body, struct bytes more)
{
    builder_add_text(body, "]");
    if (more.data) {
        builder_add_text(body, ",\"cursor\":");
        json_add_string(body, more);
    }
    builder_add_text(body, "}");
}

static enum fault list_documents(struct attempt *attempt, const struct reader *reader)
{
    struct list_query query = {0};
    struct header *headers;
    size_t count;
    struct bytes more;
    enum fault fault = read_query(reader, attempt->call->param, &query);
    if (!fault)
        fault = store_list(documents_store(attempt->worker_context->documents), attempt->ns,
                           attempt->call->arena, &query, &headers, &count, &more);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"docs\":[");
    for (size_t i = 0; i < count; i++) {
        if (i)
            builder_add_text(body, ",");
        write_header(body, &headers[i]);
    }
    write_end(body, more);
    return FAULT_NONE;
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
    return json_member(attempt->call->param, "c") ? list_documents(attempt, &reader)
                                                  : list_classes(attempt, &reader);
}

const struct operation builtin_list = {
    .name = "list", .right = RIGHT_READ, .is_safe = true, .work = list_work};
