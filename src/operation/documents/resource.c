/* resource: a document as a resource, with conditions on its version (protocol.md, "Resources").  GET
 * reads it; PUT makes its items exactly those of the request; PATCH sets and removes the items that are
 * named; DELETE deletes it.  No envelope and no synchronisation: the answer is the document, or {"v"}. */
#include "operation/documents/resource.h"

#include "model/document/stamp.h"
#include "operation/attachments/attachment.h"
#include "operation/attachments/attachment_upload.h"
#include "operation/builtin.h"
#include "operation/documents/change.h"
#include "operation/attachments/put_files.h"
#include "operation/attachments/upload.h"
#include "operation/judge/judge.h"
#include "operation/reply.h"
#include "document/transaction.h"

enum { STATUS_OK = 200, STATUS_CREATED = 201, STATUS_NOT_MODIFIED = 304 };

enum fault resource_name(const struct reader *reader, struct document_name *name_r)
{
    const struct resource *resource = reader->call->resource;
    if (!item_is_class_name(resource->class))
        return reply_fault(reader->call, reader->reply, FAULT_AARG,
                           "A class name is expected: a capital, then up to 15 letters and digits.", "c",
                           NULL);
    *name_r = (struct document_name){.class = resource->class, .id = resource->id};
    enum fault fault = reader_check_length(reader, NULL, "id", resource->id);
    reader->reply->at = NULL; /* both are in the path */
    return fault;
}

bool resource_is_at(const struct version_condition *condition, const struct sight *sight)
{
    const struct document *document = sight->document;
    if (!document_exists(document))
        return false;
    for (size_t i = 0; i < condition->count; i++)
        if (condition->versions[i] == view_version(&sight->view, document) &&
            bytes_equal(condition->views[i], view_name(&sight->view)))
            return true;
    return false;
}

/* Does the condition match the present version of the document, and the view? */
static bool resource_is_named(const struct version_condition *condition, const struct sight *sight)
{
    return resource_is_at(condition, sight) || (condition->is_any && document_exists(sight->document));
}

static bool is_refused(const struct resource *resource, const struct sight *sight)
{
    return (resource->match.is_given && !resource_is_named(&resource->match, sight)) ||
           (resource->none_match.is_given && resource_is_named(&resource->none_match, sight));
}

enum fault resource_refuse_absence(struct attempt *attempt, struct document_name name)
{
    struct arena *arena = attempt->call->arena;
    return reply_fault(attempt->call, attempt->reply, FAULT_NDOCUMENT, NULL,
                       arena_copy(arena, name.class.data, name.class.size),
                       arena_copy(arena, name.id.data, name.id.size), NULL);
}

/* --- reading --- */

/* Where rules decide, an older copy could show what may no longer be read (get.c). */
static enum fault read_document(struct attempt *attempt, struct document_name name, struct sight *sight)
{
    int64_t age_s = attempt->call->resource->age_s;
    *sight = (struct sight){0};
    if (age_s && !call_is_judged(attempt->call))
        return transaction_read(attempt->transaction, name, age_s, &sight->document);
    if (!age_s)
        return resource_read(attempt, name, sight);
    return FAULT_FIRST(judge_newest(attempt, &name, 1, SIZE_MAX, &sight->document),
                       judge_show(attempt, &sight->document, &sight->view));
}

static int64_t find_age(const struct call *call)
{
    return call->resource->age_s;
}

enum fault resource_read(struct attempt *attempt, struct document_name name, struct sight *sight)
{
    struct draft *draft;
    *sight = (struct sight){0};
    enum fault fault = transaction_fetch(attempt->transaction, name, &draft);
    if (fault)
        return fault;
    sight->document = draft_base(draft);
    return judge_show(attempt, &sight->document, &sight->view);
}

