/* access: what may this caller do in this namespace?  Deny by default.
 *
 * A namespace's configuration is the document Namespace/<code> of the namespace z, singleton Conf:
 * {"database":…,"access":"closed|read|open","off":"words","origins":["https://host"]}.  It is read like any
 * document: from the cache when the shared segment proves it the newest, so a change is obeyed at the next
 * request of every worker.
 *
 * Every path that leads into a namespace goes through one function, access_level: operations, resources,
 * synchronisations and sessions beside any operation, tasks that clients create, ping, and live events in
 * their own process.  Before it, access_is_namespace compares what nginx passes with the configuration: a
 * process that can connect to a socket cannot pair the rights of one namespace with the data of another, and
 * a name that is not a namespace never enters a shared table.
 *
 * | level | closed | read | open | z | with the administrator's key |
 * | --- | --- | --- | --- | --- | --- |
 * | nothing | | | | x | |
 * | public operations | x | x | x | | x |
 * | read: read operations, resources, syncs, session, live | | x | x | | x |
 * | write | | | x | | x |
 * | everything | | | | | x | */
#ifndef STAMPD_OPERATION_ACCESS_H
#define STAMPD_OPERATION_ACCESS_H

#include "operation/registry.h"

enum access_mode { ACCESS_CLOSED, ACCESS_READ, ACCESS_OPEN };

struct ns_conf {
    enum access_mode mode;
    struct bytes database;      /* empty: there is no configuration, or none that can be read */
    struct bytes off;           /* why the namespace is closed for maintenance; empty: it is not */
    const struct json *origins; /* an array: whose pages may read answers; NULL: none */
};

/* What the content of the item Conf says; its texts are slices of the content, or in the arena.  No content:
 * closed. */
struct ns_conf access_read(struct arena *arena, struct bytes content);

/* Is `code` a namespace, and `database` the one that its configuration names?  The namespace z, which has no
 * configuration, is known by its code and database together. */
MUST_USE bool access_is_namespace(const struct settings *settings, const struct ns_conf *conf,
                                  struct bytes code, struct bytes database);
/* The one judgement: what anybody, or the administrator, may do in the namespace of this database. */
enum access_level access_level(const struct settings *settings, const struct ns_conf *conf,
                               struct bytes database, bool is_administrator);

/* The configurations that a worker has read, so that each is parsed once for each of its versions. */
struct access_memory *access_memory_create(void) __attribute__((returns_nonnull));
void access_memory_destroy(struct access_memory *memory); /* NULL is allowed */

/* The configuration of the call's namespace; its texts live until the next one is asked for. */
MUST_USE enum fault access_configuration(struct worker_context *worker_context, struct call *call,
                                         struct ns_conf *conf_r);
/* FAULT_NNAMESPACE: access_is_namespace is false.  Recorded in the reply. */
enum fault access_refuse_name(struct call *call, struct reply *reply);
/* Does the call bear the administrator's key?  FAULT_SKEY: a wrong one, recorded in the reply. */
MUST_USE enum fault access_check_keys(const struct worker_context *worker_context, struct call *call,
                                      struct reply *reply, bool *is_there_r);
/* Sets the level of the call.  FAULT_NNAMESPACE: it is not a namespace, or its database is another;
 * FAULT_SKEY: a wrong administrator's key; FAULT_OOFF.  Recorded in the reply. */
MUST_USE enum fault access_enter(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply);
/* Before the body is read: as access_enter, by the key in the header alone, and how large a body may be.  Who
 * may run the operation, and may send it more than a few names, sends up to limit_body_bytes; everybody else
 * up to limit_anonymous_body_bytes, since the key may be in the body.  FAULT_OOFF is left to the judgement
 * after it. `operation` NULL: there is none of that name. */
MUST_USE enum fault access_admit(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply, const struct operation *operation);
/* FAULT_AMETHOD: the operation changes something, and the method says that nothing is changed; FAULT_SORIGIN:
 * and a page of another origin asks.  Recorded in the reply. */
MUST_USE enum fault access_check_method(struct worker_context *worker_context, struct call *call,
                                        struct reply *reply, const struct operation *operation);
/* FAULT_SCLOSED: the call, whose level is known, may not run the operation, or may not have what it asks for
 * beside it: synchronisations, a session.  Recorded in the reply. */
MUST_USE enum fault access_check(struct call *call, struct reply *reply, const struct operation *operation);
/* The fault for an operation of that name that is not there: where the caller may not read, the same as for
 * one that is closed.  Recorded in the reply. */
enum fault access_refuse_unknown(struct call *call, struct reply *reply, struct bytes operation);

/* Does the call bear the administrator's key?  Known from access_enter on. */
bool access_is_administrator(const struct call *call);

#endif
