/* request_upload: the path and the headers. */
#include "http/request_upload.h"

#include "model/document/upload_metadata.h"

enum { OTHER_VERSION = 412 };

bool request_upload_find(const struct bytes *pieces, size_t count, struct call *call)
{
    if ((count != 2 && count != 3) || !bytes_equal(pieces[1], BYTES("upload")))
        return false;
    call->route = CALL_UPLOAD;
    call->path = pieces + 2;
    call->path_count = count - 2;
    return true;
}

bool request_upload_find_act(struct bytes method, const struct call *call, enum resource_act *act_r)
{
    if (!call->path_count && bytes_equal(method, BYTES("POST")))
        *act_r = RESOURCE_CREATE_UPLOAD;
    else if (call->path_count && bytes_equal(method, BYTES("HEAD")))
        *act_r = RESOURCE_SHOW_UPLOAD;
    else if (call->path_count && bytes_equal(method, BYTES("PATCH")))
        *act_r = RESOURCE_APPEND_UPLOAD;
    else if (call->path_count && bytes_equal(method, BYTES("DELETE")))
        *act_r = RESOURCE_DROP_UPLOAD;
    else
        return false;
    return true;
}

static enum fault request_upload_refuse(struct call *call, struct reply *reply, const char *header,
                                        const char *expected)
{
    return reply_fault(call, reply, FAULT_AARG, expected, header, NULL);
}

static bool request_upload_read_number(struct bytes text, int64_t *number_r)
{
    return text.size && text.data[0] >= '0' && text.data[0] <= '9' && bytes_to_i64(text, number_r);
}

static enum fault read_new(struct call *call, const struct request_upload_headers *headers,
                           struct resource *resource, struct attachment_request *attachment,
                           struct upload_request *upload, struct reply *reply)
{
    struct upload_metadata metadata;
    if (!request_upload_read_number(headers->length, &upload->length))
        return request_upload_refuse(call, reply, "Upload-Length", "The size of the file is expected.");
    if (!upload_metadata_read(call->arena, headers->metadata, &metadata))
        return request_upload_refuse(call, reply, "Upload-Metadata",
                                     "class, id, and key or filename are expected, in base64.");
    upload->metadata = headers->metadata;
    resource->class = metadata.class;
    resource->id = metadata.id;
    attachment->key = metadata.key;
    attachment->mime = metadata.mime;
    return request_attachment_read_promise(call, headers->body.content_digest, headers->body.repr_digest,
                                           attachment, reply);
}

static enum fault request_upload_read_part(struct call *call, const struct request_upload_headers *headers,
                                           struct attachment_request *attachment,
                                           struct upload_request *upload, struct reply *reply)
{
    bool is_create = !call->path_count;
    upload->has_bytes =
        bytes_equal(bytes_trim(headers->body.content_type), BYTES("application/offset+octet-stream"));
    if (headers->body.content_length.size &&
        (!bytes_to_i64(headers->body.content_length, &attachment->size) || attachment->size < 0))
        return reply_fault(call, reply, FAULT_ABODY, NULL, NULL);
    if (!upload->has_bytes && (!is_create || attachment->size))
        return reply_fault(call, reply, FAULT_ATYPE, "application/offset+octet-stream is expected.", "body",
                           NULL);
    if (!is_create && !request_upload_read_number(headers->offset, &upload->offset))
        return request_upload_refuse(call, reply, "Upload-Offset", "The offset of the part is expected.");
    return FAULT_NONE;
}

enum fault request_upload_read(struct call *call, const struct request_upload_headers *headers,
                               struct resource *resource, struct attachment_request *attachment_r,
                               struct reply *reply)
{
    struct upload_request *upload = ARENA_NEW(call->arena, struct upload_request);
    *upload = (struct upload_request){.id = call->path_count ? call->path[0] : NO_BYTES};
    *attachment_r = (struct attachment_request){.key = BYTES(""), .upload = upload};
    call->idempotency_key = NO_BYTES; /* the offset says what was done */
    if (!bytes_equal(headers->version, BYTES(UPLOAD_VERSION))) {
        reply->fault_status = OTHER_VERSION;
        return request_upload_refuse(call, reply, "Tus-Resumable", UPLOAD_VERSION " is expected.");
    }
    bool has_body = resource->act == RESOURCE_CREATE_UPLOAD || resource->act == RESOURCE_APPEND_UPLOAD;
    enum fault fault =
        has_body ? request_upload_read_part(call, headers, attachment_r, upload, reply) : FAULT_NONE;
    if (!fault && resource->act == RESOURCE_CREATE_UPLOAD)
        fault = read_new(call, headers, resource, attachment_r, upload, reply);
    return fault;
}

void request_upload_ask(struct call *call, const struct request_upload_headers *headers,
                        struct resource *resource, struct attachment_request *attachment_r)
{
    struct upload_request *upload = ARENA_NEW(call->arena, struct upload_request);
    struct upload_metadata metadata;
    *upload = (struct upload_request){.id = call->path_count ? call->path[0] : NO_BYTES};
    if (!request_upload_read_number(headers->length, &upload->length))
        upload->length = 0; /* the request is refused for it, when it is there */
    *attachment_r = (struct attachment_request){.key = BYTES(""), .upload = upload, .is_asked = true};
    if (!bytes_to_i64(headers->body.content_length, &attachment_r->size))
        attachment_r->size = INT64_MAX; /* unknown: perhaps all that is missing */
    resource->class = resource->id = BYTES("");
    if (!call->path_count && upload_metadata_read(call->arena, headers->metadata, &metadata)) {
        resource->class = metadata.class;
        resource->id = metadata.id;
        attachment_r->key = metadata.key;
        attachment_r->mime = metadata.mime;
    }
}

const char *request_upload_judged(const struct call *call, const struct reply *reply, enum fault fault)
{
    bool is_limit = call->attachment && call->attachment->is_asked && reply->argument_count > 1;
    if (is_limit && fault == FAULT_XBUSY && strstr(reply->arguments[0], "_partial_"))
        return arena_printf(call->arena, "XBUSY.%s=%s", reply->arguments[0], reply->arguments[1]);
    if (is_limit && fault == FAULT_ALIMIT && strstr(reply->arguments[0], "quotas."))
        return arena_printf(call->arena, "ALIMIT.%s=%s%s%s", reply->arguments[0], reply->arguments[1],
                            reply->argument_count > 2 ? "=" : "",
                            reply->argument_count > 2 ? reply->arguments[2] : "");
    return fault_code(fault);
}