static enum fault get_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct resource *resource = attempt->call->resource;
    struct sight sight;
    struct document_name name;
    enum fault fault = FAULT_FIRST(resource_name(&reader, &name), read_document(attempt, name, &sight));
    if (fault)
        return fault;
    if (!document_exists(sight.document))
        return resource_refuse_absence(attempt, name);
    if (resource->match.is_given && !resource_is_named(&resource->match, &sight))
        return change_refuse_view(&reader, sight.document, &sight.view);
    attempt->reply->etag = view_version(&sight.view, sight.document);
    attempt->reply->etag_view = sight.view.name;
    if (resource->none_match.is_given && resource_is_named(&resource->none_match, &sight)) {
        attempt->reply->status = STATUS_NOT_MODIFIED;
        return FAULT_NONE;
    }
    attempt->reply->status = STATUS_OK;
    attempt->reply->is_lasting = sight.document->until == DOCUMENT_FOREVER;
    view_write_json(&sight.view, sight.document, attempt->reply->body);
    return FAULT_NONE;
}

/* --- writing --- */

/* For afterwork: the status, and the version when nothing is written. */
static void leave(struct attempt *attempt, int status, const struct sight *sight)
{
    builder_printf(attempt->reply->body, "%d %lld", status,
                   (long long)view_version(&sight->view, sight->document));
}

static enum fault find_items(const struct reader *reader, const struct json **items_r)
{
    *items_r = reader->call->param;
    return *items_r ? FAULT_NONE : reader_wrong_value(reader, NULL, "items", "An array is expected.");
}

enum fault resource_fetch(struct attempt *attempt, const struct reader *reader, bool must_exist,
                          struct draft **draft_r, struct sight *sight)
{
    struct document_name name;
    *sight = (struct sight){0};
    enum fault fault =
        FAULT_FIRST(resource_name(reader, &name), transaction_fetch(attempt->transaction, name, draft_r));
    if (!fault && call_is_judged(attempt->call))
        fault = judge_draft(attempt, draft_r, &sight->view);
    if (fault)
        return fault;
    if (must_exist && !draft_exists(*draft_r))
        return resource_refuse_absence(attempt, name);
    sight->document = draft_base(*draft_r);
    return FAULT_NONE;
}

/* Opens the document for writing, when the conditions allow that. */
static enum fault fetch_resource(struct attempt *attempt, const struct reader *reader, bool must_exist,
                                 struct draft **draft_r, struct sight *sight)
{
    return FAULT_FIRST(resource_fetch(attempt, reader, must_exist, draft_r, sight),
                       is_refused(attempt->call->resource, sight)
                           ? change_refuse_view(reader, sight->document, &sight->view)
                           : FAULT_NONE);
}

/* An item of the base, of which a filter leaves `shown`. */
static bool is_seen(const struct sight *sight, const struct document *base, const struct document *shown,
                    const struct item *item)
{
    if (!view_shows(&sight->view, item->iclass))
        return false;
    return shown == base || (shown && document_find_item(shown, item->iclass, item->key));
}

static enum fault put_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *items;
    struct draft *draft;
    struct sight sight;
    enum fault fault =
        FAULT_FIRST(find_items(&reader, &items), fetch_resource(attempt, &reader, false, &draft, &sight));
    if (fault)
        return fault;
    const struct document *base = draft_base(draft), *shown = judge_find_shown(attempt, base);
    leave(attempt, document_exists(base) ? STATUS_OK : STATUS_CREATED, &sight);
    draft_create(draft);
    for (uint32_t i = 0; i < base->item_count; i++) /* items sent back unchanged are no change */
        if (is_seen(&sight, base, shown, &base->items[i]))
            draft_remove_item(draft, base->items[i].iclass, base->items[i].key);
    return change_items(attempt, draft, items, false);
}

static enum fault patch_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    const struct json *items;
    struct draft *draft;
    struct sight sight;
    enum fault fault =
        FAULT_FIRST(find_items(&reader, &items), fetch_resource(attempt, &reader, true, &draft, &sight));
    if (fault)
        return fault;
    leave(attempt, STATUS_OK, &sight);
    return change_items(attempt, draft, items, true);
}

