/* configurations: the configurations of namespaces that a worker has read, with their access rules.
 *
 * They are items of the document Namespace/<code> in the namespace z: Conf (model/namespace.h) and Rules
 * (model/rules/rules.h).  Each version is parsed once, and is current as long as the shared segment proves
 * its document the newest: every worker applies a change at its next request. */
#ifndef STAMPD_OPERATION_ACCESS_CONFIGURATIONS_H
#define STAMPD_OPERATION_ACCESS_CONFIGURATIONS_H

#include "model/namespace.h"
#include "model/rules/rules.h"
#include "operation/call.h"
#include "operation/worker_context.h"

struct configurations;

struct configurations *configurations_create(void) __attribute__((returns_nonnull));
void configurations_destroy(struct configurations *configurations); /* NULL is allowed */

/* One version; immutable. */
struct configuration {
    struct ns_conf conf;
    const struct rules *rules; /* NULL: the access is not by rules.  None, or a malformed text: no right */
    int64_t rules_version;     /* of their item; 0: none */
};
/* The newest one of the call's namespace, and that of z; valid until the next call, unless it is held. */
MUST_USE enum fault configurations_find(struct worker_context *worker_context, struct call *call,
                                        const struct configuration **own_r, const struct configuration **z_r);
/* The same for any namespace. */
MUST_USE enum fault configurations_find_of(struct worker_context *worker_context, struct call *call,
                                           struct bytes code, const struct configuration **own_r,
                                           const struct configuration **z_r);
/* Keeps it until the arena is reset. */
void configurations_hold(const struct configuration *configuration, struct arena *arena);

#endif
