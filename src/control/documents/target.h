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
    OPTION_TEXT("ns", "CODE", &(target)->ns, "Use this namespace.  Required."),             \
    OPTION_TEXT("key-file", "FILE", &(target)->key_file, "Read the administrator's key from FILE."),                                                                           \
    OPTION_TEXT("ca", "FILE", &(target)->ca_file, "Trust these certificate authorities, PEM (default: the system's)."),                                                                            \
    OPTION_FLAG("insecure", &(target)->is_insecure, "Trust any certificate.")
#define TARGET_LINES(target)                                                                                 \
    TARGET_SERVER_LINES(target),                                                                             \
    OPTION_NUMBER("retry-for", "SECONDS", &(target)->retry_s, 0, 1000000, "Keep retrying for this long (default: 300).")
#define TARGET_PARALLEL_LINE(target)                                                                         \
    OPTION_NUMBER("parallel", "N", &(target)->parallel, 1, 64, "Keep N requests in flight (default: 4).")
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
