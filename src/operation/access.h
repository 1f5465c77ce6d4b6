/* access: may this call run this operation in this namespace?  Deny by default.
 *
 * A namespace's configuration is the document Namespace/<code> of the namespace z, singleton Conf:
 * {"database":…,"access":"closed|read|open","off":"words","origins":["https://host"]}.  It is read like any
 * document: from the cache when the shared segment proves it the newest, so a change is obeyed at the next
 * request of every worker. */
#ifndef STAMPD_OPERATION_ACCESS_H
#define STAMPD_OPERATION_ACCESS_H

#include "operation/registry.h"

enum access_mode { ACCESS_CLOSED, ACCESS_READ, ACCESS_OPEN };

struct space_conf {
    enum access_mode mode;
    struct bytes off;           /* why the namespace is closed for maintenance; empty: it is not */
    const struct json *origins; /* an array: whose pages may read answers; NULL: none */
};

/* What the content of the item Conf says; its texts are slices of the content, or in the arena.  No content:
 * closed. */
struct space_conf access_read(struct arena *arena, struct bytes content);

/* The configurations that a worker has read, so that each is parsed once for each of its versions. */
struct access_memory *access_memory_create(void) __attribute__((returns_nonnull));
void access_memory_destroy(struct access_memory *memory); /* NULL is allowed */

/* The configuration of the call's namespace; Its texts live until the next one is asked for. */
MUST_USE enum fault access_configuration(struct workshop *workshop, struct call *call,
                                         struct space_conf *conf_r);
/* FAULT_SKEY: a wrong administrator's key; FAULT_SCLOSED; FAULT_OOFF.  Recorded in the reply. */
MUST_USE enum fault access_check(struct workshop *workshop, struct call *call, struct reply *reply,
                                 const struct operation *operation);

/* Does the call bear the administrator's key? */
bool access_is_administrator(const struct workshop *workshop, const struct call *call);

#endif
