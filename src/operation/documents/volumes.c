/* volumes: how many documents there are, and how many bytes they and their attachments have, in the namespace
 * and in each class, for administrators.  param {} → out
 * {"docs","v1","v2","classes":[{"c","docs","v1","v2"}…]}, the largest classes first. */
#include "operation/builtin.h"

#include "operation/reader.h"
#include "store/collections/store_list.h"

enum { CLASSES_MOST = 1000 };

static void write_sums(struct builder *body, const struct volume *volume)
{
    builder_printf(body, "\"docs\":%lld,\"v1\":%lld,\"v2\":%lld", (long long)volume->documents,
                   (long long)volume->v1, (long long)volume->v2);
}

static enum fault volumes_work(struct attempt *attempt)
{
    const struct reader reader = {attempt->worker_context->settings, attempt->call, attempt->reply};
    struct builder *body = attempt->reply->body;
    struct volume *volumes;
    size_t count;
    enum fault fault =
        FAULT_FIRST(reader_members(&reader, attempt->call->param, ""),
                    store_list_volumes(documents_store(attempt->worker_context->documents), attempt->ns,
                                       attempt->call->arena, CLASSES_MOST, &volumes, &count));
    if (fault)
        return fault;
    assert(count > 0 && !volumes[0].class.data);
    builder_add_text(body, "{");
    write_sums(body, &volumes[0]);
    builder_add_text(body, ",\"classes\":[");
    for (size_t i = 1; i < count; i++) {
        if (i > 1)
            builder_add_text(body, ",");
        json_add_text(body, "{\"c\":", volumes[i].class);
        builder_add_text(body, ",");
        write_sums(body, &volumes[i]);
        builder_add_text(body, "}");
    }
    builder_add_text(body, "]}");
    return FAULT_NONE;
}

const struct operation builtin_volumes = {
    .name = "volumes", .right = RIGHT_ADMIN, .only_reads = true, .is_safe = true, .work = volumes_work};
