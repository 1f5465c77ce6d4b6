/* target: URLs and connections from the options that `load`, `dump` and `purge` share. */
#include "control/documents/target.h"

#include <string.h>

#include "control/cmd_key.h"
#include "control/message.h"
#include "control/ns/ns_registry.h"
#include "edge/json/json.h"

enum { CONNECT_TIMEOUT_MS = 10 * 1000 };

bool target_is_right(const struct target *target, const char *command)
{
    if (target->ns && namespace_is_code(target->ns))
        return true;
    return message_refuse("%s: --ns CODE is needed", command);
}

/* Without its last slashes. */
static int url_size(const char *url)
{
    int size = (int)strlen(url);
    while (size && url[size - 1] == '/')
        size--;
    return size;
}

const char *target_url(const struct target *target, struct arena *arena, const char *url,
                       const char *operation)
{
    return arena_printf(arena, "%.*s/%s/op/%s", url_size(url), url, target->ns, operation);
}

const char *target_ping_url(const struct target *target, struct arena *arena, const char *url)
{
    return arena_printf(arena, "%.*s/%s/ping", url_size(url), url, target->ns);
}

struct http_options target_http(const struct target *target)
{
    return (struct http_options){.parallel = (int)target->parallel,
                                 .ca_file = target->ca_file,
                                 .is_insecure = target->is_insecure,
                                 .connect_timeout_ms = CONNECT_TIMEOUT_MS};
}

bool target_read_key(const struct target *target, struct control *control, struct bytes *key_r)
{
    *key_r = NO_BYTES;
    return !target->key_file || cmd_key_read(control, target->key_file, key_r);
}

void target_begin_body(struct builder *body, struct bytes key)
{
    builder_add_text(body, "{");
    if (key.data) {
        json_add_text(body, "\"admin\":", key);
        builder_add_text(body, ",");
    }
    builder_add_text(body, "\"param\":{");
}
