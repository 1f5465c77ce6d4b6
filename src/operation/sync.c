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

/* A stamp that the holder has; absent or null: 0. */
static enum fault read_stamp(const struct reader *reader, const char *member, const struct json *value,
                             int64_t *stamp_r)
{
    *stamp_r = 0;
    if (!value || value->kind == JSON_NULL ||
        (json_is_i64(value, stamp_r) && *stamp_r >= 0 && *stamp_r <= STAMP_MAX))
        return FAULT_NONE;
    return reader_wrong(reader, member, "A stamp is expected, a number of 15 digits, or 0.");
}

/* What an element has, NULL: nothing. */
struct element {
    const struct json *class, *id, *version, *ctime, *dtime;
};

/* One look at each member: a holder of many documents sends many of these. */
static struct element look_at(const struct json *object)
{
    struct element element = {0};
    for (const struct json *member = object->first; member; member = member->next) {
        const char *name = member->name.data;
        if (member->name.size == 1) {
            if (*name == 'c')
                element.class = member;
            else if (*name == 'v')
                element.version = member;
        } else if (member->name.size == 2) {
            if (memcmp(name, "id", 2) == 0)
                element.id = member;
            else if (memcmp(name, "ct", 2) == 0)
                element.ctime = member;
            else if (memcmp(name, "dt", 2) == 0)
                element.dtime = member;
        }
    }
    return element;
}

static enum fault read_element(const struct reader *reader, const struct json *object, struct name *name,
                               struct held *held)
{
    if (object->kind != JSON_OBJECT)
        return reader_wrong(reader, "syncs", "Objects with c, id, v, ct and dt are expected.");
    struct element element = look_at(object);
    enum fault fault = read_stamp(reader, "v", element.version, &held->version);
    if (!fault)
        fault = read_stamp(reader, "ct", element.ctime, &held->ctime);
    if (!fault)
        fault = read_stamp(reader, "dt", element.dtime, &held->dtime);
    return fault ? fault : reader_take_name(reader, element.class, element.id, name);
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
    request->names = ARENA_ROOM(call->arena, struct name, call->syncs->count);
    request->held = ARENA_ROOM(call->arena, struct held, call->syncs->count);
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
    const struct document **documents = ARENA_ROOM(call->arena, const struct document *, request->count);
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
