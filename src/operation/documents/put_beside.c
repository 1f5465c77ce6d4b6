/* put_beside: runs the parts of `put` with a call of its own. */
#include "operation/documents/put_beside.h"

#include "operation/access/access.h"
#include "operation/builtin.h"

/* Files are stored by the operation `put` alone, before its work: here none can be named. */
struct call *put_beside_find(const struct attempt *attempt)
{
    struct call *call = attempt->call;
    const struct json *docs = json_member(call->param, "docs");
    if (!docs || docs->kind == JSON_NULL)
        return NULL;
    struct call *put = ARENA_NEW(call->arena, struct call);
    struct json *member = ARENA_NEW(call->arena, struct json), *param = ARENA_NEW(call->arena, struct json);
    *member = *docs;
    member->next = NULL;
    *param = (struct json){.kind = JSON_OBJECT, .count = 1, .text = call->param->text, .first = member};
    *put = *call;
    put->param = param;
    put->files = NULL;
    put->file_count = 0;
    return put;
}

static enum fault put_beside_run(struct attempt *attempt, struct call *put,
                                 enum fault (*part)(struct attempt *attempt))
{
    struct call *call = attempt->call;
    attempt->call = put;
    enum fault fault = part(attempt);
    attempt->call = call;
    return fault;
}

enum fault put_beside_check(struct attempt *attempt, struct call *put)
{
    if (!put)
        return FAULT_NONE;
    enum fault fault = access_check(put, attempt->reply, &builtin_put);
    return fault ? fault : put_beside_run(attempt, put, builtin_put.check);
}

enum fault put_beside_work(struct attempt *attempt, struct call *put)
{
    return put_beside_run(attempt, put, builtin_put.work);
}

enum fault put_beside_afterwork(struct attempt *attempt)
{
    return put_beside_run(attempt, put_beside_find(attempt), builtin_put.afterwork);
}

bool put_beside_is_left(const struct attempt *attempt)
{
    static const char left_by_put[] = "{\"v\":";
    const struct builder *body = attempt->reply->body;
    return body->size - attempt->out > sizeof left_by_put &&
           memcmp(body->data + attempt->out, left_by_put, sizeof left_by_put - 1) == 0;
}
