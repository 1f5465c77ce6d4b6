/* sync: the request is checked whole before the operation, answered after it. */
#include "operation/sync.h"

#include "document/delta.h"

enum fault sync_read(struct workshop *workshop, struct call *call, struct reply *reply,
                     const struct holdings **holdings_r)
{
    const struct reader reader = {workshop->settings, call, reply};
    *holdings_r = call->holdings;
    if (call->holdings)
        return holdings_check(&reader, call->holdings);
    if (!call->syncs)
        return FAULT_NONE;
    struct holdings *holdings;
    enum fault fault = holdings_read(&reader, call->syncs, &holdings);
    *holdings_r = fault ? NULL : holdings;
    return fault;
}

enum fault sync_write(struct workshop *workshop, struct call *call, int space, const struct holdings *request,
                      struct builder *body)
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