static enum fault delete_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct draft *draft;
    struct sight sight;
    enum fault fault = fetch_resource(attempt, &reader, true, &draft, &sight);
    if (fault)
        return fault;
    leave(attempt, STATUS_OK, &sight);
    draft_delete(draft);
    return FAULT_NONE;
}

/* The view after the change, where rules decide: of the newest document, if it still has this version. */
static void name_version(struct attempt *attempt, int64_t version)
{
    const struct resource *resource = attempt->call->resource;
    const struct document_name name = {resource->class, resource->id};
    const struct document *document;
    struct view view;
    attempt->reply->etag = version;
    if (!call_is_judged(attempt->call))
        return;
    if (judge_load(attempt, &name, 1, SIZE_MAX, &document, &view))
        document = NULL;
    bool is_same =
        document && (document->header.version == version || view_version(&view, document) == version);
    attempt->reply->etag = is_same ? view_version(&view, document) : 0;
    attempt->reply->etag_view = is_same ? view.name : NULL;
}

static enum fault write_afterwork(struct attempt *attempt)
{
    struct reply *reply = attempt->reply;
    struct bytes left = {reply->body->data + attempt->out, reply->body->size - attempt->out};
    struct bytes status = {left.data, 3}, present = {left.data + 4, left.size - 4};
    int64_t number, version;
    bool is_whole = left.size > 4 && bytes_to_i64(status, &number) && bytes_to_i64(present, &version);
    if (!is_whole || (number != STATUS_OK && number != STATUS_CREATED) || version < 0 || version > STAMP_MAX)
        return reply_fault(attempt->call, reply, FAULT_BCONTENT, NULL, "answer", NULL); /* it was stored */
    if (attempt->version)
        version = attempt->version;
    reply->status = (int)number;
    reply->body->size = attempt->out;
    builder_printf(reply->body, "{\"v\":%lld}", (long long)version);
    if (attempt->call->resource->act != RESOURCE_REMOVE)
        name_version(attempt, version);
    return FAULT_NONE;
}

/* All but those that only read. */
#define WRITES(name_, prepare_, work_, afterwork_)                                                           \
    {                                                                                                        \
        .name = (name_), .right = RIGHT_WRITE, .obeys_rules = true, .prepare = (prepare_), .work = (work_),  \
        .afterwork = (afterwork_), .is_bare = true                                                           \
    }
const struct operation builtin_resource[] = {
    [RESOURCE_READ] = {.name = "GET",
                       .right = RIGHT_READ,
                       .find_age = find_age,
                       .is_safe = true,
                       .obeys_rules = true,
                       .work = get_work,
                       .is_bare = true},
    [RESOURCE_REPLACE] = WRITES("PUT", put_files_store, put_work, write_afterwork),
    [RESOURCE_CHANGE] = WRITES("PATCH", put_files_store, patch_work, write_afterwork),
    [RESOURCE_REMOVE] = WRITES("DELETE", NULL, delete_work, write_afterwork),
    [RESOURCE_READ_FILE] = {.name = "GET",
                            .right = RIGHT_READ,
                            .is_safe = true,
                            .obeys_rules = true,
                            .work = attachment_get_work,
                            .is_bare = true},
    [RESOURCE_STORE_FILE] =
        WRITES("PUT", attachment_upload_receive, attachment_put_work, attachment_put_afterwork),
    [RESOURCE_REMOVE_FILE] = WRITES("DELETE", NULL, attachment_delete_work, attachment_delete_afterwork),
    [RESOURCE_CREATE_UPLOAD] = WRITES("POST", upload_create, upload_work, upload_afterwork),
    [RESOURCE_SHOW_UPLOAD] = {.name = "HEAD",
                              .right = RIGHT_WRITE,
                              .is_safe = true,
                              .obeys_rules = true,
                              .prepare = upload_show,
                              .work = upload_work,
                              .afterwork = upload_afterwork,
                              .is_bare = true},
    [RESOURCE_APPEND_UPLOAD] = WRITES("PATCH", upload_append, upload_work, upload_afterwork),
    [RESOURCE_DROP_UPLOAD] = WRITES("DELETE", upload_drop, upload_work, upload_afterwork),
};
