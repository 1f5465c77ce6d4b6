/* client_build: the header divided into the builds of server and namespace. */
#include "operation/sync/client_build.h"

#include <string.h>

enum { DIGITS_MOST = 18 };

struct client_build {
    struct bytes server;
    int64_t number;
    bool has_number;
};

static bool is_number(struct bytes text)
{
    for (size_t i = 0; i < text.size; i++)
        if (text.data[i] < '0' || text.data[i] > '9')
            return false;
    return text.size && text.size <= DIGITS_MOST;
}

/* The server's build may have a '+' itself: all of the header is compared with it first. */
static struct client_build divide(const struct settings *settings, struct bytes header)
{
    struct client_build build = {.server = header};
    const char *plus = memrchr(header.data, '+', header.size);
    if (!plus || (*settings->build && bytes_equal(header, bytes_of(settings->build))))
        return build;
    struct bytes number = {plus + 1, header.size - (size_t)(plus + 1 - header.data)};
    if (!is_number(number) || !bytes_to_i64(number, &build.number))
        return build;
    build.has_number = true;
    build.server.size = (size_t)(plus - header.data);
    return build;
}

static enum fault client_build_refuse(struct call *call, struct reply *reply, const char *present)
{
    return reply_fault(call, reply, FAULT_DBUILD, NULL,
                       arena_copy(call->arena, call->build.data, call->build.size), present, NULL);
}

enum fault client_build_check_server(const struct settings *settings, struct call *call, struct reply *reply)
{
    if (!call->build.size || !*settings->build)
        return FAULT_NONE;
    struct client_build build = divide(settings, call->build);
    bool is_any = build.has_number && !build.server.size;
    return is_any || bytes_equal(build.server, bytes_of(settings->build))
               ? FAULT_NONE
               : client_build_refuse(call, reply, settings->build);
}

enum fault client_build_check_namespace(const struct settings *settings, struct call *call,
                                        struct reply *reply)
{
    if (!call->build.size)
        return FAULT_NONE;
    struct client_build build = divide(settings, call->build);
    if (!build.has_number || build.number >= call->namespace_build)
        return FAULT_NONE;
    return client_build_refuse(
        call, reply, arena_printf(call->arena, "%s+%lld", settings->build, (long long)call->namespace_build));
}
