/* module_try: one try of the operation of an application, or its afterwork: the struct stampd_call that its
 * functions get, its failures, its result. */
#ifndef STAMPD_OPERATION_MODULE_MODULE_TRY_H
#define STAMPD_OPERATION_MODULE_MODULE_TRY_H

#include "operation/attempt.h"
#include "segment/counts/metrics.h"
#include "stampd.h"

/* In the arena of the request. */
struct stampd_call *module_try_begin(struct attempt *attempt, bool is_afterwork);
/* A call of a filter (module_filter.h), which loads and changes nothing: `attempt` lends arena, settings,
 * caller and namespace. */
struct stampd_call *module_try_begin_filter(struct attempt *attempt,
                                            const struct stampd_operation *operation);
bool module_try_is_filter(const struct stampd_call *call);
struct attempt *module_try_attempt(const struct stampd_call *call);
struct arena *module_try_arena(const struct stampd_call *call);
const struct settings *module_try_settings(const struct stampd_call *call);
const struct stampd_operation *module_try_operation(const struct stampd_call *call);
bool module_try_is_afterwork(const struct stampd_call *call);

/* The documents requested so far, newest first (module_document.c); NULL: none. */
struct stampd_document *module_try_documents(const struct stampd_call *call);
void module_try_set_documents(struct stampd_call *call, struct stampd_document *documents);

/* The first failure; FAULT_NONE: no failure. */
enum fault module_try_fault(const struct stampd_call *call);
/* Fails the try, unless it has failed: the first failure counts.  BMODULE is also logged.  `detail` and
 * `argument` may be NULL. */
void module_try_fail(struct stampd_call *call, enum fault fault, const char *detail, const char *argument);
/* FAULT_ALIMIT: the setting, its value, the actual value. */
void module_try_fail_limit(struct stampd_call *call, const char *limit, int64_t most, int64_t value);
/* The same, when the reply has the failure already. */
void module_try_set_fault(struct stampd_call *call, enum fault fault);

/* Parses a JSON text into the arena; NULL with the problem when the text is not JSON. */
struct json *module_try_read_json(struct stampd_call *call, struct bytes text, const char **what_r);
/* Valid as long as the request. */
void module_try_set_result(struct stampd_call *call, const char *mime, struct bytes result);
/* Puts the result, if there is one, in place of what the try has left in the reply. */
void module_try_write_result(const struct stampd_call *call);

/* Application code runs from now on, until the deadline of the request (module_watch.h). */
void module_try_watch(const struct stampd_call *call);
void module_try_unwatch(const struct stampd_call *call);

/* --- module watch: the master watches application code, not the database --- */
/* Application code runs from now on, until `deadline_ms` (monotonic); `what` names it in the log. */
void module_watch(struct pulse *pulse, const char *what, int64_t deadline_ms);
void module_watch_end(struct pulse *pulse);

#endif
