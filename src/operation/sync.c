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

/* A stamp that the holder has; null: 0. */
static enum fault read_stamp(const struct reader *reader, const char *member, const struct json *value,
                             int64_t *stamp_r)
{
    if (value->kind == JSON_NULL || (json_is_i64(value, stamp_r) && *stamp_r >= 0 && *stamp_r <= STAMP_MAX))
        return FAULT_NONE;
    return reader_wrong(reader, member, "A stamp is expected, a number of 15 digits, or 0.");
}

/* One look at each member: a holder of many documents sends many of these. */
static enum fault read_element(const struct reader *reader, const struct json *element, struct name *name,
                               struct held *held)
{
    if (element->kind != JSON_OBJECT)
        return reader_wrong(reader, "syncs", "Objects with c, id, v, ct and dt are expected.");
    const struct json *class = NULL, *id = NULL;
    enum fault fault = FAULT_NONE;
    for (const struct json *member = element->first; member && !fault; member = member->next) {
        if (bytes_equal(member->name, BYTES("c")))
            class = member;
        else if (bytes_equal(member->name, BYTES("id")))
            id = member;
        else if (bytes_equal(member->name, BYTES("v")))
            fault = read_stamp(reader, "v", member, &held->version);
        else if (bytes_equal(member->name, BYTES("ct")))
            fault = read_stamp(reader, "ct", member, &held->ctime);
        else if (bytes_equal(member->name, BYTES("dt")))
            fault = read_stamp(reader, "dt", member, &held->dtime);
    }
    return fault ? fault : reader_take_name(reader, class, id, name);
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
