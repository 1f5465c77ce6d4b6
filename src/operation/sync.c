/* sync: the request is checked whole before the operation, answered after it. */
#include "operation/sync.h"

#include "document/delta.h"
#include "document/stamp.h"
#include "operation/reader.h"

struct sync_request {
    size_t count;
    struct name *names;
    struct held *held;
};

static enum fault read_element(const struct reader *reader, const struct json *element, struct name *name,
                               struct held *held)
{
    if (element->kind != JSON_OBJECT)
        return reader_wrong(reader, "syncs", "Objects with c, id, v, ct and dt are expected.");
    enum fault fault = reader_name(reader, element, name);
    if (!fault)
        fault = reader_integer(reader, element, "v", 0, STAMP_MAX, 0, &held->version);
    if (!fault)
        fault = reader_integer(reader, element, "ct", 0, STAMP_MAX, 0, &held->ctime);
    if (!fault)
        fault = reader_integer(reader, element, "dt", 0, STAMP_MAX, 0, &held->dtime);
    return fault;
}

enum fault sync_read(struct workshop *workshop, struct call *call, struct reply *reply,
                     struct sync_request **request_r)
{
    const struct reader reader = {workshop->settings, call, reply};
    *request_r = NULL;
    if (!call->syncs)
        return FAULT_NONE;
    if (call->syncs->count > workshop->settings->limit_syncs)
        return reader_over(&reader, "limit_syncs", workshop->settings->limit_syncs, call->syncs->count);
    struct sync_request *request = ARENA_NEW(call->arena, struct sync_request);
    request->names = ARENA_ARRAY(call->arena, struct name, call->syncs->count);
    request->held = ARENA_ARRAY(call->arena, struct held, call->syncs->count);
    for (const struct json *element = call->syncs->first; element; element = element->next) {
        enum fault fault =
            read_element(&reader, element, &request->names[request->count], &request->held[request->count]);
        if (fault)
            return fault;
        request->count++;
    }
    *request_r = request;
    return FAULT_NONE;
}

enum fault sync_write(struct workshop *workshop, struct call *call, int space,
                      const struct sync_request *request, struct builder *body)
{
    const struct document **documents = ARENA_ARRAY(call->arena, const struct document *, request->count);
    enum fault fault =
        documents_newest(workshop->documents, space, call->arena, request->names, request->count, documents);
    if (fault)
        return fault;
    builder_add_text(body, "[");
    for (size_t i = 0; i < request->count; i++) {
        if (i)
            builder_add_text(body, ",");
        struct delta delta = delta_compute(documents[i], request->held[i]);
        delta_write_json(&delta, body);
    }
    builder_add_text(body, "]");
    return FAULT_NONE;
}
