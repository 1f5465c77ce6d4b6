/* target: the options of `account`, `load`, `dump` and `purge` that select a server and a namespace, and how
 * to reach them. */
#ifndef STAMPD_CONTROL_DOCUMENTS_TARGET_H
#define STAMPD_CONTROL_DOCUMENTS_TARGET_H

#include "base/builder.h"
#include "control/control.h"
#include "edge/http.h"

struct target {
    const char *ns, *key_file, *ca_file;
    int64_t parallel, retry_s;
    bool is_insecure;
};
#define TARGET_DEFAULT                                                                                       \
    {                                                                                                        \
        .parallel = 4, .retry_s = 300                                                                        \
    }
/* clang-format off */
#define TARGET_SERVER_LINES(target)                                                                          \
    {.name = "ns", .argument = "CODE", .help = "Use this namespace.  Required.", .text = &(target)->ns},             \
    {.name = "key-file", .argument = "FILE", .help = "Read the administrator's key from FILE.",                   \
     .text = &(target)->key_file},                                                                           \
    {.name = "ca", .argument = "FILE", .help = "Trust these certificate authorities, PEM (default: the system's).",         \
     .text = &(target)->ca_file},                                                                            \
    {.name = "insecure", .help = "Trust any certificate.", .flag = &(target)->is_insecure}
#define TARGET_LINES(target)                                                                                 \
    TARGET_SERVER_LINES(target),                                                                             \
    {.name = "retry-for", .argument = "SECONDS", .help = "Keep retrying for this long (default: 300).",             \
     .number = &(target)->retry_s, .least = 0, .most = 1000000}
#define TARGET_PARALLEL_LINE(target)                                                                         \
    {.name = "parallel", .argument = "N", .help = "Keep N requests in flight (default: 4).",                        \
     .number = &(target)->parallel, .least = 1, .most = 64}
#define TARGET_CONFIG_LINE(control)                                                                          \
    {.name = "config", .letter = 'c', .argument = "FILE",                                                        \
     .help = "Read stampd's settings from FILE; not needed here.", .text = &(control)->config}
/* clang-format on */

/* Is a namespace named?  Reports it when not; `command` is the command that needs it. */
bool target_is_right(const struct target *target, const char *command);
/* The URL of an operation; `url` is that of the server. */
const char *target_url(const struct target *target, struct arena *arena, const char *url,
                       const char *operation);
/* The URL that returns the server's time (doc/reference/protocol.md, ping). */
const char *target_ping_url(const struct target *target, struct arena *arena, const char *url);
struct http_options target_http(const struct target *target);
/* The administrator's key, NO_BYTES when none is named; on failure reports why. */
MUST_USE bool target_read_key(const struct target *target, struct control *control, struct bytes *key_r);
/* Begins the body of a request, up to the first member of its param. */
void target_begin_body(struct builder *body, struct bytes key);

#endif
