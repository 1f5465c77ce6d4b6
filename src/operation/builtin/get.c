/* get: documents by name.  param {"docs":[{"c","id","age":seconds}]} → out {"docs":[document…]}.
 * sync: no work at all; the synchronisation is the cycle's. */
#include "operation/builtin/builtin.h"

#include "operation/reader.h"

struct wish {
    struct name name;
    int64_t age_s;
    size_t draft; /* age 0: place among the drafts */
};

static enum fault read_wishes(const struct reader *reader, const struct json *docs, struct wish *wishes)
{
    size_t i = 0;
    for (const struct json *element = docs->first; element; element = element->next, i++) {
        if (element->kind != JSON_OBJECT)
            return reader_wrong_value(reader, element, "docs", "Objects with c, id and age are expected.");
        enum fault fault = reader_members(reader, element, "c id age");
        if (!fault)
            fault = reader_name(reader, element, &wishes[i].name);
        if (!fault)
            fault = reader_integer(reader, element, "age", 0, AGE_MOST, 0, &wishes[i].age_s);
        if (fault)
            return fault;
    }
    return FAULT_NONE;
}

/* Those at tolerance 0 come in one round trip; more than may be asked for is said with the limit. */
static enum fault fetch_newest(struct attempt *attempt, const struct reader *reader, struct wish *wishes,
                               size_t count, struct draft **drafts)
{
    struct name *names = ARENA_ARRAY(attempt->call->arena, struct name, count);
    size_t wanted = 0;
    for (size_t i = 0; i < count; i++) {
        if (wishes[i].age_s)
            continue;
        wishes[i].draft = wanted;
        names[wanted++] = wishes[i].name;
    }
    if (!wanted)
        return FAULT_NONE;
    enum fault fault = transaction_fetch_many(attempt->transaction, names, wanted, drafts);
    if (fault == FAULT_ALIMIT)
        return reader_over(reader, json_member(attempt->call->param, "docs"), "limit_documents",
                           attempt->workshop->settings->limit_documents, (int64_t)wanted);
    return fault;
}

static enum fault get_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->workshop->settings, attempt->call, attempt->reply};
    struct arena *arena = attempt->call->arena;
    const struct json *docs;
    enum fault fault = reader_members(&reader, attempt->call->param, "docs");
    if (!fault)
        fault = reader_array(&reader, attempt->call->param, "docs", "limit_syncs",
                             attempt->workshop->settings->limit_syncs, &docs);
    if (fault)
        return fault;
    struct wish *wishes = ARENA_ARRAY(arena, struct wish, docs->count);
    struct draft **drafts = ARENA_ARRAY(arena, struct draft *, docs->count);
    fault = read_wishes(&reader, docs, wishes);
    if (!fault)
        fault = fetch_newest(attempt, &reader, wishes, docs->count, drafts);
    if (fault)
        return fault;
    struct builder *body = attempt->reply->body;
    builder_add_text(body, "{\"docs\":[");
    for (size_t i = 0; i < docs->count; i++) {
        const struct document *document;
        if (wishes[i].age_s)
            fault = transaction_read(attempt->transaction, wishes[i].name, wishes[i].age_s, &document);
        else
            document = draft_base(drafts[wishes[i].draft]);
        if (fault)
            return fault;
        if (i)
            builder_add_text(body, ",");
        builder_add_bytes(body, document->json);
    }
    builder_add_text(body, "]}");
    return FAULT_NONE;
}

const struct operation builtin_get = {.name = "get", .right = RIGHT_READ, .is_safe = true, .work = get_work};
/* No work, but no wishes either. */
static enum fault sync_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->workshop->settings, attempt->call, attempt->reply};
    return reader_members(&reader, attempt->call->param, "");
}

const struct operation builtin_sync = {
    .name = "sync", .right = RIGHT_READ, .is_safe = true, .work = sync_work};
