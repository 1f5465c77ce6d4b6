/* list: headers of the living documents of a class, by pages in the order of their ids.
 * param {"c","prefix","after":version,"limit","cursor"} → out
 * {"docs":[{"c","id","v","ct","dt"}…],"cursor":id}. A page may hold fewer than `limit`, even none: only an
 * absent cursor is the end.  True at its own instant. */
#include "operation/builtin/builtin.h"

#include "document/stamp.h"
#include "operation/reader.h"

enum { LIMIT_STANDARD = 100, LIMIT_MOST = 1000 };

static enum fault read_query(const struct reader *reader, const struct json *param, struct list_query *query)
{
    int64_t limit = LIMIT_STANDARD;
    enum fault fault = reader_class(reader, param, "c", &query->class);
    if (!fault)
        fault = reader_text(reader, param, "prefix", &query->prefix);
    if (!fault && query->prefix.size)
        fault = reader_check_length(reader, "prefix", query->prefix);
    if (!fault)
        fault = reader_text(reader, param, "cursor", &query->cursor);
    if (!fault && query->cursor.size)
        fault = reader_check_length(reader, "cursor", query->cursor);
    if (!fault)
        fault = reader_integer(reader, param, "after", 0, STAMP_MAX, 0, &query->after);
    if (!fault)
        fault = reader_integer(reader, param, "limit", 1, LIMIT_MOST, LIMIT_STANDARD, &limit);
    query->limit = (int32_t)limit;
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

static enum fault list_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->workshop->settings, attempt->call, attempt->reply};
    struct list_query query = {0};
    struct header *headers;
    size_t count;
    struct bytes more;
    enum fault fault = read_query(&reader, attempt->call->param, &query);
    if (!fault)
        fault = store_list(documents_store(attempt->workshop->documents), attempt->space,
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
    builder_add_text(body, "]");
    if (more.data) {
        builder_add_text(body, ",\"cursor\":");
        json_add_string(body, more);
    }
    builder_add_text(body, "}");
    return FAULT_NONE;
}

const struct operation builtin_list = {.name = "list", .right = RIGHT_READ, .work = list_work};
