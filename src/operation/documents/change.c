/* change: items of a request set in a draft. */
#include "operation/documents/change.h"

#include <inttypes.h>

#include "model/document/item.h"
#include "operation/attachments/attach.h"
#include "operation/classes.h"
#include "operation/judge/judge.h"
#include "operation/judge/sight.h"
#include "operation/reply.h"

/* Items may be sent back as they were given, with their versions.  c and k of an item; an absent
 * key is that of a singleton. */
static enum fault read_item_name(const struct reader *reader, const struct json *item, struct bytes *iclass,
                                 struct bytes *key)
{
    if (item->kind != JSON_OBJECT || item->is_shallow)
        return reader_wrong_value(reader, item, "items",
                                  "Objects with c, k and one of j, s, del are expected.");
    enum fault fault =
        reader_members(reader, item, attach_is(item) ? "c k j s del v sha mime from file" : "c k j s del v");
    if (!fault)
        fault = FAULT_FIRST(reader_class(reader, item, "c", iclass), reader_text(reader, item, "k", key));
    if (fault)
        return fault;
    if (key->data)
        return reader_check_length(reader, item, "k", *key);
    *key = BYTES("");
    return FAULT_NONE;
}

/* An item of a request. */
struct change {
    struct bytes iclass, key, content;
    bool is_removal, is_string;
    const struct attach *attach; /* NULL: not an attachment that is set */
};

/* All that can be judged without its document.  A new item P names a file; how one is removed is the same. */
static enum fault change_read_item(const struct reader *reader, const struct json *item, bool may_remove,
                                   struct change *change_r)
{
    struct change change = {0};
    struct bytes text = NO_BYTES;
    enum fault fault = FAULT_FIRST(read_item_name(reader, item, &change.iclass, &change.key),
                                   reader_boolean(reader, item, "del", &change.is_removal),
                                   reader_text(reader, item, "s", &text));
    if (fault)
        return fault;
    const struct json *json = json_member(item, "j"), *string = json_member(item, "s");
    bool is_null = json && json->kind == JSON_NULL;
    if (item_is_reserved(change.iclass) && (attach_names(item) || !(change.is_removal || is_null))) {
        struct attach *attach = ARENA_NEW(reader->call->arena, struct attach);
        change.attach = attach;
        *change_r = change;
        return change.is_removal
                   ? reader_wrong_value(reader, item, "items", "An attachment is set or removed.")
                   : attach_read(reader, item, change.key, attach);
    }
    if ((json != NULL) + (string != NULL) + change.is_removal != 1)
        return reader_wrong_value(reader, item, "items", "Exactly one of j, s and del is expected.");
    if (change.is_removal && !may_remove)
        return reader_wrong(reader, item, "del",
                            "These are all the items of the document: leave out what is to go.");
    change.is_removal = change.is_removal || (json ? json->kind : string->kind) == JSON_NULL;
    change.is_string = !json;
    change.content = json ? json->text : text;
    if (!change.is_removal && (int64_t)change.content.size > reader->settings->limit_content_bytes)
        return reader_over(reader, json ? json : string, "limit_content_bytes",
                           reader->settings->limit_content_bytes, (int64_t)change.content.size);
    *change_r = change;
    return FAULT_NONE;
}

static enum fault apply_item(struct attempt *attempt, const struct reader *reader, struct draft *draft,
                             const struct json *item, bool may_remove)
{
    struct change change;
    const char *refusal;
    enum fault fault = change_read_item(reader, item, may_remove, &change);
    bool may = true;
    if (!fault && call_is_judged(attempt->call))
        fault = judge_name(attempt, draft, change.iclass, change.key, &may);
    if (!fault && !may)
        fault = judge_refuse(attempt, draft);
    if (fault)
        return fault;
    if (change.is_removal) {
        draft_remove_item(draft, change.iclass, change.key);
        return FAULT_NONE;
    }
    if (change.attach)
        return attach_set(attempt, reader, draft, item, change.attach);
    fault = classes_judge(attempt, draft_base(draft)->header.class, change.iclass, !change.key.size,
                          change.is_string, &refusal);
    if (fault)
        return fault;
    if (refusal && sight_discloses_writer(attempt, draft_base(draft)->header.class, change.iclass))
        return reader_wrong_value(reader, item, "items", refusal);
    draft_set_item(draft, change.iclass, change.key, change.is_string, change.content);
    return FAULT_NONE;
}

