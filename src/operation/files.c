/* files: the list of a namespace's files proves in memory whether there is one; only then is it loaded. */
#include "operation/files.h"

#include <string.h>

#include "model/resource_file.h"
#include "operation/access/access.h"

enum { STATUS_OK = 200, STATUS_NOT_MODIFIED = 304 };

/* The namespace, own or z, that has the file; NO_BYTES: none of them. */
static enum fault find_owner(struct worker_context *worker_context, struct call *call, int z,
                             struct bytes path, struct bytes *code_r)
{
    const struct document_name names[] = {{BYTES(RESOURCE_FILE_LIST), call->ns},
                                          {BYTES(RESOURCE_FILE_LIST), BYTES("z")}};
    const struct document *lists[COUNT_OF(names)];
    size_t count = bytes_equal(call->ns, BYTES("z")) ? 1 : COUNT_OF(names);
    enum fault fault = documents_newest(worker_context->documents, z, call->arena, names, count, lists);
    *code_r = NO_BYTES;
    for (size_t i = 0; i < count && !fault && !code_r->data; i++) {
        const struct item *item = document_find_item(lists[i], BYTES("File"), path);
        if (item && !item_is_tombstone(item))
            *code_r = names[i].id;
    }
    return fault;
}

static enum fault refuse_absence(struct call *call, struct reply *reply, struct bytes path)
{
    return reply_fault(call, reply, FAULT_NFILE, NULL,
                       path.data ? arena_copy(call->arena, path.data, path.size) : NULL, NULL);
}

/* --- the answer --- */

static bool names(struct arena *arena, struct bytes tags, struct bytes digest)
{
    const char *tag = arena_printf(arena, "\"%.*s\"", (int)digest.size, digest.data);
    return bytes_equal(tags, BYTES("*")) ||
           (tags.size && memmem(tags.data, tags.size, tag, strlen(tag)) != NULL);
}

/* A proxy that revalidates its copy takes 304 for that; one that keeps this answer must get it whole.  Only
 * otherwise does the client's own copy count. */
static bool is_held(const struct call *call, struct bytes digest, int64_t proxy_s)
{
    const struct file_request *file = call->file;
    bool is_passed_on = !file->none_match.size && !proxy_s;
    return names(call->arena, is_passed_on ? file->client_none_match : file->none_match, digest);
}

static bool write_parts(struct call *call, struct reply *reply, const struct document *document, int64_t size)
{
    struct builder *body = reply->body;
    for (uint32_t i = 0; i < document->item_count; i++) {
        const struct item *item = &document->items[i];
        if (!bytes_equal(item->iclass, BYTES("Part")) || item_is_tombstone(item))
            continue;
        struct bytes piece = resource_file_decode(call->arena, item->content);
        if (!piece.data)
            return false;
        builder_add_bytes(body, piece);
    }
    return (int64_t)body->size == size;
}

/* Of what a browser would run as a page, nothing runs and nothing reaches this origin, unless the
 * administrator wants it otherwise: the cookies of accounts are of this origin. */
static const char *policy_of(struct call *call, const struct resource_file *file)
{
    if (!file->policy.data)
        return resource_file_is_active(file->type) ? "sandbox" : NULL;
    return file->policy.size ? arena_copy(call->arena, file->policy.data, file->policy.size) : NULL;
}

/* How long nginx answers with its copy.  What a stranger can vary without end is never kept. */
static int64_t proxy_time(const struct worker_context *worker_context, const struct call *call,
                          bool is_current)
{
    bool is_kept = call->file->is_canonical && (!call->file->build || is_current);
    return is_kept ? worker_context->settings->resource_cache_s : 0;
}

static enum fault answer_file(struct worker_context *worker_context, struct call *call, struct reply *reply,
                              const struct document *document, int64_t build)
{
    const struct item *item = document_find_item(document, BYTES("Meta"), BYTES(""));
    struct resource_file file;
    bool is_current = build && call->file->build == build;
    if (!item || !resource_file_read(call->arena, item->content, &file))
        return reply_fault(call, reply, FAULT_BCONTENT, NULL, "Meta", NULL);
    struct reply_file *head = ARENA_NEW(call->arena, struct reply_file);
    *head = (struct reply_file){
        .tag = arena_copy(call->arena, file.sha256.data, file.sha256.size),
        .policy = policy_of(call, &file),
        .is_immutable = is_current,
        .proxy_s = proxy_time(worker_context, call, is_current),
    };
    reply->file = head;
    reply->mime = arena_copy(call->arena, file.type.data, file.type.size);
    reply->status = is_held(call, file.sha256, head->proxy_s) ? STATUS_NOT_MODIFIED : STATUS_OK;
    if (reply->status == STATUS_OK && !write_parts(call, reply, document, file.size))
        return reply_fault(call, reply, FAULT_BCONTENT, NULL, "Part", NULL);
    return FAULT_NONE;
}

enum fault files_answer(struct worker_context *worker_context, struct call *call, struct reply *reply)
{
    struct ns_conf conf;
    struct bytes path = resource_file_join(call->arena, call->path, call->path_count), code;
    int z = documents_ns(worker_context->documents, bytes_of(worker_context->settings->z_database));
    enum fault fault = z < 0 ? FAULT_BINTERNAL : access_configuration(worker_context, call, &conf);
    if (fault)
        return fault;
    fault = access_place(worker_context->settings, &conf, call);
    if (fault)
        return fault == FAULT_NNAMESPACE ? access_refuse_name(call, reply) : fault;
    if (access_refuse_state(worker_context->settings, &conf, call->database, true))
        return reply_fault(
            call, reply, FAULT_OGONE,
            conf.message.size ? arena_copy(call->arena, conf.message.data, conf.message.size) : NULL, NULL);
    if (!path.data)
        return refuse_absence(call, reply, NO_BYTES);
    fault = find_owner(worker_context, call, z, path, &code);
    if (fault)
        return fault;
    if (!code.data)
        return refuse_absence(call, reply, path);
    const struct document_name name = {BYTES(RESOURCE_FILE_CLASS), resource_file_id(call->arena, code, path)};
    const struct document *document;
    fault = documents_newest(worker_context->documents, z, call->arena, &name, 1, &document);
    if (fault)
        return fault;
    if (!document_exists(document)) /* removed in between */
        return refuse_absence(call, reply, path);
    return answer_file(worker_context, call, reply, document, conf.build);
}
