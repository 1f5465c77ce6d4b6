/* access: what may this caller do in this namespace?  Deny by default.
 *
 * A namespace's configuration, which configurations.h keeps, applies at the next request of every worker.
 *
 * Every path that leads into a namespace goes through one function, access_level: operations, resources,
 * synchronisations and sessions beside any operation, tasks that clients create, ping, and live events in
 * their own process.  Before it, access_is_namespace compares what nginx passes with the configuration: a
 * process that can connect to a socket cannot pair the rights of one namespace with the data of another, and
 * a name that is not a namespace never enters a shared table.
 *
 * | level | closed, rules | read | open | z | with the administrator's key |
 * | --- | --- | --- | --- | --- | --- |
 * | nothing | | | | x | |
 * | public operations | x | x | x | | x |
 * | read: read operations, resources, syncs, session, live | | x | x | | x |
 * | write | | | x | | x |
 * | everything | | | | | x |
 *
 * The credential of an account of z with the role "administrator", behind "z_", takes the place of the
 * administrator's key (caller_is_administrator).
 *
 * With the access "rules", a caller without the key may also run the operations that obey rules
 * (operation.h), synchronise, and listen: what it reads and changes there is decided for each document
 * (judge.h, live_ruled.h).
 *
 * The state of the namespace, the highest of its own and that of z, limits everybody, by the same functions:
 *
 * | state | refused | fault |
 * | --- | --- | --- |
 * | 1 read-only | whatever may change something, also for the administrator; tasks | FAULT_OREADONLY |
 * | 2 off | every caller without the administrator's key; tasks | FAULT_OOFF |
 * | 3 gone | everybody | FAULT_OGONE |
 *
 * z itself is served in every state, else nobody could change it back. */
#ifndef STAMPD_OPERATION_ACCESS_ACCESS_H
#define STAMPD_OPERATION_ACCESS_ACCESS_H

#include "model/namespace.h"
#include "operation/attempt.h"
#include "operation/reply.h"

/* Is `code` a namespace, and `database` the one that its configuration names?  The namespace z, which has no
 * configuration, is identified by its code and database together. */
MUST_USE bool access_is_namespace(const struct settings *settings, const struct ns_conf *conf,
                                  struct bytes code, struct bytes database);
/* The same of a call.  nginx may have a former map: if the database has moved to another cell, the first time
 * the call gets it.  FAULT_NNAMESPACE: it is no namespace, or not its database; FAULT_XAWAY: it has moved
 * meanwhile. */
MUST_USE enum fault access_place(const struct settings *settings, const struct ns_conf *conf,
                                 struct call *call);
/* Are both the same database, but for the cell? */
bool access_has_moved(const struct ns_conf *conf, struct bytes code, struct bytes database);
/* The only access decision: the level of an anonymous caller, or of the administrator, in the namespace of
 * this database. */
enum access_level access_level(const struct settings *settings, const struct ns_conf *conf,
                               struct bytes database, bool is_administrator);

/* Makes the state and message of `conf` the effective ones, with those of z. */
void access_add_state_of_z(struct ns_conf *conf, const struct ns_conf *z);
/* FAULT_OOFF, OGONE: why a caller is not served at all in this state.  The namespace z is always served. */
enum fault access_refuse_state(const struct settings *settings, const struct ns_conf *conf,
                               struct bytes database, bool is_administrator);

/* The configuration of the call's namespace, with the effective state; its texts are valid until the next
 * call. */
MUST_USE enum fault access_configuration(struct worker_context *worker_context, struct call *call,
                                         struct ns_conf *conf_r);
/* FAULT_NNAMESPACE: access_is_namespace is false.  Recorded in the reply. */
enum fault access_refuse_name(struct call *call, struct reply *reply);
/* Does the call carry the administrator's key?  FAULT_SKEY: a wrong one, recorded in the reply. */
MUST_USE enum fault access_check_keys(const struct worker_context *worker_context, struct call *call,
                                      struct reply *reply, bool *is_there_r);
/* The filters that apply to a caller without the administrator's key, with these rules and this level, in the
 * arena; NULL: none. */
const struct filters *access_find_filters(const struct call *call, const struct rules *rules,
                                          enum access_level level);
/* Sets the level of the call.  FAULT_NNAMESPACE: it is not a namespace, or its database is another;
 * FAULT_SKEY: a wrong administrator's key; FAULT_OOFF, OGONE.  Recorded in the reply. */
MUST_USE enum fault access_enter(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply);
/* Before the body is read: as access_enter, with the key in the header alone; also sets how large the body
 * may be: limit_body_bytes (of the file of an attachment: limit_blob_bytes) for a caller that may run the
 * operation and send it more than a few names, limit_anonymous_body_bytes for every other caller, since the
 * key may be in the body.  Leaves FAULT_OOFF and OGONE to the later check.  `operation` NULL: no operation
 * has that name. */
MUST_USE enum fault access_admit(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply, const struct operation *operation);
/* FAULT_AMETHOD: the operation changes something, and the method is safe; FAULT_SORIGIN: in addition, a page
 * of another origin sends it.  Recorded in the reply. */
MUST_USE enum fault access_check_method(struct worker_context *worker_context, struct call *call,
                                        struct reply *reply, const struct operation *operation);
/* FAULT_SORIGIN, recorded in the reply. */
MUST_USE enum fault access_refuse_origin(struct call *call, struct reply *reply);
/* May the caller, whose level is known, run it, as far as that or the rules that it obeys decide? */
bool access_may_run(const struct call *call, const struct operation *operation);
/* FAULT_SCLOSED: the call, whose level is known, may not run the operation, or may not have what it requests
 * beside it: synchronisations, a session; FAULT_OREADONLY: it may change something.  Recorded in the reply.
 */
MUST_USE enum fault access_check(struct call *call, struct reply *reply, const struct operation *operation);
/* After a body that may have taken longer than an operation: judges the call as one that begins now. Recorded
 * in the reply, as access_enter and access_check do. */
MUST_USE enum fault access_renew(struct worker_context *worker_context, struct call *call,
                                 struct reply *reply, const struct operation *operation);
/* Could this call change something?  Not only documents: tasks and subscriptions too. */
bool access_may_change(const struct call *call, const struct operation *operation);
/* The fault for an unknown operation: a caller that may not read gets the same fault as for a closed one.
 * Recorded in the reply. */
enum fault access_refuse_unknown(struct call *call, struct reply *reply, struct bytes operation);

/* FAULT_OREADONLY: tasks of the namespace are not run at present.  Valid after access_enter, which refuses in
 * the other states.  Recorded in the reply. */
MUST_USE enum fault access_check_tasks(struct call *call, struct reply *reply);
/* Are tasks of the call's namespace still run?  False also if that is unknown. */
bool access_runs_tasks(struct worker_context *worker_context, struct call *call);

/* Does the call carry the administrator's key?  Valid after access_enter. */
bool access_is_administrator(const struct call *call);

#endif