enum fault change_check_items(const struct reader *reader, const struct json *items)
{
    enum fault fault = FAULT_NONE;
    struct change change;
    for (const struct json *item = items ? items->first : NULL; item && !fault; item = item->next) {
        fault = change_read_item(reader, item, true, &change);
        if (!fault && change.attach && change.attach->has_file)
            fault = reader_wrong(reader, item, "file", "A task keeps no files: send them first.");
    }
    return fault;
}

/* A number of the whole document, for a caller that may not see all of it: that it is too much. */
static int64_t tell(struct attempt *attempt, const struct document *base, int64_t value, int64_t most)
{
    const struct document *shown = base;
    struct view view;
    bool is_hidden =
        call_is_judged(attempt->call) && (judge_show(attempt, &shown, &view) || !view_is_whole(&view));
    return is_hidden ? most + 1 : value;
}

enum fault change_items(struct attempt *attempt, struct draft *draft, const struct json *items,
                        bool may_remove)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    for (const struct json *item = items ? items->first : NULL; item; item = item->next) {
        enum fault fault = apply_item(attempt, &reader, draft, item, may_remove);
        if (fault)
            return fault;
    }
    int64_t cost = draft_cost(draft);
    int64_t count = draft_items(draft);
    const struct document *base = draft_base(draft); /* what is above a limit already may shrink */
    if (count > reader.settings->limit_items &&
        count > (int64_t)base->item_count - (int64_t)base->tombstone_count)
        return reader_over(&reader, items, "limit_items", reader.settings->limit_items,
                           tell(attempt, base, count, reader.settings->limit_items));
    if (cost > reader.settings->limit_document_bytes && cost > document_cost(base))
        return reader_over(&reader, items, "limit_document_bytes", reader.settings->limit_document_bytes,
                           tell(attempt, base, cost, reader.settings->limit_document_bytes));
    return FAULT_NONE;
}

int64_t change_version(const struct document *document)
{
    return view_version(NULL, document);
}

enum fault change_refuse_version(const struct reader *reader, const struct document *document)
{
    return change_refuse_view(reader, document, NULL);
}

enum fault change_refuse_view(const struct reader *reader, const struct document *document,
                              const struct view *view)
{
    struct arena *arena = reader->call->arena;
    const struct header *header = &document->header;
    return reply_fault(reader->call, reader->reply, FAULT_AVERSION, NULL,
                       arena_copy(arena, header->class.data, header->class.size),
                       arena_copy(arena, header->id.data, header->id.size),
                       arena_printf(arena, "%" PRId64, view_version(view, document)), NULL);
}

/* --- the version of the commit --- */

#define LEFT "{\"v\":"

void change_leave_version(struct attempt *attempt, int64_t version)
{
    struct builder *body = attempt->reply->body;
    body->size = attempt->out;
    builder_add_text(body, LEFT);
    builder_add_i64(body, version);
    builder_add_text(body, "}");
}

/* False: the stored text is not what work leaves.  rest_r: the other members, with the comma before them. */
static bool read_version(const struct attempt *attempt, int64_t *version_r, struct bytes *rest_r)
{
    const struct builder *body = attempt->reply->body;
    const size_t size = body->size - attempt->out, around = sizeof LEFT;
    const char *left = body->data + attempt->out;
    if (size <= around || memcmp(left, LEFT, around - 1) != 0 || left[size - 1] != '}')
        return false;
    const struct bytes members = {left + around - 1, size - around};
    const char *comma = memchr(members.data, ',', members.size);
    size_t digits = comma ? (size_t)(comma - members.data) : members.size;
    *rest_r = (struct bytes){members.data + digits, members.size - digits};
    return bytes_to_i64((struct bytes){members.data, digits}, version_r);
}

enum fault change_complete_version(struct attempt *attempt)
{
    struct builder *body = attempt->reply->body;
    struct bytes rest;
    int64_t version;
    if (!read_version(attempt, &version, &rest))
        return reply_fault(attempt->call, attempt->reply, FAULT_BCONTENT, NULL, "answer", NULL);
    rest.data = arena_copy(attempt->call->arena, rest.data, rest.size);
    change_leave_version(attempt, attempt->version ? attempt->version : version);
    body->size--; /* its last brace */
    builder_add_bytes(body, rest);
    builder_add_text(body, "}");
    return FAULT_NONE;
}
