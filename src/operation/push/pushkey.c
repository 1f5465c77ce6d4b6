/* pushkey: the key that a browser needs to subscribe at its push service (push.md), as
 * applicationServerKey.  → out {"key"} */
#include "operation/builtin.h"

#include "operation/push/push_send.h"
#include "operation/reader.h"
#include "operation/reply.h"

static enum fault pushkey_work(struct attempt *attempt)
{
    struct curve_key key;
    struct builder *body = attempt->reply->body;
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    enum fault fault = reader_members(&reader, attempt->call->param, "");
    if (fault)
        return fault;
    fault = push_key_fetch(attempt->worker_context->settings, &key);
    if (fault)
        return reply_fault(attempt->call, attempt->reply, fault, NULL, NULL);
    explicit_bzero(key.secret, sizeof key.secret);
    builder_add_text(body, "{\"key\":\"");
    push_key_add_public(body, &key);
    builder_add_text(body, "\"}");
    return FAULT_NONE;
}

const struct operation builtin_pushkey = {
    .name = "pushkey", .right = RIGHT_PUBLIC, .only_reads = true, .is_safe = true, .work = pushkey_work};
