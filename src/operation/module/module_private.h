/* module_private: shared by the files of module: the definitions of the opaque structs of stampd.h. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_PRIVATE_H
#define STAMPD_OPERATION_MODULE_MODULE_PRIVATE_H

#include "model/draft.h"
#include "operation/module/module.h"
#include "operation/attempt.h"
#include "segment/metrics.h"

/* Lives in the arena of the request; one for each try, and one for afterwork. */
struct stampd_call {
    struct attempt *attempt;
    const struct stampd_operation *operation;
    struct stampd_document *documents; /* requested so far, newest first */
    enum fault fault;                  /* the first failure; FAULT_NONE: no failure */
    bool is_afterwork;
    const char *mime;    /* of the result; NULL: none */
    struct bytes result; /* valid as long as the request */
};

struct stampd_document {
    struct stampd_call *call;
    struct stampd_document *next;
    const char *document_class, *id;
    struct draft *draft; /* NULL: it could not be loaded */
    bool may_change;     /* requested at tolerance 0 */
};

/* JSON values are nodes of edge/json. */
static inline const struct json *json_of(const struct stampd_json *value)
{
    return (const struct json *)(const void *)value;
}
static inline const struct stampd_json *value_of(const struct json *json)
{
    return (const struct stampd_json *)(const void *)json;
}
static inline struct bytes bytes_from(struct stampd_bytes bytes)
{
    return (struct bytes){bytes.data, bytes.size};
}
static inline struct stampd_bytes bytes_to(struct bytes bytes)
{
    return (struct stampd_bytes){bytes.data, bytes.size};
}
static inline struct arena *arena_of(const struct stampd_call *call)
{
    return call->attempt->call->arena;
}
static inline const struct settings *settings_of(const struct stampd_call *call)
{
    return call->attempt->worker_context->settings;
}

/* Fails the try, unless it has failed: the first failure counts.  BMODULE is also logged.  `detail` and
 * `argument` may be NULL. */
void module_fail(struct stampd_call *call, enum fault fault, const char *detail, const char *argument);
/* FAULT_ALIMIT: the setting, its value, the actual value. */
void module_fail_limit(struct stampd_call *call, const char *limit, int64_t most, int64_t value);
/* Parses a JSON text into the arena; NULL with the problem when the text is not JSON. */
struct json *module_read_json(struct stampd_call *call, struct bytes text, const char **what_r);

/* --- the cycle's side (struct operation) --- */
enum fault module_work(struct attempt *attempt);
enum fault module_afterwork(struct attempt *attempt);

/* --- the master watches application code, not the database --- */
/* Application code runs from now on, until `deadline_ms` (monotonic); `what` names it in the log. */
void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms);
void module_unwatch(struct pulse *pulse);
void module_watch_call(const struct stampd_call *call);
void module_unwatch_call(const struct stampd_call *call);

#endif
